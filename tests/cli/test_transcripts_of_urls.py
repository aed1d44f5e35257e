"""`gudgeon record` of servers at URLs, and `gudgeon replay --client` for them."""

import json
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from messages import ASKING, META, Host, lines
from ports import reserve_port
from test_run import url_of

SERVERS = Path(__file__).parent / "servers"
REGIONS = """
from typing import Annotated
from gudgeon import Header, Server
app = Server("regions")
@app.tool
def ask(region: Annotated[str, Header("Region")]) -> str:
    return region.upper()
"""


@contextmanager
def serving(gudgeon, file, port=0):
    """Serves a file over HTTP; yields the URL."""
    process = gudgeon.start("run", file, "--http", f"http://127.0.0.1:{port}/mcp")
    try:
        yield url_of(process)
    finally:
        process.terminate()
        process.communicate(timeout=60)


def modern(host, number, method, **params):
    return host.request(number, method, **params, _meta=META)


def recorded(gudgeon, url, *more):
    """Records a session of 2025-11-25, with ids of both types."""
    with Host(gudgeon.start("record", url, "session.jsonl", *more)) as host:
        assert host.initialize()["result"]["protocolVersion"] == "2025-11-25"
        assert host.request("list", "tools/list")["result"]["tools"]
        call = {"name": "wait", "arguments": {"seconds": 0.01}, "_meta": {"progressToken": "p"}}
        host.send(id=1, method="tools/call", params=call)
        steps = [host.receive() for _ in range(11)]
        assert [step["params"]["progressToken"] for step in steps[:10]] == ["p"] * 10 and steps[10]["id"] == 1
        answer = host.request("sum", "tools/call", name="add", arguments={"a": 1, "b": 2})
        assert answer["result"]["content"][0]["text"] == "3"
        assert host.end()[0] == 0


def test_a_session_over_http_is_recorded_and_played_to_the_server(gudgeon, shelf):
    with serving(gudgeon, shelf) as url:
        recorded(gudgeon, f"{url}?key=s3cret")
        header, *messages = lines(gudgeon.folder / "session.jsonl")
        assert header["target"] == url
        ids = [
            message["message"]["id"]
            for message in messages
            if message["from"] == "server" and "id" in message["message"]
        ]
        assert ids == [0, "list", 1, "sum"]
        same = gudgeon("replay", "session.jsonl", "--client", url)
        assert same.code == 0 and same.out.endswith(", 0 differences\n"), same
    changed = gudgeon.folder / "changed.py"
    changed.write_text(shelf.read_text().replace("return a + b", "return a * b"))
    with serving(gudgeon, changed) as url:
        outcome = gudgeon("replay", "session.jsonl", "--client", url)
    assert outcome.code == 1 and '"3" recorded, "2" now' in outcome.out


def test_requests_of_2026_07_28_are_recorded(gudgeon, shelf):
    with serving(gudgeon, shelf) as url:
        with Host(gudgeon.start("record", url, "session.jsonl")) as host:
            answer = modern(host, "x", "tools/call", name="add", arguments={"a": 1, "b": 2})
            assert answer["result"]["content"][0]["text"] == "3"
            filters = {"notifications": {"toolsListChanged": True}}
            host.send(id="s", method="subscriptions/listen", params={**filters, "_meta": META})
            begun = host.receive()
            assert begun["method"] == "notifications/subscriptions/acknowledged"
            assert begun["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == "s"
            answer = modern(host, "y", "tools/call", name="none")
            assert answer["error"]["code"] == -32602
            assert host.end()[0] == 0
        outcome = gudgeon("replay", "session.jsonl", "--client", url)
    assert outcome.code == 0 and outcome.out.endswith(", 0 differences\n"), outcome


def test_arguments_that_are_repeated_in_headers(gudgeon):
    (gudgeon.folder / "regions.py").write_text(REGIONS)
    with serving(gudgeon, "regions.py") as url, Host(gudgeon.start("record", url, "session.jsonl")) as host:
        assert modern(host, 1, "tools/list")["result"]["tools"]
        answer = modern(host, 2, "tools/call", name="ask", arguments={"region": "ü"})
        assert answer["result"]["content"][0]["text"] == "Ü"
        host.end()


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_a_recording_proxy_over_http(gudgeon, shelf, revision):
    with serving(gudgeon, shelf) as url:
        proxy = gudgeon.start("record", url, "session.jsonl", "--http", "http://127.0.0.1:0/mcp")
        try:
            assert proxy.stderr.readline() == f"the recorder of {url} serves (Ctrl-C ends it)\n"
            outcome = gudgeon("call", "--revision", revision, url_of(proxy), "add", "a:=1", "b:=2")
            assert outcome.out == "3\n", outcome.err
        finally:
            proxy.terminate()
            proxy.communicate(timeout=60)
        outcome = gudgeon("replay", "session.jsonl", "--client", url)
    assert outcome.code == 0 and outcome.out.endswith(", 0 differences\n"), outcome


def test_a_session_over_a_web_socket_is_recorded(gudgeon, shelf):
    with serving(gudgeon, shelf) as http:
        url = http.replace("http://", "ws://")
        recorded(gudgeon, url)
        outcome = gudgeon("replay", "session.jsonl", "--client", url)
    assert outcome.code == 0 and outcome.out.endswith(", 0 differences\n"), outcome


def test_questions_over_http_are_recorded_and_asked_again(gudgeon):
    (gudgeon.folder / "server.py").write_text(ASKING)
    client = {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}}
    with serving(gudgeon, "server.py") as url:
        with Host(gudgeon.start("record", url, "session.jsonl")) as host:
            host.request("i", "initialize", **client, clientInfo={"name": "c", "version": "1"})
            host.send(method="notifications/initialized")
            host.send(id="q", method="tools/call", params={"name": "ask", "arguments": {}})
            question = host.until(lambda message: message.get("method") == "elicitation/create")
            host.send(id=question["id"], result={"action": "accept", "content": {"value": True}})
            answer = host.until(lambda message: message.get("id") == "q")
            assert answer["result"]["content"][0]["text"] == "True"
            host.end()
        outcome = gudgeon("replay", "session.jsonl", "--client", url)
    assert outcome.code == 0 and outcome.out.endswith(", 0 differences\n"), outcome


@pytest.fixture
def protected():
    """The URL of a server that demands a token."""
    command = [sys.executable, SERVERS / "protected.py", "http", "0"]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")
    yield server.stdout.readline().strip()
    server.kill()
    server.communicate()


def test_a_token_is_sent_and_not_recorded(gudgeon, protected):
    (gudgeon.folder / "token").write_text("secret-token\n")
    for words, variables in (
        (["-H", "Authorization: Bearer secret-token"], {}),
        (["--token-file", "token"], {}),
        ([], {"GUDGEON_TOKEN": "secret-token"}),
    ):
        with Host(gudgeon.start("record", protected, "session.jsonl", *words, **variables)) as host:
            assert host.initialize()["result"]["serverInfo"]["name"] == "defective"
            host.end()
        outcome = gudgeon("replay", "session.jsonl", *words, "--client", protected, **variables)
        assert outcome.code == 0, outcome
    assert "secret-token" not in (gudgeon.folder / "session.jsonl").read_text()
    with Host(gudgeon.start("record", protected, "other.jsonl")) as host:
        assert "401" in host.initialize()["error"]["message"]
        host.end()


def test_an_address_where_nobody_listens_is_an_error_of_each_request(gudgeon):
    with Host(gudgeon.start("record", "http://127.0.0.1:9/mcp", "session.jsonl")) as host:
        answer = host.request("a", "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={})
        assert answer["error"]["code"] == -32603 and "nothing listens" in answer["error"]["message"], answer
        host.end()
    (gudgeon.folder / "other.jsonl").write_text(
        '{"transcript":1}\n{"from":"client","message":{"jsonrpc":"2.0","id":1,"method":"ping"}}\n'
        '{"from":"server","message":{"jsonrpc":"2.0","id":1,"result":{}}}\n'
    )
    outcome = gudgeon("replay", "other.jsonl", "--json", "--client", "http://127.0.0.1:9/mcp")
    assert outcome.code == 1 and "nothing listens" in json.dumps(outcome.json["differences"])


def test_a_session_that_the_server_forgot_goes_on(gudgeon, shelf):
    with serving(gudgeon, shelf, reserve_port()) as url:
        place = url
        host = Host(gudgeon.start("record", url, "session.jsonl"))
        host.__enter__()
        host.initialize()
    process = gudgeon.start("run", shelf, "--http", place)
    try:
        assert url_of(process) == place
        answer = host.request(5, "tools/call", name="add", arguments={"a": 1, "b": 2})
        assert answer["result"]["content"][0]["text"] == "3"
        assert "another one was opened" in host.end()[1]
    finally:
        host.__exit__()
        process.terminate()
        process.communicate(timeout=60)


def test_wrong_targets_are_errors_of_usage(gudgeon, shelf):
    for words in (
        ["record", shelf, "x.jsonl", "-H", "A: b"],
        ["record", "tcp://127.0.0.1:9", "x.jsonl"],
        ["record", "http://", "x.jsonl"],
    ):
        outcome = gudgeon(*words)
        assert outcome.code == 2, outcome
    assert not (gudgeon.folder / "x.jsonl").exists()
    (gudgeon.folder / "t.jsonl").write_text('{"transcript":1}\n{"from":"client","message":{}}\n')
    outcome = gudgeon("replay", "t.jsonl", "-H", "A: b")
    assert outcome.code == 2 and "--client" in outcome.err
