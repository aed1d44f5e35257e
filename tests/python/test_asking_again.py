"""Answers that fit their form, and that the type refuses all the same: they are asked for again, three times in all."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import pytest
from pydantic import AfterValidator, BaseModel, field_validator

from gudgeon import Client, Context, Server, SyncClient, SyncContext, ask
from gudgeon.errors import Declined, ProtocolError, ToolError
from gudgeon.testing import Faults, connect_sync
from gudgeon.types import Accepted, ElicitRequest
from rounds import KEYS, asked, yes


class Order(BaseModel):
    count: int

    @field_validator("count")
    @classmethod
    def even(cls, count: int) -> int:
        if count % 2:
            raise ValueError("they come in pairs")
        return count


@dataclass
class Pair:
    count: int

    def __post_init__(self) -> None:
        if self.count % 2:
            raise ValueError("they come in pairs")


class Pairs(msgspec.Struct):
    count: int

    def __post_init__(self) -> None:
        if self.count % 2:
            raise ValueError("they come in pairs")


def even(count: int) -> int:
    if count % 2:
        raise ValueError("they come in pairs")
    return count


TYPES: dict[str, Any] = {
    "pydantic": Order,
    "dataclass": Pair,
    "struct": Pairs,
    "plain": Annotated[int, AfterValidator(even)],
}
ERAS = [("2025-11-25", False), ("2026-07-28", False), ("2026-07-28", True)]
IDS = ["2025-11-25", "suspended", "replayed"]
every_era = pytest.mark.parametrize(("era", "replay"), ERAS, ids=IDS)


def count_of(answer: Any) -> int:
    return int(getattr(answer, "count", answer))


def make(**options: Any) -> Server[Any]:
    app: Server[Any] = Server("shop", **options)

    @app.tool
    async def buy(kind: str, ctx: Context) -> int:
        return count_of(await ctx.elicit("How many?", TYPES[kind]))

    @app.tool
    def buy_sync(kind: str, ctx: SyncContext) -> int:
        return count_of(ctx.elicit("How many?", TYPES[kind]))

    @app.tool
    async def attempt(kind: str, ctx: Context) -> str:
        outcome = await ctx.try_elicit("How many?", TYPES[kind])
        return str(count_of(outcome.value)) if isinstance(outcome, Accepted) else type(outcome).__name__

    @app.tool
    def attempt_sync(kind: str, ctx: SyncContext) -> str:
        outcome = ctx.try_elicit("How many?", TYPES[kind])
        return str(count_of(outcome.value)) if isinstance(outcome, Accepted) else type(outcome).__name__

    @app.tool
    async def several(kind: str, ctx: Context) -> str:
        name, order = await ctx.ask(
            ask.elicit("Who?", str, key="who"), ask.elicit("How many?", TYPES[kind], key="many")
        )
        return f"{name} {count_of(order)}"

    @app.tool
    def several_sync(kind: str, ctx: SyncContext) -> str:
        name, order = ctx.ask(ask.elicit("Who?", str, key="who"), ask.elicit("How many?", TYPES[kind], key="many"))
        return f"{name} {count_of(order)}"

    @app.tool
    async def explicit(kind: str, ctx: Context) -> Any:
        who, many = ask.elicit("Who?", str, key="who"), ask.elicit("How many?", TYPES[kind], key="many")
        name, order = ctx.answer(who), ctx.answer(many)
        if name is None or order is None:
            return [who, many]
        return f"{name} {count_of(order)}"

    @app.tool
    def explicit_sync(kind: str, ctx: SyncContext) -> Any:
        many = ask.elicit("How many?", TYPES[kind], key="many")
        order = ctx.answer(many)
        return many if order is None else f"Ada {count_of(order)}"

    return app


class Says:
    """Answers one after the other, and what was asked."""

    def __init__(self, *counts: Any) -> None:
        self.counts: Iterator[Any] = iter(counts)
        self.asked: list[str] = []

    def __call__(self, request: ElicitRequest) -> Any:
        self.asked.append(request.message)
        if request.message == "Who?":
            return "Ada"
        count = next(self.counts)
        return count if isinstance(count, Declined) else {next(iter(request.schema["properties"])): count}


def call(name: str, era: str, replay: bool, said: Callable[[Any], Any], kind: str, **more: Any) -> str:
    answers = {"Who?": said, "How many?": said}
    with connect_sync(make(**KEYS), revision=era, answers=answers, replay=replay, **more) as client:
        return str(client.call_tool(name, {"kind": kind}).text)


@every_era
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("name", ["buy", "buy_sync", "attempt", "attempt_sync"])
def test_what_the_type_refuses_is_asked_again(name: str, kind: str, era: str, replay: bool) -> None:
    said = Says(3, 5, 6)
    assert call(name, era, replay, said, kind) == "6"
    assert said.asked == ["How many?"] * 3


@every_era
@pytest.mark.parametrize("kind", ["pydantic", "dataclass"])
@pytest.mark.parametrize("name", ["several", "several_sync", "explicit"])
def test_of_several_only_the_refused_one_is_asked_again(name: str, kind: str, era: str, replay: bool) -> None:
    said = Says(3, 6)
    assert call(name, era, replay, said, kind) == "Ada 6"
    assert sorted(said.asked) == ["How many?", "How many?", "Who?"]


@every_era
def test_returned_questions_of_def_handlers_are_asked_again(era: str, replay: bool) -> None:
    said = Says(3, 5, 6)
    assert call("explicit_sync", era, replay, said, "pydantic") == "Ada 6"
    assert said.asked == ["How many?"] * 3


@every_era
@pytest.mark.parametrize("name", ["buy", "buy_sync", "attempt", "several", "explicit", "explicit_sync"])
@pytest.mark.parametrize("kind", ["pydantic", "dataclass"])
def test_what_never_fits_ends_in_an_error_that_says_why(name: str, kind: str, era: str, replay: bool) -> None:
    answers = {"Who?": "Ada", "How many?": {"count": 3}}
    with connect_sync(make(), revision=era, answers=answers, replay=replay) as client:
        with pytest.raises(ProtocolError) as caught:
            client.call_tool(name, {"kind": kind})
    assert caught.value.code == -32602
    said = caught.value.message
    assert said.startswith('the client\'s answer to "How many?" does not fit, 3 times: '), said
    assert "they come in pairs" in said and "\n" not in said


@every_era
@pytest.mark.parametrize("name", ["attempt", "attempt_sync"])
def test_a_no_to_the_second_asking_is_a_no(name: str, era: str, replay: bool) -> None:
    assert call(name, era, replay, Says(3, Declined()), "dataclass") == "Declined"


@pytest.mark.parametrize("name", ["buy", "buy_sync", "several", "explicit"])
def test_a_restart_between_rounds_asks_again_and_counts_on(name: str) -> None:
    faults = Faults(restart_between_rounds=True)
    expected = "6" if name.startswith("buy") else "Ada 6"
    assert call(name, "2026-07-28", False, Says(3, 5, 6), "pydantic", faults=faults) == expected
    with pytest.raises(ProtocolError, match="does not fit, 3 times: .*pairs"):
        call(name, "2026-07-28", False, Says(3, 5, 7, 6), "pydantic", faults=faults)


@pytest.mark.parametrize("name", ["several", "several_sync", "explicit"])
def test_another_server_asks_again_and_knows_the_rest(name: str) -> None:
    arguments = {"kind": "pydantic"}
    with SyncClient(make(**KEYS), on_elicit=print) as one, SyncClient(make(**KEYS), on_elicit=print) as two:
        state = asked(one.call_tool_round(name, arguments), "who", "many")
        wrong = {"action": "accept", "content": {"count": 3}}
        answers = {"who": yes("Ada"), "many": wrong}
        state = asked(two.call_tool_round(name, arguments, answers=answers, state=state), "many")
        # Neither the client that says nothing nor the state brings back what was refused.
        state = asked(one.call_tool_round(name, arguments, answers={}, state=state), "many")
        state = asked(one.call_tool_round(name, arguments, answers={"many": wrong}, state=state), "many")
        right = {"action": "accept", "content": {"count": 4}}
        assert two.call_tool_round(name, arguments, answers={"many": right}, state=state).text == "Ada 4"
        with pytest.raises(ProtocolError, match="does not fit, 3 times"):
            two.call_tool_round(name, arguments, answers={"many": wrong}, state=state)


def test_the_handler_may_catch_it_and_go_on() -> None:
    app: Server[Any] = Server("shop")

    @app.tool
    async def buy(ctx: Context) -> str:
        try:
            return str((await ctx.elicit("How many?", Order)).count)
        except ProtocolError as error:
            return str(error.code)

    for era, replay in ERAS:
        with connect_sync(app, revision=era, answers={"How many?": {"count": 1}}, replay=replay) as client:
            assert client.call_tool("buy").text == "-32602"


@pytest.mark.parametrize(
    ("counts", "outcome"), [((3, 6), "6"), ((1, 1, 1), 'the client\'s answer to "How many?" does not fit, 3 times: ')]
)
async def test_who_listens_to_notifications_asks_again_too(counts: tuple[int, ...], outcome: str) -> None:
    app: Server[Any] = Server("shop")
    heard: asyncio.Queue[str] = asyncio.Queue()

    @app.on_roots_changed
    async def changed(ctx: Context) -> None:
        try:
            said = str((await ctx.elicit("How many?", Order)).count)
        except ProtocolError as error:
            said = error.message
        loop.call_soon_threadsafe(heard.put_nowait, said)

    loop, says = asyncio.get_running_loop(), Says(*counts)
    async with Client(app, revision="2025-11-25", on_elicit=says, roots=["file:///a"]) as client:
        client.set_roots(["file:///b"])
        async with asyncio.timeout(60):
            assert (await heard.get()).startswith(outcome)
    assert len(says.asked) == len(counts)


def test_an_error_of_the_types_own_is_not_asked_again() -> None:
    class Broken(BaseModel):
        count: int

        @field_validator("count")
        @classmethod
        def break_down(cls, count: int) -> int:
            raise RuntimeError("broken")

    app: Server[Any] = Server("shop")

    @app.tool
    async def buy(ctx: Context) -> str:
        return str(await ctx.elicit("How many?", Broken))

    for era, replay in ERAS:
        said = Says(*range(9))
        with connect_sync(app, revision=era, answers={"How many?": said}, replay=replay) as client:
            with pytest.raises(ToolError, match="RuntimeError"):
                client.call_tool("buy")
        assert len(said.asked) == 1
