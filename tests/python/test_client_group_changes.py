"""Subscriptions to changes of several servers."""

import asyncio

import pytest

from gudgeon import ClientGroup, Server, SyncClientGroup
from gudgeon.errors import McpError, NotSupported


def shelf(name: str) -> Server:
    app = Server(name)
    app.tool(lambda: "ok", name="tidy")
    app.resource(f"{name}://about", name="about")(lambda: "two books")
    return app


def plain(change):
    return change.server, change.kind, change.uri


async def soon(what):
    return await asyncio.wait_for(what, 60)


@pytest.mark.io
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_changes_name_their_server(revision):
    a, b = shelf("a"), shelf("b")
    targets = {"one": a, "two": b, "gone": ["gudgeon-no-such-program"]}
    async with ClientGroup(targets, revision=revision) as group:
        async with group.subscribe("b://about", tools=True) as changes:
            a.notify_updated("a://about")
            a.tools.disable("tidy")
            assert plain(await soon(anext(changes))) == ("one", "tools", None)
            b.notify_updated("b://about")
            assert plain(await soon(anext(changes))) == ("two", "updated", "b://about")
            b.tools.disable("tidy")
            assert plain(await soon(anext(changes))) == ("two", "tools", None)
        with pytest.raises(StopAsyncIteration):
            await anext(changes)
        async with group.subscribe(tools=True, server="two") as changes:
            a.tools.enable("tidy")
            b.tools.enable("tidy")
            assert plain(await soon(anext(changes))) == ("two", "tools", None)


def test_changes_are_received_without_a_loop():
    a, b = shelf("a"), shelf("b")
    with SyncClientGroup({"a": a, "b": b}) as group, group.subscribe("a://about", tools=True) as changes:
        a.notify_updated("a://about")
        assert plain(next(changes)) == ("a", "updated", "a://about")
        b.tools.disable("tidy")
        assert plain(next(changes)) == ("b", "tools", None)
    with pytest.raises(StopIteration):
        next(changes)


async def test_closing_the_group_ends_the_iteration():
    async with ClientGroup({"a": shelf("a")}) as group:
        changes = await group.subscribe(tools=True).__aenter__()
        waiting = asyncio.ensure_future(anext(changes, None))
        # It is under way once the group has answered something that was asked after it.
        await group.list_tools()
    assert await soon(waiting) is None


async def test_what_can_not_be_subscribed_to():
    with pytest.raises(ValueError, match="the subscription is empty"):
        ClientGroup({}).subscribe()
    with pytest.raises(McpError, match="not connected"):
        await ClientGroup({"a": shelf("a")}).subscribe(tools=True).__aenter__()
    async with ClientGroup({"a": shelf("a")}) as group:
        with pytest.raises(NotSupported, match=r"prompts\.listChanged"):
            await group.subscribe(prompts=True).__aenter__()
        with pytest.raises(McpError, match="no server 'b'; it has a"):
            await group.subscribe(tools=True, server="b").__aenter__()
    bare = Server("bare")
    bare.tool(lambda: "ok", name="tidy")
    async with ClientGroup({"bare": bare}) as group:
        with pytest.raises(NotSupported, match="no server of this group notifies of updates of 'a://about'"):
            await group.subscribe("a://about").__aenter__()
