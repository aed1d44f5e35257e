"""Values of pydantic's models: bytes are base64 wherever they are, and what a model configures counts."""

import base64
import dataclasses
import re
from typing import Annotated, Any

import pydantic
import pytest
from pydantic import AliasChoices, ConfigDict, Field

from gudgeon import Server
from gudgeon.errors import ProtocolError, ToolError
from gudgeon.testing import ERAS, connect_sync

BYTES = b"\xff\xfe\x00>?"
TEXT = base64.b64encode(BYTES).decode()


class Blob(pydantic.BaseModel):
    data: bytes


class Box(pydantic.BaseModel):
    blob: Blob
    blobs: list[Blob] = []
    raw: Annotated[bytes, Field(min_length=1)] = b"x"


@dataclasses.dataclass
class Shelf:
    blob: Blob


class Words(pydantic.BaseModel):
    """Says by itself how its bytes are written."""

    model_config = ConfigDict(ser_json_bytes="utf8", val_json_bytes="utf8")
    data: bytes


class Named(pydantic.BaseModel):
    model_config = ConfigDict(serialize_by_alias=False, validate_by_alias=False, validate_by_name=True)
    count: int = Field(alias="theCount")


class Choosing(pydantic.BaseModel):
    count: int = Field(validation_alias=AliasChoices("count", "n"))


class Strict(pydantic.BaseModel):
    model_config = ConfigDict(strict=True)
    tags: tuple[str, ...]


def echoing(kind: Any) -> Server:
    app = Server("s")

    def echo(value):  # type: ignore[no-untyped-def]
        return value

    echo.__annotations__ = {"value": kind, "return": kind}
    app.tool(echo)
    return app


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (bytes, TEXT),
        (list[bytes], [TEXT]),
        (Annotated[bytes, Field(min_length=1)], TEXT),
        (Blob, {"data": TEXT}),
        (list[Blob], [{"data": TEXT}]),
        (dict[str, Blob], {"a": {"data": TEXT}}),
        (Shelf, {"blob": {"data": TEXT}}),
        (Box, {"blob": {"data": TEXT}, "blobs": [{"data": TEXT}], "raw": TEXT}),
        (Words, {"data": "grüß"}),
        (list[Words], [{"data": "grüß"}]),
    ],
    ids=str,
)
def test_bytes_are_base64_unless_the_model_says_otherwise(era: str, kind: Any, value: Any) -> None:
    with connect_sync(echoing(kind), revision=era) as client:
        assert client.call_tool("echo", {"value": value}).data == value
        typed = client.call_tool("echo", {"value": value}, returns=kind).data
        expected = b"gr\xc3\xbc\xc3\x9f" if "grüß" in repr(value) else BYTES
        assert repr(expected) in repr(typed)


def test_the_schema_says_how_bytes_are_written() -> None:
    with connect_sync(echoing(Box)) as client:
        tool = client.list_tools()[0]
        for schema in (tool.input_schema["properties"]["value"], tool.output_schema):
            assert schema["properties"]["raw"]["contentEncoding"] == "base64"
            assert "format" not in schema["properties"]["blob"]["properties"]["data"]
    with connect_sync(echoing(Words)) as client:
        assert client.list_tools()[0].input_schema["properties"]["value"]["properties"]["data"]["format"] == "binary"


def test_bytes_that_are_not_base64_are_refused_by_name() -> None:
    with connect_sync(echoing(Box)) as client, pytest.raises(ToolError, match=r"'value\.blob\.data': .*base64"):
        client.call_tool("echo", {"value": {"blob": {"data": "no"}}})


@pytest.mark.parametrize("era", ERAS)
def test_the_names_are_those_that_the_model_configures(era: str) -> None:
    with connect_sync(echoing(Named), revision=era) as client:
        assert client.call_tool("echo", {"value": {"count": 1}}).data == {"count": 1}
        tool = client.list_tools()[0]
        assert list(tool.input_schema["properties"]["value"]["properties"]) == ["count"]
        with pytest.raises((ToolError, ProtocolError), match=r"value\.count"):
            client.call_tool("echo", {"value": {"theCount": 1}})
    with connect_sync(echoing(Choosing), revision=era) as client:
        for name in ("count", "n"):
            assert client.call_tool("echo", {"value": {name: 1}}).data == {"count": 1}


@pytest.mark.parametrize("kind", [Strict, list[Strict], dict[str, Strict]], ids=str)
def test_a_strict_model_reads_json_wherever_it_is(kind: Any) -> None:
    value: Any = {"tags": ["a"]}
    given = value if kind is Strict else [value] if kind == list[Strict] else {"a": value}
    with connect_sync(echoing(kind)) as client:
        assert client.call_tool("echo", {"value": given}).data == given


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a\ud800b", "a\ufffdb"),
        ("caf\udce9.txt", "caf\ufffd.txt"),
        ("\ud83d\ude00", "😀"),
        (["ok", "\udcff"], '["ok","\ufffd"]'),
        ({"\udcff": 1}, '{"\ufffd":1}'),
    ],
    ids=ascii,
)
def test_halves_of_surrogate_pairs_are_replaced(era: str, value: Any, text: str) -> None:
    app = Server("files")
    app.tool(lambda: value, name="names")
    with connect_sync(app, revision=era) as client:
        assert client.call_tool("names").text == text
        assert client.call_tool("names", {}).text == text


def test_flags_are_part_of_a_published_pattern_or_it_has_none():
    app = Server("flags")

    @app.tool
    def check(
        name: Annotated[str, Field(pattern=re.compile(r"^ada.\d$", re.IGNORECASE | re.DOTALL))],
        reference: Annotated[str, Field(pattern=re.compile(r"^(a)\1$", re.IGNORECASE))] = "aa",
        verbose: Annotated[str, Field(pattern=re.compile("^ a $", re.VERBOSE))] = "a",
    ) -> str:
        return name + reference + verbose

    with connect_sync(app) as client:
        properties = client.list_tools()[0].input_schema["properties"]
        assert properties["name"]["pattern"] == r"^[aA][dD][aA][\s\S]\d$"
        assert "pattern" not in properties["reference"] and "pattern" not in properties["verbose"]
        assert client.call_tool("check", {"name": "Ada\n1", "reference": "aA"}).text == "Ada\n1aAa"
        with pytest.raises(ToolError, match="reference"):
            client.call_tool("check", {"name": "Ada 1", "reference": "ab"})
