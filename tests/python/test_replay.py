"""Handlers that are gone when the answers to their questions come: run again from their top, which steps make safe."""

import asyncio
import time
from typing import Any

import pytest

from gudgeon import Context, Server, SyncClient, SyncContext
from gudgeon.errors import ProtocolError, ToolError
from rounds import BOTH, KEYS, asked, begin, events, finish, go_on, served, yes

# ── replayed ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", BOTH)
def test_another_server_that_shares_the_keys_runs_it_again_with_the_answers(name: str) -> None:
    with served("memory", **KEYS) as one, served("memory", **KEYS) as two:
        second = go_on(two, name, begin(one, name))
        assert finish(one, name, second) == "Ada likes red"
        assert events(one) == ["begun", "begun"] and events(two) == ["begun"]


def test_after_a_restart_it_runs_again_with_the_answers() -> None:
    with served("memory", **KEYS) as client:
        state = go_on(client, "order", begin(client, "order"))
    with served("memory", **KEYS) as client:
        assert finish(client, "order", state) == "Ada likes red"
        assert events(client) == ["begun"]


def test_what_another_key_sealed_is_refused() -> None:
    with (
        served("memory", **KEYS) as one,
        served("memory", request_state_keys=["other" * 7]) as two,
        served("memory") as own,
    ):
        state = begin(one, "order")
        for client in (two, own):
            with pytest.raises(ProtocolError, match="Invalid or expired requestState") as caught:
                go_on(client, "order", state)
            assert caught.value.code == -32602


def test_keys_are_changed_while_states_are_under_way() -> None:
    with served("memory", request_state_keys=["old" * 11]) as before:
        state = begin(before, "order")
    with served("memory", request_state_keys=[b"new" * 11, b"old" * 11]) as after:
        state = go_on(after, "order", state)
    with served("memory", request_state_keys=[b"new" * 11]) as later:
        assert finish(later, "order", state) == "Ada likes red"


def test_a_state_that_is_too_old_is_refused() -> None:
    with served("memory", state_ttl=1, **KEYS) as client:
        state = begin(client, "order")
        deadline = time.monotonic() + 60
        while True:
            try:
                go_on(client, "order", state)
            except ProtocolError as error:
                assert "Invalid or expired requestState" in str(error)
                return
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_a_journal_that_is_too_long_is_asked_again() -> None:
    long = yes("x" * 5_000)
    with served("memory", max_request_state=2_000, **KEYS) as one, served("memory", **KEYS) as two:
        state = asked(one.call_tool_round("order", answers={"elicit-1": long}), "elicit-2")
        assert len(state) <= 2_000
        assert finish(one, "order", state).endswith("likes red")
        state = asked(one.call_tool_round("order", answers={"elicit-1": long}), "elicit-2")
        again = two.call_tool_round("order", answers={"elicit-2": yes("red")}, state=state)
        assert list(again.questions) == ["elicit-1"]


@pytest.mark.parametrize("name", ["order_once", "order_sync_once"])
def test_what_must_not_run_twice_is_refused_where_its_handler_is_gone(name: str) -> None:
    with served("memory", **KEYS) as one, served("memory", **KEYS) as two:
        first = begin(one, name)
        with pytest.raises(ProtocolError, match="Invalid or expired requestState"):
            go_on(two, name, first)
        second = go_on(one, name, first)
        assert finish(one, name, second) == "Ada likes red"
        with pytest.raises(ProtocolError, match="Invalid or expired requestState"):
            finish(one, name, second)
        assert events(one) == ["begun"] and events(two) == []


def test_what_must_not_run_twice_fails_before_it_asks_where_it_could_not_wait() -> None:
    with served("memory", suspended_limit=0) as client:
        with pytest.raises(ToolError, match="too many handlers wait for answers"):
            client.call_tool_round("order_once")


# ── steps ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["book", "book_sync"])
def test_a_step_is_not_done_again(name: str) -> None:
    with served("memory", suspended_limit=0) as client:
        first = asked(client.call_tool_round(name, {"number": 7}), "elicit-1")
        done = client.call_tool_round(name, {"number": 7}, answers={"elicit-1": yes(True)}, state=first)
        assert done.text == "Ticket(number=7, seats=('a', 'b')) True True"
        assert events(client) == ["issued"]
        assert client.call_tool(name, {"number": 8}).text == "Ticket(number=8, seats=('a', 'b')) True True"


@pytest.mark.parametrize("options", [{}, {"suspended_limit": 0}], ids=["suspended", "replayed"])
@pytest.mark.parametrize("name", ["lends", "lends_sync"])
def test_a_step_numbers_what_it_asks_for_itself_for_it_may_not_be_done_again(
    name: str, options: dict[str, int]
) -> None:
    app: Server[Any] = Server("lends", **options)
    done: list[str] = []

    @app.tool
    async def lends(ctx: Context) -> str:
        async def lend() -> list[Any]:
            answers = [await ctx.elicit("Who?", str), await ctx.elicit("Sure?", bool)]
            done.append("lent")
            return answers

        who, sure = await ctx.step("lend", lend)
        return f"{who} {sure} {await ctx.elicit('What?', str)}"

    @app.tool
    def lends_sync(ctx: SyncContext) -> str:
        def lend() -> list[Any]:
            answers = [ctx.elicit("Who?", str), ctx.elicit("Sure?", bool)]
            done.append("lent")
            return answers

        who, sure = ctx.step("lend", lend)
        return f"{who} {sure} {ctx.elicit('What?', str)}"

    with SyncClient(app, on_elicit=print) as client:
        first = asked(client.call_tool_round(name), "lend/elicit-1")
        second = client.call_tool_round(name, answers={"lend/elicit-1": yes("Ada")}, state=first)
        answers = {"lend/elicit-2": yes(True)}
        third = client.call_tool_round(name, answers=answers, state=asked(second, "lend/elicit-2"))
        answers = {"elicit-1": yes("Dune")}
        assert client.call_tool_round(name, answers=answers, state=asked(third, "elicit-1")).text == "Ada True Dune"
    assert done == ["lent"]


@pytest.mark.parametrize("name", ["again", "again_sync"])
def test_a_step_that_failed_and_is_tried_again_asks_again(name: str) -> None:
    app: Server[Any] = Server("lends", suspended_limit=0)

    @app.tool
    async def again(ctx: Context) -> str:
        async def lend() -> str:
            if not await ctx.elicit("Sure?", bool):
                raise ToolError("not sure")
            return "lent"

        try:
            return await ctx.step("lend", lend)
        except ToolError:
            return await ctx.step("lend", lend)

    @app.tool
    def again_sync(ctx: SyncContext) -> str:
        def lend() -> str:
            if not ctx.elicit("Sure?", bool):
                raise ToolError("not sure")
            return "lent"

        try:
            return ctx.step("lend", lend)
        except ToolError:
            return ctx.step("lend", lend)

    says = iter([False, True])
    with SyncClient(app, on_elicit=lambda request: next(says)) as client:
        assert client.call_tool(name).text == "lent"


def test_a_step_goes_through_json_on_the_first_run_too() -> None:
    app: Server[Any] = Server("steps")
    ran: list[str] = []

    def anything() -> Any:
        ran.append("anything")
        return {"pair": (1, 2)}

    def unsayable() -> Any:
        ran.append("unsayable")
        return object()

    def unsayable_number() -> Any:
        return {"rates": [1, None, float("nan")]}

    async def fails() -> int:
        ran.append("fails")
        if ran.count("fails") == 1:
            raise ToolError("once")
        await asyncio.sleep(0)
        return 1

    @app.tool
    async def steps(ctx: Context) -> list[Any]:
        out: list[Any] = [await ctx.step("a", anything), await ctx.step("a", anything)]
        for wrong in (lambda: ctx.step("b", unsayable), lambda: ctx.step("", anything), lambda: ctx.step("c", fails)):
            try:
                await wrong()
            except (TypeError, ToolError) as error:
                out.append(str(error))
        # A step that failed was not done; of two at once the second has what the first gave.
        return [*out, *await asyncio.gather(ctx.step("c", fails), ctx.step("c", fails))]

    @app.tool
    async def number(ctx: Context) -> Any:
        try:
            return await ctx.step("n", unsayable_number)
        except TypeError as error:
            return [str(error), await ctx.step("n", lambda: None)]

    @app.tool
    def steps_sync(ctx: SyncContext) -> list[Any]:
        out: list[Any] = [ctx.step("a", anything), ctx.step("a", anything)]
        for key, fn in (("b", unsayable), ("", anything), ("c", fails)):
            try:
                ctx.step(key, fn)
            except TypeError as error:
                out.append(str(error))
        return out

    with SyncClient(app) as client:
        first, second, unsaid, keyless, failed, *rest = client.call_tool("steps").data
        assert first == second == {"pair": [1, 2]}
        assert "step 'b' can't be remembered: the result: an object can't be converted to JSON" in unsaid
        assert keyless == "step() takes its key first, which must be a string, not ''"
        assert failed == "once" and rest == [1, 1]
        assert ran == ["anything", "unsayable", "fails", "fails"]
        unsaid, none = client.call_tool("number").data
        assert (
            unsaid.startswith("step 'n' can't be remembered: the result.rates[2] is nan, which JSON") and none is None
        )
        ran.clear()
        first, second, unsaid, keyless, is_async = client.call_tool("steps_sync").data
        assert first == second == {"pair": [1, 2]} and "step 'b'" in unsaid and "step() takes its key first" in keyless
        assert is_async == "step 'c' takes a plain function in a def handler: make the handler async def"
        assert ran == ["anything", "unsayable"]


# ── options ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "options, error, message",
    [
        ({"suspended_limit": -1}, ValueError, "suspended_limit= must be an integer, or 0 for none, not -1"),
        ({"suspended_threads": True}, ValueError, "suspended_threads= must be an integer, or 0 for none, not True"),
        ({"suspended_ttl": 0}, ValueError, "suspended_ttl= must be a number of seconds above 0, not 0"),
        ({"state_ttl": float("inf")}, ValueError, "state_ttl= must be a number of seconds above 0, not inf"),
        (
            {"max_request_state": 0},
            ValueError,
            "max_request_state= must be a number of bytes, an integer from 1, not 0",
        ),
        ({"request_state_keys": "secret"}, TypeError, "request_state_keys= takes a list of bytes or strings"),
        ({"request_state_keys_file": 7}, TypeError, "request_state_keys_file= takes the path of a file of keys"),
        ({"request_state_keys_file": "/nowhere/keys"}, ValueError, "/nowhere/keys can't be read"),
        (
            {"request_state_keys": ["a" * 32], "request_state_keys_file": "keys"},
            ValueError,
            "request_state_keys and request_state_keys_file are set",
        ),
        ({"request_state_keys": [7]}, TypeError, "request_state_keys= takes a list of bytes or strings"),
        (
            {"request_state_keys": ["a" * 32, b"b" * 31]},
            ValueError,
            r"key 2 of request_state_keys has 31 bytes: take at least 32 random ones",
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_an_invalid_option_names_the_fix(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Server("asks", **options)


def test_times_without_end_are_as_good_as_a_century() -> None:
    with served("memory", suspended_ttl=1e300, state_ttl=1e300) as client:
        assert client.call_tool("order").text == "Ada likes red"


def test_replay_is_allow_or_forbid() -> None:
    with pytest.raises(ValueError, match='replay= must be "allow" or "forbid", not \'never\''):
        Server("asks").tool(lambda: None, name="a", replay="never")
