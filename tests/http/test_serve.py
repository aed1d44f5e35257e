"""`tests/conformance/serve`: a mistake in the options of the servers that tests start is refused, never ignored."""

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
import servers
import speak

pytestmark = pytest.mark.only(*servers.NATIVE)
ADDRESS = ["--http", "127.0.0.1:0"]
MOUNTS = {"python": "asgi", "node": "fetch", "rust": "tower"}


def refusal(kind, options):
    """Returns the output of a server that does not start."""
    command = [str(servers.SERVE), kind, *options]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode > 0 and done.stdout == "", (options, done)
    return done.stderr


def test_what_cannot_be_meant_is_refused(kind):
    mount = MOUNTS[kind]
    foreign = "tower" if kind == "node" else "node"
    rows = [
        ([], "--"),
        (["--stdio", *ADDRESS], "--"),
        ([*ADDRESS, "--nonsense"], "--"),
        ([*ADDRESS, "--mount", foreign], mount),
        ([*ADDRESS, "--page-size", "many"], "page"),
        ([*ADDRESS, "--dialects", "0.8"], "0.7"),
        ([*ADDRESS, "--options", '{"max_bdy": 1}'], "max"),
    ]
    with ThreadPoolExecutor(4) as pool:
        for (options, told), said in zip(rows, pool.map(lambda row: refusal(kind, row[0]), rows), strict=True):
            assert told in said, options


def test_lists_are_paged(kind):
    command = [str(servers.SERVE), *servers.KINDS[kind], *ADDRESS, "--page-size", "3"]
    with servers.Server(kind, command=command) as server:
        first = speak.reply(speak.ask_modern(server, "tools/list"))["result"]
        rest = speak.reply(speak.ask_modern(server, "tools/list", {"cursor": first["nextCursor"]}))["result"]
        assert (len(first["tools"]), len(rest["tools"])) == (3, 3)


def test_it_becomes_the_server_and_says_its_url_last(kind, start):
    server = start()
    program = os.path.basename(os.readlink(f"/proc/{server.process.pid}/exe"))
    assert program.startswith({"python": "python", "node": "node", "rust": "conformance-server"}[kind])
    assert server.stderr[-1] == f"http://127.0.0.1:{server.port}/mcp\n"
    assert server.stdout == []
