"""A server that is started by hand, in a terminal."""

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.io

SYNC = "from gudgeon import Server\nServer('shelf').run()\n"
ASYNC = "import asyncio\nfrom gudgeon import Server\nasyncio.run(Server('shelf').serve())\n"


@pytest.mark.parametrize("code", [SYNC, ASYNC], ids=["run", "serve"])
def test_a_server_says_in_a_terminal_that_it_waits_for_a_client(code: str, tmp_path: Path) -> None:
    program = tmp_path / "my server.py"
    program.write_text(code)
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, str(program)],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Programs that a shell started in the background ignore Ctrl-C, and their children as well.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert line.startswith("shelf: serving over stdio, waiting for an MCP client on standard input; ")
        assert f"`gudgeon inspect '{program}'`" in line
        assert line.endswith("; Ctrl-C ends it\n")
        process.send_signal(signal.SIGINT)
        said, more = process.communicate(timeout=60)
        assert said == "" and "serving over stdio" not in more
    finally:
        process.kill()
        os.close(ours)
        os.close(theirs)


def test_nothing_is_said_where_a_client_started_it(tmp_path: Path) -> None:
    program = tmp_path / "server.py"
    program.write_text(SYNC)
    run = subprocess.run([sys.executable, str(program)], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


@pytest.mark.parametrize(("closed", "name"), [(0, "input"), (1, "output")])
def test_a_server_without_standard_streams_ends_with_one_line(closed: int, name: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", SYNC],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        preexec_fn=lambda: os.close(closed),
    )
    assert ended.returncode == 1
    assert ended.stderr == f"gudgeon: standard {name} is closed, which a server over stdio needs: a client starts it\n"


def test_a_stray_print_does_not_fail_a_call() -> None:
    code = (
        "from gudgeon import Server\napp = Server('shelf')\napp.tool(lambda: print('\u2713'), name='tick')\napp.run()\n"
    )
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    asked = [("initialize", hello), ("tools/call", {"name": "tick", "arguments": {}})]
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": at, "method": request[0], "params": request[1]})
        for at, request in enumerate(asked)
    ]
    ended = subprocess.run(
        [sys.executable, "-c", code],
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert json.loads(ended.stdout.splitlines()[1])["result"].get("isError") is None
    assert ended.stderr.splitlines() == ["\\u2713"]
