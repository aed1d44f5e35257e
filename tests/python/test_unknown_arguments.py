"""Arguments that a tool does not have are refused by name, unless the tool ignores them."""

from typing import Any, TypedDict

import pydantic
import pytest

from gudgeon import Server, SyncClient, SyncContext
from gudgeon.errors import ToolError
from gudgeon.testing import ERAS, connect_sync


class Filter(TypedDict, total=False):
    author: str


class Page(pydantic.BaseModel):
    size: int = 10


def shelf(**options: Any) -> Server:
    app = Server("shelf")

    @app.tool(**options)
    def search(query: str, ctx: SyncContext, limit: int = 10) -> str:
        return f"{query} {limit}"

    @app.tool(**options)
    async def page(filter: Filter, page: Page | None = None) -> str:
        return str(filter)

    @app.tool(**options)
    def nothing() -> str:
        return "nothing"

    return app


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("search", {"query": "a", "limt": 3}, "unknown argument 'limt'; did you mean 'limit'?"),
        ("search", {"query": "a", "zzz": 3}, "unknown argument 'zzz'; this tool takes: query, limit"),
        ("page", {"filter": {}, "pag": None}, "unknown argument 'pag'; did you mean 'page'?"),
        ("nothing", {"x": 1}, "unknown argument 'x'; this tool takes no arguments"),
    ],
)
def test_an_unknown_argument_is_refused_by_name(era: str, tool: str, arguments: dict[str, Any], said: str) -> None:
    with connect_sync(shelf(), revision=era) as client:
        with pytest.raises(ToolError) as caught:
            client.call_tool(tool, arguments)
        result = client.call_tool(tool, arguments, raise_on_error=False)
    assert said in str(caught.value)
    # The model reads it, also where the revision has an error for it (before 2025-11-25).
    assert result.is_error and said in result.text


@pytest.mark.parametrize("era", ERAS)
def test_a_tool_may_ignore_unknown_arguments(era: str) -> None:
    with connect_sync(shelf(unknown_arguments="ignore"), revision=era) as client:
        assert client.call_tool("search", {"query": "a", "limt": 3}).text == "a 10"
        assert client.call_tool("nothing", {"x": 1}).text == "nothing"
        assert all("additionalProperties" not in tool.input_schema for tool in client.list_tools())


def test_clients_see_that_the_schema_is_closed() -> None:
    with SyncClient(shelf()) as client:
        assert [tool.input_schema.get("additionalProperties") for tool in client.list_tools()] == [False] * 3
    with SyncClient(shelf(), validate=True) as client, pytest.raises(ValueError, match="'limt'"):
        client.call_tool("search", {"query": "a", "limt": 3})


def test_a_schema_of_the_users_own_says_by_itself_whether_it_is_closed() -> None:
    app = Server("shelf")
    properties = {"n": {"type": "integer"}}

    def double(n: int) -> int:
        return 2 * n

    app.tool(double, name="open", input={"type": "object", "properties": properties})
    closed = {"type": "object", "properties": properties, "additionalProperties": False}
    app.tool(double, name="closed", input=closed)
    with SyncClient(app) as client:
        assert client.call_tool("open", {"n": 2, "m": 3}).data == 4
        with pytest.raises(ToolError, match="unknown argument 'm'"):
            client.call_tool("closed", {"n": 2, "m": 3})


def test_the_option_is_refuse_or_ignore() -> None:
    with pytest.raises(ValueError, match='unknown_arguments= must be "refuse" or "ignore", not \'drop\''):
        Server("s").tool(unknown_arguments="drop")
