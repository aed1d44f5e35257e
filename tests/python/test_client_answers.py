"""A client's answers to questions: the same callbacks in every era."""

import asyncio
import enum
import json
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, Literal

import pytest

from gudgeon import Client, Command, Context, Server, SyncClient, SyncContext, ask, errors
from gudgeon._client.errors import error_of
from gudgeon.errors import (
    Cancelled,
    ConnectionLost,
    Declined,
    McpError,
    NotSupported,
    ToolError,
    UrlElicitationRequired,
)
from gudgeon.types import ElicitRequest, Root, SampleRequest, SampleResult, Tool, ToolUse

ASKING = ("2025-06-18", "2025-11-25", "2026-07-28")
WITH_TOOLS = ("2025-11-25", "2026-07-28")

app = Server("asks")


@app.tool
async def greet(ctx: Context) -> str:
    name = await ctx.elicit("Name?", str)
    said = await ctx.sample(f"Greet {name}.", max_tokens=7, system="Be nice.")
    roots = await ctx.roots()
    return f"{said.text} {roots[0].uri}"


@app.tool
def two_at_once(ctx: SyncContext) -> str:
    one, other = ctx.ask(ask.elicit("One?", str), ask.elicit("Other?", str))
    return f"{one} {other}"


@app.tool
async def pick(ctx: Context) -> str:
    tool = Tool(name="look", description="Looks.", input_schema={"type": "object"})
    said = await ctx.sample("Look!", tools=[tool], tool_choice="required")
    used = said.content[0]
    return f"{used.name} {used.input}" if isinstance(used, ToolUse) else said.text


@app.tool
async def sign_in(ctx: Context) -> str:
    return await ctx.elicit_url("Sign in", "https://example.org/in")


@app.tool
async def for_ever(ctx: Context) -> str:
    count = 0
    while True:
        count += 1
        await ctx.elicit(f"Round {count}?", bool)


@app.tool
def roots_of_client(ctx: SyncContext) -> list[str]:
    return [root.uri for root in ctx.roots()] if "roots" in ctx.client.capabilities else ["none"]


@pytest.mark.parametrize("era", ASKING)
def test_one_callback_answers_requests_and_rounds(era: str) -> None:
    seen: list[object] = []

    def on_elicit(request: ElicitRequest) -> str:
        seen.append((request.mode, request.message, list(request.schema["properties"])))
        return "Eve"

    def on_sample(request: SampleRequest) -> SampleResult:
        seen.append((request.messages[-1].text, request.max_tokens, request.system))
        return SampleResult("Hello, Eve!", model="m")

    expected = [("form", "Name?", ["value"]), ("Greet Eve.", 7, "Be nice.")]
    with SyncClient(app, revision=era, on_elicit=on_elicit, on_sample=on_sample, roots=["file:///a"]) as client:
        assert client.call_tool("greet").text == "Hello, Eve! file:///a"
    assert seen == expected
    seen.clear()

    async def main() -> None:
        async def later(request: ElicitRequest) -> str:
            await asyncio.sleep(0)
            return on_elicit(request)

        async with Client(
            app, revision=era, on_elicit=later, on_sample=on_sample, roots=lambda: ["file:///a"]
        ) as client:
            assert (await client.call_tool("greet")).text == "Hello, Eve! file:///a"

    asyncio.run(main())
    assert seen == expected


@pytest.mark.parametrize("era", ASKING)
async def test_questions_of_one_round_are_answered_at_once(era: str) -> None:
    both, waiting = asyncio.Event(), 0

    async def on_elicit(request: ElicitRequest) -> str:
        nonlocal waiting
        waiting += 1
        if waiting == 2:
            both.set()
        await both.wait()
        return request.message.rstrip("?")

    async with Client(app, revision=era, on_elicit=on_elicit, timeout=60) as client:
        assert (await client.call_tool("two_at_once")).text == "One Other"


@pytest.mark.parametrize("era", WITH_TOOLS)
def test_tools_reach_the_models_callback(era: str) -> None:
    def on_sample(request: SampleRequest) -> SampleResult:
        assert request.tool_choice == "required"
        (tool,) = request.tools
        assert (tool.name, tool.description, tool.input_schema) == ("look", "Looks.", {"type": "object"})
        return SampleResult(ToolUse("1", tool.name, {"at": "sky"}), model="m", stop_reason="toolUse")

    with SyncClient(app, revision=era, on_sample=on_sample) as client:
        assert client.call_tool("pick").text == "look {'at': 'sky'}"


def test_a_completed_url_elicitation_is_notified() -> None:
    done: list[str] = []
    told = threading.Event()

    async def main() -> None:
        heard = asyncio.Event()

        def on_url_done(elicitation: str) -> None:
            done.append(elicitation)
            heard.set()

        visited: list[str | None] = []

        def on_elicit(request: ElicitRequest) -> bool:
            visited.append(request.url)
            return True

        async with Client(app, revision="2025-11-25", on_elicit=on_elicit, on_url_done=on_url_done) as client:
            page = (await client.call_tool("sign_in")).text
            assert visited == ["https://example.org/in"]
            app.notify_url_done("another")
            app.notify_url_done(page)
            await asyncio.wait_for(heard.wait(), 60)
            assert done == [page]

    asyncio.run(main())
    done.clear()

    def on_url_done(elicitation: str) -> None:
        done.append(elicitation)
        told.set()

    with SyncClient(app, revision="2025-11-25", on_elicit=lambda _: True, on_url_done=on_url_done) as client:
        page = client.call_tool("sign_in").text
        app.notify_url_done(page)
        while not told.is_set():
            client.ping()
    assert done == [page]


def test_a_url_that_an_error_named_is_notified_when_it_is_completed() -> None:
    server = Server("pages")

    @server.tool
    def enter() -> str:
        raise UrlElicitationRequired([ElicitRequest(mode="url", message="In?", url="https://example.org/in", id="own")])

    done: list[str] = []
    with SyncClient(server, revision="2025-11-25", on_elicit=lambda _: True, on_url_done=done.append) as client:
        with pytest.raises(UrlElicitationRequired):
            client.call_tool("enter")
        server.notify_url_done("own")
        while not done:
            client.ping()
    assert done == ["own"]


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclass
class Trip:
    level: Level
    day: date
    levels: list[Level] = field(default_factory=list)
    seats: Literal[1, 2] = 1
    note: str | None = None


@pytest.mark.parametrize("era", WITH_TOOLS)
def test_an_object_of_the_type_is_an_answer(era: Any) -> None:
    server = Server("trips")

    @server.tool
    async def book(ctx: Context) -> str:
        trip = await ctx.elicit("Trip?", Trip)
        return repr((trip, await ctx.elicit("Level?", Level), await ctx.elicit("Note?", str | None)))

    trip = Trip(Level.LOW, date(2026, 1, 2), [Level.HIGH], 2)
    said = {"Trip?": trip, "Level?": Level.HIGH, "Note?": None}
    with SyncClient(server, revision=era, on_elicit=lambda request: said[request.message]) as client:
        assert client.call_tool("book").text == repr((trip, Level.HIGH, None))


def test_max_rounds_arrives() -> None:
    asked: list[str] = []

    def on_elicit(request: ElicitRequest) -> bool:
        asked.append(request.message)
        return True

    with (
        SyncClient(app, revision="2026-07-28", on_elicit=on_elicit, max_rounds=3) as client,
        pytest.raises(McpError, match="after 3 rounds") as caught,
    ):
        client.call_tool("for_ever")
    assert asked == ["Round 1?", "Round 2?", "Round 3?"]
    assert caught.value.hint is not None and "max_rounds" in caught.value.hint
    assert caught.value.code is None  # nobody said one
    for wrong in (0, -1, 1.5, "3"):
        with pytest.raises(ValueError, match="max_rounds= must be an integer from 1"):
            SyncClient(app, max_rounds=wrong)  # type: ignore[arg-type]


def test_roots_that_come_later_are_declared_in_the_modern_era() -> None:
    with SyncClient(app, revision="2026-07-28") as client:
        assert client.call_tool("roots_of_client", returns=list[str]).data == ["none"]
        client.set_roots(["file:///a"])
        assert client.call_tool("roots_of_client", returns=list[str]).data == ["file:///a"]
        client.set_roots([])
        assert client.call_tool("roots_of_client", returns=list[str]).data == []


def test_roots_that_come_later_are_refused_in_the_legacy_era() -> None:
    with SyncClient(app, revision="2025-11-25") as client:
        with pytest.raises(NotSupported, match="2025-11-25") as caught:
            client.set_roots(["file:///a"])
        assert caught.value.hint is not None and "empty list" in caught.value.hint
        assert client.call_tool("roots_of_client", returns=list[str]).data == ["none"]
    with SyncClient(app, revision="2025-11-25", roots=[]) as client:
        client.set_roots(["file:///a"])
        assert client.call_tool("roots_of_client", returns=list[str]).data == ["file:///a"]


@pytest.mark.io
async def test_what_was_left_open_has_its_default() -> None:
    # A server that fills in nothing itself.
    form = {
        "type": "object",
        "properties": {"name": {"type": "string", "default": "Eve"}, "sure": {"type": "boolean", "default": True}},
        "required": ["name"],
    }
    fake = Command(sys.executable, str(Path(__file__).with_name("fake_server.py")), "legacy")
    async with Client(fake, on_elicit=lambda _: {}) as client:
        params = {"message": "Who?", "requestedSchema": form}
        answer = await client.call_tool("ask", {"method": "elicitation/create", "params": params}, returns=dict)
        assert answer.data == {"action": "accept", "content": {"name": "Eve", "sure": True}}


def test_an_invalid_answer_is_reported_to_the_caller() -> None:
    for era in ("2025-11-25", "2026-07-28"):
        with SyncClient(app, revision=era, on_elicit=lambda _: 3) as client:
            with pytest.raises(McpError, match="does not fit"):
                client.call_tool("greet")


def test_a_model_that_declines_fails_the_call() -> None:
    def on_sample(request: SampleRequest) -> SampleResult:
        raise Declined("not today")

    for era in WITH_TOOLS:
        with SyncClient(app, revision=era, on_sample=on_sample) as client, pytest.raises(McpError, match="not today"):
            client.call_tool("pick")


@pytest.mark.parametrize("error", [Declined, Cancelled])
def test_a_user_who_declines_sampling_in_a_round_is_reported(error: type[McpError]) -> None:
    server = Server("asks")

    @server.tool
    async def dream(ctx: Context) -> str:
        return (await ctx.sample("Dream.", max_tokens=5)).text

    def on_sample(request: Any) -> Any:
        raise error("not now")

    with SyncClient(server, revision="2026-07-28", on_sample=on_sample) as client, pytest.raises(error) as caught:
        client.call_tool("dream")
    word = "declined" if error is Declined else "dismissed"
    assert str(caught.value) == f"call Server('asks'): The user {word}: not now"
    assert caught.value.target == "Server('asks')"


@pytest.mark.parametrize("refusal", [Declined("not now"), Declined, McpError("not now", code=-1)])
def test_a_user_who_refuses_the_model_in_a_session_has_declined(refusal: Any) -> None:
    server = Server("asks")
    seen: list[McpError] = []

    @server.tool
    async def dream(ctx: Context) -> str:
        try:
            return (await ctx.sample("Dream.", max_tokens=5)).text
        except McpError as error:
            seen.append(error)
            raise

    @server.tool
    def doze(ctx: SyncContext) -> str:
        try:
            return ctx.ask(ask.sample("Doze.", max_tokens=5))[0].text
        except McpError as error:
            seen.append(error)
            raise

    def on_sample(request: Any) -> Any:
        if isinstance(refusal, type) or isinstance(refusal, Declined):
            return refusal
        raise refusal

    with SyncClient(server, revision="2025-11-25", on_sample=on_sample) as client:
        for tool in ("dream", "doze"):
            with pytest.raises(ToolError, match=r"^The user declined: sampling \("):
                client.call_tool(tool)
    assert [type(error) for error in seen] == [Declined, Declined]


@pytest.mark.parametrize("era", ASKING)
def test_a_form_without_fields_takes_consent(era: str) -> None:
    server, answers = Server("asks"), [True, False, {}, None]

    @server.tool
    async def agree(ctx: Context) -> str:
        return type(await ctx.try_elicit("Agreed?", {"type": "object", "properties": {}})).__name__

    with SyncClient(server, revision=era, on_elicit=lambda _: answers.pop(0)) as client:
        assert [client.call_tool("agree").text for _ in range(3)] == ["Accepted", "Declined", "Accepted"]
        with pytest.raises(McpError, match='on_elicit returned nothing for "Agreed\\?"; return true or false, '):
            client.call_tool("agree")


@pytest.mark.parametrize("era", ASKING)
def test_an_invalid_sampling_answer_is_reported(era: str) -> None:
    for given, shape in ((None, "nothing"), (5, "a number")):
        with SyncClient(
            app, revision=era, on_elicit=lambda _: "Eve", on_sample=lambda _, answer=given: answer
        ) as client:
            with pytest.raises(McpError, match=f"on_sample must return a string, content, .* not {shape}"):
                client.call_tool("greet")


@pytest.mark.io
async def test_a_user_who_takes_longer_than_the_timeout_is_waited_for() -> None:
    async def on_elicit(request: ElicitRequest) -> str:
        await asyncio.sleep(3.2)
        return "E"

    async with Client(app, on_elicit=on_elicit, timeout=3) as client:
        assert (await client.call_tool("two_at_once")).text == "E E"


@pytest.mark.parametrize("era", ASKING)
async def test_a_call_ends_with_its_client_while_the_user_thinks(era: Any) -> None:
    asked, taken_back = asyncio.Event(), asyncio.Event()

    async def on_elicit(request: ElicitRequest) -> str:
        asked.set()
        try:
            return await asyncio.Future()
        finally:
            taken_back.set()

    client = await Client(app, revision=era, on_elicit=on_elicit).connect()
    call = asyncio.ensure_future(client.call_tool("greet"))
    await asyncio.wait_for(asked.wait(), 60)
    await client.close()
    with pytest.raises(ConnectionLost):
        await asyncio.wait_for(call, 60)
    await asyncio.wait_for(taken_back.wait(), 60)


def test_a_blocking_client_says_that_it_can_not_wait() -> None:
    async def later() -> str:
        return "Eve"

    with SyncClient(app, on_elicit=lambda _: later()) as client, pytest.raises(McpError, match="has no event loop"):
        client.call_tool("greet")


def test_roots_are_files_and_nothing_else() -> None:
    refused = 'roots.0. must be a file:// URI such as "file:///srv/shelf", an absolute path, .*, not "http://a"'
    with pytest.raises(ValueError, match=f"^Client: {refused}"):
        SyncClient(app, roots=["http://a"])
    with (
        SyncClient(app, revision="2026-07-28", roots=["file:///b"]) as client,
        pytest.raises(ValueError, match=rf"^set_roots\(\): {refused}"),
    ):
        client.set_roots(["http://a"])
    with SyncClient(app, revision="2026-07-28", roots=lambda: ["http://a"]) as client:
        with pytest.raises(McpError, match=refused):
            client.call_tool("roots_of_client")


def test_roots_are_uris_paths_and_values() -> None:
    roots = ["file:///a", "/srv/my shelf", Path("/b"), Root("/c", name="C"), {"uri": "file:///d"}]
    uris = ["file:///a", "file:///srv/my%20shelf", "file:///b", "file:///c", "file:///d"]
    for given in (roots, lambda: roots):
        with SyncClient(app, roots=given) as client:
            assert client.call_tool("roots_of_client", returns=list[str]).data == uris
            client.set_roots([Path("/e")])
            assert client.call_tool("roots_of_client", returns=list[str]).data == ["file:///e"]


# Both languages have these cases.
ANSWERS = json.loads(Path(__file__).parents[1].joinpath("client_answers.json").read_text())


@pytest.mark.io
@pytest.mark.parametrize("case", ANSWERS, ids=[case["case"] for case in ANSWERS])
async def test_what_callbacks_return_becomes_the_answer(case: Any) -> None:
    form = {"type": "object", **case.get("form", {})}
    params = {"message": "Well?", "requestedSchema": form, "messages": [], "maxTokens": 5}
    if "url" in case:
        params = {"mode": "url", "message": "Well?", "url": case["url"], "elicitationId": "e"}
    fake = Command(sys.executable, str(Path(__file__).with_name("fake_server.py")), "legacy")
    given = case["given"]
    callbacks: Any = {"on_elicit": lambda _: given, "on_sample": lambda _: given, "roots": lambda: given}
    schemes = case.get("schemes", ("http", "https"))
    async with Client(fake, allowed_url_schemes=schemes, **callbacks) as client:
        answer = (await client.call_tool("ask", {"method": case["method"], "params": params}, returns=dict)).data
    if "error" in case:
        assert answer["code"] == case.get("code", -32603) and case["error"] in answer["message"]
    else:
        assert answer == case["result"]


ERRORS = json.loads(Path(__file__).parents[1].joinpath("client_errors.json").read_text())


@pytest.mark.parametrize("row", ERRORS, ids=[json.dumps(row["error"]) for row in ERRORS])
def test_each_error_of_the_core_has_its_class(row: Any) -> None:
    expected = row["class"] if isinstance(row["class"], str) else row["class"]["python"]
    error = error_of({"message": "m", **row["error"]})
    assert type(error).__name__ == expected
    assert all(isinstance(error, getattr(errors, name)) for name in row.get("also", ()))
    assert getattr(error, "code", None) == row["error"].get("code")


@pytest.mark.io
def test_nothing_for_a_url_declines_and_is_logged_once() -> None:
    source = """
import asyncio, logging
from gudgeon import Client, Context, Server
from gudgeon.errors import ToolError

logging.basicConfig(format="%(message)s")
app = Server("t")

@app.tool
async def visit(ctx: Context) -> None:
    await ctx.elicit_url("In?", "https://a.example/in")

async def main():
    async with app.listen("http://127.0.0.1:0/mcp") as here, Client(here.url, on_elicit=lambda _: None) as client:
        for _ in range(2):
            try:
                await client.call_tool("visit")
            except ToolError as error:
                print(error)

asyncio.run(main())
"""
    ran = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=60)
    assert ran.stdout == "The user declined: In?\n" * 2, ran.stderr
    warning = "on_elicit returned nothing for a URL, which declines it; return true once the user has agreed\n"
    assert ran.stderr == warning
