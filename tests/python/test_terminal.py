"""A server that is started by hand, in a terminal."""

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
        assert f"`npx @modelcontextprotocol/inspector {os.path.basename(sys.executable)} '{program}'`" in line
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
