"""Middleware of clients."""

import asyncio
import contextvars
from typing import Any

import pytest

from gudgeon import Client, ClientGroup, ClientRequest, Context, Server, SyncClient, SyncClientGroup
from gudgeon.errors import McpError, ProtocolError, ToolError

ERAS = ["2024-11-05", "2025-11-25", "2026-07-28"]
tenant: contextvars.ContextVar[str] = contextvars.ContextVar("tenant", default="nobody")


def shelf() -> Server:
    app = Server("shelf")

    @app.tool
    def add(a: int, b: int) -> int:
        return a + b

    @app.tool
    def broken() -> None:
        raise ToolError("out of paper")

    @app.tool
    async def slow(ctx: Context) -> str:
        for step in range(3):
            await ctx.progress(step + 1, 3)
        return "done"

    app.resource("shelf://about", name="about")(lambda: "two books")
    app.prompt(lambda: "hello", name="greet")
    return app


class Log:
    """Records the requests that pass, in either kind of client."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    async def __call__(self, request: ClientRequest, next: Any) -> Any:
        self.seen.append((request.method, tenant.get()))
        return await next(request)

    def sync(self, request: ClientRequest, next: Any) -> Any:
        self.seen.append((request.method, tenant.get()))
        return next(request)


@pytest.mark.parametrize("era", ERAS)
async def test_every_request_runs_inside_middleware_in_the_context_of_its_caller(era):
    outer, inner = Log(), Log()
    async with Client(shelf(), revision=era, middleware=[outer, inner]) as client:
        tenant.set("ada")
        assert len(await client.list_tools()) == 3
        assert (await client.call_tool("add", {"a": 1, "b": 2})).data == 3
        assert (await client.read_resource("shelf://about")).text == "two books"
        await client.get_prompt("greet")
        await client.ping()
        with pytest.raises(ProtocolError):
            await client.request("x/y", {"a": 1})
    methods = ["tools/list", "tools/call", "resources/read", "prompts/get", "ping", "x/y"]
    assert outer.seen == inner.seen == [(method, "ada") for method in methods]


@pytest.mark.parametrize("era", ERAS)
def test_a_blocking_client_runs_functions(era):
    log = Log()
    with SyncClient(shelf(), revision=era, middleware=[log.sync]) as client:
        tenant.set("ada")
        assert client.call_tool("add", {"a": 1, "b": 2}).data == 3
        assert len(client.list_prompts()) == 1
        steps: list[float] = []
        assert client.call_tool("slow", on_progress=lambda step: steps.append(step.progress)).data == "done"
        assert steps == [1, 2, 3]
    assert log.seen == [(method, "ada") for method in ("tools/call", "prompts/list", "tools/call")]


async def test_params_and_results_can_be_changed_answered_and_sent_again():
    attempts: list[str] = []

    async def change(request: ClientRequest, next: Any) -> Any:
        if request.method == "tools/list":
            result = await next(request)
            return {**result, "tools": [tool for tool in result["tools"] if tool["name"] == "add"]}
        if request.params["name"] == "answered":
            return {"content": [{"type": "text", "text": "answered"}]}
        arguments = {**request.params["arguments"], "b": 10**15}
        request.params = {**request.params, "arguments": arguments}
        for _ in range(3):
            attempts.append(request.method)
            result = await next(request)
        return result

    async with Client(shelf(), middleware=[change]) as client:
        assert [tool.name for tool in await client.list_tools()] == ["add"]
        assert (await client.call_tool("answered")).text == "answered"
        assert (await client.call_tool("add", {"a": 1, "b": 2})).data == 10**15 + 1
    assert len(attempts) == 3


class Refused(Exception):
    pass


async def test_errors_are_raised_as_they_are():
    results: list[Any] = []

    async def guard(request: ClientRequest, next: Any) -> Any:
        if request.params["name"] == "refused":
            raise Refused("not today")
        try:
            results.append(await next(request))
        except McpError as error:
            results.append(error)
            raise
        return results[-1]

    async with Client(shelf(), middleware=[guard]) as client:
        with pytest.raises(Refused, match="not today") as caught:
            await client.call_tool("refused")
        assert "guard" in [frame.name for frame in caught.traceback]
        with pytest.raises(ToolError, match="out of paper"):
            await client.call_tool("broken")
        assert results[-1]["isError"] is True
        assert (await client.call_tool("broken", raise_on_error=False)).is_error
        with pytest.raises(ProtocolError) as unknown:
            await client.call_tool("nothing")
        assert unknown.value.code == results[-1].code == -32602


def test_errors_are_raised_as_they_are_without_a_loop():
    def guard(request: ClientRequest, next: Any) -> Any:
        if request.params["name"] == "refused":
            raise Refused("not today")
        return next(request)

    with SyncClient(shelf(), middleware=[guard]) as client:
        with pytest.raises(Refused, match="not today"):
            client.call_tool("refused")
        with pytest.raises(ToolError, match="out of paper"):
            client.call_tool("broken")
        assert client.call_tool("add", {"a": 1, "b": 2}).data == 3


async def test_a_cancelled_call_cancels_its_middleware():
    begun, ended = asyncio.Event(), asyncio.Event()

    async def wait(request: ClientRequest, next: Any) -> Any:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with Client(shelf(), middleware=[wait]) as client:
        call = asyncio.ensure_future(client.call_tool("add", {"a": 1, "b": 2}))
        await asyncio.wait_for(begun.wait(), 60)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await asyncio.wait_for(ended.wait(), 60)


async def test_a_call_in_another_event_loop_is_an_error():
    async with Client(shelf(), middleware=[Log()]) as client:

        async def call() -> Any:
            return await asyncio.wait_for(client.call_tool("add", {"a": 1, "b": 2}), 60)

        with pytest.raises(RuntimeError, match="in the event loop in which it was connected"):
            await asyncio.to_thread(asyncio.run, call())


async def test_a_group_runs_the_middleware_of_its_clients():
    log = Log()
    async with ClientGroup({"a": shelf(), "b": shelf()}, middleware=[log]) as group:
        assert len(await group.list_tools()) == 6
        assert (await group.call_tool("a_add", {"a": 1, "b": 2})).data == 3
        assert (await group.read_resource("shelf://about", server="b")).text == "two books"
    assert [method for method, _ in log.seen] == ["tools/list", "tools/list", "tools/call", "resources/read"]
    blocking = Log()
    with SyncClientGroup({"a": shelf()}, middleware=[blocking.sync]) as group:
        assert len(group.list_tools()) == 3
        assert group.call_tool("a_add", {"a": 1, "b": 2}).data == 3
    assert [method for method, _ in blocking.seen] == ["tools/list", "tools/call"]


async def test_wrong_middleware_is_named():
    with pytest.raises(TypeError, match="middleware= must be a list of functions"):
        Client(shelf(), middleware=Log())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="middleware= must be a list of functions"):
        Client(shelf(), middleware=["log"])  # type: ignore[list-item]

    async def nothing(request: ClientRequest, next: Any) -> None:
        await next(request)

    async def stranger(request: ClientRequest, next: Any) -> Any:
        return await next("tools/call")

    async def unnamed(request: ClientRequest, next: Any) -> Any:
        return await next(ClientRequest(request.method, {}))

    def blocking(request: ClientRequest, next: Any) -> Any:
        return {}

    for function, error, message in [
        (nothing, TypeError, "the middleware 'nothing' returned nothing; return what await"),
        (stranger, TypeError, "passes on a ClientRequest"),
        (unnamed, ValueError, '"name" of tools/call: it is missing'),
        (blocking, TypeError, "the middleware 'blocking' of a Client must be an async def"),
    ]:
        async with Client(shelf(), middleware=[function]) as client:
            with pytest.raises(error, match=message):
                await client.call_tool("add", {"a": 1, "b": 2})
    with pytest.raises(TypeError, match="middleware 'nothing' must be a def"):
        SyncClient(shelf(), middleware=[nothing]).connect()
