"""Types → JSON Schema 2020-12, portable: inlined, untitled, in the order written."""

import dataclasses
import datetime
import decimal
import enum
import pathlib
import uuid
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, Optional, TypeVar, Union

import msgspec
import pydantic
import pytest
from msgspec import Meta
from typing_extensions import NotRequired, TypeAliasType, TypedDict

from gudgeon._schema.json_schema import schema_of
from gudgeon._schema.type_hints import SchemaError


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclasses.dataclass
class Book:
    """A book.

    Attributes:
        id: its number
    """

    id: int
    title: Annotated[str, "what it is called"] = "untitled"
    tags: list[str] = dataclasses.field(default_factory=list)


class Filter(TypedDict, total=False):
    author: str
    colour: Literal["red", "blue", "black"]


class Half(TypedDict):
    a: int
    b: NotRequired[str]


class Point(NamedTuple):
    x: int
    y: int = 0


class Shelf(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    first_book: Book
    max_price: Annotated[float, Meta(gt=0)] = 9.5


class Cat(msgspec.Struct, tag=True):
    lives: int


class Dog(msgspec.Struct, tag=True):
    name: str


class Author(pydantic.BaseModel):
    """The author."""

    title: str
    born: int = pydantic.Field(ge=0, description="year")


Person = Author


class Paper(pydantic.BaseModel):
    authors: list[Author]
    url: pydantic.AnyUrl | None = None


@dataclasses.dataclass
class Node:
    name: str
    children: "list[Node]"


class Tree(pydantic.BaseModel):
    left: Optional["Tree"] = None


T = TypeVar("T")


@dataclasses.dataclass
class Box(Generic[T]):
    item: T


Isbn = NewType("Isbn", str)
Alias = TypeAliasType("Alias", list[int])
BOOK = {
    "description": "A book.",
    "type": "object",
    "properties": {
        "id": {"description": "its number", "type": "integer"},
        "title": {"description": "what it is called", "type": "string", "default": "untitled"},
        "tags": {"type": "array", "items": {"type": "string"}, "default": []},
    },
    "required": ["id"],
}
AUTHOR = {
    "description": "The author.",
    "properties": {"title": {"type": "string"}, "born": {"description": "year", "minimum": 0, "type": "integer"}},
    "required": ["title", "born"],
    "type": "object",
}

CASES: list[tuple[Any, dict[str, Any]]] = [
    (str, {"type": "string"}),
    (int, {"type": "integer"}),
    (float, {"type": "number"}),
    (bool, {"type": "boolean"}),
    (None, {"type": "null"}),
    (Any, {}),
    (object, {}),
    (bytes, {"type": "string", "contentEncoding": "base64"}),
    (list, {"type": "array", "items": {}}),
    (list[Any], {"type": "array", "items": {}}),
    (list[int], {"type": "array", "items": {"type": "integer"}}),
    (
        tuple[int, str],
        {
            "type": "array",
            "minItems": 2,
            "maxItems": 2,
            "prefixItems": [{"type": "integer"}, {"type": "string"}],
            "items": {},
        },
    ),
    (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
    (set[int], {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}),
    (frozenset[int], {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}),
    (Sequence[int], {"type": "array", "items": {"type": "integer"}}),
    (Mapping[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
    (dict[str, Any], {"type": "object"}),
    (dict, {"type": "object"}),
    (int | None, {"type": ["integer", "null"]}),
    (Optional[int], {"type": ["integer", "null"]}),
    (Union[int, str], {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
    (int | str | None, {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]}),
    (Literal["low", "mid", "high"], {"type": "string", "enum": ["low", "mid", "high"]}),
    (Literal["a", 1], {"type": ["string", "integer"], "enum": ["a", 1]}),
    (Colour, {"type": "string", "enum": ["red", "blue"]}),
    (Colour | None, {"type": ["string", "null"], "enum": ["red", "blue", None]}),
    (Level, {"type": "integer", "enum": [1, 2]}),
    (Annotated[int, "1 to 50"], {"description": "1 to 50", "type": "integer"}),
    (Annotated[int, "d", Meta(ge=1, le=50)], {"description": "d", "type": "integer", "minimum": 1, "maximum": 50}),
    (Annotated[str, Meta(min_length=1, pattern="^a")], {"type": "string", "minLength": 1, "pattern": "^a"}),
    (Annotated[list[int], Meta(max_length=3)], {"type": "array", "items": {"type": "integer"}, "maxItems": 3}),
    (Annotated[int, pydantic.Field(ge=1, description="d")], {"description": "d", "minimum": 1, "type": "integer"}),
    (datetime.date, {"type": "string", "format": "date"}),
    (datetime.time, {"type": "string", "format": "time"}),
    (datetime.datetime, {"type": "string", "format": "date-time"}),
    (datetime.timedelta, {"type": "string", "format": "duration"}),
    (uuid.UUID, {"type": "string", "format": "uuid"}),
    (decimal.Decimal, {"anyOf": [{"type": "number"}, {"type": "string", "format": "decimal"}]}),
    (
        decimal.Decimal | None,
        {"anyOf": [{"type": "number"}, {"type": "string", "format": "decimal"}, {"type": "null"}]},
    ),
    (pathlib.Path, {"type": "string", "format": "path"}),
    (Isbn, {"type": "string"}),
    (Alias, {"type": "array", "items": {"type": "integer"}}),
    (Book, BOOK),
    (list[Book], {"type": "array", "items": BOOK}),
    (dict[str, Book] | None, {"type": ["object", "null"], "additionalProperties": BOOK}),
    (
        Filter,
        {
            "type": "object",
            "properties": {
                "author": {"type": "string"},
                "colour": {"type": "string", "enum": ["red", "blue", "black"]},
            },
        },
    ),
    (Half, {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["a"]}),
    (
        Point,
        {
            "type": "array",
            "prefixItems": [{"type": "integer"}, {"type": "integer", "default": 0}],
            "minItems": 1,
            "maxItems": 2,
            "items": {},
        },
    ),
    (
        Shelf,
        {
            "type": "object",
            "properties": {"firstBook": BOOK, "maxPrice": {"type": "number", "exclusiveMinimum": 0, "default": 9.5}},
            "required": ["firstBook"],
            "additionalProperties": False,
        },
    ),
    (
        Cat | Dog,
        {
            "anyOf": [
                {
                    "type": "object",
                    "properties": {"type": {"const": "Cat"}, "lives": {"type": "integer"}},
                    "required": ["type", "lives"],
                },
                {
                    "type": "object",
                    "properties": {"type": {"const": "Dog"}, "name": {"type": "string"}},
                    "required": ["type", "name"],
                },
            ],
            "discriminator": {"propertyName": "type"},
        },
    ),
    (Author, AUTHOR),
    (list[Author] | None, {"type": ["array", "null"], "items": AUTHOR}),
    (
        Paper,
        {
            "properties": {
                "authors": {"items": AUTHOR, "type": "array"},
                "url": {"format": "uri", "minLength": 1, "type": ["string", "null"], "default": None},
            },
            "required": ["authors"],
            "type": "object",
        },
    ),
]


@pytest.mark.parametrize(("annotation", "schema"), CASES, ids=lambda item: str(item)[:40])
def test_schema(annotation: Any, schema: dict[str, Any]) -> None:
    assert schema_of(annotation) == schema


def test_order_is_as_written() -> None:
    assert list(schema_of(Book)["properties"]) == ["id", "title", "tags"]
    assert list(schema_of(Annotated[int, "x"])) == ["description", "type"]


def test_generic_classes_are_distinguished() -> None:
    schema = schema_of(tuple[Box[int], Box[str]])
    assert [item["properties"]["item"]["type"] for item in schema["prefixItems"]] == ["integer", "string"]


@pytest.mark.parametrize("cyclic", [Node, Tree, list[Node]])
def test_a_cyclic_type_is_refused_unless_full(cyclic: Any) -> None:
    with pytest.raises(
        SchemaError, match=r"cyclic \(#/\$defs/(Node|Tree) → #/\$defs/(Node|Tree)\).*schema_profile=\"full\""
    ):
        schema_of(cyclic)
    schema = schema_of(cyclic, profile="full")
    assert len(schema["$defs"]) == 1
    assert schema["type"] == ("object" if cyclic in (Node, Tree) else "array")


def test_full_says_the_type_of_a_root_that_has_a_name() -> None:
    assert schema_of(Book, profile="full", output=True) == schema_of(Book)
    described = schema_of(Annotated[Node, "where it begins"], profile="full", output=True)
    assert (described["type"], described["description"]) == ("object", "where it begins")
    assert described["$defs"]["Node"]["properties"] == described["properties"]


def test_full_keeps_definitions_apart() -> None:
    @dataclasses.dataclass
    class Author:
        name: str

    defs: dict[str, Any] = {}
    one, other, same = (schema_of(kind, profile="full", defs=defs) for kind in (Author, list[Person], Author))
    assert one == same == {"$ref": "#/$defs/Author"}
    assert schema_of(list[Book], profile="full", defs=defs) == {"type": "array", "items": {"$ref": "#/$defs/Book"}}
    assert list(defs["Author"]["properties"]) == ["name"]
    assert other == {"type": "array", "items": {"$ref": "#/$defs/Author2"}} and defs["Author2"] == AUTHOR


def test_a_type_without_a_schema_names_the_fix() -> None:
    class Db:
        pass

    with pytest.raises(SchemaError, match="Db has no JSON Schema: use a dataclass, a TypedDict"):
        schema_of(Db)
    with pytest.raises(SchemaError, match="may not contain more than one.*tag=True"):
        schema_of(Book | Node)


def test_an_output_may_be_one_of_several_classes() -> None:
    schema = schema_of(list[Book | Point | Half], output=True)
    assert len(schema["items"]["anyOf"]) == 3


def test_properties_called_title_survive() -> None:
    assert "title" in schema_of(Author)["properties"]
