"""Who listens to a server that shuts down is told so by a result, and need not take it for a broken connection."""

import json

import pytest
from peers import set_up
from replicas import SERVERS, Process, started

ENDED = {"check": "ended", "do": "ended"}


@pytest.fixture(scope="session", autouse=True)
def official():
    """The official clients, set up once."""
    set_up()


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("client", ["official mcp 2", "official ts 2"])
def test_a_server_that_ends_says_so(server, client, tmp_path):
    with Process(server, tmp_path / "ledger") as process:
        with started(client, "auto", [process.url], [ENDED], tmp_path) as program:
            said = iter(program.stderr.readline, "")
            assert "listening\n" in said
            process.process.terminate()
            out, err = program.communicate(timeout=20)
        assert json.loads(out.splitlines()[0]) == {"check": "ended", "got": "graceful"}, out + err
        assert process.process.wait(20) == 0
