"""The values of `ctx.session` in a store."""

import asyncio
import itertools
import json
import logging
import re
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gudgeon import Context, Server, SyncContext

pytestmark = pytest.mark.io

HEADERS = {"content-type": "application/json", "accept": "application/json, text/event-stream"}


def shelf(folder: Path) -> Server[Any]:
    app: Server[Any] = Server(
        "shelf", store=f"sqlite:{folder / 'store'}", request_state_keys=["a key of thirty-two bytes or more"]
    )

    @app.tool
    def count(ctx: SyncContext) -> int:
        ctx.session["count"] = ctx.session.get("count", 0) + 1
        return int(ctx.session["count"])

    @app.tool
    async def add(ctx: Context) -> int:
        ctx.session.setdefault("cart", []).append(2**64)
        await asyncio.sleep(0)
        return len(ctx.session["cart"])

    @app.tool
    def names(ctx: SyncContext) -> list[str]:
        return sorted(ctx.session)

    @app.tool
    async def forget(ctx: Context) -> None:
        del ctx.session["cart"]

    @app.tool
    def fail(ctx: SyncContext) -> None:
        ctx.session["failed"] = True
        raise ValueError("on purpose")

    @app.tool
    async def keep(ctx: Context) -> None:
        ctx.session["keeper"] = object()

    @app.tool
    def number(ctx: SyncContext) -> None:
        ctx.session[7] = "seven"  # type: ignore[index]

    @app.tool
    def both(ctx: SyncContext) -> None:
        ctx.session["keeper"] = object()
        raise ValueError("on purpose")

    return app


class Session:
    """A session of 2025-11-25 with several servers of one address."""

    def __init__(self, urls: list[str]) -> None:
        self.urls, self.headers = urls, HEADERS
        self.ids = itertools.count()
        client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
        answer, headers = self._post(0, "initialize", client)
        assert "result" in answer
        self.headers = {**HEADERS, "mcp-session-id": headers["mcp-session-id"]}

    def _post(self, server: int, method: str, params: dict[str, Any]) -> tuple[dict[str, Any], Any]:
        body = json.dumps({"jsonrpc": "2.0", "id": next(self.ids), "method": method, "params": params}).encode()
        request = urllib.request.Request(self.urls[server], body, self.headers)
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.load(response), response.headers

    async def call(self, server: int, tool: str) -> tuple[str, bool]:
        """Returns the text of a tool's result, and whether it is an error."""
        params: dict[str, Any] = {"name": tool, "arguments": {}}
        answer, _ = await asyncio.to_thread(self._post, server, "tools/call", params)
        result = answer["result"]
        return "".join(part["text"] for part in result["content"]), bool(result.get("isError"))


@asynccontextmanager
async def two_servers(folder: Path) -> AsyncIterator[list[str]]:
    anywhere = "http://127.0.0.1:0/mcp"
    async with shelf(folder).listen(anywhere) as one, shelf(folder).listen(anywhere) as other:
        yield [one.url, other.url]


async def test_the_values_of_a_session_are_at_all_servers_and_each_session_has_its_own(tmp_path: Path) -> None:
    async with two_servers(tmp_path) as urls:
        session, other = [await asyncio.to_thread(Session, urls) for _ in range(2)]
        for server, count in [(0, "1"), (1, "2"), (1, "3"), (0, "4")]:
            assert await session.call(server, "count") == (count, False)
        assert await other.call(1, "count") == ("1", False)


async def test_values_that_are_changed_in_place_are_stored_and_removed_ones_are_gone(tmp_path: Path) -> None:
    async with two_servers(tmp_path) as urls:
        session = await asyncio.to_thread(Session, urls)
        assert [await session.call(server, "add") for server in (0, 1)] == [("1", False), ("2", False)]
        await session.call(0, "forget")
        assert await session.call(1, "names") == ("[]", False)


async def test_a_name_that_is_removed_at_one_server_is_gone_at_all(tmp_path: Path) -> None:
    async with two_servers(tmp_path) as urls:
        session = await asyncio.to_thread(Session, urls)
        await session.call(0, "add")
        await session.call(1, "forget")
        for server in (0, 1, 0):
            assert await session.call(server, "names") == ("[]", False)


async def test_calls_of_one_session_that_end_at_once_all_succeed(tmp_path: Path) -> None:
    async with two_servers(tmp_path) as urls:
        session = await asyncio.to_thread(Session, urls)
        results = await asyncio.gather(*(session.call(number % 2, "count") for number in range(40)))
        assert not any(is_error for _, is_error in results)


async def test_a_value_that_has_no_json_concerns_its_call_only(tmp_path: Path) -> None:
    async with two_servers(tmp_path) as urls:
        session = await asyncio.to_thread(Session, urls)
        await session.call(0, "count")
        assert (await session.call(0, "keep"))[1]
        assert await session.call(0, "names") == ('["count"]', False)
        assert await session.call(0, "count") == ("2", False)


async def test_values_outlive_their_server(tmp_path: Path) -> None:
    async with two_servers(tmp_path) as urls:
        session = await asyncio.to_thread(Session, urls)
        await session.call(0, "count")
    async with two_servers(tmp_path) as urls:
        session.urls = urls
        assert await session.call(0, "count") == ("2", False)


async def test_what_a_handler_that_fails_has_changed_is_stored(tmp_path: Path) -> None:
    async with two_servers(tmp_path) as urls:
        session = await asyncio.to_thread(Session, urls)
        assert (await session.call(0, "fail"))[1]
        assert await session.call(1, "names") == ('["failed"]', False)


@pytest.mark.parametrize(
    ("tool", "reason"),
    [
        ("keep", r"ctx\.session\.keeper: an object can't be converted to JSON"),
        ("number", "ctx.session: the name 7 is not a string, so it can't be stored"),
        ("both", "the values of ctx.session are not stored"),
    ],
)
async def test_a_value_that_has_no_json_fails_the_call(
    tool: str, reason: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    async with two_servers(tmp_path) as urls:
        session = await asyncio.to_thread(Session, urls)
        _, is_error = await session.call(0, tool)
        assert is_error
    assert re.search(reason, caplog.text), caplog.text
