"""Tracebacks of calls that fail: the program's own lines, and little of the package's."""

import subprocess
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gudgeon import Client, ClientGroup, Server, SyncClient, ToolError
from gudgeon.errors import McpError, NotSupported

TESTS = """\
import pytest
from gudgeon import Client, Server, SyncClient, ToolError

app = Server("shelf")

@app.tool
def lend() -> str:
    raise ToolError("lent already")

def test_blocking():
    with SyncClient(app) as client:
        client.call_tool("lend")

@pytest.mark.asyncio
async def test_on_a_loop():
    async with Client(app) as client:
        await client.call_tool("lend")
"""


def shelf() -> Server[Any]:
    app: Server[Any] = Server("shelf")

    @app.tool
    def lend() -> int:
        raise ToolError("lent already")

    @app.tool
    def count() -> int:
        return 2

    @app.tool
    def stock() -> dict[str, int]:
        return {"books": 2}

    return app


def shown(caught: pytest.ExceptionInfo[BaseException]) -> list[str]:
    return [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)][1:]


def test_a_blocking_call_shows_two_frames_of_ours() -> None:
    with SyncClient(shelf()) as client:
        with pytest.raises(ToolError) as caught:
            client.call_tool("lend")
        assert shown(caught) == ["call_tool", "run"] and caught.value.__context__ is None
        with pytest.raises(NotSupported) as refused:
            client.read_resource("shelf://about")
        assert shown(refused) == ["read_resource", "run"]


async def test_an_awaited_call_shows_two_frames_of_ours() -> None:
    async with Client(shelf()) as client:
        with pytest.raises(ToolError) as caught:
            await client.call_tool("lend")
        assert shown(caught) == ["call_tool", "run"]
    async with ClientGroup({"a": shelf()}) as group:
        with pytest.raises(ToolError) as caught:
            await group.call_tool("a_lend")
        assert shown(caught) == ["call_tool", "call_tool", "run"]


def test_a_cause_is_kept() -> None:
    with SyncClient(shelf()) as client, pytest.raises(McpError, match="'count'") as caught:
        client.call_tool("count", returns=str)
    assert shown(caught) == ["call_tool", "run"] and caught.value.__cause__ is not None


@dataclass
class Strict:
    books: int

    def __post_init__(self) -> None:
        raise KeyError("broken")


def test_frames_of_the_programs_own_stay() -> None:
    with SyncClient(shelf()) as client, pytest.raises(KeyError) as caught:
        client.call_tool("stock", returns=Strict)
    assert shown(caught)[0] == "call_tool" and shown(caught)[-1] == "__post_init__"


@pytest.mark.io
def test_pytest_shows_the_line_of_the_test_last(tmp_path: Path) -> None:
    (tmp_path / "test_shelf.py").write_text(TESTS)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tmp_path),
        str(tmp_path),
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert "2 failed" in done.stdout, done.stdout
    assert done.stdout.count('client.call_tool("lend")') == 2
    assert "_client" not in done.stdout and "client.py" not in done.stdout, done.stdout
