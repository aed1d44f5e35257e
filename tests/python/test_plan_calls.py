"""Calls: what arguments become, and what handlers return."""

import dataclasses
import datetime
import decimal
import enum
import json
import pathlib
from typing import Annotated, Any, Literal, TypeVar

import msgspec
import pydantic
import pytest

from gudgeon import Header, Server, SyncClient, ask
from gudgeon._model.json import convert, decoder
from gudgeon._plan.invalid_arguments import InvalidArguments
from gudgeon._plan.plan import Plan, make_plan
from gudgeon._plan.question_reply import QuestionReply
from gudgeon.ask import Question
from gudgeon.types import (
    Completion,
    EmbeddedResource,
    Icon,
    Image,
    Message,
    PromptResult,
    ResourceContents,
    ResourceResult,
    Text,
    ToolResult,
    user,
)
from plans import call, output, schema, tool

pytestmark = pytest.mark.usefixtures("contexts")


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Book:
    id: int
    title: str = "Dune"


@dataclasses.dataclass(frozen=True)
class Shelf:
    books: list[Book]
    best: Book | None = None
    height: float = 1.5
    tags: list[str] = dataclasses.field(default_factory=list)


class Author(pydantic.BaseModel):
    name: str
    born: int = pydantic.Field(ge=0, alias="birthYear")


class Db: ...


def answering(value: Any, returns: Any = Any) -> Plan:
    def handler() -> Any:
        return value

    handler.__annotations__["return"] = returns
    return tool(handler)


def test_whole_floats_are_integers_and_the_rest_is_refused() -> None:
    def f(n: int, names: list[int] = []) -> int:
        return n + sum(names)

    plan = tool(f)
    assert call(plan, n=1.0, names=[2.0, 3]) == b"6"
    for raw, message in (
        (b'{"n":"x"}', "argument 'n': expected an integer, got \"x\""),
        (b'{"n":1.5}', "argument 'n': expected an integer, got 1.5"),
        # Beyond 2^53 a float does not have the digits that were sent.
        (b'{"n":9007199254740993.0}', "argument 'n': expected an integer, got 900719925474099"),
        (b'{"n":1e300}', "argument 'n': expected an integer, got 1e300"),
        (b'{"n":1,"names":["x"]}', r"argument 'names\[0\]': expected an integer, got \"x\""),
        (b"{}", "missing argument 'n'"),
        (b"[]", "arguments: expected an object, got \\[\\]"),
        (b'{"n":', "arguments: input data was truncated"),
        (b'{"n":}', "arguments: JSON is malformed"),
        (b'{"n":' + b"[" * 100_000, "arguments: |argument "),
    ):
        with pytest.raises(InvalidArguments, match=message):
            plan.invoke(raw, None)


def test_a_decimal_is_a_number_as_it_is_written_or_a_string() -> None:
    app = Server("t")

    @dataclasses.dataclass
    class Line:
        price: decimal.Decimal

    @app.tool
    def add(a: decimal.Decimal, lines: list[Line] = [], n: int = 0) -> str:
        return " ".join([str(a), *(str(line.price) for line in lines)])

    @app.tool
    def half(of: decimal.Decimal) -> decimal.Decimal:
        return of / 2

    @app.tool
    def ship(weight: Annotated[decimal.Decimal, Header("Weight")]) -> str:
        return str(weight)

    plan = tool(add)
    for raw, read in (
        (b'{"a":1.5}', "1.5"),
        (b'{"a":1.10}', "1.10"),
        (b'{"a":2}', "2"),
        (b'{"a":"0.10"}', "0.10"),
        (b'{"a":12345678901234567890.123456789}', "12345678901234567890.123456789"),
        (b'{"a":1.10,"lines":[{"price":0.30}],"n":2.0}', "1.10 0.30"),
    ):
        assert plan.invoke(raw, None) == read
    with SyncClient(app) as client:
        assert client.call_tool("add", {"a": 1.5, "lines": [{"price": 2.25}]}).text == "1.5 2.25"
        assert client.call_tool("half", {"of": 3}).data == "1.5"
        assert client.call_tool("ship", {"weight": "0.5"}).text == "0.5"
        refused = client.call_tool("add", {"a": True}, raise_on_error=False)
        assert refused.is_error
        shown = {tool.name: tool for tool in client.list_tools()}
    assert shown["ship"].input_schema["properties"]["weight"]["type"] == "string", "headers repeat simple types only"
    assert shown["half"].output_schema == {"type": "string", "format": "decimal"}


def test_defaults_are_the_functions_own() -> None:
    shared: list[int] = [1]

    def f(items: list[int] = shared, day: datetime.date = datetime.date(2025, 1, 2), other: Any = Db) -> Any:
        return [items is shared, day, other is Db]

    plan = tool(f)
    assert call(plan) == b'[true,"2025-01-02",true]'
    assert schema(plan)["properties"]["day"] == {"type": "string", "format": "date", "default": "2025-01-02"}
    assert "default" not in schema(plan)["properties"]["other"]


def test_defaults_of_dataclasses_are_there_when_they_are_written_again() -> None:
    def f(shelf: Shelf, more: dict[str, Book], last: Annotated[Book | None, "the last"] = None) -> Any:
        return [shelf, more, last]

    book = {"id": 1, "title": "Dune"}
    shelf = {"books": [book], "best": None, "height": 1.5, "tags": []}
    reply = json.loads(call(tool(f), shelf={"books": [{"id": 1}]}, more={"a": {"id": 1}}, last={"id": 1}))
    assert reply == [shelf, {"a": book}, book]
    assert msgspec.json.encode(decoder(Shelf)(b'{"books":[],"best":{"id":1}}')).count(b"Dune") == 1
    assert msgspec.json.encode(convert({"id": 1}, Book)) == b'{"id":1,"title":"Dune"}'


def test_none_as_a_default_is_a_value_that_may_be_given() -> None:
    def f(n: int = None, text: Annotated[str, "words", msgspec.Meta(min_length=1)] = None, x: Any = None) -> Any:  # type: ignore[assignment]
        return [n, text, x]

    plan = tool(f)
    assert schema(plan)["properties"]["n"] == {"type": ["integer", "null"], "default": None}
    assert schema(plan)["properties"]["text"]["type"] == ["string", "null"]
    assert call(plan) == call(plan, n=None, text=None, x=None) == b"[null,null,null]"
    assert call(plan, n=1, text="a") == b'[1,"a",null]'
    with pytest.raises(InvalidArguments, match="'text'"):
        call(plan, text="")


def test_pydantic_arguments() -> None:
    def f(author: Author, more: list[Author] = [], *, ctx_free: int = 0) -> Author:
        return author

    plan = tool(f)
    assert schema(plan)["properties"]["author"]["required"] == ["name", "birthYear"]
    assert call(plan, author={"name": "x", "birthYear": 1}) == b'{"name":"x","birthYear":1}'
    assert list(output(plan)["properties"]) == ["name", "birthYear"]
    with pytest.raises(InvalidArguments, match="argument 'author.birthYear': Input should be greater"):
        call(plan, author={"name": "x", "birthYear": -1})


def test_a_validation_error_of_the_handlers_own_is_not_the_callers_fault() -> None:
    def f(n: int) -> int:
        return msgspec.json.decode(b'"x"', type=int)

    with pytest.raises(msgspec.ValidationError):
        call(tool(f), n=1)


def test_lax_decoding_of_prompts_and_resources() -> None:
    def f(n: int, flag: bool, level: Literal[1, 2], colour: Colour, price: float | None = None) -> str:
        return f"{n!r} {flag!r} {level!r} {colour!r} {price!r}"

    for kind in ("prompt", "resource"):
        plan = make_plan(kind, f)
        assert (
            call(plan, n="5", flag="true", level="2", colour="red", price="1.5") == "5 True 2 <Colour.RED: 'red'> 1.5"
        )
        with pytest.raises(InvalidArguments, match="argument 'n'"):
            call(plan, n="x", flag="true", level="1", colour="red")

    def g(books: list[Book], author: Author, n: Annotated[int, pydantic.Field(ge=1)]) -> str:
        """G.

        :param books: which
        """
        return f"{books} {author.name} {n}"

    plan = make_plan("prompt", g)
    assert plan.arguments == [
        {"name": "books", "description": "which (as JSON)", "required": True},
        {"name": "author", "description": "as JSON", "required": True},
        {"name": "n", "required": True},
    ]
    assert (
        call(plan, books='[{"id":1}]', author='{"name":"x","birthYear":1}', n="2") == "[Book(id=1, title='Dune')] x 2"
    )
    with pytest.raises(InvalidArguments, match="argument 'books'"):
        call(plan, books="[", author="{}", n="2")

    def h(path: list[str], n: int = 3) -> str:
        return f"{path} {n}"

    assert call(make_plan("resource", h), path=["a", "b"]) == "['a', 'b'] 3"


# ── results ──────────────────────────────────────────────────────────────────────────────────────────
TEXT = {"type": "text", "text": "x"}
IMAGE = {"type": "image", "data": "iVBORw==", "mimeType": "image/png"}


@pytest.mark.parametrize(
    ("value", "returns", "reply"),
    [
        ("x", str, "x"),
        (Colour.RED, Colour, "red"),
        (None, None, None),
        (None, Any, None),
        (None, Book | None, b"null"),
        (3, int, b"3"),
        (True, bool, b"true"),
        ({"a": [1]}, Any, b'{"a":[1]}'),
        (Book(1), Book, b'{"id":1,"title":"Dune"}'),
        (["a", "b"], list[str], b'["a","b"]'),
        ((1, "a"), tuple[int, str], b'[1,"a"]'),
        ([], list[int], b"[]"),
        ([], list[Text], (2, [])),
        (["a"], list[str | Image], (2, ["a"])),
        (["a", Image(b"\x89PNG")], Any, (2, ["a", IMAGE])),
        (Text("x"), Text, (2, [TEXT])),
        (ToolResult(["x"], is_error=True), ToolResult, (3, {"content": [TEXT], "isError": True})),
        ({"icon": Icon("a")}, Any, b'{"icon":{"src":"a"}}'),
        (
            {"p": pathlib.PurePosixPath("/a"), "c": Colour.RED, "d": datetime.date(2025, 1, 2)},
            Any,
            b'{"p":"/a","c":"red","d":"2025-01-02"}',
        ),
        (Author(name="x", birthYear=1), Any, b'{"name":"x","birthYear":1}'),
        ([Author(name="x", birthYear=1)], Any, b'[{"name":"x","birthYear":1}]'),
        (b"x", bytes, "eA=="),
    ],
    ids=str,
)
def test_what_tools_return(value: Any, returns: Any, reply: Any) -> None:
    got = call(answering(value, returns))
    if isinstance(got, tuple):
        got = (got[0], json.loads(got[1]))
    assert got == reply
    assert type(got) is type(reply)


@pytest.mark.parametrize(
    ("returns", "expected"),
    [
        (str, {"type": "string"}),
        (int | None, {"type": ["integer", "null"]}),
        (str | Question[bool], {"type": "string"}),
        (Question[bool], None),
        (list[Question[Any]], None),
        (None, None),
        (Any, None),
        (ToolResult, None),
        (ToolResult[int], {"type": "integer"}),
        (ToolResult[int] | ToolResult[str], {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        (ToolResult[int] | Question[bool], {"type": "integer"}),
        (ToolResult[int] | str, None),
        (ToolResult[int] | ToolResult, None),
        (ToolResult[Any], None),
        (ToolResult[None], None),
        (ToolResult[TypeVar("T")], None),
        (ToolResult[Image], None),
        (Image, None),
        (list[str | Image], None),
        (Annotated[int, "the sum"], {"description": "the sum", "type": "integer"}),
    ],
    ids=str,
)
def test_output_schemas(returns: Any, expected: Any) -> None:
    assert output(answering(None, returns)) == expected


def test_input_replaces_the_schema_of_the_parameters() -> None:
    def f(name: str, size: int = 1) -> str:
        return f"{name} {size}"

    given = {"type": "object", "properties": {"name": {"$ref": "#/$defs/name"}}, "$defs": {"name": {"type": "string"}}}
    plan = tool(f, given=given)
    assert schema(plan) == {"type": "object", "properties": {"name": {"type": "string"}}}
    assert schema(tool(f, given=given, profile="full")) == given
    assert call(plan, name="a") == "a 1"
    with pytest.raises(TypeError, match="parameter 'name' of .* is not in input=, which has 'nom'"):
        tool(f, given={"type": "object", "properties": {"nom": {}}})
    with pytest.raises(TypeError, match="a JSON Schema, a dict, not type"):
        tool(f, given=int)


def test_output_replaces_the_return_annotation() -> None:
    def f() -> Db:
        return Db()

    assert output(tool(f, output=int)) == {"type": "integer"}
    assert output(tool(f, output={"type": "object"})) == {"type": "object"}
    assert output(tool(f, output=None)) is None

    def unannotated():  # type: ignore[no-untyped-def]
        return 1

    assert output(tool(unannotated)) is None


def test_results_that_can_not_be_said() -> None:
    with pytest.raises(TypeError, match="a Db can't be converted to JSON; return a dict, a dataclass"):
        call(answering(Db()))
    with pytest.raises(TypeError, match="returned a list of content with an int in it"):
        call(answering([Text("x"), 1]))

    async def inner() -> int:
        return 1

    with pytest.raises(TypeError, match="returned something to await: write async def"):
        call(answering(inner()))


def test_questions_are_handed_on() -> None:
    first, second = ask.elicit("A?", bool), ask.elicit("B?", str)
    one, several = call(answering(first)), call(answering([first, second]))
    assert isinstance(one, QuestionReply) and one.questions == [first]
    assert isinstance(several, QuestionReply) and several.questions == [first, second]


def said(kind: Any, value: Any) -> Any:
    def handler(prefix: str) -> Any:
        return value

    plan = make_plan(kind, handler)
    got = call(plan, value="p") if kind == "completion" else call(plan, prefix="p")
    return (got[0], json.loads(got[1])) if isinstance(got, tuple) and got[0] != 1 else got


def test_what_resources_return() -> None:
    assert said("resource", "x") == "x"
    assert said("resource", b"x") == (1, b"x")
    assert said("resource", Book(1)) == b'{"id":1,"title":"Dune"}'
    assert said("resource", ResourceResult("x", mime_type="a/b")) == (
        3,
        {"contents": [{"mimeType": "a/b", "text": "x"}]},
    )
    assert said("resource", [ResourceContents(uri="a:b", text="x"), "y"]) == (
        2,
        [{"uri": "a:b", "text": "x"}, {"text": "y"}],
    )
    assert said("resource", EmbeddedResource("a:b", blob=b"x")) == (2, [{"uri": "a:b", "blob": "eA=="}])


def test_what_prompts_return() -> None:
    message = {"role": "user", "content": TEXT}
    assert said("prompt", "x") == "x"
    assert said("prompt", user("x")) == said("prompt", ["x"]) == said("prompt", Text("x")) == (2, [message])
    assert said("prompt", PromptResult(["x"], description="d")) == (3, {"messages": [message], "description": "d"})
    assert said("prompt", Message("assistant", "x")) == (2, [{"role": "assistant", "content": TEXT}])
    with pytest.raises(TypeError, match="returned an int: a prompt returns a str, a Message"):
        said("prompt", 5)


def test_what_completions_return() -> None:
    assert said("completion", ["a", Colour.RED, 3]) == b'["a","red","3"]'
    assert said("completion", ("a",)) == b'["a"]'
    assert said("completion", None) == b"[]"
    assert said("completion", Completion(["a"], total=5)) == (3, {"completion": {"values": ["a"], "total": 5}})
    with pytest.raises(TypeError, match="returned a str: a completion returns a list of str"):
        said("completion", "a")

    async def ids(prefix: str, arguments: dict[str, str]) -> list[str]:
        return [prefix, arguments.get("x", "-")]

    assert call(make_plan("completion", ids), value="p", arguments={"x": "1"}) == b'["p","1"]'
    assert call(make_plan("completion", ids), value="p") == b'["p","-"]'


def test_what_methods_return() -> None:
    assert said("method", "x") == b'"x"'
    assert said("method", {"a": 1}) == b'{"a":1}'
    assert said("method", None) is None
    assert said("notification", {"a": 1}) is None
