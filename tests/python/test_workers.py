"""`app.run(url, workers=N)` with clients before 2026-07-28: whichever worker gets a request, it has the same effect."""

import contextlib
import http.client
import os
import signal
import stat
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from eventually import eventually
from worker_client import WorkerClient

pytestmark = pytest.mark.io

LEGACY = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
ASKING = LEGACY[2:]

PROGRAM = """
    import asyncio, os, sys
    from gudgeon import Context, Server
    app = Server("shelf")
    @app.tool
    def pid() -> int:
        return os.getpid()
    @app.tool
    async def ask(ctx: Context, number: int) -> str:
        return await ctx.elicit(f"say {number}", str)
    @app.tool
    async def hang() -> None:
        print("begun", flush=True)
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            print("cancelled", flush=True)
            raise
    @app.resource("shelf://top")
    def top() -> str:
        return "full"
    @app.tool
    def change() -> int:
        app.notify_updated("shelf://top")
        return os.getpid()
    app.run("http://127.0.0.1:0/mcp", workers=4)
"""


@contextmanager
def running(**variables: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    program = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PROGRAM)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **variables},
    )
    assert program.stderr is not None and program.stdout is not None
    url = next(line.strip() for line in program.stderr if line.startswith("http://"))
    try:
        yield program, url
    finally:
        program.kill()
        program.wait()
        program.stderr.close()
        program.stdout.close()


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[subprocess.Popen[str], str]]:
    with running() as program_and_url:
        yield program_and_url


@pytest.mark.parametrize("revision", LEGACY)
def test_each_worker_goes_on_with_each_session(served: tuple[subprocess.Popen[str], str], revision: str) -> None:
    client = WorkerClient(served[1], revision)
    answered: set[str] = set()
    calls = 0
    while len(answered) < 4 or calls < 20:
        answered.add(client.call("pid"))
        calls += 1
        assert calls < 1000, answered
    client.end()
    # The others are told at once, and not waited for.
    eventually(lambda: {client.status_of_ping() for _ in range(20)} == {404})


@pytest.mark.parametrize("revision", ASKING)
def test_an_answer_finds_the_worker_that_asked(served: tuple[subprocess.Popen[str], str], revision: str) -> None:
    client = WorkerClient(served[1], revision)
    for number in range(20):
        assert client.call("ask", number=number) == f"say {number}"


def test_a_cancellation_finds_the_worker_of_the_call() -> None:
    with running() as (program, url):
        client = WorkerClient(url, "2025-11-25")
        assert program.stdout is not None
        for _ in range(8):
            request, connection = client.start("hang")
            assert program.stdout.readline() == "begun\n"
            client.say("notifications/cancelled", {"requestId": request})
            assert program.stdout.readline() == "cancelled\n"
            connection.close()


def test_an_update_reaches_the_stream_wherever_it_is_made(served: tuple[subprocess.Popen[str], str]) -> None:
    client = WorkerClient(served[1], "2025-11-25")
    client.request("resources/subscribe", {"uri": "shelf://top"})
    messages = client.listen()
    changed: set[str] = set()
    while len(changed) < 4:
        changed.add(client.call("change"))
        methods = (message["method"] for message in messages)
        assert "notifications/resources/updated" in methods


def test_clients_of_2026_07_28_answer_at_any_worker(served: tuple[subprocess.Popen[str], str]) -> None:
    assert [finish_anew(served[1], number) for number in range(10)] == [f"say {number}" for number in range(10)]


def finish_anew(url: str, number: int) -> str:
    """Calls with one client and answers with another, which has a connection of its own."""
    from gudgeon import SyncClient

    with SyncClient(url, revision="2026-07-28", on_elicit=lambda request: None) as one:
        asked = one.call_tool_round("ask", {"number": number})
    with SyncClient(url, revision="2026-07-28", on_elicit=lambda request: None) as other:
        key = next(iter(asked.questions))
        answer = {"action": "accept", "content": {"value": f"say {number}"}}
        return other.call_tool_round("ask", {"number": number}, answers={key: answer}, state=asked.state).text


def test_a_session_outlives_its_worker() -> None:
    with running() as (_, url):
        client = WorkerClient(url, "2025-11-25")
        killed = {client.call("pid")}
        os.kill(int(*killed), signal.SIGKILL)

        def is_replaced() -> bool:
            # Connections that waited for the one that was killed are reset.
            with contextlib.suppress(ConnectionError):
                killed.add(client.call("pid"))
            return len(killed) > 4

        eventually(is_replaced)


def test_subscriptions_outlive_all_workers() -> None:
    with running() as (_, url):
        client = WorkerClient(url, "2025-11-25")
        client.request("resources/subscribe", {"uri": "shelf://top"})
        killed: set[str] = set()
        while len(killed) < 4:
            killed.add(client.call("pid"))
        for worker in killed:
            os.kill(int(worker), signal.SIGKILL)

        def is_replaced() -> bool:
            with contextlib.suppress(ConnectionError, http.client.HTTPException):
                return client.call("pid") not in killed
            return False

        eventually(is_replaced)
        methods = (message["method"] for message in client.listen())
        # It may have changed in the meantime.
        assert "notifications/resources/updated" in methods
        client.call("change")
        assert "notifications/resources/updated" in methods


def test_the_folder_of_the_workers_is_private_and_removed_at_the_end() -> None:
    # pytest's folders have long paths.
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        with running(TMPDIR=folder) as (program, url):
            client = WorkerClient(url, "2025-11-25")
            client.request("resources/subscribe", {"uri": "shelf://top"})
            (group,) = Path(folder).iterdir()
            assert stat.S_IMODE(group.stat().st_mode) == 0o700
            assert stat.S_IMODE((group / "store.db").stat().st_mode) == 0o600
            program.send_signal(signal.SIGTERM)
            assert program.wait(60) == 0
        assert list(Path(folder).iterdir()) == []


def test_workers_start_where_the_temporary_folder_has_a_long_path(tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 100)
    folder.mkdir()
    with running(TMPDIR=str(folder)) as (_, url):
        client = WorkerClient(url, "2025-11-25")
        for number in range(8):
            assert client.call("ask", number=number) == f"say {number}"
    assert list(folder.iterdir()) == []
