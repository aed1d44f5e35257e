"""`async def` handlers that block their event loop are named in the log, once."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from gudgeon import Client, Context, Server, SyncClient
from gudgeon._serving import loop_watch

# Seconds for which no loop of a test is blocked, however busy the machine is.
NEVER = 300


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Handlers are named after a third of the usual time."""
    for name, seconds in (("_PERIOD", 0.05), ("_LATE", 0.02), ("BLOCKED", 0.15)):
        monkeypatch.setattr(loop_watch, name, seconds)


class Steps:
    """Counts what the watch has done, by the names of its methods, so that tests wait for that instead of some time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._counts = {"_beat": 0, "_blocker": 0, "_name": 0}
        self._changed = threading.Condition()
        for name in self._counts:
            monkeypatch.setattr(loop_watch.LoopWatch, name, self._counted(name, getattr(loop_watch.LoopWatch, name)))

    def count(self, name: str) -> int:
        return self._counts[name]

    def wait_for(self, name: str, more: int) -> None:
        """Waits until the method has returned so many times more."""
        with self._changed:
            count = self._counts[name] + more
            assert self._changed.wait_for(lambda: self._counts[name] >= count, 60), self._counts

    def _counted(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any) -> Any:
            try:
                return method(*args)
            finally:
                with self._changed:
                    self._counts[name] += 1
                    self._changed.notify_all()

        return counted


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    return Steps(monkeypatch)


class Warned(logging.Handler):
    """The warnings of the log."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []
        self._said = threading.Condition()

    def emit(self, record: logging.LogRecord) -> None:
        with self._said:
            self.messages.append(record.getMessage())
            self._said.notify_all()

    def wait_for(self, count: int) -> None:
        with self._said:
            assert self._said.wait_for(lambda: len(self.messages) >= count, 60), self.messages


@pytest.fixture
def warned() -> Iterator[Warned]:
    warned = Warned()
    logging.getLogger("gudgeon").addHandler(warned)
    yield warned
    logging.getLogger("gudgeon").removeHandler(warned)


def nothing() -> None: ...


def shelf(
    block: Callable[[], object] = nothing,
    *,
    wait: Callable[[], object] = nothing,
    rest: Callable[[], object] = nothing,
) -> Server[Any]:
    app: Server[Any] = Server("shelf")

    @app.tool
    async def stuck() -> str:
        await asyncio.sleep(0)
        block()
        return "done"

    @app.tool
    async def waits() -> str:
        await asyncio.to_thread(wait)
        return "done"

    @app.tool
    async def asks(ctx: Context) -> str:
        return str(await ctx.elicit("Sure?", bool))

    @app.tool
    def rests() -> str:
        rest()
        return "done"

    @app.resource("shelf://slow")
    async def slow() -> str:
        block()
        return "slow"

    return app


@pytest.mark.io
@pytest.mark.parametrize("spins", [False, True], ids=["stuck", "spins"])
def test_a_handler_that_blocks_is_named_once(spins: bool, steps: Steps, warned: Warned) -> None:
    def again() -> None:
        """Blocks until the watch has seen that and said nothing, because it has named the handler before."""
        before, end = steps.count("_name"), time.monotonic() + 60
        if not spins:
            steps.wait_for("_name", 1)
        while steps.count("_name") == before and time.monotonic() < end:
            pass
        assert steps.count("_name") > before

    blocks = iter([lambda: warned.wait_for(1), again])
    with SyncClient(shelf(lambda: next(blocks)())) as client:
        client.call_tool("waits")
        for _ in range(2):
            assert client.call_tool("stuck").text == "done"
    # On a busy machine the loop may be stopped for so long inside of another handler, which then is named rightly.
    (warning,) = (message for message in warned.messages if not message.startswith("tool 'waits'"))
    assert warning.startswith("tool 'stuck': the async def handler blocks the event loop")
    assert "test_loop_watch.py:" in warning and "asyncio.to_thread" in warning


def test_a_handler_that_spins_is_named(warned: Warned) -> None:
    def spin() -> None:
        end = time.monotonic() + 60
        while not warned.messages and time.monotonic() < end:
            pass

    with SyncClient(shelf(spin)) as client:
        client.call_tool("stuck")
    assert len(warned.messages) == 1


def test_it_is_named_on_the_second_step_and_behind_middleware(warned: Warned) -> None:
    blocks = iter([1, 2])
    app = shelf(lambda: warned.wait_for(next(blocks)))

    @app.middleware(on="tools/call")
    async def around(request: Any, next: Any) -> Any:
        return await next(request)

    with SyncClient(app) as client:
        assert client.call_tool("stuck").text == "done"
        assert client.read_resource("shelf://slow").text == "slow"
    assert [message.partition(":")[0] for message in warned.messages] == ["tool 'stuck'", "resources/read"]


async def test_on_a_loop_of_the_programs(warned: Warned) -> None:
    async with Client(shelf(lambda: warned.wait_for(1))) as client:
        assert (await client.call_tool("stuck")).text == "done"
    assert len(warned.messages) == 1


@pytest.mark.io
def test_handlers_that_wait_are_not_named(monkeypatch: pytest.MonkeyPatch, steps: Steps, warned: Warned) -> None:
    monkeypatch.setattr(loop_watch, "BLOCKED", NEVER)
    go_on = threading.Event()

    def be_watched() -> bool:
        steps.wait_for("_beat", 3)
        return True

    app = shelf(wait=lambda: go_on.wait(60), rest=be_watched)
    with SyncClient(app, on_elicit=lambda _: be_watched()) as client, ThreadPoolExecutor(1) as pool:
        # The watch is at work while this one runs.
        waiting = pool.submit(client.call_tool, "waits")
        client.call_tool("rests")
        assert client.call_tool("asks").text == "True"
        go_on.set()
        waiting.result()
    assert warned.messages == []


@pytest.mark.io
async def test_what_else_blocks_the_loop_is_not_blamed_on_a_handler(
    monkeypatch: pytest.MonkeyPatch, steps: Steps, warned: Warned
) -> None:
    monkeypatch.setattr(loop_watch, "BLOCKED", NEVER)
    begun, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        assert go_on.wait(60)

    async with Client(shelf(wait=wait)) as client:
        waiting = asyncio.ensure_future(client.call_tool("waits"))
        assert await asyncio.to_thread(begun.wait, 60)
        # From here on the handler is not on the stack, so that a slow machine can't get it named.
        monkeypatch.setattr(loop_watch, "BLOCKED", 0.15)
        await asyncio.to_thread(steps.wait_for, "_beat", 2)
        steps.wait_for("_blocker", 2)
        monkeypatch.setattr(loop_watch, "BLOCKED", NEVER)
        await asyncio.to_thread(steps.wait_for, "_beat", 1)
        go_on.set()
        await waiting
    assert warned.messages == []


def test_its_thread_ends_with_the_server() -> None:
    others = set(threading.enumerate())

    def watching() -> list[threading.Thread]:
        return [
            thread for thread in threading.enumerate() if thread.name == "gudgeon-loop-watch" and thread not in others
        ]

    with SyncClient(shelf()) as client:
        assert watching() == []
        client.call_tool("rests")
        assert watching() == [], "there is none without async def handlers that run"
        client.call_tool("waits")
        (thread,) = watching()
    thread.join(60)
    assert not thread.is_alive()
