"""Threads that handlers have left: the memory they keep, and what is called while they end."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from serverproc import ServerProcess

pytestmark = pytest.mark.io

MIB = 1 << 20
THREADS = 16
# The time after which idle threads end, in seconds.
IDLE = 10
SOURCE = f"""
    import re
    together = threading.Barrier({THREADS})

    @app.tool
    def long() -> str:
        together.wait(60)
        return "x" * {2 * MIB}

    @app.tool
    def hold_interpreter(seconds: float) -> str:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            # Some hundred milliseconds in C each time, in which no other thread gets the interpreter.
            re.match("(a+)+$", "a" * 25 + "b")
        return "held"
"""


@pytest.fixture
def server() -> Iterator[ServerProcess]:
    with ServerProcess(SOURCE, "modern") as server:
        yield server


def call_on_every_thread(server: ServerProcess) -> None:
    calls = [server.start_tool("long") for _ in range(THREADS)]
    for call in calls:
        (content,) = server.reply(call)["result"]["content"]
        assert len(content["text"]) == 2 * MIB


def threads(server: ServerProcess) -> int:
    return len(list(Path(f"/proc/{server.process.pid}/task").iterdir()))


def resident(server: ServerProcess) -> int:
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) * 1024


def test_threads_keep_little_memory_of_results_that_were_sent(server: ServerProcess) -> None:
    for _ in range(8):
        call_on_every_thread(server)
        server.seen.clear()
    # A result and its answer take 8 MiB, which the thread that sends them frees. If it is not used again: 570 MiB.
    assert resident(server) < 300 * MIB
    end = time.monotonic() + IDLE + 60
    while threads(server) > THREADS / 2 or resident(server) > 100 * MIB:
        assert time.monotonic() < end, (threads(server), resident(server))
        time.sleep(0.2)


def test_calls_are_served_that_come_while_idle_threads_wait_for_the_interpreter_to_end(server: ServerProcess) -> None:
    call_on_every_thread(server)
    time.sleep(IDLE - 1)
    holding = server.start_tool("hold_interpreter", seconds=2.5)
    time.sleep(1.5)
    call_on_every_thread(server)
    assert server.reply(holding)["result"]["content"][0]["text"] == "held"
