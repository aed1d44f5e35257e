"""`data` of a result is the same in every revision, and texts of single values have no quotes."""

import datetime
import json
import pickle
from decimal import Decimal
from enum import Enum
from pathlib import PurePosixPath
from typing import Any
from uuid import UUID

import pytest

from gudgeon import Server
from gudgeon.errors import McpError
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
def test_a_text_is_never_taken_for_a_value(era: str) -> None:
    for text in ['{"a": 1}', "42", "3.10", "1e5", "true", "null", '"quoted"', "007", "9007199254740993", "[" * 50_000]:
        for value in (text, ToolResult(text)):
            with connect_sync(serving(value), revision=era) as client:
                result = client.call_tool("give")
                assert result.data == result.text == text


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("text", "returns", "data"),
    [
        ("42", str, "42"),
        ("42", str | int, "42"),
        ("42", Any, "42"),
        ("42", int, 42),
        ("3.10", Decimal, Decimal("3.10")),
        ("2026-11-22", datetime.date, DAY),
        ('{"a": [1]}', dict[str, list[int]], {"a": [1]}),
        ("null", int | None, None),
    ],
    ids=str,
)
def test_the_type_that_is_asked_for_is_read_from_the_text_or_else_from_its_json(
    era: str, text: str, returns: Any, data: Any
) -> None:
    with connect_sync(serving(text), revision=era) as client:
        typed = client.call_tool("give", returns=returns).data
        assert typed == data and type(typed) is type(data)


@pytest.mark.parametrize("era", ERAS)
def test_the_error_of_a_wrong_type_is_about_the_text_unless_that_is_json(era: str) -> None:
    for text, problem in (("many", "got `str`"), ("[1]", "got `array`")):
        with connect_sync(serving(text), revision=era) as client, pytest.raises(McpError, match=problem):
            client.call_tool("give", returns=int)


@pytest.mark.parametrize("era", ERAS)
def test_a_text_that_the_handler_wrote_for_its_value_stands_for_it(era: str) -> None:
    value = {"count": 2, "titles": ["Emma"]}
    with connect_sync(serving(ToolResult(json.dumps(value), structured_content=value)), revision=era) as client:
        assert client.call_tool("give").data == value


@pytest.mark.parametrize("era", ERAS)
def test_listing_the_tools_changes_no_data(era: str) -> None:
    with connect_sync(serving(MOMENT, datetime.datetime), revision=era) as client:
        before = client.call_tool("give")
        client.list_tools()
        after = client.call_tool("give")
        assert (before.data, after.data) == ("2026-11-22T19:30:00Z",) * 2
        assert pickle.loads(pickle.dumps(after)) == after == before
        assert pickle.loads(pickle.dumps(after)).data == after.data


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
