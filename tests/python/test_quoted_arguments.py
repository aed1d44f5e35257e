"""Arguments that a model quoted by mistake are decoded at every depth, unless the server or the tool says otherwise."""

from typing import Any

import pydantic
import pytest

from gudgeon import Server
from gudgeon.errors import McpError
from gudgeon.testing import ERAS, connect_sync


class Size(pydantic.BaseModel):
    width: int


def shelf(server: dict[str, Any], tool: dict[str, Any]) -> Server:
    app = Server("shelf", **server)

    @app.tool(**tool)
    def page(limit: int = 10, ids: list[int] = [], size: Size | None = None) -> str:  # noqa: B006
        return f"{limit!r} {ids!r} {size!r}"

    return app


ON, OFF, UNSAID = {"convert_arguments": True}, {"convert_arguments": False}, {}


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("server", "tool", "converts"),
    [(UNSAID, UNSAID, True), (OFF, UNSAID, False), (OFF, ON, True), (UNSAID, OFF, False)],
)
def test_quoted_arguments_are_decoded_where_that_is_wanted(
    era: str, server: dict[str, Any], tool: dict[str, Any], converts: bool
) -> None:
    with connect_sync(shelf(server, tool), revision=era) as client:
        for arguments, text in (
            ({"limit": " 3 "}, "3 [] None"),
            ({"ids": "[1, 2]"}, "10 [1, 2] None"),
            ({"ids": ["1"]}, "10 [1] None"),
        ):
            if converts:
                assert client.call_tool("page", arguments).text == text
            else:
                with pytest.raises(McpError, match=f"argument '{next(iter(arguments))}"):
                    client.call_tool("page", arguments)
        # Pydantic's own conversion, which `Strict` and the model's configuration turn off.
        assert client.call_tool("page", {"size": {"width": "3"}}).text == "10 [] Size(width=3)"


def test_the_profile_of_schemas_may_be_a_tools_own() -> None:
    app = Server("shelf", schema_profile="full")
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "string"}}}

    @app.tool(input=schema)
    def full(a: str) -> str:
        return a

    @app.tool(input=schema, schema_profile="portable")
    def portable(a: str) -> str:
        return a

    with connect_sync(app) as client:
        has_references = {tool.name: "$ref" in repr(tool.input_schema) for tool in client.list_tools()}
    assert has_references == {"full": True, "portable": False}
