"""`async def` handlers that block their event loop are named in the log, once."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gudgeon import Client, Context, Server, SyncClient
from gudgeon._serving import loop_watch

# Several times what is noticed, in seconds; for what must not be named.
BLOCKS = 0.8


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Handlers are named after a third of the usual time."""
    for name, seconds in (("_PERIOD", 0.05), ("_LATE", 0.02), ("BLOCKED", 0.15)):
        monkeypatch.setattr(loop_watch, name, seconds)


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
            assert self._said.wait_for(lambda: len(self.messages) >= count, 20), self.messages


@pytest.fixture
def warned() -> Iterator[Warned]:
    warned = Warned()
    logging.getLogger("gudgeon").addHandler(warned)
    yield warned
    logging.getLogger("gudgeon").removeHandler(warned)


def shelf(block: Callable[[], None] = lambda: None) -> Server[Any]:
    app: Server[Any] = Server("shelf")

    @app.tool
    async def stuck() -> str:
        await asyncio.sleep(0)
        block()
        return "done"

    @app.tool
    async def waits(seconds: float) -> str:
        await asyncio.sleep(seconds)
        return "done"

    @app.tool
    async def asks(ctx: Context) -> str:
        return str(await ctx.elicit("Sure?", bool))

    @app.tool
    def rests(seconds: float) -> str:
        time.sleep(seconds)
        return "done"

    @app.resource("shelf://slow")
    async def slow() -> str:
        block()
        return "slow"

    return app


def spin() -> None:
    end = time.monotonic() + BLOCKS
    while time.monotonic() < end:
        pass


@pytest.mark.io
@pytest.mark.parametrize("again", [lambda: time.sleep(BLOCKS), spin], ids=["stuck", "spins"])
def test_a_handler_that_blocks_is_named_once(again: Callable[[], None], warned: Warned) -> None:
    blocks = iter([lambda: warned.wait_for(1), again])
    with SyncClient(shelf(lambda: next(blocks)())) as client:
        client.call_tool("waits", {"seconds": 0})
        for _ in range(2):
            assert client.call_tool("stuck").text == "done"
    (warning,) = warned.messages
    assert warning.startswith("tool 'stuck': the async def handler blocks the event loop")
    assert "test_loop_watch.py:" in warning and "asyncio.to_thread" in warning


def test_a_handler_that_spins_is_named(warned: Warned) -> None:
    def spin() -> None:
        end = time.monotonic() + 20
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
def test_handlers_that_wait_are_not_named(warned: Warned) -> None:
    def answer(question: Any) -> bool:
        time.sleep(BLOCKS)
        return True

    with SyncClient(shelf(), on_elicit=answer) as client:
        client.call_tool("waits", {"seconds": BLOCKS})
        client.call_tool("rests", {"seconds": BLOCKS})
        assert client.call_tool("asks").text == "True"
    assert warned.messages == []


@pytest.mark.io
async def test_what_else_blocks_the_loop_is_not_blamed_on_a_handler(warned: Warned) -> None:
    async with Client(shelf()) as client:
        waiting = asyncio.ensure_future(client.call_tool("waits", {"seconds": BLOCKS}))
        await asyncio.sleep(0.1)
        time.sleep(BLOCKS)
        await waiting
    assert warned.messages == []


def test_its_thread_ends_with_the_server() -> None:
    others = set(threading.enumerate())

    def watching() -> list[threading.Thread]:
        return [it for it in threading.enumerate() if it.name == "gudgeon-loop-watch" and it not in others]

    with SyncClient(shelf()) as client:
        assert watching() == []
        client.call_tool("rests", {"seconds": 0})
        assert watching() == [], "there is none without async def handlers that run"
        client.call_tool("waits", {"seconds": 0})
        (thread,) = watching()
    thread.join(10)
    assert not thread.is_alive()
