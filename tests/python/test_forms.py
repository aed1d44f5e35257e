"""Forms: a type or schema → what a client shows, and its answer → the type."""

import dataclasses
import datetime
import enum
import json
from typing import Annotated, Any, Literal

import msgspec
import pydantic
import pytest
from msgspec import Meta
from typing_extensions import TypedDict

from gudgeon import ask
from gudgeon._native import form_problem
from gudgeon._schema.forms import form
from gudgeon.errors import Cancelled, Declined, ProtocolError
from gudgeon.types import Root, Text, Tool, user


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Code(enum.Enum):
    DARK_RED = "#800"
    BLUE = "#00f"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclasses.dataclass
class Order:
    name: Annotated[str, "yours"]
    count: Annotated[int, Meta(ge=1, lt=10)] = 1
    colour: Colour = Colour.RED
    note: str | None = None


class Dated(TypedDict):
    day: datetime.date


class Named(msgspec.Struct, rename="camel"):
    first_name: str
    level: Level


class Person(pydantic.BaseModel):
    mail: Annotated[str, pydantic.Field(json_schema_extra={"format": "email"})]
    site: pydantic.AnyUrl
    age: int = pydantic.Field(18, ge=0)

    @pydantic.field_validator("age")
    @classmethod
    def adult(cls, value: int) -> int:
        if value < 18:
            raise ValueError("too young")
        return value


def wrapped(**field: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"value": field}, "required": ["value"]}


@pytest.mark.parametrize(
    ("wanted", "schema", "answer", "value"),
    [
        (bool, wrapped(type="boolean"), True, True),
        (str, wrapped(type="string"), "a", "a"),
        (int, wrapped(type="integer"), 3.0, 3),
        (float, wrapped(type="number"), 3, 3.0),
        (Annotated[int, "d", Meta(gt=0, le=9)], wrapped(description="d", type="integer", maximum=9, minimum=1), 2, 2),
        (Colour, wrapped(type="string", enum=["red", "blue"]), "red", Colour.RED),
        (
            Code,
            wrapped(type="string", oneOf=[{"const": "#800", "title": "Dark red"}, {"const": "#00f", "title": "Blue"}]),
            "#800",
            Code.DARK_RED,
        ),
        (
            Level,
            wrapped(type="string", oneOf=[{"const": "1", "title": "Low"}, {"const": "2", "title": "High"}]),
            "2",
            Level.HIGH,
        ),
        (Literal["a", "b"], wrapped(type="string", enum=["a", "b"]), "b", "b"),
        (Literal[1, 2], wrapped(type="string", enum=["1", "2"]), "2", 2),
        (
            list[Colour],
            wrapped(type="array", items={"type": "string", "enum": ["red", "blue"]}),
            ["blue"],
            [Colour.BLUE],
        ),
        (
            list[Code],
            wrapped(
                type="array",
                items={"anyOf": [{"const": "#800", "title": "Dark red"}, {"const": "#00f", "title": "Blue"}]},
            ),
            ["#00f"],
            [Code.BLUE],
        ),
        (datetime.date, wrapped(type="string", format="date"), "2025-01-02", datetime.date(2025, 1, 2)),
        (
            datetime.datetime,
            wrapped(type="string", format="date-time"),
            "2025-01-02T03:04:05",
            datetime.datetime(2025, 1, 2, 3, 4, 5),
        ),
    ],
    ids=str,
)
def test_plain_types_are_asked_as_value(wanted: Any, schema: dict[str, Any], answer: Any, value: Any) -> None:
    asked = form(wanted)
    assert asked.schema == schema
    assert asked.decode({"value": answer}) == value
    assert type(asked.decode({"value": answer})) is type(value)


def test_an_optional_type_and_a_default_need_no_answer() -> None:
    assert form(str | None).schema == {"type": "object", "properties": {"value": {"type": "string"}}}
    assert form(str | None).decode({}) is None
    asked = form(str, "tidy")
    assert asked.schema["properties"]["value"]["default"] == "tidy"
    assert asked.decode({}) == "tidy"
    assert form(Level, Level.HIGH).schema["properties"]["value"]["default"] == "2"


@pytest.mark.parametrize("wanted", [Literal["a", None], Literal["a"] | None, Annotated[Literal[1, None], "which"]])
def test_a_literal_with_none_needs_no_answer(wanted: Any) -> None:
    asked = form(wanted)
    assert "required" not in asked.schema and asked.decode({}) is None


@pytest.mark.parametrize(
    "wanted", [Annotated[str, Meta(title="Your name")], Annotated[str, pydantic.Field(title="Your name")]]
)
def test_a_plain_type_may_have_a_title(wanted: Any) -> None:
    assert form(wanted).schema["properties"]["value"] == {"type": "string", "title": "Your name"}


def test_defaults_of_several_choices_are_lists_or_tuples() -> None:
    for wanted, default in ((list[Level], [Level.LOW]), (tuple[Level, ...], (Level.LOW,)), (set[Level], {Level.LOW})):
        asked = ask.elicit("Which?", wanted, default=default)
        assert asked.schema["properties"]["value"]["default"] == ["1"]
        assert asked.decode({"action": "accept", "content": {}}) == default


def test_the_default_of_a_class_has_its_fields() -> None:
    with pytest.raises(TypeError, match="default= of a form for Order must have its fields, but is an int"):
        ask.elicit("What?", Order, default=5)  # type: ignore[call-overload]


def test_classes_are_asked_by_their_fields() -> None:
    asked = form(Order)
    assert asked.schema == {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "yours"},
            "count": {"type": "integer", "minimum": 1, "maximum": 9, "default": 1},
            "colour": {"type": "string", "enum": ["red", "blue"], "default": "red"},
            "note": {"type": "string"},
        },
        "required": ["name"],
    }
    assert asked.decode({"name": "x", "count": 2.0, "colour": "blue"}) == Order("x", 2, Colour.BLUE)
    assert form(Order, Order("me", 3)).schema["properties"]["name"]["default"] == "me"
    assert form(Dated).decode({"day": "2025-01-02"}) == {"day": datetime.date(2025, 1, 2)}
    named = form(Named)
    assert list(named.schema["properties"]) == ["firstName", "level"]
    assert named.decode({"firstName": "x", "level": "1"}) == Named("x", Level.LOW)


def test_pydantic_models() -> None:
    asked = form(Person)
    assert asked.schema["properties"] == {
        "mail": {"type": "string", "format": "email"},
        "site": {"type": "string", "format": "uri", "minLength": 1},
        "age": {"type": "integer", "minimum": 0, "default": 18},
    }
    person = asked.decode({"mail": "a@b", "site": "https://e.org"})
    assert isinstance(person, Person) and person.age == 18


def test_schemas_are_taken_as_they_are_and_answers_come_as_dicts() -> None:
    choice = {"type": "string", "oneOf": [{"const": "a", "title": "A"}], "default": "a"}
    schema = {
        "type": "object",
        "properties": {"x": choice, "y": {"type": "array", "items": {"type": "string", "enum": ["q"]}}},
        "required": ["x"],
    }
    asked = form(schema)
    assert asked.schema == schema
    assert asked.decode({"x": "a"}) == {"x": "a"}


@dataclasses.dataclass
class Nested:
    order: Order


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (Nested, 'its property "order" is an object, and a form asks for strings, numbers,'),
        (dict[str, int], 'its property "value" is an object, and a form asks for'),
        (list[str], 'its property "value" is a list, which a form asks as a choice of several'),
        (int | str, 'its property "value" is of several types, and a form asks for'),
        (object, 'its property "value" has no "type", and a form asks for'),
        (
            Annotated[str, Meta(pattern="^a")],
            'its property "value" has "pattern", which forms do not support for a string',
        ),
        (Annotated[float, Meta(gt=0)], 'its property "value" has "exclusiveMinimum"'),
        (Annotated[int, Meta(multiple_of=2)], 'its property "value" has "multipleOf"'),
        ({"type": "string"}, "its schema must be {"),
        ({"type": "object", "properties": {"a": {"type": "object"}}}, 'its property "a" is an object'),
        ({"type": "object", "properties": {"a": 5}}, 'its property "a" is not a JSON Schema'),
        (
            {"type": "object", "properties": {"a": {"type": "string", "format": "uuid"}}},
            'its property "a" has the format',
        ),
        ({"type": "object", "properties": {}, "required": ["a"]}, 'it requires "a", which is none of its properties'),
    ],
    ids=str,
)
def test_what_no_form_can_ask_is_refused_where_the_question_is_made(wanted: Any, message: str) -> None:
    with pytest.raises(TypeError) as told:
        ask.elicit("Well?", wanted)
    assert str(told.value).startswith(f'the form "Well?" can\'t be asked: {message}')


def test_a_type_that_json_does_not_know_is_no_form() -> None:
    with pytest.raises(TypeError, match="a form can't ask for Db"):
        ask.elicit("Well?", type("Db", (), {}))


@pytest.mark.parametrize(
    "wanted",
    [bool, str, float, Colour, Code, Level, list[Colour], list[Code], Order, Dated, Named, Person],
)
def test_what_a_type_becomes_is_a_form(wanted: Any) -> None:
    assert form_problem("Well?", json.dumps(ask.elicit("Well?", wanted).schema)) is None


def test_questions_decode_what_clients_answer() -> None:
    question = ask.elicit("Delete?", bool, key="sure")
    assert (question.kind, question.key) == ("elicit", "sure")
    assert question.request() == {
        "method": "elicitation/create",
        "params": {"mode": "form", "message": "Delete?", "requestedSchema": wrapped(type="boolean")},
    }
    assert question.decode({"action": "accept", "content": {"value": True}}) is True
    with pytest.raises(Declined, match="The user declined: Delete?"):
        question.decode({"action": "decline"})
    with pytest.raises(Cancelled):
        question.decode({"action": "cancel"})
    for bad in (
        {"action": "accept", "content": {"value": "maybe"}},
        {"action": "accept"},
        {"action": "accept", "content": 5},
        {},
        None,
    ):
        with pytest.raises(ProtocolError, match="the answer to 'Delete\\?'"):
            question.decode(bad)
    with pytest.raises(ProtocolError, match="too young"):
        ask.elicit("Who?", Person).decode(
            {"action": "accept", "content": {"mail": "a", "site": "https://e.org", "age": 3}}
        )


def test_a_question_is_not_its_answer() -> None:
    with pytest.raises(TypeError, match="a Question is not its answer"):
        bool(ask.elicit("Delete?", bool))
    with pytest.raises(TypeError, match="key="):
        ask.elicit("?", bool, key="")
    with pytest.raises(TypeError, match="needs a message"):
        ask.elicit(5, bool)  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="absolute URL"):
        ask.elicit_url("Sign in", "example.org")


def test_other_questions() -> None:
    url = ask.elicit_url("Sign in", "https://example.org/in")
    assert url.params == {"mode": "url", "message": "Sign in", "url": "https://example.org/in"}
    assert url.decode({"action": "accept", "elicitationId": "7"}) == "7"
    assert ask.roots().decode({"roots": [{"uri": "file:///a"}]}) == [Root("file:///a")]
    with pytest.raises(ProtocolError):
        ask.roots().decode({})
    tool = Tool(name="t", input_schema={"type": "object"})
    sample = ask.sample(["a", user("b")], models="fast", stop=["x"], tools=[tool, {"name": "u", "inputSchema": {}}])
    assert sample.params["maxTokens"] == 1024
    assert sample.params["modelPreferences"] == {"hints": [{"name": "fast"}]}
    assert [item["name"] for item in sample.params["tools"]] == ["t", "u"]
    answer = sample.decode({"role": "assistant", "content": {"type": "text", "text": "hi"}, "model": "m"})
    assert (answer.text, answer.content, answer.stop_reason) == ("hi", (Text("hi"),), None)
    with pytest.raises(TypeError, match="unknown option 'maxTokens'; did you mean 'max_tokens'"):
        ask.sample("a", maxTokens=5)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unknown option 'server'; it takes cost_priority"):
        ask.sample("a", server="shelf")  # type: ignore[call-arg]
