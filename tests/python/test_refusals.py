"""Errors of wrong arguments and results have the place, the expectation, the value, and the fix."""

import datetime
import enum
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
import pydantic
import pytest

from eventually import eventually
from gudgeon import Client, ClientGroup, Server, SyncClient
from gudgeon._plan.invalid_arguments import InvalidArguments
from gudgeon._plan.plan import make_plan
from gudgeon.errors import McpError
from gudgeon.types import Image, Progress, ResourceResult, ToolResult


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Line:
    sku: str
    count: Annotated[int, msgspec.Meta(ge=1)] = 1


@dataclass
class Order:
    lines: list[Line]


class Circle(msgspec.Struct, tag="circle", tag_field="kind"):
    radius: float


class Square(msgspec.Struct, tag="square", tag_field="kind"):
    side: float


def refusal(annotation: Any, raw: bytes, kind: Any = "tool") -> str:
    def handler(it: Any) -> str:
        return "ok"

    handler.__annotations__["it"] = annotation
    with pytest.raises(InvalidArguments) as caught:
        make_plan(kind, handler).invoke(b'{"it":' + raw + b"}", None)
    return str(caught.value)


@pytest.mark.parametrize(
    ("annotation", "raw", "said"),
    [
        (int, b'"ten"', "argument 'it': expected an integer, got \"ten\""),
        (int | None, b'"x"', "argument 'it': expected an integer or null, got \"x\""),
        (int | str | list[int], b"{}", "argument 'it': expected an integer, a string or an array, got {}"),
        (bool, b"1", "argument 'it': expected a boolean, got 1"),
        (Order, b'{"lines":[{"sku":5}]}', "argument 'it.lines[0].sku': expected a string, got 5"),
        (Order, b'{"lines":[{"sku":"a"},{}]}', "missing argument 'it.lines[1].sku'"),
        (Order, b'{"lines":[{"sku":"a","count":0}]}', "argument 'it.lines[0].count': expected at least 1, got 0"),
        (dict[str, int], b'{"a":1,"b c":"x"}', 'argument \'it["b c"]\': expected an integer, got "x"'),
        (dict[int, int], b'{"a":1}', "argument 'it': expected each key to be an integer"),
        (Circle | Square, b'{"kind":"circle","radius":"x"}', "argument 'it.radius': expected a number, got \"x\""),
        (Circle | Square, b'{"kind":"square"}', "missing argument 'it.side'"),
        (Circle | Square, b'{"kind":"blob"}', 'argument \'it.kind\': expected "circle" or "square", got "blob"'),
        (Colour, b'"green"', 'argument \'it\': expected "red" or "blue", got "green"'),
        (list[Colour], b'["red","green"]', 'argument \'it[1]\': expected "red" or "blue", got "green"'),
        (dict[str, Colour], b'{"a":"green"}', 'argument \'it.a\': expected "red" or "blue", got "green"'),
        (Literal[1, "x"], b"2", "argument 'it': expected 1 or \"x\", got 2"),
        (Literal[1, 2] | None, b"3", "argument 'it': expected 1, 2 or null, got 3"),
        (datetime.date, b'"soon"', 'argument \'it\': expected a string of the format "date", got "soon"'),
        (UUID, b'"x"', 'argument \'it\': expected a string of the format "uuid", got "x"'),
        (Decimal, b'"x"', "argument 'it': expected a decimal number, got \"x\""),
        (
            Annotated[str, msgspec.Meta(min_length=2)],
            b'"x"',
            "argument 'it': expected at least 2 characters, got \"x\"",
        ),
        (tuple[int, str], b"[1]", "argument 'it': expected exactly 2 items, got [1]"),
        (Annotated[int, msgspec.Meta(multiple_of=5)], b"3", "argument 'it': expected a multiple of 5, got 3"),
        (Annotated[float, msgspec.Meta(gt=0)], b"0", "argument 'it': expected more than 0, got 0"),
        (int, b'"' + b"x" * 200 + b'"', "argument 'it': expected an integer, got a string of 200 characters"),
        (int, b"[" + b"1234567890," * 9 + b"1]", "argument 'it': expected an integer, got an array of 10 items"),
    ],
)
def test_a_refused_argument_says_where_what_and_which_value(annotation: Any, raw: bytes, said: str) -> None:
    assert refusal(annotation, raw) == said


class Cat(pydantic.BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    kind: Literal["dog"]
    name: str

    @pydantic.field_validator("name")
    @classmethod
    def _check(cls, value: str) -> str:
        if value != "Rex":
            raise ValueError("Dogs are called Rex.")
        return value


Pet = Annotated[Cat | Dog, pydantic.Field(discriminator="kind")]


@pytest.mark.parametrize(
    ("annotation", "raw", "said"),
    [
        (Cat, b'{"kind":"cat"}', "missing argument 'it.lives'"),
        (Dog, b'{"kind":"dog","name":"Rex","age":1}', "unknown argument 'it.age'"),
        (Dog, b'{"kind":"dog","name":"Bob"}', "argument 'it.name': Dogs are called Rex."),
        (Pet, b'{"kind":"dog","name":"Bob"}', "argument 'it.name': Dogs are called Rex."),
        (
            list[Pet],
            b'[{"kind":"cat","lives":"x"}]',
            "argument 'it[0].lives': Input should be a valid integer, unable to parse string as an integer, got \"x\"",
        ),
    ],
)
def test_a_model_of_pydantic_speaks_for_itself_and_the_place_is_the_values(
    annotation: Any, raw: bytes, said: str
) -> None:
    assert refusal(annotation, raw) == said


def test_arguments_of_prompts_and_resources_are_refused_in_the_same_words() -> None:
    assert refusal(int, b'"ten"', "prompt") == "argument 'it': expected an integer, got \"ten\""
    assert refusal(list[int], b'"[1, true]"', "prompt") == "argument 'it[1]': expected an integer, got true"
    assert refusal(Colour, b'"green"', "prompt") == 'argument \'it\': expected "red" or "blue", got "green"'
    listed = refusal(list[Colour], b'"[\\"green\\"]"', "prompt")
    assert listed == 'argument \'it[0]\': expected "red" or "blue", got "green"'


# ── results ──────────────────────────────────────────────────────────────────────────────────────────


def logged(app: Server, caplog: pytest.LogCaptureFixture, call: Any) -> str:
    with SyncClient(app) as client, pytest.raises(McpError):
        call(client)
    eventually(lambda: caplog.text)
    return caplog.text


def test_bytes_where_the_annotation_names_an_image_are_refused_with_the_fix(caplog: pytest.LogCaptureFixture) -> None:
    app = Server("s")

    @app.tool
    def cover() -> Image:
        return b"\x89PNG"  # type: ignore[return-value]

    text = logged(app, caplog, lambda client: client.call_tool("cover"))
    assert "returned bytes, but its return annotation names content: write return Image(data, format='png')" in text


def test_a_resource_that_returns_none_is_refused_with_the_fix(caplog: pytest.LogCaptureFixture) -> None:
    app = Server("s")
    app.resource("a://b", name="b")(lambda: None)
    text = logged(app, caplog, lambda client: client.read_resource("a://b"))
    assert "returned None: a resource returns str, bytes, JSON or a ResourceResult; return '' for an empty one" in text

    def nothing() -> None: ...

    with pytest.raises(TypeError, match="'nothing' .* returns None, as its annotation says"):
        app.resource("a://c")(nothing)


def test_a_resource_whose_annotation_names_none_may_return_it() -> None:
    app = Server("s")

    @app.resource("a://b")
    def line() -> Line | None:
        return None

    with SyncClient(app) as client:
        assert client.read_resource("a://b").text == "null"


def test_a_resource_result_of_a_number_or_none_is_refused_with_the_fix() -> None:
    for contents in (5, None, 1.5, True):
        with pytest.raises(TypeError, match=f"not {contents!r}; write ResourceResult\\('{contents}'\\) for text"):
            ResourceResult(contents)
    assert ResourceResult({"a": 1}).text == '{"a":1}'


def test_errors_name_the_users_own_classes() -> None:
    for call, text in (
        (lambda: Image(), "Image"),
        (lambda: Image(b"x", fromat="png"), "Image"),
        (lambda: SyncClient(), "SyncClient"),
        (lambda: Client(), "Client.__init__"),
        (lambda: ClientGroup(), "ClientGroup"),
        (lambda: Progress(1), "Progress takes its fields by name, not 1: write Progress(progress=…)"),
        (lambda: ToolResult(contents="x"), "ToolResult"),
        (lambda: Image(5), "Image takes bytes or a path, not 5"),
    ):
        with pytest.raises(TypeError) as caught:
            call()  # type: ignore[operator]
        assert text in str(caught.value) and "_Media" not in str(caught.value) and "Peer" not in str(caught.value)
        assert "_Group" not in str(caught.value)


@pytest.mark.filterwarnings("ignore:tool .store")
def test_a_pattern_with_look_ahead_is_checked_and_lets_what_matches_pass():
    app = Server("vault")

    @app.tool
    def store(password: Annotated[str, msgspec.Meta(pattern=r"(?=.*\d)(?=.*[a-z]).{8,}")]) -> str:
        return "stored"

    with SyncClient(app) as client:
        assert client.call_tool("store", {"password": "abcdefgh1"}).text == "stored"
        with pytest.raises(McpError, match="expected a string that matches"):
            client.call_tool("store", {"password": "abc"})
        with pytest.raises(McpError, match="takes too many steps"):
            client.call_tool("store", {"password": "a" * 100_000})
