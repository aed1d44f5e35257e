"""Handlers that ask in the modern era wait for the request that brings the answers, and leave in good order."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from typing import Annotated, Any

import pytest

from asking_server import make
from gudgeon import Client, Context, Depends, Server, SyncClient, SyncContext
from gudgeon.errors import Cancelled, Declined, NotSupported, ProtocolError, ToolError
from gudgeon.types import Accepted, ElicitRequest, InputRequired
from rounds import (
    BOTH,
    SAID,
    asked,
    begin,
    events,
    finish,
    go_on,
    said,
    served,
    until,
    yes,
)

# ── suspended ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", [*BOTH, "order_in_place", "order_on_worker", "order_once", "order_sync_once"])
def test_a_handler_that_asks_goes_on_from_that_line(name: str) -> None:
    with served("memory") as client:
        assert client.revision == "2026-07-28"
        state = go_on(client, name, begin(client, name))
        assert finish(client, name, state) == "Ada likes red"
        assert events(client) == ["begun"]
        assert client.call_tool(name).text == "Ada likes red"
        assert events(client) == ["begun"] * 2


def test_questions_of_one_turn_are_one_round() -> None:
    with served("memory") as client:
        first = client.call_tool_round("gathered")
        assert isinstance(first, InputRequired)
        messages = {question.message: key for key, question in first.questions.items()}
        assert set(messages) == {"Name?", "Age?", "Likes?", "Place?", "Colour?"}
        answers = {key: yes(SAID[message]) for message, key in messages.items()}
        done = client.call_tool_round("gathered", answers=answers, state=first.state)
        assert done.text == "Ada 36 False London red"
        state = asked(client.call_tool_round("several"), "elicit-1", "elicit-2")
        answers = {"elicit-1": yes("Ada"), "elicit-2": yes(36)}
        assert client.call_tool_round("several", answers=answers, state=state).text == "Ada 36"
        assert client.call_tool("gathered").text == "Ada 36 False London red"
        assert client.call_tool("several").text == "Ada 36"


def test_an_answer_that_is_missing_is_asked_again_while_the_handler_waits() -> None:
    with served("memory") as client:
        first = asked(client.call_tool_round("several"), "elicit-1", "elicit-2")
        rest = asked(client.call_tool_round("several", answers={"elicit-2": yes(36)}, state=first), "elicit-1")
        assert client.call_tool_round("several", answers={"elicit-1": yes("Ada")}, state=rest).text == "Ada 36"


@pytest.mark.parametrize("name", ["attempt", "attempt_sync"])
def test_what_the_user_may_say(name: str) -> None:
    with served("memory") as client:
        for answer, outcome in (
            (yes(True), repr(Accepted(True))),
            ({"action": "decline"}, repr(Declined("Sure?"))),
            ({"action": "cancel"}, repr(Cancelled("Sure?"))),
        ):
            answers = {"elicit-1": answer}
            assert client.call_tool_round(name, answers=answers, state=begin(client, name)).text == outcome


def test_a_no_that_nobody_catches_ends_the_call() -> None:
    with served("memory") as client, pytest.raises(ToolError, match="The user declined: Name?"):
        answers = {"elicit-1": {"action": "decline"}}
        client.call_tool_round("order", answers=answers, state=begin(client, "order"))


def test_two_questions_under_one_key_are_refused() -> None:
    app: Server[Any] = Server("asks")

    @app.tool
    async def twice(ctx: Context) -> str:
        try:
            await asyncio.gather(ctx.elicit("A?", bool, key="k"), ctx.elicit("B?", bool, key="k"))
        except NotSupported as error:
            return error.message
        return "both"

    with SyncClient(app, on_elicit=lambda request: True) as client:
        assert client.call_tool("twice").text == 'two questions have the key "k": give each a key of its own'


def test_a_handler_that_goes_on_without_the_answer_is_answered_with_the_next_request() -> None:
    with served("memory") as client:
        state = begin(client, "impatient")
        client.call_tool("let_go")
        answers = {"elicit-1": yes("red")}
        assert client.call_tool_round("impatient", answers=answers, state=state).text == "went on"


def test_def_handlers_that_wait_in_a_session_leave_the_workers_to_others() -> None:
    app = make(threads=1)
    asking = 0
    all_ask = asyncio.Event()

    async def together(request: ElicitRequest) -> Any:
        nonlocal asking
        asking += 1
        if asking == 8:
            all_ask.set()
        await asyncio.wait_for(all_ask.wait(), 60)
        return SAID[request.message]

    async def main() -> None:
        async with Client(app, revision="2025-11-25", on_elicit=together) as client:
            done = await asyncio.gather(*(client.call_tool("order_on_worker") for _ in range(8)))
            assert [result.text for result in done] == ["Ada likes red"] * 8

    asyncio.run(main())


# ── the request that a handler runs for ──────────────────────────────────────────────────────────────


def test_what_is_known_of_the_request_follows_it() -> None:
    with served("memory") as client:
        first = client.call_tool_round("facts", meta={"mark": "one"})
        state = asked(first, "elicit-1")
        told: list[Any] = []
        done = client.call_tool_round(
            "facts", answers={"elicit-1": yes(True)}, state=state, meta={"mark": "two"}, on_progress=told.append
        )
        before, after = done.data[:3], done.data[3:]
        assert before[1] == "one" and after[1] == "two" and before[0] != after[0]
        assert [step.message for step in told] == ["sure"]


# ── evicted ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name, left", [("order", "CancelledError"), ("order_sync", "Abandoned")])
def test_the_oldest_leaves_in_good_order_and_runs_again(name: str, left: str) -> None:
    with served("memory", suspended_limit=1) as client:
        one, two = begin(client, name), begin(client, name)
        until(client, "begun", "begun", f"left by {left}")
        two = go_on(client, name, two)
        one = go_on(client, name, one)
        until(client, "begun", "begun", f"left by {left}", "begun", f"left by {left}")
        assert [finish(client, name, one), finish(client, name, two)] == ["Ada likes red"] * 2
        assert events(client).count("begun") == 4


@pytest.mark.parametrize("name, left", [("order", "CancelledError"), ("order_sync", "Abandoned")])
def test_a_handler_that_waits_too_long_leaves_in_good_order_and_runs_again(name: str, left: str) -> None:
    with served("memory", suspended_ttl=0.05) as client:
        state = begin(client, name)
        until(client, "begun", f"left by {left}")
        both = {"elicit-1": yes("Ada"), "elicit-2": yes("red")}
        assert client.call_tool_round(name, answers=both, state=state).text == "Ada likes red"


@pytest.mark.parametrize("form", ["waits", "waits_sync", "waits_on_worker"])
def test_a_handler_leaves_in_time_also_when_nobody_says_anything(form: str) -> None:
    app: Server[Any] = Server("asks", suspended_ttl=0.2)
    left = threading.Event()

    @app.tool
    async def waits(ctx: Context) -> None:
        try:
            await ctx.elicit("Sure?", bool)
        finally:
            left.set()

    def waits_sync(ctx: SyncContext) -> None:
        try:
            ctx.elicit("Sure?", bool)
        finally:
            left.set()

    app.tool(waits_sync)
    app.tool(waits_sync, name="waits_on_worker", thread=True)
    with served("memory", app) as client:
        begin(client, form)
        assert left.wait(60)


@pytest.mark.parametrize(
    "options", [{"suspended_limit": 0}, {"suspended_threads": 0}], ids=lambda options: next(iter(options))
)
def test_without_room_every_round_is_a_run_of_its_own(options: dict[str, Any]) -> None:
    with served("memory", **options) as client:
        assert client.call_tool("order_sync").text == "Ada likes red"
        until(client, "begun", "left by Abandoned", "begun", "left by Abandoned", "begun")
        assert client.call_tool("order").text == "Ada likes red"


def test_two_hundred_def_handlers_wait() -> None:
    with served("memory") as client:
        before = client.call_tool("threads").data
        states = [begin(client, "order_sync") for _ in range(200)]
        left = ["left by Abandoned"]
        deadline = time.monotonic() + 60
        while events(client).count(*left) < 168:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert client.call_tool("threads").data - before <= 80
        both = {"elicit-1": yes("Ada"), "elicit-2": yes("red")}
        for state in states:
            done = client.call_tool_round("order_sync", answers=both, state=state)
            if isinstance(done, InputRequired):  # the answer to what it had not asked yet is not kept
                done = client.call_tool_round("order_sync", answers=both, state=done.state)
            assert done.text == "Ada likes red"
        happened = events(client)
        assert happened.count("begun") == 368 and happened.count(*left) == 168


def test_handlers_that_wait_leave_the_workers_to_others() -> None:
    with served("memory", threads=1, suspended_threads=8) as client:
        states = [begin(client, "order_on_worker") for _ in range(8)]
        assert events(client) == ["begun"] * 8
        for state in reversed(states):
            state = go_on(client, "order_on_worker", state)
            assert finish(client, "order_on_worker", state) == "Ada likes red"
        assert events(client) == ["begun"] * 8


def test_what_a_handler_depends_on_is_cleaned_up_when_it_leaves() -> None:
    app: Server[Any] = Server("asks", suspended_limit=0)
    happened: list[str] = []

    def shelf() -> Iterator[str]:
        happened.append("opened")
        try:
            yield "shelf"
        except BaseException as error:
            happened.append(type(error).__name__)
            raise
        happened.append("closed")

    @app.tool
    def lend(ctx: SyncContext, shelf: Annotated[str, Depends(shelf)]) -> str:
        return f"{shelf} {ctx.elicit('Name?', str)}"

    @app.tool
    async def lend_later(ctx: Context, shelf: Annotated[str, Depends(shelf)]) -> str:
        return f"{shelf} {await ctx.elicit('Name?', str)}"

    with SyncClient(app, on_elicit=said) as client:
        assert client.call_tool("lend").text == "shelf Ada"
        assert client.call_tool("lend_later").text == "shelf Ada"
    assert sorted(happened) == sorted(["opened"] * 4 + ["closed"] * 2 + ["Abandoned", "CancelledError"])


def test_who_waits_when_the_server_ends_leaves_in_good_order() -> None:
    app: Server[Any] = Server("asks")
    left: list[str] = []

    @app.tool
    async def waits(ctx: Context) -> None:
        try:
            await ctx.elicit("Sure?", bool)
        except BaseException as error:
            left.append(type(error).__name__)
            raise

    @app.tool
    def waits_sync(ctx: SyncContext) -> None:
        try:
            ctx.elicit("Sure?", bool)
        except BaseException as error:
            left.append(type(error).__name__)
            raise

    with served("memory", app) as client:
        for name in ("waits", "waits_sync"):
            begin(client, name)
        assert left == []
    deadline = time.monotonic() + 60
    while sorted(left) != ["Abandoned", "CancelledError"]:
        assert time.monotonic() < deadline, left
        time.sleep(0.01)


def test_who_asks_on_its_way_out_is_not_kept() -> None:
    app: Server[Any] = Server("asks", suspended_limit=0)
    left: list[str] = []

    @app.tool
    async def stubborn(ctx: Context) -> None:
        try:
            await ctx.elicit("Sure?", bool)
        finally:
            try:
                await ctx.elicit("Really?", bool)
            except BaseException as error:
                left.append(type(error).__name__)

    @app.tool
    def stubborn_sync(ctx: SyncContext) -> None:
        try:
            ctx.elicit("Sure?", bool)
        finally:
            try:
                ctx.elicit("Really?", bool)
            except BaseException as error:
                left.append(type(error).__name__)

    with served("memory", app) as client:
        for name in ("stubborn", "stubborn_sync"):
            begin(client, name)
        deadline = time.monotonic() + 60
        while sorted(left) != ["Abandoned", "CancelledError"]:
            assert time.monotonic() < deadline, left
            time.sleep(0.01)


@pytest.mark.parametrize("name", BOTH)
def test_handlers_of_a_loop_that_is_gone_run_again_on_the_next(name: str) -> None:
    app = make()
    asgi = app.asgi()
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    }

    async def post(**params: Any) -> Any:
        request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {**params, "_meta": meta}}
        headers = {
            "host": "127.0.0.1:8000",
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": "2026-07-28",
            "mcp-method": "tools/call",
            "mcp-name": params["name"],
        }
        pairs = [(key.encode(), value.encode()) for key, value in headers.items()]
        scope = {"type": "http", "method": "POST", "path": "/", "query_string": b"", "headers": pairs}
        said: list[dict[str, Any]] = []
        body = [json.dumps(request).encode()]

        async def receive() -> dict[str, Any]:
            if not body:
                await asyncio.Event().wait()  # nobody leaves
            return {"type": "http.request", "body": body.pop(), "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            said.append(message)

        await asgi({**scope, "server": ("127.0.0.1", 8000)}, receive, send)
        return json.loads(b"".join(message.get("body", b"") for message in said))["result"]

    first = asyncio.run(post(name=name))
    answers = {"elicit-1": yes("Ada")}
    second = asyncio.run(post(name=name, inputResponses=answers, requestState=first["requestState"]))
    assert list(second["inputRequests"]) == ["elicit-2"]
    answers = {"elicit-2": yes("red")}
    done = asyncio.run(post(name=name, inputResponses=answers, requestState=second["requestState"]))
    assert done["content"][0]["text"] == "Ada likes red"
    happened = asyncio.run(post(name="events"))["structuredContent"]
    assert happened.count("begun") == 3


# ── behind middleware ────────────────────────────────────────────────────────────────────────────────


def test_a_def_handler_behind_middleware_waits_and_leaves_like_any_other() -> None:
    app = make(threads=1, suspended_threads=2)

    @app.middleware
    async def around(request: Any, following: Any) -> Any:
        return await following(request)

    with SyncClient(app, on_elicit=said) as client:
        states = [begin(client, "order_sync") for _ in range(4)]
        until(client, *["begun"] * 3, "left by Abandoned", "begun", "left by Abandoned")
        for state in states:
            assert finish(client, "order_sync", go_on(client, "order_sync", state)) == "Ada likes red"


# ── retries ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_retry_that_comes_twice_joins_the_first() -> None:
    async def main() -> None:
        async with Client(make(), on_elicit=said) as client:
            first = await client.call_tool_round("held")
            state = asked(first, "elicit-1")
            again = [client.call_tool_round("held", answers={"elicit-1": yes(True)}, state=state) for _ in range(2)]
            both = asyncio.gather(*again)
            await asyncio.sleep(0)
            await client.call_tool("let_go")
            assert [result.text for result in await both] == ["True", "True"]
            assert (await client.call_tool("events")).data == ["begun", "done"]

    asyncio.run(main())


# ── prompts and resources ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("options", [{}, {"suspended_limit": 0}], ids=["suspended", "replayed"])
def test_prompts_and_resources_ask_in_every_era(revision: str, options: dict[str, Any]) -> None:
    with SyncClient(make(**options), revision=revision, on_elicit=said) as client:
        for name in ("greet", "greet_sync"):
            assert client.get_prompt(name).messages[0].text == "Greet Ada."
        assert client.read_resource("asks://name").text == "Ada"
        assert client.read_resource("asks://colours/dark").text == "dark red"
    with SyncClient(make(**options), revision=revision, on_elicit=lambda request: Declined()) as client:
        assert client.read_resource("asks://colours/dark").text == "none"
        with pytest.raises(ProtocolError, match="The user declined: Name?") as caught:
            client.get_prompt("greet")
        assert caught.value.code == -32603
