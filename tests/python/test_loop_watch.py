"""`async def` handlers that block their event loop are named in the log, once."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from gudgeon import Client, Context, Server, SyncClient

BLOCKS = 1.5  # seconds; several times what is noticed


def shelf() -> Server[Any]:
    app: Server[Any] = Server("shelf")

    @app.tool
    async def stuck(seconds: float) -> str:
        await asyncio.sleep(0)
        time.sleep(seconds)
        return "done"

    @app.tool
    async def spins(seconds: float) -> str:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            pass
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
        time.sleep(BLOCKS)
        return "slow"

    return app


@pytest.fixture
def warned(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    caplog.set_level(logging.WARNING, "gudgeon")
    return lambda: [it.getMessage() for it in caplog.records]


@pytest.mark.parametrize("tool", ["stuck", "spins"])
def test_a_handler_that_blocks_is_named_once(tool: str, warned: Callable[[], list[str]]) -> None:
    with SyncClient(shelf()) as client:
        client.call_tool("waits", {"seconds": 0})
        for _ in range(2):
            assert client.call_tool(tool, {"seconds": BLOCKS}).text == "done"
    (warning,) = warned()
    assert warning.startswith(f"tool {tool!r}: the async def handler blocks the event loop")
    assert "test_loop_watch.py:" in warning and "asyncio.to_thread" in warning


def test_it_is_named_on_the_second_step_and_behind_middleware(warned: Callable[[], list[str]]) -> None:
    app = shelf()

    @app.middleware(on="tools/call")
    async def around(request: Any, next: Any) -> Any:
        return await next(request)

    @app.tool
    async def later() -> str:
        await asyncio.sleep(0.6)
        time.sleep(BLOCKS)
        return "done"

    with SyncClient(app) as client:
        assert client.call_tool("later").text == "done"
        assert client.read_resource("shelf://slow").text == "slow"
    assert [it.partition(":")[0] for it in warned()] == ["tool 'later'", "resources/read"]


async def test_on_a_loop_of_the_programs(warned: Callable[[], list[str]]) -> None:
    async with Client(shelf()) as client:
        assert (await client.call_tool("stuck", {"seconds": BLOCKS})).text == "done"
    assert len(warned()) == 1


def test_handlers_that_wait_are_not_named(warned: Callable[[], list[str]]) -> None:
    def answer(question: Any) -> bool:
        time.sleep(BLOCKS)
        return True

    with SyncClient(shelf(), on_elicit=answer) as client:
        client.call_tool("waits", {"seconds": BLOCKS})
        client.call_tool("rests", {"seconds": BLOCKS})
        assert client.call_tool("asks").text == "True"
    assert warned() == []


async def test_what_else_blocks_the_loop_is_not_blamed_on_a_handler(warned: Callable[[], list[str]]) -> None:
    async with Client(shelf()) as client:
        waiting = asyncio.ensure_future(client.call_tool("waits", {"seconds": BLOCKS}))
        await asyncio.sleep(0.3)
        time.sleep(BLOCKS)
        await waiting
    assert warned() == []


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
