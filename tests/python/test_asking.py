"""Handlers that ask their client: by real requests, and by returning the question."""

import asyncio
import threading
from dataclasses import dataclass
from typing import Any

import pytest

from gudgeon import Client, Context, Server, SyncClient, SyncContext, ask
from gudgeon.errors import Cancelled, Declined, ProtocolError, ToolError
from gudgeon.types import Accepted, ElicitRequest, Message

LEGACY = ("2025-06-18", "2025-11-25")
EVERY = (*LEGACY, "2026-07-28")


@dataclass
class Guest:
    name: str
    age: int = 30


app = Server("asks")


@app.tool
async def delete(ctx: Context) -> str:
    return "deleted" if await ctx.elicit("Delete it?", bool) else "kept"


@app.tool
def delete_sync(ctx: SyncContext) -> str:
    return "deleted" if ctx.elicit("Delete it?", bool) else "kept"


@app.tool(thread=False)
def delete_in_place(ctx: SyncContext) -> str:
    return "deleted" if ctx.elicit("Delete it?", bool) else "kept"


@app.tool
async def attempt(ctx: Context) -> str:
    return repr(await ctx.try_elicit("Delete it?", bool))


@app.tool
def attempt_sync(ctx: SyncContext) -> str:
    return repr(ctx.try_elicit("Delete it?", bool))


@app.tool
async def all_at_once(ctx: Context) -> list[str]:
    name, said, roots = await ctx.ask(ask.elicit("Name?", str), ask.sample("Say hi.", max_tokens=5), ask.roots())
    return [name, said.text, *(root.uri for root in roots)]


@app.tool
def all_at_once_sync(ctx: SyncContext) -> list[str]:
    name, said, roots = ctx.ask(ask.elicit("Name?", str), ask.sample("Say hi.", max_tokens=5), ask.roots())
    return [name, said.text, *(root.uri for root in roots)]


@app.tool
async def visit(ctx: Context) -> str:
    return await ctx.elicit_url("Sign in", "https://example.org/in")


@app.tool
def explicit(ctx: SyncContext) -> str | ask.Question[Any]:
    guest = ask.elicit("Who?", Guest)
    found = ctx.answer(guest)
    if found is None:
        return guest
    colour = ask.elicit("Colour?", str, key="colour")
    chosen = ctx.answer(colour)
    return colour if chosen is None else f"{found.name} ({found.age}) likes {chosen}"


@app.tool
async def explicit_many(ctx: Context) -> str | list[ask.Question[Any]]:
    both = [ask.elicit("A?", str), ask.elicit("B?", str)]
    answers = [ctx.answer(question) for question in both]
    return both if None in answers else " ".join(map(str, answers))


@app.tool
def again(ctx: SyncContext) -> ask.Question[bool]:
    question = ask.elicit("Sure?", bool, key="sure")
    ctx.answer(question)
    return question


@app.prompt
def greet(ctx: SyncContext) -> str | ask.Question[str]:
    name = ask.elicit("Who?", str)
    found = ctx.answer(name)
    return name if found is None else f"Greet {found}."


@app.resource("asks://name")
def whose(ctx: SyncContext) -> str | ask.Question[str]:
    name = ask.elicit("Whose?", str)
    found = ctx.answer(name)
    return name if found is None else found


def answers(request: ElicitRequest) -> Any:
    said = {"Delete it?": True, "Name?": "Ada", "Who?": {"name": "Ada"}, "Colour?": "red", "A?": "a", "B?": "b"}
    return said.get(request.message, "Ada")


def client(revision: str, **options: Any) -> SyncClient:
    able = {"on_elicit": answers, "on_sample": lambda request: "hi", "roots": ["file:///a"]}
    return SyncClient(app, revision=revision, **{**able, **options})


@pytest.mark.parametrize("revision", EVERY)
@pytest.mark.parametrize("name", ["delete", "delete_sync", "delete_in_place"])
def test_a_handler_waits_for_the_answer(revision: str, name: str) -> None:
    with client(revision) as connected:
        assert connected.call_tool(name).text == "deleted"
    with client(revision, on_elicit=lambda request: False) as connected:
        assert connected.call_tool(name).text == "kept"


@pytest.mark.parametrize("revision", EVERY)
def test_several_questions_at_once(revision: str) -> None:
    with client(revision) as connected:
        for name in ("all_at_once", "all_at_once_sync"):
            assert connected.call_tool(name).data == ["Ada", "hi", "file:///a"]


@pytest.mark.parametrize("revision", EVERY)
def test_what_the_user_refuses(revision: str) -> None:
    with client(revision, on_elicit=lambda request: Declined()) as connected:
        for name in ("delete", "delete_sync"):
            with pytest.raises(ToolError, match="The user declined: Delete it?"):
                connected.call_tool(name)
        for name in ("attempt", "attempt_sync"):
            assert connected.call_tool(name).text.startswith("Declined")
    with client(revision, on_elicit=lambda request: Cancelled()) as connected:
        assert connected.call_tool("attempt").text.startswith("Cancelled")
    with client(revision) as connected:
        assert connected.call_tool("attempt").text == connected.call_tool("attempt_sync").text == repr(Accepted(True))


def test_a_page_has_an_id_where_the_revision_has_them() -> None:
    seen: list[ElicitRequest] = []
    with client("2025-11-25", on_elicit=lambda request: seen.append(request) or {}) as connected:
        identity = connected.call_tool("visit").text
    assert seen[0].url == "https://example.org/in" and seen[0].id == identity and len(identity) > 16
    with (
        client("2025-06-18") as connected,
        pytest.raises(ToolError, match="revision 2025-06-18 has no elicitation.url, so the client can't be asked"),
    ):
        connected.call_tool("visit")


@pytest.mark.parametrize("revision", EVERY)
def test_the_explicit_form_works_in_every_era(revision: str) -> None:
    with client(revision) as connected:
        assert connected.call_tool("explicit").text == "Ada (30) likes red"
        assert connected.call_tool("explicit_many").text == "a b"
        whose_is_it = connected.read_resource("asks://name")
        assert whose_is_it.contents[0].text == "Ada"
        said = client(revision, on_elicit=lambda request: "Ada")
        with said as other:
            assert "Ada" in str(other.get_prompt("greet").messages[0])
    with client(revision, on_elicit=lambda request: Declined()) as connected:
        with pytest.raises(ToolError, match=r"The user declined: Who\?"):
            connected.call_tool("explicit")
    with client(revision, on_elicit=lambda request: Cancelled()) as connected:
        with pytest.raises(ToolError, match=r"The user dismissed: Who\?"):
            connected.call_tool("explicit")
        for name in ("delete", "delete_sync"):
            with pytest.raises(ToolError, match="The user dismissed: "):
                connected.call_tool(name)


@pytest.mark.parametrize("revision", EVERY)
def test_an_answered_question_that_is_returned_again_is_named(revision: str) -> None:
    with client(revision, on_elicit=lambda request: True) as connected:
        with pytest.raises(ToolError, match="sure is answered already"):
            connected.call_tool("again")


@pytest.mark.parametrize("name", ["delete", "delete_sync", "explicit"])
def test_a_client_that_declared_nothing_is_not_asked(name: str) -> None:
    for revision in LEGACY:
        with SyncClient(app, revision=revision) as connected:
            with pytest.raises(ToolError, match="the client did not declare elicitation, so it can't be asked"):
                connected.call_tool(name)
    with SyncClient(app) as connected, pytest.raises(ProtocolError) as caught:
        connected.call_tool(name)
    assert caught.value.code == -32021
    assert caught.value.data == {"requiredCapabilities": {"elicitation": {}}}


@pytest.mark.parametrize("name", ["all_at_once", "all_at_once_sync"])
def test_of_several_questions_none_is_asked_where_one_can_not_be(name: str) -> None:
    def nobody(request: ElicitRequest) -> Any:
        raise AssertionError("nobody is asked")

    with SyncClient(app, revision="2025-11-25", on_elicit=nobody) as connected:
        with pytest.raises(ToolError, match="the client did not declare sampling, so its model can't be asked"):
            connected.call_tool(name)
    with SyncClient(app, on_elicit=nobody) as connected, pytest.raises(ProtocolError) as caught:
        connected.call_tool_round(name)
    assert caught.value.code == -32021
    assert caught.value.data == {"requiredCapabilities": {"sampling": {}, "roots": {}}}


def test_modern_rounds_by_hand() -> None:
    with client("2026-07-28") as connected:
        first = connected.call_tool_round("explicit")
        assert list(first.questions) == ["elicit-1"] and first.state
        # An invalid answer is asked for again.
        unfit = {"elicit-1": {"action": "accept", "content": {"name": 3}}}
        again = connected.call_tool_round("explicit", answers=unfit, state=first.state)
        assert list(again.questions) == ["elicit-1"]
        fit = {"elicit-1": {"action": "accept", "content": {"name": "Bob", "age": 5}}}
        second = connected.call_tool_round("explicit", answers=fit, state=again.state)
        assert list(second.questions) == ["colour"] and second.state != first.state
        blue = {"colour": {"action": "accept", "content": {"value": "blue"}}}
        done = connected.call_tool_round("explicit", answers=blue, state=second.state)
        assert done.text == "Bob (5) likes blue"
        with pytest.raises(ProtocolError, match="Invalid or expired requestState"):
            connected.call_tool_round("explicit", answers=blue, state=second.state + "x")


def test_what_waits_is_told_when_it_is_cancelled() -> None:
    ended = threading.Event()
    server = Server("waits", suspended_ttl=0.2)
    came: list[BaseException] = []

    @server.tool
    def waits(ctx: SyncContext) -> str:
        try:
            return str(ctx.elicit("Sure?", bool))
        except BaseException as error:
            came.append(error)
            raise
        finally:
            ended.set()

    async def never(request: ElicitRequest) -> Any:
        await asyncio.Event().wait()

    async def main() -> None:
        async with Client(server, revision="2025-11-25", on_elicit=never) as connected:
            with pytest.raises(ToolError, match="and none came"):
                await connected.call_tool("waits")
            assert await asyncio.get_running_loop().run_in_executor(None, ended.wait, 60)

    asyncio.run(main())
    # Nothing that a handler catches as an error of its own, or as the user's word.
    assert not isinstance(came[0], Exception)


def test_a_waiting_handler_stalls_nobody() -> None:
    server = Server("waits")
    all_ask, release = asyncio.Event(), asyncio.Event()
    asked: list[ElicitRequest] = []

    @server.tool(thread=False)
    def asks(ctx: SyncContext) -> bool:
        return ctx.elicit("Sure?", bool)

    @server.tool
    def quick() -> str:
        return "quick"

    async def later(request: ElicitRequest) -> Any:
        asked.append(request)
        if len(asked) == 3:
            all_ask.set()
        await release.wait()
        return True

    async def main() -> None:
        async with Client(server, revision="2025-11-25", on_elicit=later) as connected:
            waiting = [asyncio.ensure_future(connected.call_tool("asks")) for _ in range(3)]
            await asyncio.wait_for(all_ask.wait(), 60)
            assert (await asyncio.wait_for(connected.call_tool("quick"), 60)).text == "quick"
            release.set()
            assert [result.data for result in await asyncio.gather(*waiting)] == [True] * 3

    asyncio.run(main())


def test_a_cancelled_call_takes_its_question_back() -> None:
    server = Server("waits")
    asked = asyncio.Event()
    taken_back = asyncio.Event()

    @server.tool
    async def asks(ctx: Context) -> bool:
        return await ctx.elicit("Sure?", bool)

    async def never(request: ElicitRequest) -> Any:
        asked.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            taken_back.set()
            raise

    async def main() -> None:
        async with Client(server, revision="2025-11-25", on_elicit=never) as connected:
            call = asyncio.ensure_future(connected.call_tool("asks"))
            await asyncio.wait_for(asked.wait(), 60)
            call.cancel()
            await asyncio.wait_for(taken_back.wait(), 60)

    asyncio.run(main())


def test_a_refusal_by_error_reaches_the_handler() -> None:
    server = Server("asks")

    @server.tool
    async def asks(ctx: Context) -> str:
        try:
            return (await ctx.sample([Message("user", "hi")])).text
        except ProtocolError as error:
            return f"{error.code} {error.message}"

    def refuse(request: Any) -> Any:
        raise ProtocolError(-7, "The model is out")

    with SyncClient(server, revision="2025-11-25", on_sample=refuse) as connected:
        assert connected.call_tool("asks").text == "-7 The model is out"
