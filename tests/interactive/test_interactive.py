"""A tool with three questions in a loop and a side effect has the same outcome for all clients and servers."""

from itertools import product

import pytest
from balancer import Balancer
from replicas import SERVERS, Process, meet

# Official clients meet every server. With a client of this project the same core is at both ends, so each meets one.
OURS = [("ours python", "node"), ("ours python sync", "rust"), ("ours node", "python"), ("ours rust", "node")]
MODERN = [*product(["official mcp 2", "official ts 2"], SERVERS), *OURS]
LEGACY = [*MODERN, *product(["official mcp 1", "official ts 1"], SERVERS)]

# The revisions behind a client program's era argument; other arguments are revisions themselves.
REVISIONS = {"legacy": "2025-11-25", "auto": "2026-07-28"}
CONNECT = {"check": "connect", "do": "connect"}
ORDER = {"check": "order", "do": "call", "name": "order"}
OUTCOME = "Ada: 2 books under 7"


@pytest.fixture
def ledger(tmp_path):
    return tmp_path / "ledger"


def check(client, era, target, ledger):
    """Checks the tool's outcome, and that its side effect happened exactly once."""
    got = meet(client, era, target, [CONNECT, ORDER])
    assert got["connect"]["revision"] == REVISIONS.get(era, era)
    assert not got["order"].get("is_error", True) and got["order"]["text"] == OUTCOME, got
    assert ledger.read_text() == "reserved\n"


@pytest.mark.parametrize(("client", "server"), LEGACY)
def test_legacy(server, client, ledger):
    """Elicitation: questions are requests on the stream of the call."""
    with Process(server, ledger) as process:
        check(client, "legacy", process.url, ledger)


@pytest.mark.parametrize(("client", "server"), LEGACY)
def test_the_first_revision_with_elicitation(server, client, ledger):
    with Process(server, ledger) as process:
        check(client, "2025-06-18", process.url, ledger)


@pytest.mark.parametrize(("client", "server"), LEGACY)
@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26"])
def test_before_elicitation_models_and_roots_can_be_asked(server, client, revision, ledger):
    steps = [
        CONNECT,
        ORDER,
        {"check": "model", "do": "call", "name": "capital"},
        {"check": "roots", "do": "call", "name": "where"},
    ]
    with Process(server, ledger) as process:
        got = meet(client, revision, process.url, steps)
    assert got["connect"]["revision"] == revision
    assert got["order"]["is_error"] and "elicitation" in got["order"]["text"], got
    assert (got["model"]["text"], got["roots"]["text"]) == ("Paris", "file:///interop")


@pytest.mark.parametrize(("client", "server"), MODERN)
def test_suspended(server, client, ledger):
    """2026-07-28, Multi Round-Trip Requests: the handler is suspended until the request with the answers."""
    with Process(server, ledger) as process:
        check(client, "auto", process.url, ledger)


@pytest.mark.parametrize(("client", "server"), MODERN)
def test_replayed_on_another_process(server, client, ledger):
    """Every request with answers reaches a process other than the one that asked."""
    with Process(server, ledger) as one, Process(server, ledger) as other:
        ports = [one.port, other.port]
        turns = []

        def choose(body):
            if b'"requestState"' in body:
                ports.reverse()
                turns.append(ports[0])
            return ports[0]

        with Balancer(choose) as balancer:
            check(client, "auto", balancer.url, ledger)
    assert len(turns) == 3 and len(set(turns)) == 2


@pytest.mark.parametrize(("client", "server"), MODERN)
def test_replayed_after_a_restart(server, client, ledger):
    """The process that asked is killed before the answers come."""
    restarts = []
    with Process(server, ledger) as process:

        def choose(body):
            if b'"requestState"' in body:
                process.restart()
                restarts.append(body)
            return process.port

        with Balancer(choose) as balancer:
            check(client, "auto", balancer.url, ledger)
    assert len(restarts) == 3


@pytest.mark.parametrize(
    ("client", "server", "era"), [*((*pair, "legacy") for pair in LEGACY), *((*pair, "auto") for pair in MODERN)]
)
def test_over_stdio(server, client, era, ledger):
    # Official clients pass only a few environment variables to the servers that they start.
    env = ["/usr/bin/env", f"INTEROP_LEDGER={ledger}"]
    check(client, era, [*env, *SERVERS[server]], ledger)
