"""The memory that a client keeps of long results, which its own thread reads and the caller's thread frees."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.io

CLIENT = """
import sys
from pathlib import Path
from gudgeon import SyncClient

with SyncClient([sys.executable, "-c", sys.argv[1]]) as client:
    for _ in range(40):
        assert len(client.call_tool("long").text) == 7 << 20
status = Path("/proc/self/status").read_text().splitlines()
print(next(line.split()[1] for line in status if line.startswith("VmHWM")))
"""
SERVER = """
from gudgeon import Server

app = Server("long")

@app.tool
def long() -> str:
    return "x" * (7 << 20)

app.run()
"""


def test_a_client_keeps_little_memory_of_results_that_were_read() -> None:
    command = [sys.executable, "-c", CLIENT, SERVER]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    # In KiB. Blocks of about 50 MiB are in use at a time; if freed ones are not used again, the peak is 480 MiB.
    assert int(ended.stdout) < 200 * 1024
