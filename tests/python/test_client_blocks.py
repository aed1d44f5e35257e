"""Opening and closing a client: nested blocks, and event loops one after the other."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from gudgeon import Client, ClientGroup, Server, SyncClient, SyncClientGroup
from gudgeon.errors import ConnectionLost, McpError

SHELF = """\
from gudgeon import Server
app = Server("shelf")
@app.tool
def count() -> int:
    return 2
app.run()
"""


def shelf() -> Server[Any]:
    app: Server[Any] = Server("shelf")

    @app.tool
    def count() -> int:
        return 2

    return app


# ── nested blocks ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("face", [Client, SyncClient])
def test_an_inner_with_leaves_the_client_open(face: Any) -> None:
    client = face(shelf())
    with client as outer:
        with client as inner:
            assert inner is outer and inner.call_tool("count").data == 2
        assert outer.call_tool("count").data == 2
    with pytest.raises(McpError, match="not connected"):
        outer.call_tool("count")
    with client as again:
        assert again.call_tool("count").data == 2


async def test_an_inner_async_with_leaves_the_client_open() -> None:
    client = Client(shelf())
    async with client:
        async with client as inner:
            assert (await inner.call_tool("count")).data == 2
        assert (await client.call_tool("count")).data == 2
    with pytest.raises(McpError, match="not connected"):
        await client.call_tool("count")


@pytest.mark.io
async def test_a_block_that_could_not_be_entered_does_not_count() -> None:
    client = Client(["gudgeon-no-such-program"])
    for _ in range(2):
        with pytest.raises(McpError, match="gudgeon-no-such-program"):
            async with client:
                raise AssertionError("it was entered")


async def test_close_closes_within_a_block() -> None:
    client = Client(shelf())
    async with client:
        async with client:
            await client.close()
        with pytest.raises(McpError, match="not connected"):
            await client.call_tool("count")


async def test_an_inner_block_leaves_a_group_open() -> None:
    group = ClientGroup({"a": shelf()})
    async with group:
        async with group as inner:
            assert inner is group
        assert (await group.call_tool("a_count")).data == 2
    blocking = SyncClientGroup({"a": shelf()})
    with blocking:
        with blocking as same:
            assert same is blocking
        assert blocking.call_tool("a_count").data == 2
    with pytest.raises(McpError, match="not connected"):
        blocking.clients["a"].call_tool("count")


# ── event loops ──────────────────────────────────────────────────────────────────────────────────────


async def count(client: Client) -> Any:
    return (await client.call_tool("count")).data


def test_a_client_of_a_loop_that_is_closed_says_so() -> None:
    client = Client(shelf())
    asyncio.run(client.connect())
    for _ in range(2):
        with pytest.raises(
            ConnectionLost,
            match=r"^Server\('shelf'\): this client was connected in an event loop that is closed now, and the server "
            r"in memory ended with it \(hint: open the client in the loop that uses it",
        ):
            asyncio.run(count(client))

    async def anew() -> Any:
        async with client:
            return await count(client)

    assert asyncio.run(anew()) == 2


@pytest.mark.io
def test_a_client_of_a_process_goes_on_in_the_next_loop(tmp_path: Path) -> None:
    (tmp_path / "shelf.py").write_text(SHELF)
    client = Client(tmp_path / "shelf.py")
    asyncio.run(client.connect())
    assert asyncio.run(count(client)) == 2
    asyncio.run(client.close())
