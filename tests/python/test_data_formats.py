"""`data` has the types that a listed tool's output schema names by formats."""

import datetime
import json
import pickle
import sys
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from gudgeon import Client, ClientGroup, Command, Server, SyncClient, SyncClientGroup
from gudgeon.testing import ERAS, connect, connect_sync
from gudgeon.types import ToolResult

UTC = datetime.timezone.utc
# Revisions whose lists have output schemas.
TYPED = [era for era in ERAS if era >= "2025-06-18"]
VALUES: list[tuple[Any, Any]] = [
    (datetime.datetime(2026, 11, 22, 19, 30, tzinfo=UTC), datetime.datetime),
    (datetime.date(2026, 11, 22), datetime.date),
    (datetime.time(19, 30), datetime.time),
    (datetime.timedelta(days=1, seconds=3), datetime.timedelta),
    (UUID(int=7), UUID),
    (Decimal("1.50"), Decimal),
    (b"bytes", bytes),
    (None, datetime.date | None),
    ([datetime.date(2026, 1, 2)], list[datetime.date]),
    ({"a": [UUID(int=7)]}, dict[str, list[UUID]]),
    ("2026-11-22", str),
    ("2026-11-22", str | int),
]


@dataclass
class Entry:
    at: datetime.datetime
    note: str
    price: Decimal | None = None
    below: "list[Entry] | None" = None


ENTRY = Entry(VALUES[0][0], "2026-11-22", Decimal("2"), [Entry(VALUES[0][0], "")])
PLAIN = {
    "at": VALUES[0][0],
    "note": "2026-11-22",
    "price": Decimal("2"),
    "below": [{"at": VALUES[0][0], "note": "", "price": None, "below": None}],
}


def giving(value: Any, returns: Any) -> Server:
    app = Server("s", schema_profile="full")

    def give():  # type: ignore[no-untyped-def]
        return value

    give.__annotations__["return"] = returns
    app.tool(give)
    return app


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(("value", "returns"), VALUES, ids=str)
def test_values_have_their_types_once_the_tools_are_listed(era: str, value: Any, returns: Any) -> None:
    with connect_sync(giving(value, returns), revision=era) as client:
        before = client.call_tool("give")
        client.list_tools()
        result = client.call_tool("give")
        if era in TYPED:
            assert result.data == value and type(result.data) is type(value)
        else:
            assert result.data == before.data
        assert (result, result.structured_content, result.text) == (before, before.structured_content, before.text)
        assert client.call_tool("give", returns=returns).data == value


@pytest.mark.parametrize("era", TYPED)
async def test_places_inside_of_objects_and_arrays(era: str) -> None:
    async with connect(giving(ENTRY, Entry), revision=era) as client:
        assert (await client.call_tool("give")).data["at"] == "2026-11-22T19:30:00Z"
        await client.list_tools()
        result = await client.call_tool("give")
        assert result.data == PLAIN and result.data is result.data
        assert result.structured_content["at"] == "2026-11-22T19:30:00Z"
        copied = pickle.loads(pickle.dumps(await client.call_tool("give")))
        assert copied == result and copied.data == PLAIN and hash(copied) == hash(result)


@pytest.mark.parametrize("era", TYPED)
async def test_a_page_is_a_list_and_a_round_is_a_call(era: str) -> None:
    async with connect(giving(ENTRY, Entry), revision=era) as client:
        await client.list_tools_page()
        result = await client.call_tool_round("give")
        assert isinstance(result, ToolResult) and result.data == PLAIN


@pytest.mark.parametrize("era", TYPED)
async def test_types_stay_the_same_when_the_list_changes(era: str) -> None:
    app = giving(ENTRY, Entry)
    app.tool(lambda: "ok", name="other")
    async with Client(app, revision=era, on_list_changed=lambda it: None) as client:  # type: ignore[arg-type]
        await client.list_tools()
        assert (await client.call_tool("give")).data == PLAIN
        for _ in range(3):
            app.tools.disable("other")
            app.tools.enable("other")
            assert (await client.call_tool("give")).data == PLAIN


async def test_groups_and_middleware() -> None:
    async def cached(request: Any, next: Any) -> Any:
        result = await next(request)
        return {**result, "content": [{"type": "text", "text": "2026-01-02"}]} if "content" in result else result

    day = giving(datetime.date(2026, 1, 2), datetime.date)
    async with ClientGroup({"a": giving(ENTRY, Entry), "b": day}, middleware=[cached]) as group:
        await group.list_tools()
        assert (await group.call_tool("a_give")).data == PLAIN
        assert (await group.call_tool("b_give")).data == datetime.date(2026, 1, 2)
    with SyncClientGroup({"a": giving(ENTRY, Entry)}) as blocking:
        blocking.list_tools()
        assert blocking.call_tool("a_give").data == PLAIN

    async def text_only(request: Any, next: Any) -> Any:
        result = await next(request)
        return {"content": result["content"]} if "content" in result else result

    for era in TYPED:
        async with Client(day, revision=era, middleware=[text_only]) as client:  # type: ignore[arg-type]
            await client.list_tools()
            assert (await client.call_tool("give")).data == datetime.date(2026, 1, 2)


def serving(tmp_path: Path, schema: Any, value: Any) -> Command:
    """Returns a server that lists a tool with this output schema and returns this value, whether it fits or not."""
    return answering(tmp_path, schema, {"content": [], "structuredContent": value}, "2025-11-25")


def answering(tmp_path: Path, schema: Any, result: Any, revision: str) -> Command:
    program = tmp_path / "server.py"
    tool = {"name": "give", "inputSchema": {"type": "object"}, "outputSchema": schema}
    values = {"TOOL": json.dumps(tool), "RESULT": json.dumps(result), "REVISION": revision}
    text = ANSWERING
    for name, value in values.items():
        text = text.replace(name, repr(value))
    program.write_text(text)
    return Command(sys.executable, str(program))


ANSWERING = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "initialize":
        about = {"serverInfo": {"name": "s", "version": "1"}, "capabilities": {"tools": {}}}
        result = {"protocolVersion": REVISION, **about}
    elif asked["method"] == "tools/list":
        result = {"tools": [json.loads(TOOL)]}
    elif asked["method"] == "tools/call":
        result = json.loads(RESULT)
    elif "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32601, "message": "no"}}), flush=True)
        continue
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


@pytest.mark.io
@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("date-time", "22 November"),
        ("date", "2026-02-30"),
        ("time", "25:00:00"),
        ("duration", "P1Y"),
        ("uuid", "7"),
        ("decimal", "many"),
        ("email", "2026-11-22"),
    ],
)
def test_a_string_that_is_invalid_in_its_format_stays_a_string(tmp_path: Path, format: str, text: str) -> None:
    schema = {"type": "object", "additionalProperties": {"format": format}}
    with SyncClient(serving(tmp_path, schema, {"a": text, "b": 1})) as client:
        client.list_tools()
        assert client.call_tool("give").data == {"a": text, "b": 1}


@pytest.mark.io
@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26"])
def test_texts_have_the_formats_of_their_data_where_an_old_server_lists_schemas(tmp_path: Path, revision: str) -> None:
    day = {"type": "string", "format": "date"}
    wrapped = {"type": "object", "properties": {"result": day}, "x-gudgeon-wrapped": True}
    date = datetime.date(2026, 1, 2)
    for schema, text, data in [
        (wrapped, "2026-01-02", date),
        ({"type": "array", "items": day}, '["2026-01-02"]', [date]),
        ({"type": "object", "additionalProperties": day}, '{"a": "2026-01-02"}', {"a": date}),
    ]:
        result = {"content": [{"type": "text", "text": text}]}
        with SyncClient(answering(tmp_path, schema, result, revision)) as client:
            client.list_tools()
            assert client.call_tool("give").data == data


@pytest.mark.io
def test_a_recursive_schema_and_deep_data(tmp_path: Path) -> None:
    schema = {
        "type": "object",
        "properties": {"at": {"format": "date"}, "in": {"anyOf": [{"$ref": "#"}, {"$ref": "#/properties/in"}]}},
    }
    value: dict[str, Any] = {"at": "2026-01-02"}
    for _ in range(60):
        value = {"at": "2026-01-02", "in": value}
    with SyncClient(serving(tmp_path, schema, value)) as client:
        client.list_tools()
        data = client.call_tool("give").data
        for _ in range(60):
            assert data["at"] == datetime.date(2026, 1, 2)
            data = data["in"]
