"""A server that shuts down ends subscriptions with a result, which clients can tell from a broken connection."""

import json

import pytest
from replicas import SERVERS, Process, started

ENDED = {"check": "ended", "do": "ended"}


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("client", ["official mcp 2", "official ts 2"])
def test_a_server_that_shuts_down_ends_subscriptions(server, client, tmp_path):
    with Process(server, tmp_path / "ledger") as process:
        with started(client, "auto", process.url, [ENDED], tmp_path) as program:
            said = iter(program.stderr.readline, "")
            assert "listening\n" in said
            process.process.terminate()
            out, err = program.communicate(timeout=60)
        assert json.loads(out.splitlines()[0]) == {"check": "ended", "got": "graceful"}, out + err
        assert process.process.wait(60) == 0
