"""Middleware around handlers and around what the core answers."""

from typing import Any

import pytest

from eventually import eventually
from gudgeon import Client, Context, Server, SyncContext, ToolError, ask
from gudgeon.errors import McpError, ProtocolError, ResourceNotFound
from gudgeon.middleware import ResponseLimit, Timing
from gudgeon.testing import ERAS, connect, connect_sync
from gudgeon.types import Completion, Page, PromptResult, ResourceResult, Tool, ToolResult
from middleware_server import shelf


@pytest.fixture
def noted() -> list[Any]:
    return []


def note(app: Server[Any], noted: list[Any], on: str = "*") -> None:
    @app.middleware(on=on)
    async def noting(request: Any, next: Any) -> Any:
        result = await next(request)
        noted.append((request.method, dict(request.params), result))
        return result


@pytest.mark.parametrize("era", ERAS)
def test_every_request_passes(era: str, noted: list[Any]) -> None:
    app = shelf()

    @app.prompt
    def review(title: str) -> str:
        return f"Review {title}"

    @app.complete("review", "title")
    def titles(prefix: str) -> list[str]:
        return ["Dune"]

    @app.resource("shelf://about")
    def about() -> str:
        return "about"

    note(app, noted)
    with connect_sync(app, revision=era) as client:
        client.list_tools()
        client.call_tool("open", {"title": "Dune"})
        client.get_prompt("review", {"title": "Dune"})
        client.read_resource("shelf://about")
        client.complete("review", "title", "D")
        client.ping()
    seen = {method: (params, result) for method, params, result in noted}
    opening = "server/discover" if era == "2026-07-28" else "initialize"
    assert opening in seen
    params, page = seen["tools/list"]
    assert isinstance(page, Page) and page.items[0].description == "Opens a book."
    assert seen["tools/call"][0] == {"name": "open", "arguments": {"title": "Dune"}}
    assert isinstance(seen["tools/call"][1], ToolResult)
    assert isinstance(seen["prompts/get"][1], PromptResult)
    assert isinstance(seen["resources/read"][1], ResourceResult)
    params, completion = seen["completion/complete"]
    assert params["ref"] == {"type": "ref/prompt", "name": "review"}
    assert params["argument"] == {"name": "title", "value": "D"}
    assert isinstance(completion, (list, Completion))
    assert ("ping" in seen) == (era != "2026-07-28")


def test_what_the_core_refuses_passes_as_its_error(noted: list[Any]) -> None:
    app = shelf()

    @app.resource("shelf://about")
    def about() -> str:
        return "about"

    @app.middleware
    async def fix(request: Any, next: Any) -> Any:
        try:
            return await next(request)
        except ProtocolError as error:
            noted.append((request.method, error.code))
            if request.params.get("name") == "lost":
                return ToolResult("found")
            raise

    with connect_sync(app, revision="2025-11-25") as client:
        assert client.call_tool("lost").text == "found"
        with pytest.raises(McpError, match="Unknown tool: none"):
            client.call_tool("none")
        with pytest.raises(ResourceNotFound) as missing:
            client.read_resource("shelf://none")
        assert missing.value.code == -32002, "the client's own code, though middleware saw the newest"
    assert noted == [("tools/call", -32602), ("tools/call", -32602), ("resources/read", -32602)]


def test_middleware_refuses_and_params_of_the_core_stay(caplog: pytest.LogCaptureFixture) -> None:
    app = shelf()

    @app.middleware(on=["tools/list", "tools/call"])
    async def guard(request: Any, next: Any) -> Any:
        if request.method == "tools/call":
            raise ToolError("locked")
        request.params = {"cursor": "x"}
        return await next(request)

    with connect_sync(app) as client:
        assert client.call_tool("open", {"title": "x"}, raise_on_error=False).text == "locked"
        with pytest.raises(McpError, match=r"tools/list failed: TypeError \(reference"):
            client.list_tools()
    eventually(lambda: "middleware can't change the params of" in caplog.text)


def test_the_first_is_the_outermost_and_arguments_may_change(noted: list[Any]) -> None:
    app = shelf()
    note(app, noted, on="tools/call")

    @app.middleware(on="tools/call")
    async def shout(request: Any, next: Any) -> Any:
        arguments = {"title": request.params["arguments"]["title"].upper()}
        request.params = {**request.params, "arguments": arguments}
        result = await next(request)
        return ToolResult(result.text + "!")

    with connect_sync(app, revision="2025-06-18") as client:
        assert client.call_tool("open", {"title": "dune"}).text == "open DUNE!"
    assert noted[0][2].text == "open DUNE!"


def test_arguments_that_are_changed_in_place_are_given_changed() -> None:
    app = shelf()

    @app.resource("shelf://books/{id}")
    def book(id: str) -> str:
        return id

    @app.method("acme/find")
    def find(name: str) -> dict[str, str]:
        return {"found": name}

    @app.middleware
    async def change(request: Any, next: Any) -> Any:
        if request.method == "tools/call":
            request.params["arguments"]["title"] = "emma"
        elif request.method == "resources/read":
            request.params["variables"]["id"] = "8"
        elif request.method == "acme/find":
            request.params["name"] = "other"
        elif request.method == "tools/list":
            request.params["cursor"] = "x"
        return await next(request)

    house = Server("house")
    house.mount("shelf", app)
    for served, before in ((app, ""), (house, "shelf_")):
        with connect_sync(served) as client:
            assert client.call_tool(f"{before}open", {"title": "dune"}).text == "open emma"
            assert client.read_resource("shelf://books/7").text == "8"
            assert client.request("acme/find", {"name": "book"})["found"] == "other"
            if served is app:
                with pytest.raises(McpError, match="tools/list failed"):
                    client.list_tools()


@pytest.mark.parametrize("era", [era for era in ERAS if era >= "2025-06-18"])
def test_a_handler_in_the_cores_place_asks_as_a_tool_does(era: str) -> None:
    app = Server("gateway")

    @app.method("tools/call")
    async def call(name: str, ctx: Context) -> Any:
        sure = await ctx.elicit(f"{name}?", bool)
        again = await ctx.elicit("Really?", bool)
        return ToolResult(f"{name} {sure} {again}")

    @app.method("tools/list")
    def tools() -> Any:
        return {"tools": [{"name": "any", "inputSchema": {"type": "object"}}]}

    @app.method("prompts/get")
    def prompt(name: str, ctx: SyncContext) -> Any:
        return PromptResult([str(ctx.elicit("Sure?", bool))])

    answers = {"any?": True, "Really?": False, "Sure?": True}
    for replay in (False, True):
        with connect_sync(app, revision=era, answers=answers, replay=replay) as client:
            assert client.call_tool("any").text == "any True False"
            got = client.request("prompts/get", {"name": "x"}) if era < "2026-07-28" else None
            assert got is None or got["messages"][0]["content"]["text"] == "True"


def test_questions_look_as_handlers_return_them(noted: list[Any]) -> None:
    app = Server("t")

    @app.tool
    def remove(ctx: SyncContext) -> Any:
        sure = ask.elicit("Sure?", bool)
        answer = ctx.answer(sure)
        return sure if answer is None else f"{answer}"

    @app.tool
    async def waits(ctx: Context) -> str:
        return str(await ctx.elicit("Sure?", bool))

    @app.tool
    def blocks(ctx: SyncContext) -> str:
        return str(ctx.elicit("Sure?", bool))

    note(app, noted, on="tools/call")
    app.middleware(ResponseLimit(200))
    for era in ("2025-06-18", "2026-07-28"):
        with connect_sync(app, revision=era, answers={"Sure?": True}) as client:
            assert client.call_tool("remove").text == "True"
            assert client.call_tool("waits").text == "True"
            assert client.call_tool("blocks").text == "True"
    assert isinstance(noted[0][2], ask.Question) and noted[1][2].text == "True"


def test_def_handlers_keep_their_threads() -> None:
    import threading

    app = Server("t")
    threads: list[str] = []
    at_once = threading.Barrier(4)

    def where() -> str:
        threads.append(threading.current_thread().name)
        return "ok"

    app.tool(where)

    @app.tool(thread=True)
    def slow() -> str:
        at_once.wait(60)
        return "slow"

    @app.middleware(on="tools/call")
    async def around(request: Any, next: Any) -> Any:
        return await next(request)

    async def together() -> list[str]:
        import asyncio

        async with Client(app) as client:
            asked = [client.call_tool("slow") for _ in range(4)] + [client.call_tool("where")]
            return [(await task).text for task in [asyncio.ensure_future(call) for call in asked]]

    import asyncio

    assert asyncio.run(together()) == ["slow"] * 4 + ["ok"]
    assert threads and "middleware" not in threads[0]


def test_def_handlers_read_def_resources_through_middleware(noted: list[Any]) -> None:
    app = Server("t", threads=1)
    note(app, noted, "resources/read")

    @app.resource("a://b")
    def b() -> str:
        return "b"

    @app.resource("a://async")
    async def later() -> str:
        return "later"

    @app.tool
    def reads(uri: str, ctx: SyncContext) -> str:
        return ctx.read_resource(uri).text

    @app.tool(thread=True)
    def reads_apart(ctx: SyncContext) -> str:
        return ctx.read_resource("a://b").text

    with connect_sync(app) as client:
        for name, arguments in (("reads", {"uri": "a://b"}), ("reads_apart", {})):
            assert client.call_tool(name, arguments).text == "b"
        assert "TypeError" in client.call_tool("reads", {"uri": "a://async"}, raise_on_error=False).text
    assert [(method, params["uri"]) for method, params, _ in noted] == [("resources/read", "a://b")] * 2


def test_exceptions_of_def_handlers_pass_middleware(noted: list[Any]) -> None:
    app = Server("t", expose_errors=(KeyError,))

    @app.tool
    def fails() -> str:
        raise KeyError("gone")

    @app.middleware(on="tools/call")
    async def around(request: Any, next: Any) -> Any:
        try:
            return await next(request)
        except KeyError as error:
            noted.append(error)
            raise

    with connect_sync(app) as client:
        assert "gone" in client.call_tool("fails", raise_on_error=False).text
    assert len(noted) == 1


@pytest.mark.parametrize(
    ("on", "fix"),
    [
        ("tools/cal", 'did you mean "tools/call"?'),
        (["tools/list", "prompt/get"], 'did you mean "prompts/get"?'),
        ("call_tool", 'such as "tools/call"'),
        ("notifications/initialized", 'such as "tools/call"'),
        ([], "no methods are named"),
        (5, "on= takes a method"),
    ],
)
def test_middleware_that_would_never_run_is_refused(on: Any, fix: str) -> None:
    app = shelf()
    with pytest.raises((TypeError, ValueError)) as caught:
        app.middleware(Timing(), on=on)
    assert fix in str(caught.value)
    with connect_sync(app) as client:
        assert client.call_tool("open", {"title": "x"}).text == "open x"


def test_middleware_of_vendors_methods_may_come_first_and_params_are_checked_before_it(noted: list[Any]) -> None:
    app = Server("t")
    note(app, noted, "acme/echo")

    @app.method("acme/echo")
    def echo(text: str) -> dict[str, str]:
        return {"echo": text}

    @app.method("reindex")
    def reindex() -> dict[str, str]:
        return {}

    note(app, noted, "reindex")
    with connect_sync(app) as client:
        assert client.request("acme/echo", {"text": "hello"})["echo"] == "hello"
        client.request("reindex")
        assert [method for method, _, _ in noted] == ["acme/echo", "reindex"]
        with pytest.raises(ProtocolError, match="Invalid params: missing parameter 'text'"):
            client.request("acme/echo", {})
        with pytest.raises(ProtocolError, match="Invalid params: parameter 'text': expected a string, got 5"):
            client.request("acme/echo", {"text": 5})


def test_a_method_of_the_specifications_is_replaced() -> None:
    app = Server("gateway")

    @app.method("tools/list")
    def tools(cursor: str = "first") -> dict[str, Any]:
        return {"tools": [Tool(name=cursor, input_schema={"type": "object"}, title="T")]}

    @app.method("tools/call")
    async def call(name: str, arguments: dict[str, Any]) -> ToolResult:
        return ToolResult(f"{name} {arguments}")

    for era in ERAS:
        with connect_sync(app, revision=era) as client:
            assert "tools" in client.capabilities
            assert [tool.name for tool in client.list_tools()] == ["first"]
            assert client.list_tools_page("second").items[0].name == "second"
            assert client.call_tool("any", {"a": 1}).text == "any {'a': 1}"
    for name in ("initialize", "subscriptions/listen", "sampling/createMessage"):
        with pytest.raises(ValueError, match=name):
            app.method(name)(call)


async def test_it_runs_over_the_event_loop_too(noted: list[Any]) -> None:
    app = shelf()
    note(app, noted)
    async with connect(app) as client:
        assert (await client.call_tool("open", {"title": "x"})).text == "open x"
    assert ("tools/call", {"name": "open", "arguments": {"title": "x"}}) in [entry[:2] for entry in noted]
