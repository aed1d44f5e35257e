"""Servers that never answer: one time limit for all of connecting, and no process is left."""

import asyncio
import os
import time
from pathlib import Path

import pytest

from gudgeon import Client, SyncClient
from gudgeon.errors import McpError
from serverproc import is_alive

pytestmark = pytest.mark.io

# It notes its process and that of its child, ignores SIGTERM, and says nothing.
SILENT = """
trap "" TERM
sleep 600 & echo $$ $! >> "$1"
wait
"""


def connect_sync(command: list[str]) -> None:
    with SyncClient(command, timeout=4):
        pass


def connect(command: list[str]) -> None:
    async def main() -> None:
        async with Client(command, timeout=4):
            pass

    asyncio.run(main())


@pytest.mark.parametrize("face", [connect_sync, connect])
def test_a_failed_connect_names_its_limit_and_leaves_no_process(face: object, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    assert callable(face)
    with pytest.raises(McpError, match="no answer to server/discover or initialize in 4 s"):
        face(["sh", "-c", SILENT, "sh", str(pids)])
    found = [int(word) for word in pids.read_text().split()]
    assert len(found) == 2 and os.getpid() not in found
    end = time.monotonic() + 60
    while any(map(is_alive, found)):  # a killed process may take a moment to end
        assert time.monotonic() < end
        time.sleep(0.01)
