"""Handlers → plans: what signatures say, misuse at registration, calls, results, dependencies, failures."""

import asyncio
import dataclasses
import datetime
import enum
import functools
import importlib.util
import json
import pathlib
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any, Literal

import msgspec
import pydantic
import pytest

from gudgeon import ask
from gudgeon._failures import InvalidArguments, describe_error
from gudgeon._markers import Depends, Header
from gudgeon._plan import Plan, make_plan
from gudgeon._plan_depends import Overrides
from gudgeon._replies import QuestionReply
from gudgeon.ask import Question
from gudgeon.errors import Cancelled, Declined, ProtocolError, ResourceNotFound, ToolError, UrlElicitationRequired
from gudgeon.types import (
    Completion,
    ElicitRequest,
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

pytestmark = pytest.mark.usefixtures("contexts")


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Book:
    id: int
    title: str = "Dune"


class Author(pydantic.BaseModel):
    name: str
    born: int = pydantic.Field(ge=0, alias="birthYear")


def tool(fn: Any, **options: Any) -> Plan:
    return make_plan("tool", fn, "app", **options)


def call(plan: Plan, /, **arguments: Any) -> Any:
    out = plan.invoke(json.dumps(arguments).encode(), "call")
    return asyncio.run(out) if plan.is_async else out


def schema(plan: Plan) -> Any:
    return json.loads(plan.input_schema)


def output(plan: Plan) -> Any:
    return None if plan.output_schema is None else json.loads(plan.output_schema)


def answering(value: Any, returns: Any = Any) -> Plan:
    def handler() -> Any:
        return value

    handler.__annotations__["return"] = returns
    return tool(handler)


# ── signatures ───────────────────────────────────────────────────────────────────────────────────────
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
    assert schema(tool(typing_only.sync))["properties"]["price"] == {"type": "string", "format": "decimal"}
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
        (stars, rf"parameter '\*args' of 'stars' {HERE} can't be described to a caller: name each parameter"),
        (keywords, r"parameter '\*\*kwargs'.*or take one kwargs: dict\[str, Any\]"),
        (positional, "is positional-only, but arguments come by name: take the '/' out"),
        (generator, "is a generator: return a list instead of yielding"),
        (no_schema, rf"parameter 'x' of 'no_schema' {HERE}: Db has no JSON Schema: use a dataclass"),
        (no_output_schema, "the return annotation of 'no_output_schema' .*Db has no JSON Schema.*return Any"),
        (depends_default, r"Depends stands in Annotated, write db: Annotated\[…, Depends\(Db\)\]"),
        (bare_depends, r"Depends needs its argument, Depends\(get_it\)"),
        (cyclic, rf"parameter 'tree' of 'cyclic' {HERE}: the type refers to itself \(Node → Node\)"),
        (Shelf.find, rf"'Shelf.find' {HERE} is a method without its object: .*app.tool\(shelf.find\)"),
        (Shelf.__dict__["made"], "is a classmethod: register it after the class"),
        (lambda: 1, "is a lambda and has no name"),
        (5, "a tool is a function, not int"),
    ],
)
def test_misuse_names_the_place_and_the_mend(fn: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        tool(fn)


def test_misuse_of_markers() -> None:
    with pytest.raises(ValueError, match="is no HTTP field name"):
        Header("a b")
    with pytest.raises(TypeError, match="Depends takes a function"):
        Depends(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a completion takes the text typed so far"):
        make_plan("completion", no_output_schema)


# ── arguments ────────────────────────────────────────────────────────────────────────────────────────
def test_whole_floats_are_integers_and_the_rest_is_refused() -> None:
    def f(n: int, names: list[int] = []) -> int:
        return n + sum(names)

    plan = tool(f)
    assert call(plan, n=1.0, names=[2.0, 3]) == b"6"
    for raw, message in (
        (b'{"n":"x"}', "argument 'n': expected int, got str"),
        (b'{"n":1.5}', "argument 'n': expected int, got float"),
        (b'{"n":1,"names":["x"]}', r"argument 'names\[0\]': expected int"),
        (b"{}", "missing required field n"),
        (b"[]", "expected object, got array"),
        (b'{"n":', "arguments: input data was truncated"),
        (b'{"n":' + b"[" * 100_000, "arguments: |argument "),
    ):
        with pytest.raises(InvalidArguments, match=message):
            plan.invoke(raw, None)


def test_defaults_are_the_functions_own() -> None:
    shared: list[int] = [1]

    def f(items: list[int] = shared, day: datetime.date = datetime.date(2025, 1, 2), other: Any = Db) -> Any:
        return [items is shared, day, other is Db]

    plan = tool(f)
    assert call(plan) == b'[true,"2025-01-02",true]'
    assert schema(plan)["properties"]["day"] == {"type": "string", "format": "date", "default": "2025-01-02"}
    assert "default" not in schema(plan)["properties"]["other"]


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
        (b"x", bytes, b'"eA=="'),
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
        (ToolResult[int], None),
        (Image, None),
        (list[str | Image], None),
        (Annotated[int, "the sum"], {"description": "the sum", "type": "integer"}),
    ],
    ids=str,
)
def test_output_schemas(returns: Any, expected: Any) -> None:
    assert output(answering(None, returns)) == expected


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
    with pytest.raises(TypeError, match="a Db can't be said in JSON: return a dict, a dataclass"):
        call(answering(Db()))
    with pytest.raises(TypeError, match="returned a list of content with a int in it"):
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
    assert said("resource", None) is None
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
    with pytest.raises(TypeError, match="returned a int: a prompt returns a str, a Message"):
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


# ── dependencies ─────────────────────────────────────────────────────────────────────────────────────
def test_dependencies_are_made_once_and_cleaned_up(contexts: Any) -> None:
    SyncContext = contexts.SyncContext
    log: list[str] = []

    def get_db(ctx: SyncContext) -> Iterator[str]:  # type: ignore[valid-type]
        log.append("open")
        try:
            yield f"db of {ctx.app}"  # type: ignore[attr-defined]
        except ToolError:
            log.append("saw the error")
            raise
        finally:
            log.append("close")

    def get_table(db: Annotated[str, Depends(get_db)], size: int = 3) -> str:
        return f"{db}[{size}]"

    def fresh() -> object:
        return object()

    def f(
        n: int,
        db: Annotated[str, Depends(get_db)],
        table: Annotated[str, Depends(get_table)],
        a: Annotated[object, Depends(fresh, cached=False)],
        b: Annotated[object, Depends(fresh, cached=False)],
    ) -> str:
        log.append("call")
        if n == 0:
            raise ToolError("zero")
        return f"{db} {table} {a is b}"

    overrides = Overrides()
    plan = tool(f, overrides=overrides)
    assert list(plan.parameters) == ["n"]
    assert call(plan, n=1) == "db of app db of app[3] False"
    assert log == ["open", "call", "close"]
    log.clear()
    with pytest.raises(ToolError):
        call(plan, n=0)
    assert log == ["open", "call", "saw the error", "close"]
    with overrides.override(get_db, lambda: iter(["fake"])):
        assert call(plan, n=1).startswith("fake fake[3]")
        with overrides.override(get_db, lambda: "plain"):
            assert call(plan, n=1).startswith("plain")
        assert call(plan, n=1).startswith("fake")
    assert call(plan, n=1).startswith("db of app")


def test_async_dependencies(contexts: Any) -> None:
    Context = contexts.Context
    log: list[str] = []

    async def get_db(ctx: Context) -> AsyncIterator[str]:  # type: ignore[valid-type]
        yield "db"
        log.append("close")

    async def get_user() -> str:
        return "ann"

    def get_both(db: Annotated[str, Depends(get_db)], who: Annotated[str, Depends(get_user)]) -> Iterator[str]:
        yield f"{db} {who}"
        log.append("close both")

    async def f(both: Annotated[str, Depends(get_both)]) -> str:
        return both

    def g(both: Annotated[str, Depends(get_both)]) -> str:
        return both

    overrides = Overrides()
    plan = tool(f, overrides=overrides)
    assert call(plan) == "db ann"
    assert log == ["close both", "close"]
    with pytest.raises(
        TypeError, match="'both' of .*'g'.* depends on .*'get_both'.* which is async: write async def g"
    ):
        tool(g)

    async def fake() -> str:
        return "async"

    def sync_db() -> str:
        return "x"

    def h(db: Annotated[str, Depends(sync_db)]) -> str:
        return db

    with overrides.override(sync_db, fake), pytest.raises(TypeError, match="'fake'.* is async, but stands in for"):
        call(tool(h, overrides=overrides))


def test_misuse_of_dependencies() -> None:
    def needs(x: int) -> int:
        return x

    def f(a: Annotated[int, Depends(needs)]) -> int:
        return a

    with pytest.raises(TypeError, match="parameter 'x' of the dependency .*'needs'.* has nobody to fill it in"):
        tool(f)

    def silent() -> Iterator[int]:
        return
        yield

    def g(a: Annotated[int, Depends(silent)]) -> int:
        return a

    with pytest.raises(RuntimeError, match="'silent'.* yielded nothing"):
        call(tool(g))


def test_results_are_encoded_before_the_dependency_is_closed() -> None:
    rows: list[int] = [1, 2]

    def get_rows() -> Iterator[list[int]]:
        yield rows
        rows.clear()

    def f(rows: Annotated[list[int], Depends(get_rows)]) -> list[int]:
        return rows

    assert call(tool(f)) == b"[1,2]"
    assert rows == []


# ── failures ─────────────────────────────────────────────────────────────────────────────────────────
def described(error: BaseException, *expose: type[Exception]) -> Any:
    return json.loads(describe_error(error, expose))


def test_failures_are_described() -> None:
    assert described(ToolError("no\nway", k=1)) == {"kind": "tool", "message": "no\nway", "meta": {"k": 1}}
    assert described(ProtocolError(-1, "m", {"a": 1})) == {
        "kind": "protocol",
        "code": -1,
        "message": "m",
        "data": {"a": 1},
    }
    assert described(ResourceNotFound("a:b")) == {"kind": "notFound", "uri": "a:b"}
    assert described(ResourceNotFound("a:b", "gone")) == {"kind": "notFound", "uri": "a:b", "message": "gone"}
    assert described(InvalidArguments("x")) == {"kind": "invalid", "message": "x"}
    assert described(Declined("Sure?")) == {"kind": "declined", "message": "The user declined: Sure?"}
    assert described(Cancelled("Sure?")) == {"kind": "declined", "message": "The user declined: Sure?"}
    assert described(asyncio.CancelledError()) == {"kind": "cancelled"}
    assert described(KeyError("x"), LookupError) == {"kind": "exposed", "message": "'x'"}
    assert described(ValueError(), ValueError) == {"kind": "exposed", "message": "ValueError"}
    url = described(UrlElicitationRequired([ElicitRequest(mode="url", message="m", url="https://e.org", id="1")]))
    assert (url["code"], url["data"]["elicitations"][0]["elicitationId"]) == (-32042, "1")


def test_other_exceptions_show_type_message_and_the_users_lines() -> None:
    def boom() -> None:
        raise ValueError("bad")

    with pytest.raises(ValueError) as caught:
        tool(boom).invoke(b"{}", None)
    out = described(caught.value)
    assert (out["kind"], out["type"], out["message"]) == ("exception", "ValueError", "bad")
    assert "in boom" in out["traceback"] and out["traceback"].endswith("ValueError: bad\n")


def test_strange_exceptions_do_not_break_the_description() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    class Group(Exception):
        exceptions: tuple[Exception, ...] = (ToolError("inner"),)

    assert "can't be read" in described(Mute())["message"]
    assert described(Group()) == {"kind": "tool", "message": "inner"}
    assert described(ToolError("x", k=Db()))["kind"] == "exception"
    assert described(KeyboardInterrupt())["type"] == "KeyboardInterrupt"
