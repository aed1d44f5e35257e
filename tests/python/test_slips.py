"""Slips that many users make are named where they happen, with what to write."""

import copy
import pickle
from typing import Any

import pytest

from gudgeon import Client, Server, SyncClient
from gudgeon.testing import connect_sync
from gudgeon.types import Tool, ToolResult


def shelf() -> Server:
    app = Server("shelf")

    @app.tool
    def find(title: Any = None) -> str:
        return str(title)

    return app


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        ({"title": object()}, "arguments.title"),
        ({"title": {"a b": [1, object()]}}, r"arguments.title\['a b'\]\[1\]"),
        ({"title": [{1, 2}, lambda: 1]}, r"arguments.title\[1\]"),
    ],
    ids=["alone", "nested", "function"],
)
def test_an_argument_without_json_is_named(arguments: Any, place: str) -> None:
    message = rf"^the request\.{place}: an? \w+ can't be converted to JSON; give a dict"
    with connect_sync(shelf()) as client, pytest.raises(TypeError, match=message):
        client.call_tool("find", arguments)


def test_a_result_without_json_is_named(caplog: pytest.LogCaptureFixture) -> None:
    app = Server("s")
    app.tool(lambda: {"a": [object()]}, name="odd")
    with connect_sync(app) as client:
        assert client.call_tool("odd", raise_on_error=False).is_error
    assert "the result.a[0]: an object can't be converted to JSON; return a dict" in caplog.text


@pytest.mark.parametrize(
    ("value", "name", "right"),
    [
        (ToolResult("a"), "isError", "is_error"),
        (ToolResult("a"), "structuredContent", "structured_content"),
        (ToolResult("a"), "value", "data"),
        (ToolResult("a"), "result", "data"),
        (Tool(name="t", input_schema={}), "inputSchema", "input_schema"),
        (Tool(name="t", input_schema={}), "toDict", "to_dict"),
    ],
    ids=str,
)
def test_names_of_other_libraries_lead_to_ours(value: Any, name: str, right: str) -> None:
    with pytest.raises(AttributeError, match=rf"no attribute '{name}': it is '{right}'$"):
        getattr(value, name)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'$"):
        value.nonsense  # noqa: B018
    assert copy.copy(value) == pickle.loads(pickle.dumps(value)) == value


async def test_middleware_that_forgets_to_await_is_named() -> None:
    async def forgets(request: Any, next: Any) -> Any:
        return next(request)

    app = shelf()
    app.middleware(forgets, on="tools/call")
    async with Client(app) as client:
        result = await client.call_tool("find", raise_on_error=False)
    assert result.is_error and "TypeError" in result.text
    async with Client(shelf(), middleware=[forgets]) as client:
        with pytest.raises(
            TypeError, match=r"'.*forgets' \(test_slips\.py:\d+\) returned next\(…\) before it was done"
        ):
            await client.call_tool("find")


def test_a_blocking_client_is_not_confused_by_what_its_middleware_returns() -> None:
    def passes(request: Any, next: Any) -> Any:
        return next(request)

    with SyncClient(shelf(), middleware=[passes]) as client:
        assert client.call_tool("find").text == "None"
