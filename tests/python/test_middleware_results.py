"""Results as middleware sees, changes and returns them."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from eventually import eventually
from gudgeon import Server
from gudgeon.errors import McpError
from gudgeon.testing import ERAS, connect_sync
from gudgeon.types import Completion, Image, Message, Page, Text, Tool, ToolResult
from middleware_server import shelf


def test_lists_are_changed_and_written_in_the_clients_revision() -> None:
    app = shelf()

    @app.middleware(on="tools/list")
    async def rename(request: Any, next: Any) -> Any:
        page = await next(request)
        return Page([Tool(name="shut", input_schema={"type": "object"}, title="Shut"), *page.items])

    for era, title in (("2024-11-05", None), ("2026-07-28", "Shut")):
        with connect_sync(app, revision=era) as client:
            assert [tool.name for tool in client.list_tools()] == ["shut", "open"]
            assert client.list_tools()[0].title == title


def test_results_that_are_changed_in_place_are_sent_changed() -> None:
    app = shelf()

    @app.method("acme/count")
    def count() -> dict[str, int]:
        return {"books": 1}

    @app.middleware
    async def more(request: Any, next: Any) -> Any:
        result = await next(request)
        if request.method == "acme/count":
            result["books"] += 1
        elif request.method in ("initialize", "server/discover"):
            result["instructions"] = "Changed."
        return result

    for era in ERAS:
        with connect_sync(app, revision=era) as client:
            assert client.request("acme/count")["books"] == 2
            assert client.instructions == "Changed."


CASES = json.loads(Path(__file__).parents[1].joinpath("middleware_results.json").read_text())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_results_of_the_core_as_middleware_changes_them(case: dict[str, Any]) -> None:
    app = Server("shelf", list_ttl=5, debug=True)

    @app.tool
    def open() -> None: ...

    @app.prompt
    def review(title: str, other: str = "") -> str:
        return title

    @app.complete("review", "title")
    def titles(prefix: str) -> list[str]:
        return []

    @app.resource("shelf://about")
    def about() -> str:
        return "about"

    @app.middleware(on=case["method"])
    async def change(request: Any, next: Any) -> Any:
        request.params.update(case.get("changes", {}))
        result = await next(request)
        return case.get("returns", result)

    with connect_sync(app, revision="2026-07-28") as client:
        if "error" in case:
            with pytest.raises(McpError) as caught:
                client.request(case["method"], case.get("params"))
            assert case["error"] in str(caught.value)
        else:
            result = client.request(case["method"], case.get("params"))
            assert {**result, **case["result"]} == result


def test_what_tools_and_completions_give_is_the_same_behind_middleware() -> None:
    def served(is_around: bool) -> list[Any]:
        app = Server("shelf")
        given: list[Any] = ["text", 5, {"a": [1.5]}, None, [Text("a"), "b"], Image(b"x", format="png"), ToolResult("r")]
        for at, value in enumerate(given):
            app.tool(partial(lambda result: result, value), name=f"t{at}")

        @app.tool
        def declared() -> str:
            return "declared"

        @app.tool
        def maybe() -> int | None:
            return None

        @app.prompt
        def review(title: str, other: str) -> list[Any]:
            return [title, Message("assistant", other)]

        @app.complete("review", "title")
        def titles(prefix: str) -> list[str]:
            return ["Dune"]

        @app.complete("review", "other")
        def others(prefix: str) -> Completion:
            return Completion(["Dune"], total=7, has_more=True)

        if is_around:

            @app.middleware
            async def around(request: Any, next: Any) -> Any:
                result = await next(request)
                if request.method == "completion/complete":
                    assert isinstance(result, (list, Completion))
                return result

        with connect_sync(app) as client:
            called = [client.request("tools/call", {"name": tool.name}) for tool in client.list_tools()]
            got = client.request("prompts/get", {"name": "review", "arguments": {"title": "a", "other": "b"}})
            ref = {"type": "ref/prompt", "name": "review"}
            completed = [
                client.request("completion/complete", {"ref": ref, "argument": {"name": name, "value": ""}})
                for name in ("title", "other")
            ]
            return [*called, got, *completed]

    plain = served(False)
    assert [result["content"] for result in plain[1:2]] == [[{"type": "text", "text": "5"}]]
    assert plain[-1]["completion"] == {"values": ["Dune"], "total": 7, "hasMore": True}
    assert served(True) == plain


def test_a_result_that_is_not_returned_is_the_middlewares_fault(caplog: pytest.LogCaptureFixture) -> None:
    app = shelf()

    @app.tool
    def close() -> None:
        pass

    @app.middleware(on=["tools/call", "tools/list", "acme/nothing"])
    async def forgetful(request: Any, next: Any) -> None:
        await next(request)

    @app.method("acme/nothing")
    def nothing() -> None:
        pass

    with connect_sync(app, revision="2025-11-25") as client:
        for name in ("open", "close"):
            result = client.call_tool(name, {"title": "dune"} if name == "open" else {}, raise_on_error=False)
            assert result.is_error and "TypeError" in result.text
        with pytest.raises(McpError, match="tools/list failed"):
            client.list_tools()
        assert client.request("acme/nothing") == {}, "there was nothing to return"
    eventually(lambda: caplog.text.count("return that result, or another one") == 3)


@pytest.mark.parametrize("era", ERAS)
def test_what_resources_give_is_the_same_behind_middleware(era: str) -> None:
    def served(is_around: bool) -> list[Any]:
        app = Server("shelf")

        @app.resource("shelf://text")
        def text() -> str:
            return "text"

        @app.resource("shelf://bytes")
        def blob() -> bytes:
            return b"bytes"

        @app.resource("shelf://nothing")
        def nothing() -> str | None:
            return None

        @app.resource("shelf://typed", mime_type="text/html")
        def typed() -> str:
            return "typed"

        @app.resource("shelf://books/{id}")
        def book(id: int) -> dict[str, int]:
            return {"id": id}

        if is_around:

            @app.middleware
            async def around(request: Any, next: Any) -> Any:
                return await next(request)

        uris = ["text", "bytes", "nothing", "typed", "books/1"]
        with connect_sync(app, revision=era) as client:
            return [client.request("resources/read", {"uri": f"shelf://{uri}"})["contents"] for uri in uris]

    plain = served(False)
    assert plain[0] == [{"uri": "shelf://text", "mimeType": "text/plain", "text": "text"}]
    assert served(True) == plain
