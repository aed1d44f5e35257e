"""One call of each binding's client to each binding's server, over every transport."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from gudgeon import Command, SyncClient

FOLDER = Path(__file__).parent
SERVERS = {"python": [sys.executable, FOLDER / "server.py"], "node": ["node", FOLDER / "server.mjs"]}
ADDRESSES = {
    "http": "http://127.0.0.1:0/mcp",
    "websocket": "http://127.0.0.1:0/mcp",
    "tcp": "tcp://127.0.0.1:0",
    "unix": "unix:{folder}/socket",
    "http+unix": "http+unix:{folder}/socket",
}
SAID = re.compile(r"(?:https?|tcp)://\S+:[1-9]\S*|(?:http\+)?unix:\S+")


@pytest.fixture(params=["stdio", *ADDRESSES])
def target(request, tmp_path, server):
    """The words that name the server to a client: an address, or a command."""
    transport = request.param
    if transport == "stdio":
        yield [str(word) for word in SERVERS[server]]
        return
    command = [*SERVERS[server], ADDRESSES[transport].format(folder=tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        lines = []
        for line in process.stderr:
            lines.append(line)
            if found := SAID.search(line):
                break
        else:
            pytest.fail(f"the server ended: {''.join(lines)}")
        url = found[0].rstrip(".,")
        yield [url.replace("http://", "ws://") if transport == "websocket" else url]
        process.terminate()
        process.stderr.read()
        assert process.wait(30) == 0


@pytest.mark.parametrize("server", SERVERS)
def test_python_calls_a_server(target, server):
    with SyncClient(Command(*target) if len(target) > 1 else target[0]) as client:
        assert client.call_tool("add", {"a": 1, "b": 2}).data == 3


@pytest.mark.parametrize("server", SERVERS)
def test_node_calls_a_server(target, server):
    command = ["node", FOLDER / "client.mjs", *target]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("3\n", "")
