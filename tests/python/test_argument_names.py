"""Arguments have the names that `Field(alias=…)` gives them; partials and lists of anything are taken as they are."""

import functools
from collections.abc import Sequence
from typing import Annotated, Any

import pytest
from pydantic import AliasChoices, AliasPath, Field

from gudgeon import Server
from gudgeon.errors import ProtocolError, ToolError
from gudgeon.testing import ERAS, connect_sync
from gudgeon.types import Image


def move(
    from_: Annotated[str, Field(alias="from")],
    to: Annotated[str, Field(validation_alias=AliasChoices("to-shelf", "shelf"), description="Where to.")],
    version: str = Field("1", alias="api-version", max_length=2),
) -> str:
    """Moves a book.

    Args:
        from_: Where from.
    """
    return f"{from_} {to} {version}"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("era", ERAS)
def test_an_argument_has_the_name_of_its_alias(era: str) -> None:
    app = Server("shelf")
    app.tool(move)
    with connect_sync(app, revision=era) as client:
        schema = client.list_tools()[0].input_schema
        assert list(schema["properties"]) == ["from", "to-shelf", "api-version"]
        assert schema["required"] == ["from", "to-shelf"]
        texts = [schema["properties"][name]["description"] for name in ("from", "to-shelf")]
        assert texts == ["Where from.", "Where to."]
        assert client.call_tool("move", {"from": "a", "to-shelf": "b"}).text == "a b 1"
        assert client.call_tool("move", {"from": "a", "to-shelf": "b", "api-version": "2"}).text == "a b 2"
        for arguments, problem in [
            ({"to-shelf": "b"}, "missing argument 'from'"),
            ({"from": "a", "to-shelf": "b", "from_": "c"}, "unknown argument 'from_'; did you mean 'from'"),
            ({"from": "a", "to-shelf": "b", "api-version": "123"}, "argument 'api-version'"),
        ]:
            with pytest.raises((ToolError, ProtocolError), match=problem):
                client.call_tool("move", arguments)


def test_prompts_and_templates_have_the_names_too() -> None:
    app = Server("shelf")

    @app.prompt
    def review(from_: Annotated[str, Field(alias="from")]) -> str:
        return f"Review {from_}."

    @app.resource("shelf://{from}/{+rest}")
    def book(from_: Annotated[str, Field(alias="from")], rest: str) -> str:
        return f"{from_} {rest}"

    with connect_sync(app) as client:
        assert [argument.name for argument in client.list_prompts()[0].arguments] == ["from"]
        assert client.get_prompt("review", {"from": "Emma"}).messages[0].content.text == "Review Emma."  # type: ignore[union-attr]
        assert client.read_resource("shelf://a/b/c").text == "a b/c"


def test_names_that_can_not_be_are_refused() -> None:
    def twice(to: str, nach: Annotated[str, Field(alias="to")]) -> None: ...

    def deep(to: Annotated[str, Field(validation_alias=AliasPath("a", 0))]) -> None: ...

    app = Server("shelf")
    with pytest.raises(TypeError, match="'to' and 'nach' of .* are both the argument 'to'"):
        app.tool(twice)
    with pytest.raises(TypeError, match="an argument has one name"):
        app.tool(deep)


def test_a_partial_that_looks_like_its_function_takes_what_is_left() -> None:
    def add(a: int, b: int) -> int:
        return a + b

    app = Server("sums")
    app.tool(functools.update_wrapper(functools.partial(add, 5), add))
    app.tool(functools.update_wrapper(functools.partial(add, b=5), add), name="later")
    with connect_sync(app) as client:
        assert list(client.list_tools()[0].input_schema["properties"]) == ["b"]
        assert client.call_tool("add", {"b": 1}).data == 6
        assert client.call_tool("later", {"a": 2}).data == 7


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("returns", [list, list[Any], tuple, tuple[Any, ...], Sequence[Any]], ids=str)
def test_a_list_of_anything_may_hold_content(era: str, returns: Any) -> None:
    app = Server("camera")

    def shots(as_content: bool):  # type: ignore[no-untyped-def]
        return ["Here:", Image(b"1", format="png")] if as_content else ["a", 1]

    shots.__annotations__["return"] = returns
    app.tool(shots)
    with connect_sync(app, revision=era) as client:
        assert client.call_tool("shots", {"as_content": True}).content[1] == Image(b"1", format="png")
        assert client.call_tool("shots", {"as_content": False}).data == ["a", 1]
        assert client.list_tools()[0].output_schema is None
