"""Handlers → plans: what signatures say, and misuse at registration."""

import dataclasses
import enum
import functools
import importlib.util
import pathlib
from collections.abc import Iterator
from typing import Annotated, Any, Optional, TypedDict

import msgspec
import pydantic
import pytest
from typing_extensions import NotRequired

from gudgeon import Server
from gudgeon._plan.invalid_arguments import InvalidArguments
from gudgeon._plan.plan import make_plan
from gudgeon._schema.markers import Depends, Header
from plans import call, output, schema, tool

pytestmark = pytest.mark.usefixtures("contexts")


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Book:
    id: int
    title: str = "Dune"


def test_a_tool_is_described_by_hints_and_docstring() -> None:
    def search(query: str, colour: Colour = Colour.RED, *, limit: Annotated[int, "1 to 50"] = 10) -> list[Book]:
        """Search the shelf.

        Args:
            query: what to look for
            limit: not this
        """
        return [Book(limit, f"{query} {colour.name}")]

    plan = tool(search)
    assert (plan.name, plan.description, plan.is_async, plan.wants_context) == (
        "search",
        "Search the shelf.",
        False,
        False,
    )
    assert plan.parameters == {"query": True, "colour": False, "limit": False}
    assert schema(plan) == {
        "type": "object",
        "properties": {
            "query": {"description": "what to look for", "type": "string"},
            "colour": {"type": "string", "enum": ["red", "blue"], "default": "red"},
            "limit": {"description": "1 to 50", "type": "integer", "default": 10},
        },
        "required": ["query"],
    }
    assert output(plan)["type"] == "array"
    assert call(plan, query="x") == b'[{"id":10,"title":"x RED"}]'
    assert call(plan, query="x", colour="blue", limit=2) == b'[{"id":2,"title":"x BLUE"}]'


def test_header_and_fields() -> None:
    def restock(
        region: Annotated[str, Header("Region")], n: int = pydantic.Field(3, ge=1, description="how many")
    ) -> int:
        return n

    plan = tool(restock)
    assert schema(plan)["properties"] == {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "n": {"description": "how many", "minimum": 1, "type": "integer", "default": 3},
    }
    assert schema(plan)["required"] == ["region"]
    assert call(plan, region="eu") == b"3"
    with pytest.raises(InvalidArguments, match="argument 'n': Input should be greater than or equal to 1"):
        call(plan, region="eu", n=0)


@dataclasses.dataclass
class Where:
    region: Annotated[str, "where it stands", Header("Region")]
    shelf: int = 0


class WhereStruct(msgspec.Struct):
    region: Annotated[str, Header("Region")]


class WhereDict(TypedDict):
    region: NotRequired[Annotated[str, Header("Region")]]


class WhereModel(pydantic.BaseModel):
    region: Annotated[str, Header("Region")]


@dataclasses.dataclass
class Around:
    where: Where


@pytest.mark.parametrize("kind", [Where, WhereStruct, WhereDict, WhereModel, Around])
def test_headers_of_fields_are_said_where_the_field_is(kind: Any) -> None:
    def find(where):  # type: ignore[no-untyped-def]
        return "here"

    find.__annotations__ = {"where": kind}
    said = schema(tool(find))["properties"]["where"]
    said = said["properties"]["where"] if kind is Around else said
    assert said["properties"]["region"]["x-mcp-header"] == "Region"
    prompt = make_plan("prompt", find)
    assert b"x-mcp-header" not in prompt.input_schema
    find.__annotations__ = {"where": str, "return": kind}
    assert "x-mcp-header" not in str(output(tool(find)))


@pytest.mark.parametrize(
    "kind",
    [
        list[Annotated[str, Header("Region")]],
        dict[str, Annotated[str, Header("Region")]],
        list[Where],
        dict[str, WhereModel],
        Where | WhereStruct,
        Optional[Annotated[str, Header("Region")]],  # noqa: UP045
        Annotated[float, Header("Region")],
    ],
)
def test_a_header_of_what_no_header_can_repeat_is_refused_at_registration(kind: Any) -> None:
    def find(where):  # type: ignore[no-untyped-def]
        return "here"

    find.__annotations__ = {"where": kind}
    with pytest.raises((TypeError, ValueError), match="Region|more than one"):
        Server("shelf").tool(find)


def test_callables_of_every_kind() -> None:
    class Shelf:
        def find(self, id: int) -> int:
            return id

        @staticmethod
        def size() -> int:
            return 3

        async def __call__(self, id: int) -> int:
            return id + 1

    def add(a: int, b: int) -> int:
        return a + b

    @functools.wraps(add)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return add(*args, **kwargs) + 100

    assert call(tool(Shelf().find), id=1) == b"1"
    assert call(tool(Shelf.size)) == b"3"
    assert tool(Shelf()).name == "Shelf"
    assert call(tool(Shelf()), id=1) == b"2"
    assert call(tool(functools.partial(add, 5)), b=1) == b"6"
    assert call(tool(functools.partial(add, b=5)), a=1) == b"6"
    assert call(tool(wrapped), a=1, b=2) == b"103"
    assert call(tool(lambda: 1, name="one")) == b"1"


@pytest.fixture
def typing_only(monkeypatch: pytest.MonkeyPatch) -> Any:
    path = pathlib.Path(__file__).with_name("typing_only.py")
    spec = importlib.util.spec_from_file_location("typing_only", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_contexts_are_found_under_type_checking(typing_only: Any) -> None:
    for fn in (
        typing_only.plain,
        typing_only.renamed,
        typing_only.with_arguments,
        typing_only.by_module,
        typing_only.sync,
    ):
        assert tool(fn).wants_context, fn
    assert list(tool(typing_only.plain).parameters) == ["text"]
    assert schema(tool(typing_only.sync))["properties"]["price"] == {
        "anyOf": [{"type": "number"}, {"type": "string", "format": "decimal"}]
    }
    assert schema(tool(typing_only.sync))["properties"]["note"]["description"] == "a note"
    with pytest.raises(
        TypeError,
        match=r"'c' of 'wrong' \(typing_only.py:\d+\) is a Context, but a def takes SyncContext: write c: SyncContext",
    ):
        tool(typing_only.wrong)
    with pytest.raises(TypeError, match=r"'x' of 'unknown' .* can't be resolved: name 'Nope' is not defined"):
        tool(typing_only.unknown)


def test_contexts_and_local_types(contexts: Any) -> None:
    Context, SyncContext = contexts.Context, contexts.SyncContext

    @dataclasses.dataclass
    class Local:
        x: int

    async def slow(c: "Context[Book]", item: "Local", items: "list[Local]" = []) -> Any:  # type: ignore[valid-type]
        return [type(c).__name__, c.call, c.app, item.x]  # type: ignore[attr-defined]

    def quick(*, ctx: SyncContext | None = None) -> Any:  # type: ignore[valid-type]
        return type(ctx).__name__

    assert call(tool(slow), item={"x": 4}) == b'["Context","call","app",4]'
    assert call(tool(quick)) == "SyncContext"

    async def wrong(ctx: SyncContext) -> None: ...  # type: ignore[valid-type]

    with pytest.raises(TypeError, match="is a SyncContext, but an async def takes Context: write ctx: Context"):
        tool(wrong)


# ── misuse ───────────────────────────────────────────────────────────────────────────────────────────
def untyped(x) -> None: ...  # type: ignore[no-untyped-def]
def untyped_context(ctx): ...  # type: ignore[no-untyped-def]


async def untyped_async_context(context): ...  # type: ignore[no-untyped-def]


def untyped_default(x=3) -> None: ...  # type: ignore[no-untyped-def]
def stars(*args: int) -> None: ...
def keywords(**kwargs: int) -> None: ...
def positional(x: int, /) -> None: ...
def generator() -> Iterator[int]:
    yield 1


class Db: ...


def no_schema(x: Db) -> None: ...
def no_output_schema() -> Db: ...  # type: ignore[empty-body]
def depends_default(db: Db = Depends(Db)) -> None: ...  # type: ignore[assignment]
def bare_depends(db: Annotated[Db, Depends]) -> None: ...


@dataclasses.dataclass
class Node:
    inner: "list[Node]"


def cyclic(tree: Node) -> None: ...


class Shelf:
    def find(self, id: int) -> None: ...
    @classmethod
    def made(cls) -> None: ...


HERE = r"\(test_plan.py:\d+\)"


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (untyped, rf"^parameter 'x' of 'untyped' {HERE} has no type annotation: write e.g. x: str$"),
        (untyped_default, "write e.g. x: int$"),
        (untyped_context, "has no type annotation: write ctx: SyncContext$"),
        (untyped_async_context, "has no type annotation: write context: Context$"),
        (stars, rf"parameter '\*args' of 'stars' {HERE} can't be described to a caller: name each parameter"),
        (keywords, r"parameter '\*\*kwargs'.*or take one kwargs: dict\[str, Any\]"),
        (positional, "is positional-only, but arguments come by name: take the '/' out"),
        (generator, "is a generator: return a list instead of yielding"),
        (no_schema, rf"parameter 'x' of 'no_schema' {HERE}: Db has no JSON Schema: use a dataclass"),
        (no_output_schema, "the return annotation of 'no_output_schema' .*Db has no JSON Schema.*return Any"),
        (depends_default, r"Depends belongs in Annotated; write db: Annotated\[…, Depends\(Db\)\]"),
        (bare_depends, r"Depends needs its argument, Depends\(get_it\)"),
        (cyclic, rf"parameter 'tree' of 'cyclic' {HERE}: the schema is cyclic \(#/\$defs/Node → #/\$defs/Node\)"),
        (Shelf.find, rf"'Shelf.find' {HERE} is a method without its object: .*app.tool\(shelf.find\)"),
        (Shelf.__dict__["made"], "is a classmethod: register it after the class"),
        (lambda: 1, "is a lambda and has no name"),
        (5, "a tool is a function, not int"),
    ],
)
def test_misuse_names_the_place_and_the_fix(fn: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        tool(fn)


def test_misuse_of_markers() -> None:
    with pytest.raises(ValueError, match="is not an HTTP field name"):
        Header("a b")
    with pytest.raises(TypeError, match="Depends takes a function"):
        Depends(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a completion takes the text typed so far"):
        make_plan("completion", no_output_schema)
