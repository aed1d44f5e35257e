"""The standard error of servers that are processes: as it is for one, in named and bounded lines for one of several."""

from __future__ import annotations

import sys
import time
from typing import Any

import pytest

from gudgeon import Command, Server, SyncClient, SyncClientGroup, Upstream

pytestmark = pytest.mark.io

NOISY = """
import sys
from gudgeon import Server

sys.stderr.write("\\x1b[31mred\\x1b[0m\\n" + ("x" * 999 + "\\n") * 2_000)
sys.stderr.flush()
app = Server("noisy")

@app.tool
def ping() -> str:
    return "pong"

app.run()
"""
COMMAND = Command(sys.executable, "-c", NOISY)


def test_of_one_server_it_passes_as_it_is(capfd: pytest.CaptureFixture[str]) -> None:
    with SyncClient(COMMAND) as client:
        client.ping()
    said = capfd.readouterr().err
    assert "\x1b[31mred\x1b[0m\n" in said and said.count("x" * 999 + "\n") == 2_000


def _group(command: Command) -> None:
    with SyncClientGroup({"a": command}) as group:
        assert group.call_tool("a_ping", {}).text == "pong"


def _upstream(command: Command) -> None:
    app: Server[Any] = Server("desk")
    app.mount("a", Upstream(command))
    with SyncClient(app) as client:
        assert client.call_tool("a_ping", {}).text == "pong"


@pytest.mark.parametrize("use", [_group, _upstream])
def test_of_several_servers_each_line_has_a_name_controls_no_terminal_and_a_flood_is_cut(
    use: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    use(COMMAND)
    text, until = "", time.monotonic() + 60
    # The last line comes with the end of the process, which a server does not wait for.
    while " left out" not in (text := text + capfd.readouterr().err):
        assert time.monotonic() < until, text[-1_000:]
        time.sleep(0.01)
    said = text.splitlines()
    lines = [line for line in said if line.startswith("[a] ")]
    assert lines[0] == r"[a] \u{1b}[31mred\u{1b}[0m"
    assert sum(len(line) for line in lines) < 1_000_000
    assert not any(line.startswith("x") for line in said)
