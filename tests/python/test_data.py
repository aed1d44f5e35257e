"""`data` of a result is the same in every revision, and texts of single values have no quotes."""

import datetime
from decimal import Decimal
from enum import Enum
from pathlib import PurePosixPath
from typing import Any
from uuid import UUID

import pytest

from gudgeon import Server
from gudgeon.testing import ERAS, connect_sync
from gudgeon.types import ToolResult

DAY = datetime.date(2026, 11, 22)
MOMENT = datetime.datetime(2026, 11, 22, 19, 30, tzinfo=datetime.timezone.utc)


class Colour(Enum):
    RED = "red"


def serving(value: Any, returns: Any = ...) -> Server:
    app = Server("s")

    def give():  # type: ignore[no-untyped-def]
        return value

    if returns is not ...:
        give.__annotations__["return"] = returns
    app.tool(give)
    return app


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("annotated", [False, True], ids=["bare", "annotated"])
@pytest.mark.parametrize(
    ("value", "returns", "data"),
    [
        (3, int, 3),
        (1.5, float, 1.5),
        (True, bool, True),
        ([1, "a"], list[Any], [1, "a"]),
        ({"a": [None]}, dict[str, Any], {"a": [None]}),
        ("three", str, "three"),
        ("", str, ""),
        (DAY, datetime.date, "2026-11-22"),
        (UUID(int=7), UUID, "00000000-0000-0000-0000-000000000007"),
        (b"bytes", bytes, "Ynl0ZXM="),
        (Colour.RED, Colour, "red"),
        (PurePosixPath("/a/b"), PurePosixPath, "/a/b"),
    ],
    ids=str,
)
def test_data_is_the_same_in_every_revision(era: str, annotated: bool, value: Any, returns: Any, data: Any) -> None:
    with connect_sync(serving(value, returns if annotated else ...), revision=era) as client:
        result = client.call_tool("give")
        assert result.data == data and type(result.data) is type(data)
        if isinstance(data, str):
            assert result.text == data
        # The type that is asked for is rebuilt in every revision, also from a string.
        assert client.call_tool("give", returns=returns).data == value


@pytest.mark.parametrize("era", ERAS)
def test_a_text_that_is_json_is_read_alike_in_every_revision_and_is_a_str_where_that_is_asked_for(era: str) -> None:
    for text, data in (
        ('{"a": 1}', {"a": 1}),
        ("42", 42),
        ("null", None),
        ('"quoted"', '"quoted"'),
        ("007", "007"),
        ("9007199254740993", "9007199254740993"),
    ):
        with connect_sync(serving(text), revision=era) as client:
            assert client.call_tool("give").data == data
            assert client.call_tool("give").text == text
    with connect_sync(serving("42"), revision=era) as client:
        assert client.call_tool("give", returns=str).data == "42"
        assert client.call_tool("give", returns=str | None).data == "42"
        assert client.call_tool("give", returns=int).data == 42
    with connect_sync(serving("[" * 50_000 + "]" * 50_000), revision=era) as client:
        assert client.call_tool("give").data == "[" * 50_000 + "]" * 50_000


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Decimal("1.50"), "1.50"),
        (UUID(int=7), "00000000-0000-0000-0000-000000000007"),
        (DAY, "2026-11-22"),
        (MOMENT, "2026-11-22T19:30:00Z"),
        (PurePosixPath("/a/b"), "/a/b"),
        (b"bytes", "Ynl0ZXM="),
        (ToolResult(structured_content="said"), "said"),
        ([DAY], '["2026-11-22"]'),
    ],
    ids=str,
)
def test_the_text_of_a_single_value_has_no_quotes(era: str, value: Any, text: str) -> None:
    with connect_sync(serving(value), revision=era) as client:
        assert client.call_tool("give").text == text
    app = serving(value)

    @app.middleware
    async def around(request: Any, next: Any) -> Any:
        return await next(request)

    with connect_sync(app, revision=era) as client:
        assert client.call_tool("give").text == text


def test_the_text_of_a_resource_has_no_quotes() -> None:
    app = Server("s")
    app.resource("a://day", name="day")(lambda: DAY)
    with connect_sync(app) as client:
        read = client.read_resource("a://day")
        assert (read.text, read.contents[0].mime_type) == ("2026-11-22", "text/plain")
