"""Subscriptions of clients: the same in every era, on an event loop and without."""

import asyncio
import sys
import threading
import time
from pathlib import Path

import pytest

from gudgeon import Client, Command, Server, SyncClient
from gudgeon.errors import CallTimeout, Cancelled, ConnectionLost, NotSupported

ERAS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]
ABOUT = "shelf://about"
HERE = Path(__file__).parent


def shelf():
    app = Server("shelf")
    app.tool(lambda: "ok", name="tidy")
    app.resource(ABOUT, name="about")(lambda: "two books")
    app.resource("shelf://other", name="other")(lambda: "none")
    return app


def listening(mode, *, restart=False):
    return Command(sys.executable, str(HERE / "listening_server.py"), mode, restart=restart)


async def soon(what):
    return await asyncio.wait_for(what, 60)


def plain(change):
    return change.kind, change.uri


@pytest.mark.io
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("way", ["memory", "http"])
async def test_changes_are_received_in_every_era(era, way):
    app = shelf()
    async with app.listen("http://127.0.0.1:0/mcp") as here:
        async with Client(app if way == "memory" else here.url, revision=era) as client:
            async with client.subscribe(ABOUT, tools=True) as changes, client.subscribe(ABOUT) as other:
                app.notify_updated("shelf://other")
                app.notify_updated(ABOUT)
                assert plain(await soon(anext(changes))) == ("updated", ABOUT)
                assert plain(await soon(anext(other))) == ("updated", ABOUT)
                app.tools.disable("tidy")
                assert plain(await soon(anext(changes))) == ("tools", None)
            with pytest.raises(StopAsyncIteration):
                await anext(changes)
            with pytest.raises(NotSupported, match=r"prompts\.listChanged"):
                async with client.subscribe(prompts=True):
                    pass


@pytest.mark.parametrize("era", ERAS)
def test_changes_are_received_without_a_loop(era):
    app = shelf()
    with SyncClient(app, revision=era) as client, client.subscribe(ABOUT, tools=True) as changes:
        app.notify_updated(ABOUT)
        assert plain(next(changes)) == ("updated", ABOUT)
        app.tools.disable("tidy")
        assert plain(next(changes)) == ("tools", None)


@pytest.mark.parametrize("era", ERAS)
async def test_the_callback_for_lists_serves_every_era(era):
    app, changed, heard = shelf(), [], asyncio.Event()

    def on_list_changed(change):
        changed.append(change.kind)
        heard.set()

    async with Client(app, revision=era, on_list_changed=on_list_changed) as client:
        async with client.subscribe(tools=True) as changes:
            assert [tool.name for tool in await client.list_tools()] == ["tidy"]
            app.tools.disable("tidy")
            assert (await soon(anext(changes))).kind == "tools"
            await soon(heard.wait())
            await client.ping()
    assert changed == ["tools"]


async def test_what_waits_is_merged_and_nothing_is_lost():
    app, changed = shelf(), []
    async with Client(app, on_list_changed=lambda change: changed.append(change.kind)) as client:
        async with client.subscribe(ABOUT, "shelf://other", tools=True) as changes:
            for _ in range(5_000):
                app.notify_updated(ABOUT)
            app.tools.disable("tidy")
            app.notify_updated("shelf://other")
            await client.ping()
            heard = [plain(await soon(anext(changes))) for _ in range(3)]
            assert heard == [("updated", ABOUT), ("tools", None), ("updated", "shelf://other")]
            waiting = asyncio.ensure_future(anext(changes))
            # What has happened until now is notified before this answer.
            await client.ping()
            assert not waiting.done()
            waiting.cancel()
            # A receiver that gave up takes no change from others.
            app.notify_updated(ABOUT)
            assert plain(await soon(anext(changes))) == ("updated", ABOUT)
    assert changed == ["tools"]


def test_a_list_that_changes_again_before_anybody_looks_has_changed_once():
    app, changed = shelf(), []
    options = {"revision": "2025-11-25", "on_list_changed": lambda change: changed.append(change.kind)}
    with SyncClient(app, **options) as client, client.subscribe(tools=True) as changes:
        for n in range(100):
            app.tools.enable("tidy") if n % 2 else app.tools.disable("tidy")
            # The callback was notified before the subscription, and has not been called yet.
            deadline = time.monotonic() + 60
            while client._core.native.take_change(changes._number) is None:
                assert time.monotonic() < deadline
        client.ping()
    assert changed == ["tools"]


@pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])
async def test_a_client_that_is_closed_ends_its_iterations(era):
    client = await Client(shelf(), revision=era).connect()
    async with client.subscribe(ABOUT) as changes:
        waiting = asyncio.ensure_future(anext(changes))
        await client.ping()
        await client.close()
        with pytest.raises(StopAsyncIteration):
            await soon(waiting)


def test_a_client_that_another_thread_closes_ends_its_iterations():
    client = SyncClient(shelf()).connect()
    heard = []
    with client.subscribe(ABOUT) as changes:
        thread = threading.Thread(target=lambda: heard.extend(changes))
        thread.start()
        client.close()
        thread.join(60)
        assert not thread.is_alive()
    assert heard == []


@pytest.mark.io
async def test_a_graceful_end_is_the_end():
    async with Client(listening("ends")) as client, client.subscribe("a://b") as changes:
        assert [plain(change) async for change in changes] == [("updated", "a://b")]


@pytest.mark.io
async def test_a_subscription_that_is_torn_down_says_why():
    async with Client(listening("cancels")) as client, client.subscribe("a://b") as changes:
        assert plain(await soon(anext(changes))) == ("updated", "a://b")
        with pytest.raises(Cancelled, match="out of patience"):
            await soon(anext(changes))
        with pytest.raises(StopAsyncIteration):
            await soon(anext(changes))


@pytest.mark.io
async def test_what_the_server_does_not_acknowledge_is_named():
    async with Client(listening("keeps_less")) as client:
        with pytest.raises(NotSupported, match="when a://b is updated: it did not acknowledge"):
            async with client.subscribe("a://b", tools=True):
                pass
        async with client.subscribe(tools=True):
            pass


@pytest.mark.io
async def test_a_server_that_does_not_acknowledge_is_not_waited_for():
    async with Client(listening("mute"), timeout=0.3, connect_timeout=60) as client:
        with pytest.raises(CallTimeout, match="not acknowledged in 0.3 s"):
            async with client.subscribe("a://b"):
                pass


@pytest.mark.io
async def test_a_server_that_is_gone_ends_the_iteration():
    async with Client(listening("tells")) as client, client.subscribe("a://b") as changes:
        await soon(anext(changes))
        with pytest.raises(ConnectionLost):
            await client.call_tool("die")
        with pytest.raises(ConnectionLost, match="status 7"):
            await soon(anext(changes))


@pytest.mark.io
async def test_a_server_that_is_started_again_is_subscribed_to_again():
    async with Client(listening("tells", restart=True)) as client:
        async with client.subscribe("a://b", tools=True) as changes:
            assert plain(await soon(anext(changes))) == ("updated", "a://b")
            before = (await client.call_tool("pid")).text
            with pytest.raises(ConnectionLost):
                await client.call_tool("die")
            heard = {plain(await soon(anext(changes))) for _ in range(2)}
            assert heard == {("tools", None), ("updated", "a://b")}
            assert (await client.call_tool("pid")).text != before


@pytest.mark.io
def test_a_server_that_is_started_again_is_subscribed_to_without_a_loop():
    with SyncClient(listening("tells", restart=True)) as client:
        with pytest.raises(ConnectionLost):
            client.call_tool("die")
        # It is started again for this.
        with client.subscribe("a://b") as changes:
            assert plain(next(changes)) == ("updated", "a://b")
            with pytest.raises(ConnectionLost):
                client.call_tool("die")
            assert plain(next(changes)) == ("updated", "a://b")


@pytest.mark.io
async def test_a_server_that_ends_again_and_again_is_given_up():
    async with Client(listening("crashes", restart=True)) as client:
        with pytest.raises(ConnectionLost):
            async with client.subscribe("a://b") as changes:
                async with asyncio.timeout(60):
                    async for _ in changes:
                        pass


def test_something_must_be_asked_for():
    client = Client(shelf())
    with pytest.raises(ValueError, match="the subscription is empty"):
        client.subscribe()
    with pytest.raises(TypeError, match="uris= must be a list of strings"):
        client.subscribe(3)
