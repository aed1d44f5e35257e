"""Programs that listen with `run`: their signals and their workers."""

import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gudgeon import SyncClient

pytestmark = pytest.mark.io

ANYWHERE = "http://127.0.0.1:0/mcp"

PROGRAM = """
    import asyncio, os, sys, time
    from gudgeon import Server
    app = Server("shelf")
    @app.tool
    def pid() -> int:
        return os.getpid()
    @app.tool
    def slow() -> str:
        print("begun", file=sys.stderr, flush=True)
        time.sleep(0.5)
        return "slow"
"""
ASYNC = """
    @app.tool
    async def slow_async() -> str:
        print("begun", file=sys.stderr, flush=True)
        await asyncio.sleep(0.5)
        return "slow"
"""


@contextmanager
def running(more: str, call: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A program that runs a server, and the URL that it says."""
    source = textwrap.dedent(PROGRAM) + textwrap.dedent(more) + f"\n{call}\nprint('returned', file=sys.stderr)\n"
    program = subprocess.Popen([sys.executable, "-c", source], stderr=subprocess.PIPE, text=True)
    assert program.stderr is not None
    url = next(line.strip() for line in program.stderr if line.startswith("http://"))
    try:
        yield program, url
    finally:
        program.kill()
        program.wait()
        program.stderr.close()


@pytest.mark.parametrize("more", ["", ASYNC], ids=["def", "async"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
@pytest.mark.parametrize("workers", [1, 2])
def test_a_signal_lets_calls_finish_and_run_returns(more: str, number: signal.Signals, workers: int) -> None:
    with running(more, f"app.run({ANYWHERE!r}, workers={workers})") as (program, url):
        with SyncClient(url) as client:
            answers: list[str] = []
            tool = "slow_async" if more else "slow"
            calling = threading.Thread(target=lambda: answers.append(client.call_tool(tool).text))
            calling.start()
            assert program.stderr is not None
            while program.stderr.readline() != "begun\n":
                assert calling.is_alive()
            program.send_signal(number)
            calling.join()
            assert answers == ["slow"]
        # The watchdog's thread says what is waited for, which may come too late here.
        waiting = f'gudgeon: waiting up to 10 s for tool "{tool}"; a second Ctrl-C or SIGTERM ends the process at once'
        assert [line for line in program.stderr.read().splitlines() if line != waiting] == ["returned"]
        assert program.wait(60) == 0


VERIFIES = """
    from gudgeon import Context, SyncContext
    from gudgeon.types import Principal
    loops = []
    async def verify(token, request):
        loops.append(asyncio.get_running_loop())
        await asyncio.sleep(0)
        return Principal(token)
    app = Server("shelf", auth=verify)
"""
SAME_LOOP = {
    "def": """
        @app.tool
        def who(ctx: SyncContext) -> str:
            return f"{ctx.principal.subject} {len(set(map(id, loops)))}"
    """,
    "async": """
        @app.tool
        async def who(ctx: Context) -> str:
            own = {id(asyncio.get_running_loop())}
            return f"{ctx.principal.subject} {len(own | set(map(id, loops)))}"
    """,
}


@pytest.mark.parametrize("handler", SAME_LOOP)
def test_async_functions_that_verify_tokens_share_the_loop_of_the_server(handler: str) -> None:
    source = VERIFIES + textwrap.indent(textwrap.dedent(SAME_LOOP[handler]), "    ")
    with running(source, f"app.run({ANYWHERE!r})") as (program, url):
        for token in ("ada", "bob"):
            with SyncClient(url, headers={"Authorization": f"Bearer {token}"}) as client:
                assert client.call_tool("who").text == f"{token} 1"


def test_workers_share_the_port_and_one_that_dies_is_replaced() -> None:
    with running("", f"app.run({ANYWHERE!r}, workers=2)") as (program, url):
        first = _pids(url)
        assert len(first) == 2 and program.pid not in first
        time.sleep(1.1)
        os.kill(min(first), signal.SIGKILL)
        until = time.monotonic() + 60
        while (now := _pids(url, fewer=True)) == first or len(now) < 2:
            assert time.monotonic() < until
        assert len(now & first) == 1
        program.send_signal(signal.SIGTERM)
        assert program.wait(60) == 0


def test_workers_that_die_at_once_are_replaced_with_a_delay() -> None:
    with running("", f"app.run({ANYWHERE!r}, workers=2)") as (program, url):
        seen: set[int] = set()
        for deaths in (2, 2):
            until = time.monotonic() + 60
            while len(alive := _pids(url, fewer=True) - seen) < 2:
                assert program.poll() is None and time.monotonic() < until
            seen |= alive
            for worker in list(alive)[:deaths]:
                os.kill(worker, signal.SIGKILL)
        until = time.monotonic() + 60
        while not _pids(url, fewer=True) - seen:
            assert program.poll() is None and time.monotonic() < until
        program.send_signal(signal.SIGTERM)
        assert program.wait(60) == 0


def test_workers_end_when_their_parent_is_killed() -> None:
    with running("", f"app.run({ANYWHERE!r}, workers=2)") as (program, url):
        workers = _pids(url)
        assert len(workers) == 2
        program.kill()
        until = time.monotonic() + 60
        while any(Path(f"/proc/{worker}").exists() for worker in workers):
            assert time.monotonic() < until, "a worker lives on"
            time.sleep(0.05)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_workers_that_do_not_handle_signals_yet_end_with_their_parent(number: signal.Signals) -> None:
    source = """
import os, time

from gudgeon import Server
from gudgeon._serving.workers import run_workers

def begin(url, group, opened):
    os.write(2, b"%d\\n" % os.getpid())  # one write, so that the lines of both stay whole
    time.sleep(600)

run_workers(Server("slow"), "http://127.0.0.1:0/mcp", 2, begin)
"""
    program = subprocess.Popen([sys.executable, "-c", source], stderr=subprocess.PIPE, text=True)
    assert program.stderr
    workers = [int(program.stderr.readline()) for _ in range(2)]
    program.send_signal(number)
    program.wait(60)
    program.stderr.close()
    until = time.monotonic() + 60
    while any(Path(f"/proc/{worker}").exists() for worker in workers):
        assert time.monotonic() < until, "a worker lives on"
        time.sleep(0.05)


def test_workers_that_die_again_and_again_are_replaced_with_growing_delays() -> None:
    source = """
import os

from gudgeon import Server
from gudgeon._serving import workers

# On a slow machine they would live longer than this.
workers._TOO_SOON = 60.0

def begin(url, group, opened):
    opened(None)
    os._exit(3)

workers.run_workers(Server("short"), "http://127.0.0.1:0/mcp", 1, begin)
"""
    program = subprocess.Popen([sys.executable, "-c", source], stderr=subprocess.PIPE, text=True)
    assert program.stderr
    delays: list[str] = []
    while len(delays) < 3:
        delays += re.findall(r"ended with 3: starting another in ([\d.]+) s", program.stderr.readline())
    program.terminate()
    assert program.wait(60) == 0
    program.stderr.close()
    assert delays == ["0.5", "1", "2"]


def test_workers_that_die_are_replaced_although_nobody_reads_stderr() -> None:
    with running("", f"app.run({ANYWHERE!r}, workers=2)") as (program, url):
        first = _pids(url)
        assert program.stderr
        program.stderr.close()
        os.kill(min(first), signal.SIGKILL)
        until = time.monotonic() + 60
        while (now := _pids(url, fewer=True)) == first or len(now) < 2:
            assert program.poll() is None and time.monotonic() < until


def test_workers_that_can_not_begin_end_the_program() -> None:
    source = """
        from contextlib import asynccontextmanager
        from gudgeon import Server

        @asynccontextmanager
        async def lifespan(app):
            raise OSError("no database")
            yield

        Server("broken", lifespan=lifespan).run("http://127.0.0.1:0/mcp", workers=2)
    """
    program = [sys.executable, "-c", textwrap.dedent(source)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "no database" in done.stderr and "serves with" not in done.stderr


def _pids(url: str, fewer: bool = False) -> set[int]:
    """Returns the process that answers on new connections."""
    pids: set[int] = set()
    until = time.monotonic() + (1 if fewer else 60)
    while len(pids) < 2 and time.monotonic() < until:
        try:
            with SyncClient(url) as client:
                pids.add(client.call_tool("pid").data)
        except Exception:
            time.sleep(0.05)
    return pids
