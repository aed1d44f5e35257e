"""A client in an event loop other than the one in which it was connected: it works, or says why it can't, at once."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gudgeon import Client, ClientGroup, Context, Server
from gudgeon.errors import ConnectionLost, McpError

STOPPED = "connected in another event loop, which does not run now"


def shelf() -> Server:
    app = Server("shelf")

    @app.tool
    def count() -> int:
        return 2

    @app.tool
    async def sure(ctx: Context) -> bool:
        return await ctx.elicit("Sure?", bool)

    return app


SHELF = """
from pathlib import Path
from gudgeon import Context, Server
app = Server("shelf")

@app.tool
def count() -> int:
    return 2

@app.tool
async def sure(ctx: Context, call: int = 1) -> bool:
    await ctx.info("asking")
    try:
        return await ctx.elicit(f"Call {call}: sure?", bool)
    except BaseException as error:
        Path(__file__).with_name("ended").write_text(type(error).__name__)
        raise

app.run()
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "shelf.py"
    path.write_text(SHELF)
    return path


@pytest.fixture
def home() -> Iterator[asyncio.AbstractEventLoop]:
    """A loop that is neither running nor closed between the calls of its `run_until_complete`."""
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


def within(seconds: float, waiting: Awaitable[Any]) -> Any:
    """Runs something in a new loop, on a thread of its own; fails if it does not end in time."""
    outcome: list[Any] = []

    async def main() -> None:
        try:
            outcome.append(await asyncio.wait_for(waiting, seconds))
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=asyncio.run, args=(main(),))
    thread.start()
    thread.join()
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0]


async def step(*parts: Callable[[], Awaitable[Any]]) -> list[Any]:
    return [await part() for part in parts]


async def passing(request: Any, next: Any) -> Any:
    return await next(request)


@pytest.mark.parametrize("options", [{}, {"middleware": [passing]}, {"on_log": print}])
def test_calls_after_the_loop_was_stopped_are_errors(home: Any, options: Any) -> None:
    client = Client(shelf(), **options)
    home.run_until_complete(client.connect())
    for call in (
        lambda: client.call_tool("count"),
        client.list_tools,
        client.ping,
        lambda: client.subscribe(tools=True).__aenter__(),
    ):
        with pytest.raises(McpError, match=STOPPED) as caught:
            within(60, step(call))
        assert caught.value.hint and caught.value.target == "Server('shelf')"
        assert "the server in memory can't answer" in caught.value.message
    # It goes on in its own loop.
    assert home.run_until_complete(client.call_tool("count")).data == 2
    home.run_until_complete(client.close())


@pytest.mark.io
def test_a_subscription_of_a_loop_that_was_stopped_is_an_error(home: Any, program: Path) -> None:
    client = Client(program)
    home.run_until_complete(client.connect())
    changes = home.run_until_complete(client.subscribe(tools=True).__aenter__())
    with pytest.raises(McpError, match=rf"{STOPPED}, so that its callbacks can't answer"):
        within(60, step(changes.__anext__))
    home.run_until_complete(client.close())


def test_a_group_of_a_loop_that_was_stopped_is_an_error(home: Any) -> None:
    group = ClientGroup({"a": shelf()})
    home.run_until_complete(group.__aenter__())
    for call in (group.list_tools, lambda: group.call_tool("a_count"), lambda: group.read_resource("a://b")):
        with pytest.raises(McpError, match=STOPPED):
            within(60, step(call))
    assert home.run_until_complete(group.call_tool("a_count")).data == 2
    home.run_until_complete(group.__aexit__())


@pytest.mark.io
def test_a_client_of_a_loop_that_was_stopped_can_be_closed(home: Any, program: Path) -> None:
    client = Client(program)
    home.run_until_complete(client.connect())
    within(60, client.close())
    with pytest.raises(McpError, match="not connected"):
        within(60, client.list_tools())
    # A server in memory ends only where it runs.
    client = Client(shelf())
    home.run_until_complete(client.connect())
    with pytest.raises(McpError, match=STOPPED):
        within(60, client.close())
    within(60, client.close())


@pytest.mark.io
@pytest.mark.parametrize("is_in_memory", [True, False])
def test_a_client_of_a_loop_that_was_closed_can_be_closed(program: Path, is_in_memory: bool) -> None:
    client = Client(shelf() if is_in_memory else program)
    loop = asyncio.new_event_loop()
    loop.run_until_complete(client.connect())
    loop.close()
    if is_in_memory:
        with pytest.raises(ConnectionLost, match="closed now, and the server in memory ended with it"):
            within(60, client.call_tool("count"))
    else:
        assert within(60, client.call_tool("count")).data == 2
    within(60, client.close())


class Elsewhere:
    """A loop that runs on another thread."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()

    def run(self, waiting: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(waiting, self.loop).result(60)

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()


@pytest.fixture
def elsewhere() -> Iterator[Elsewhere]:
    loop = Elsewhere()
    yield loop
    loop.stop()
    loop.loop.close()


@pytest.mark.io
@pytest.mark.parametrize("is_in_memory", [True, False])
def test_a_client_works_while_its_own_loop_runs(elsewhere: Elsewhere, program: Path, is_in_memory: bool) -> None:
    threads = []

    def sure(request: Any) -> bool:
        threads.append(threading.current_thread())
        return True

    client = Client(shelf() if is_in_memory else program, on_elicit=sure)
    elsewhere.run(client.connect())
    assert within(60, client.call_tool("sure")).data is True and threads == [elsewhere.thread]
    within(60, client.close())


@pytest.mark.io
@pytest.mark.parametrize("is_in_memory", [True, False])
@pytest.mark.parametrize("is_closed", [True, False])
def test_a_call_ends_when_the_clients_own_loop_does(program: Path, is_in_memory: bool, is_closed: bool) -> None:
    elsewhere, asked = Elsewhere(), threading.Event()

    async def never(request: Any) -> bool:
        asked.set()
        await asyncio.Event().wait()
        return True

    client = Client(shelf() if is_in_memory else program, on_elicit=never)
    elsewhere.run(client.connect())

    async def call() -> Any:
        calling = asyncio.ensure_future(client.call_tool("sure", timeout=None))
        await asyncio.to_thread(asked.wait, 60)
        await asyncio.to_thread(elsewhere.stop)
        if is_closed:
            elsewhere.loop.close()
        return await calling

    with pytest.raises(McpError) as caught:
        within(60, call())
    assert not isinstance(caught.value, asyncio.TimeoutError)
    if not is_closed:
        assert STOPPED in caught.value.message
        within(60, step_ignoring(client.close))
        elsewhere.loop.close()
    else:
        within(60, client.close())


async def step_ignoring(close: Callable[[], Awaitable[None]]) -> None:
    try:
        await close()
    except McpError:
        pass


@pytest.mark.io
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("is_asked", [True, False])
def test_a_call_of_a_loop_that_was_closed_is_cancelled(program: Path, revision: Any, is_asked: bool) -> None:
    asked: list[tuple[bool, str]] = []

    async def sure(request: Any) -> bool:
        is_first = asyncio.get_running_loop() is first
        asked.append((is_first, request.message))
        if is_first:
            await asyncio.Event().wait()
        return True

    client = Client(program, on_elicit=sure, revision=revision)
    first = asyncio.new_event_loop()
    first.run_until_complete(client.connect())

    async def until_it_is_asked() -> None:
        async with asyncio.timeout(60):
            while is_asked and not asked:
                await asyncio.sleep(0.01)

    # The call is under way when its loop is closed, which does not cancel its tasks.
    calling = first.create_task(client.call_tool("sure"))
    first.run_until_complete(until_it_is_asked())
    first.run_until_complete(asyncio.sleep(0))
    calling._log_destroy_pending = False  # type: ignore[attr-defined]
    first.close()
    if is_asked and revision == "2025-11-25":
        ended, end = program.with_name("ended"), time.monotonic() + 60
        while not (ended.exists() and ended.read_text()):
            assert time.monotonic() < end
            time.sleep(0.01)
        assert ended.read_text() in ("CancelledError", "ProtocolError")
    assert within(60, client.call_tool("count")).data == 2
    assert within(60, client.call_tool("sure", {"call": 2})).data is True
    # The question of a call that is cancelled before it asks may be on its way to the next loop.
    assert [question for question in asked if question[1] == "Call 2: sure?"] == [(False, "Call 2: sure?")]
    assert not is_asked or [question for question in asked if question[1] == "Call 1: sure?"] == [
        (True, "Call 1: sure?")
    ]
    within(60, client.close())


@pytest.mark.io
def test_a_second_run_goes_on_with_a_process(program: Path) -> None:
    logs: list[str] = []
    client = Client(program, on_elicit=lambda _: True, on_log=lambda message: logs.append(message.data))

    async def sure() -> Any:
        return (await client.call_tool("sure")).data

    asyncio.run(client.connect())
    assert asyncio.run(sure()) is True and asyncio.run(sure()) is True and logs == ["asking"] * 2
    asyncio.run(client.close())


def test_a_thread_without_a_loop_is_told_what_to_use() -> None:
    coroutine = Client(shelf()).connect()
    with pytest.raises(RuntimeError, match=r"no running event loop: Client needs one on this thread; .* or SyncClient"):
        coroutine.send(None)
    coroutine.close()
