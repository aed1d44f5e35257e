"""A handler that waits for its client takes no place meanwhile, and waits no longer than it may."""

import asyncio
import threading
from typing import Annotated, Any

import pytest

from gudgeon import Client, Context, Depends, Server, SyncClient, SyncContext, ask
from gudgeon.ask import Question
from gudgeon.errors import ToolError
from gudgeon.types import ElicitRequest

ERAS = ("2025-11-25", "2026-07-28")
FORBIDS = (
    'though its tool forbids being run again (replay="forbid"): call ctx.elicit, ctx.sample or '
    'ctx.roots instead, or remove replay="forbid"'
)


def server(**options: Any) -> Server[Any]:
    app: Server[Any] = Server("waits", **options)

    @app.tool(concurrency=1)
    async def waits(ctx: Context, asks: bool) -> str:
        return str(await ctx.elicit("Sure?", bool)) if asks else "asked nothing"

    @app.tool(concurrency=1)
    def waits_sync(ctx: SyncContext, asks: bool) -> str:
        return str(ctx.elicit("Sure?", bool)) if asks else "asked nothing"

    @app.tool(concurrency=1)
    def returns(ctx: SyncContext, asks: bool) -> Any:
        question = ask.elicit("Sure?", bool)
        answer = ctx.answer(question) if asks else "asked nothing"
        return question if answer is None else str(answer)

    return app


@pytest.mark.parametrize("name", ["waits", "waits_sync", "returns"])
@pytest.mark.parametrize("revision", ERAS)
def test_waiting_takes_no_place(revision: str, name: str) -> None:
    async def main() -> None:
        async def answer(request: ElicitRequest) -> bool:
            assert (await client.call_tool(name, {"asks": False})).text == "asked nothing"
            return True

        async with Client(server(), revision=revision, on_elicit=answer) as client:
            assert (await client.call_tool(name, {"asks": True})).text == "True"

    asyncio.run(asyncio.wait_for(main(), 60))


@pytest.mark.parametrize("name", ["waits", "waits_sync", "returns"])
def test_a_client_that_never_answers_is_waited_for_so_long_and_no_longer(name: str) -> None:
    async def never(request: ElicitRequest) -> Any:
        await asyncio.Event().wait()

    async def main() -> None:
        # Nothing else happens meanwhile: the timer must find the end of the time by itself.
        async with Client(server(suspended_ttl=0.05), revision="2025-11-25", on_elicit=never) as client:
            with pytest.raises(ToolError) as caught:
                await client.call_tool(name, {"asks": True})
            waited = f'tool "{name}" waited 0.05 s for its client\'s answer, and none came (option suspended_ttl)'
            assert str(caught.value) == waited
            assert (await client.call_tool(name, {"asks": False})).text == "asked nothing"

    asyncio.run(asyncio.wait_for(main(), 60))


def test_the_time_counts_for_a_handler_whose_thread_no_longer_reads() -> None:
    app: Server[Any] = Server("shop", suspended_ttl=0.05)
    let_go = threading.Event()

    @app.tool
    def blocks(ctx: SyncContext) -> Any:
        # By the time that it returns, another thread reads, and sleeps.
        assert let_go.wait(60)
        question = ask.elicit("Sure?", bool)
        return question if ctx.answer(question) is None else "answered"

    @app.tool
    def lets_go() -> None:
        threading.Timer(0.2, let_go.set).start()

    async def never(request: ElicitRequest) -> Any:
        await asyncio.Event().wait()

    async def main() -> None:
        async with Client(app, revision="2025-11-25", on_elicit=never) as client:
            blocked = asyncio.create_task(client.call_tool("blocks"))
            await client.call_tool("lets_go")
            with pytest.raises(ToolError, match="waited 0.05 s for its client's answer"):
                await blocked

    asyncio.run(asyncio.wait_for(main(), 60))


def question() -> Question[bool]:
    return ask.elicit("Sure?", bool)


def one() -> Question[bool]: ...
def union() -> str | Question[bool]: ...
def several() -> "str | list[Question[bool]]": ...
def bare() -> Question: ...  # type: ignore[type-arg]


@pytest.mark.parametrize("fn", [one, union, several, bare], ids=lambda function: function.__name__)
def test_a_tool_that_must_not_run_again_names_no_question(fn: Any) -> None:
    app: Server[Any] = Server("forbids")
    with pytest.raises(TypeError) as caught:
        app.tool(replay="forbid")(fn)
    assert str(caught.value).endswith(FORBIDS)
    app.tool(fn)


def test_a_tool_that_must_not_run_again_may_take_a_question_and_return_none() -> None:
    app: Server[Any] = Server("forbids")

    @app.tool(replay="forbid")
    def takes(about: Annotated[Question[bool], Depends(question)]) -> str:
        return about.message

    with SyncClient(app) as client:
        assert client.call_tool("takes").text == "Sure?"


@pytest.mark.parametrize("revision", ERAS)
def test_a_tool_that_must_not_run_again_returns_no_question(revision: str) -> None:
    app: Server[Any] = Server("forbids")
    runs: list[int] = []

    @app.tool(replay="forbid")
    def forbids() -> Any:
        runs.append(1)
        return question()

    with SyncClient(app, revision=revision, on_elicit=lambda _: True) as client:
        with pytest.raises(ToolError) as caught:
            client.call_tool("forbids")
        assert str(caught.value) == f"the handler returned a question, {FORBIDS}"
    assert runs == [1]
