"""Questions with no request of the client's behind them: from handlers of notifications, and after a call has ended."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gudgeon import Client, Context, Server, SyncContext, ask
from gudgeon.errors import ConnectionLost, NotSupported

PATIENCE = 60
LEGACY = "2025-11-25"


def io(*values: object) -> Any:
    """Parameters of a test with sockets."""
    return pytest.param(*values, marks=pytest.mark.io)


@contextlib.asynccontextmanager
async def served(app: Server, over: str) -> AsyncIterator[Server | str]:
    if over == "memory":
        yield app
    else:
        async with app.listen("tcp://127.0.0.1:0" if over == "tcp" else "http://127.0.0.1:0/mcp") as here:
            yield over + here.url[here.url.index(":") :]


@contextlib.asynccontextmanager
async def reached(app: Server, over: str, **options: Any) -> AsyncIterator[Client]:
    async with served(app, over) as target, Client(target, **options) as client:
        yield client


@pytest.mark.parametrize(
    ("over", "is_async"), [("memory", True), ("memory", False), io("http", True), io("tcp", False)]
)
async def test_the_roots_are_asked_for_when_they_change(over: str, is_async: bool) -> None:
    app = Server("s")
    heard: asyncio.Queue[list[str]] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    if is_async:

        @app.on_roots_changed
        async def changed(ctx: Context) -> None:
            roots = [root.uri for root in await ctx.roots()]
            loop.call_soon_threadsafe(heard.put_nowait, roots)

    else:

        @app.on_roots_changed
        def changed_sync(ctx: SyncContext) -> None:
            roots = [root.uri for root in ctx.roots()]
            loop.call_soon_threadsafe(heard.put_nowait, roots)

    async with reached(app, over, revision=LEGACY, roots=["file:///a"]) as client:
        for roots in (["file:///b"], ["file:///b", "file:///c"]):
            client.set_roots(roots)
            async with asyncio.timeout(PATIENCE):
                assert await heard.get() == roots


@pytest.mark.parametrize("over", ["memory", io("http")])
@pytest.mark.parametrize("revision", [LEGACY, "2026-07-28"])
async def test_a_question_after_the_end_of_its_call_fails_at_once(over: str, revision: str) -> None:
    app = Server("s")
    outcomes: asyncio.Queue[BaseException | None] = asyncio.Queue()
    may_ask = asyncio.Event()
    loop = asyncio.get_running_loop()
    tasks: set[asyncio.Task[None]] = set()

    @app.tool
    async def leave_behind(ctx: Context) -> str:
        async def later() -> None:
            while not may_ask.is_set():
                await asyncio.sleep(0.001)
            error: BaseException | None = None
            try:
                await ctx.ask(ask.elicit("Anybody?", bool))
            except BaseException as caught:
                error = caught
            loop.call_soon_threadsafe(outcomes.put_nowait, error)

        tasks.add(asyncio.create_task(later()))
        return "left"

    def on_elicit(request: object) -> bool:
        raise AssertionError("nobody is to be asked")

    async with reached(app, over, revision=revision, on_elicit=on_elicit) as client:
        assert (await client.call_tool("leave_behind")).text == "left"
        may_ask.set()
        async with asyncio.timeout(PATIENCE):
            error = await outcomes.get()
        assert isinstance(error, NotSupported), repr(error)


@pytest.mark.parametrize(("over", "revision"), [("memory", LEGACY), io("http", LEGACY), io("http", "2026-07-28")])
@pytest.mark.parametrize("name, left", [("stays", "CancelledError"), ("stays_sync", "Abandoned")])
async def test_who_asks_after_its_client_left_is_stopped(over: str, revision: str, name: str, left: str) -> None:
    app = Server("s")
    outcomes: asyncio.Queue[str] = asyncio.Queue()
    loop, begun = asyncio.get_running_loop(), asyncio.Event()

    def record(outcome: str) -> None:
        loop.call_soon_threadsafe(outcomes.put_nowait, outcome)

    @app.tool
    async def stays(ctx: Context) -> None:
        loop.call_soon_threadsafe(begun.set)
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(3_600)
        try:
            record(f"answered {await ctx.elicit('Anybody?', bool)}")
        except BaseException as error:
            record(type(error).__name__)
            raise

    @app.tool
    def stays_sync(ctx: SyncContext) -> None:
        loop.call_soon_threadsafe(begun.set)
        while not ctx.cancelled:
            time.sleep(0.001)
        try:
            record(f"answered {ctx.elicit('Anybody?', bool)}")
        except BaseException as error:
            record(type(error).__name__)
            raise

    def on_elicit(request: object) -> bool:
        raise AssertionError("nobody is to be asked")

    async with asyncio.timeout(PATIENCE), served(app, over) as target:
        async with Client(target, revision=revision, on_elicit=on_elicit) as client:
            calling = asyncio.ensure_future(client.call_tool(name))
            await begun.wait()
        with pytest.raises(ConnectionLost):
            await calling
        assert await outcomes.get() == left
