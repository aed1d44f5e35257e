"""Calls, questions, streams and addresses through each proxy that the documentation configures."""

import itertools
from collections.abc import Iterator

import pytest
import speak
from documented_sites import Site

from gudgeon import Client, SyncClient

REVISIONS = ["2025-11-25", "2026-07-28"]
names = (f"release-{number}" for number in itertools.count())


def client_of(site: Site, revision: str, **options: object) -> SyncClient:
    ca = site.proxy.certificate[0] if site.proxy.certificate else None
    return SyncClient(site.proxy.url, revision=revision, **({"ca": ca} if ca else {}), **options)


@pytest.mark.parametrize("revision", REVISIONS)
def test_calls_reach_every_server_and_those_of_a_session_one_if_routing_is_sticky(site: Site, revision: str) -> None:
    with client_of(site, revision) as client:
        answered = {client.call_tool("replica").text for _ in range(4 * len(site.replicas))}
    if revision < "2026-07-28" and site.configuration.is_sticky:
        assert len(answered) == 1
    else:
        assert answered == {replica.name for replica in site.replicas}


@pytest.mark.several
@pytest.mark.parametrize("revision", REVISIONS)
def test_calls_succeed_while_a_server_is_away(site: Site, revision: str) -> None:
    for away in site.replicas:
        with client_of(site, revision) as client:
            client.call_tool("replica")
            away.kill()
            answered = {client.call_tool("replica").text for _ in range(8)}
            assert answered == {replica.name for replica in site.replicas if replica is not away}
        away.start()


def test_a_body_of_3_mib_passes_and_one_above_the_limit_is_refused(site: Site) -> None:
    with client_of(site, "2026-07-28") as client:
        text = "x" * (3 << 20)
        assert client.call_tool("echo", {"text": text}).text == text
    assert speak.call_modern(site.proxy, "echo", {"text": "x" * (5 << 20)}).status == 413


def test_questions_of_2026_07_28_reach_the_client(site: Site) -> None:
    with client_of(site, "2026-07-28", on_elicit=lambda request: True) as client:
        answers = [client.call_tool("order", {"number": number}).text for number in range(6)]
    assert answers == [f"{number}: more" for number in range(6)]


@pytest.mark.sticky
def test_questions_before_it_reach_the_client(site: Site) -> None:
    with client_of(site, "2025-11-25", on_elicit=lambda request: True) as client:
        answers = [client.call_tool("order", {"number": number}).text for number in range(6)]
    assert answers == [f"{number}: more" for number in range(6)]


def test_progress_is_not_held_back(site: Site) -> None:
    name = next(names)
    with site.proxy.connect() as connection:
        params = {"name": "held", "arguments": {"name": name}}
        speak.send_modern(connection, site.proxy, "tools/call", params, meta_more={"progressToken": 1})
        assert connection.head().type == "text/event-stream"
        # The handler goes on only once this has been read.
        assert connection.message()["params"]["progress"] == 1
        (site.folder / name).touch()
        assert connection.message()["params"]["progress"] == 2
        assert connection.message()["result"]["content"][0]["text"] == name


def changed(site: Site, messages: Iterator[dict]) -> None:
    """Makes every replica tell of a change, and waits for the notification."""
    told = {speak.text_of(speak.reply(speak.call_modern(site.proxy, "change"))) for _ in range(4 * len(site.replicas))}
    assert told == {replica.name for replica in site.replicas}
    assert any(message.get("method") == "notifications/resources/updated" for message in messages)


def test_a_subscription_is_told_of_changes(site: Site) -> None:
    with speak.listen(site.proxy, {"resourceSubscriptions": ["shelf://top"]}) as stream:
        changed(site, iter(stream.message, None))


@pytest.mark.sticky
def test_the_stream_of_a_session_is_told_of_changes(site: Site) -> None:
    with speak.Session(site.proxy) as session, session.stream() as stream:
        assert session.ask("resources/subscribe", {"uri": "shelf://top"})["result"] == {}
        changed(site, iter(stream.message, None))


def test_probes_are_answered_to_the_balancer_and_not_to_the_public(site: Site) -> None:
    for path in ("/healthz", "/readyz"):
        for replica in site.replicas:
            assert replica.probe(path) == (200, b"ok\n")
        if site.configuration.hides_probes:
            with site.proxy.connect() as connection:
                assert connection.ask("GET", path).status == 404


async def test_websockets_are_passed_on(site: Site) -> None:
    ca = site.proxy.certificate[0]
    async with Client(site.proxy.url.replace("https:", "wss:"), ca=ca) as client:
        assert (await client.call_tool("echo", {"text": "hello"})).text == "hello"


def test_hosts_are_checked(site: Site) -> None:
    for host, status in (("shelf.example.com", 200), ("evil.example.com", 421)):
        answer = speak.call_modern(site.proxy, "echo", {"text": "hello"}, headers={"Host": host})
        assert answer.status == status, answer


FORGED = {"X-Forwarded-For": "192.0.2.66", "Forwarded": "for=192.0.2.66", "X-Forwarded-Host": "evil.example.com"}


@pytest.mark.parametrize("forged", [{}, FORGED], ids=["honest", "forged"])
def test_the_server_knows_the_address_of_the_client(protected_site: Site, forged: dict[str, str]) -> None:
    site, log = protected_site, protected_site.folder / "clients"
    log.unlink(missing_ok=True)
    headers = {"Authorization": "Bearer ada", **forged}
    with site.proxy.connect(source="127.0.0.2") as connection:
        answer = speak.call_modern(site.proxy, "echo", {"text": "x"}, connection=connection, headers=headers)
    assert answer.status == 200, answer
    assert log.read_text().split() == ["127.0.0.2"]


def test_the_metadata_for_signing_in_is_public(protected_site: Site) -> None:
    with protected_site.proxy.connect() as connection:
        refused = speak.call_modern(protected_site.proxy, "echo", {"text": "x"}, connection=connection)
        assert refused.status == 401
        answer = connection.ask("GET", "/.well-known/oauth-protected-resource/mcp")
    assert answer.status == 200 and answer.json()["resource"] == "https://shelf.example.com/mcp"
