"""Handlers that ask in the modern era wait for the request that brings the answers, or run again from their top."""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from asking_server import make
from gudgeon import Client, Command, Context, Server, SyncClient, SyncContext
from gudgeon.errors import Cancelled, Declined, NotSupported, ProtocolError, ToolError
from gudgeon.types import Accepted, ElicitRequest, InputRequired

PROGRAM = str(Path(__file__).with_name("asking_server.py"))
WAYS = ["memory", "stdio", "http"]
BOTH = ["order", "order_sync"]
SAID = {"Name?": "Ada", "Colour?": "red", "Sure?": True, "Age?": 36, "Likes?": False, "Place?": "London"}
KEYS = {"request_state_keys": ["a secret of both"]}


def said(request: ElicitRequest) -> Any:
    return SAID[request.message]


@contextmanager
def served(way: str, *, env: Mapping[str, str] = {}, **options: Any) -> Iterator[SyncClient]:
    """A client of a server of its own."""
    able: dict[str, Any] = {"on_elicit": said}
    if way == "stdio":
        command = Command(sys.executable, PROGRAM, json.dumps(options), env={**os.environ, **env})
        with SyncClient(command, **able) as client:
            yield client
    elif way == "memory":
        with SyncClient(make(**options), **able) as client:
            yield client
    else:
        with listening(make(**options)) as url, SyncClient(url, **able) as client:
            yield client


@contextmanager
def listening(app: Server[Any]) -> Iterator[str]:
    """Serves on a loop in a thread."""
    import threading

    loop, stop = asyncio.new_event_loop(), asyncio.Event()
    found: list[str] = []
    ready = threading.Event()

    async def serve() -> None:
        async with app.listen("http://127.0.0.1:0/mcp") as here:
            found.append(here.url)
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    assert ready.wait(10)
    try:
        yield found[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
        loop.close()


def yes(value: Any) -> dict[str, Any]:
    return {"action": "accept", "content": {"value": value}}


def asked(answer: Any, *keys: str) -> str:
    """The state of a round that asks under these keys."""
    assert isinstance(answer, InputRequired) and list(answer.questions) == list(keys)
    assert answer.state is not None
    return answer.state


def begin(client: SyncClient, name: str) -> str:
    return asked(client.call_tool_round(name), "elicit-1")


def go_on(client: SyncClient, name: str, state: str) -> str:
    answers = {"elicit-1": yes("Ada")}
    return asked(client.call_tool_round(name, answers=answers, state=state), "elicit-2")


def finish(client: SyncClient, name: str, state: str) -> str:
    return str(client.call_tool_round(name, answers={"elicit-2": yes("red")}, state=state).text)


def events(client: SyncClient) -> list[str]:
    happened: list[str] = client.call_tool("events").data
    return happened


def until(client: SyncClient, *wanted: str) -> None:
    """Waits for what a server does in its own time."""
    deadline = time.monotonic() + 10
    while (happened := events(client)) != list(wanted):
        assert time.monotonic() < deadline, happened
        time.sleep(0.01)


# ── parked ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", [*BOTH, "order_in_place", "order_on_worker", "order_once", "order_sync_once"])
def test_a_handler_that_asks_goes_on_from_that_line(way: str, name: str) -> None:
    with served(way) as client:
        assert client.revision == "2026-07-28"
        state = go_on(client, name, begin(client, name))
        assert finish(client, name, state) == "Ada likes red"
        assert events(client) == ["begun"]
        assert client.call_tool(name).text == "Ada likes red"
        assert events(client) == ["begun"] * 2


@pytest.mark.parametrize("way", WAYS)
def test_questions_of_one_turn_are_one_round(way: str) -> None:
    with served(way) as client:
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


# ── the request that a handler runs for ──────────────────────────────────────────────────────────────


@pytest.mark.parametrize("way", ["memory", "http"])
def test_what_is_known_of_the_request_follows_it(way: str) -> None:
    with served(way) as client:
        first = client.call_tool_round("facts", meta={"mark": "one"})
        state = asked(first, "elicit-1")
        told: list[Any] = []
        done = client.call_tool_round(
            "facts", answers={"elicit-1": yes(True)}, state=state, meta={"mark": "two"}, on_progress=told.append
        )
        before, after = done.data[:3], done.data[3:]
        assert before[1] == "one" and after[1] == "two" and before[0] != after[0]
        assert [it.message for it in told] == ["sure"]


# ── replayed ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", BOTH)
def test_another_server_that_shares_the_keys_runs_it_again_with_the_answers(way: str, name: str) -> None:
    with served(way, **KEYS) as one, served(way, **KEYS) as two:
        second = go_on(two, name, begin(one, name))
        assert finish(one, name, second) == "Ada likes red"
        assert events(one) == ["begun", "begun"] and events(two) == ["begun"]


@pytest.mark.parametrize("way", WAYS)
def test_after_a_restart_it_runs_again_with_the_answers(way: str) -> None:
    with served(way, **KEYS) as client:
        state = go_on(client, "order", begin(client, "order"))
    with served(way, **KEYS) as client:
        assert finish(client, "order", state) == "Ada likes red"
        assert events(client) == ["begun"]


def test_what_another_key_sealed_is_refused() -> None:
    with (
        served("memory", **KEYS) as one,
        served("memory", request_state_keys=["other"]) as two,
        served("memory") as own,
    ):
        state = begin(one, "order")
        for client in (two, own):
            with pytest.raises(ProtocolError, match="Invalid or expired requestState") as caught:
                go_on(client, "order", state)
            assert caught.value.code == -32602


def test_keys_are_changed_while_states_are_under_way() -> None:
    with served("memory", request_state_keys=["old"]) as before:
        state = begin(before, "order")
    with served("memory", request_state_keys=[b"new", b"old"]) as after:
        state = go_on(after, "order", state)
    with served("memory", request_state_keys=[b"new"]) as later:
        assert finish(later, "order", state) == "Ada likes red"


def test_keys_of_the_environment_count_where_the_program_names_none() -> None:
    env = {"GUDGEON_STATE_KEYS": "new, old"}
    with served("stdio", request_state_keys=["old"]) as one, served("stdio", env=env) as two:
        state = go_on(two, "order", begin(one, "order"))
        with pytest.raises(ProtocolError, match="requestState"):
            finish(one, "order", state)
        with served("stdio", env=env, request_state_keys=["old"]) as three:
            with pytest.raises(ProtocolError, match="requestState"):
                finish(three, "order", state)
        assert finish(two, "order", state) == "Ada likes red"


@pytest.mark.parametrize("env", [{}, {"GUDGEON_STATE_KEYS": "shared"}], ids=["own", "shared"])
def test_workers_whose_keys_differ_are_warned_about(env: dict[str, str]) -> None:
    source = "from asking_server import make; make().run('http://127.0.0.1:0/mcp', workers=2)"
    env = {**os.environ, **env, "PYTHONPATH": str(Path(__file__).parent)}
    with subprocess.Popen([sys.executable, "-c", source], stderr=subprocess.PIPE, text=True, env=env) as program:
        assert program.stderr is not None
        said = ""
        for line in program.stderr:
            said += line
            if line.startswith("http://"):
                break
        program.terminate()
        program.stderr.read()
    assert ("seals requestState with a key of its own" in said) == ("GUDGEON_STATE_KEYS" not in env)


def test_a_state_that_is_too_old_is_refused() -> None:
    with served("memory", state_ttl=1, **KEYS) as client:
        state = begin(client, "order")
        deadline = time.monotonic() + 10
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


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["order_once", "order_sync_once"])
def test_what_must_not_run_twice_is_refused_where_its_handler_is_gone(way: str, name: str) -> None:
    with served(way, **KEYS) as one, served(way, **KEYS) as two:
        first = begin(one, name)
        with pytest.raises(ProtocolError, match="Invalid or expired requestState"):
            go_on(two, name, first)
        second = go_on(one, name, first)
        assert finish(one, name, second) == "Ada likes red"
        with pytest.raises(ProtocolError, match="Invalid or expired requestState"):
            finish(one, name, second)
        assert events(one) == ["begun"] and events(two) == []


def test_what_must_not_run_twice_fails_before_it_asks_where_it_could_not_wait() -> None:
    with served("memory", park_limit=0) as client:
        with pytest.raises(ToolError, match="too many handlers wait for answers"):
            client.call_tool_round("order_once")


# ── evicted ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name, left", [("order", "CancelledError"), ("order_sync", "Abandoned")])
def test_the_oldest_leaves_in_good_order_and_runs_again(way: str, name: str, left: str) -> None:
    with served(way, park_limit=1) as client:
        one, two = begin(client, name), begin(client, name)
        until(client, "begun", "begun", f"left by {left}")
        two = go_on(client, name, two)
        one = go_on(client, name, one)
        until(client, "begun", "begun", f"left by {left}", "begun", f"left by {left}")
        assert [finish(client, name, one), finish(client, name, two)] == ["Ada likes red"] * 2
        assert events(client).count("begun") == 4


@pytest.mark.parametrize("name, left", [("order", "CancelledError"), ("order_sync", "Abandoned")])
@pytest.mark.parametrize("way", WAYS)
def test_a_handler_that_waits_too_long_leaves_in_good_order_and_runs_again(way: str, name: str, left: str) -> None:
    with served(way, park_ttl=0.05) as client:
        state = begin(client, name)
        until(client, "begun", f"left by {left}")
        assert client.call_tool_round(name, answers={"elicit-1": yes("Ada"), "elicit-2": yes("red")}, state=state).text


@pytest.mark.parametrize("options", [{"park_limit": 0}, {"park_threads": 0}], ids=lambda it: next(iter(it)))
def test_without_room_every_round_is_a_run_of_its_own(options: dict[str, Any]) -> None:
    with served("memory", **options) as client:
        assert client.call_tool("order_sync").text == "Ada likes red"
        until(client, "begun", "left by Abandoned", "begun", "left by Abandoned", "begun")
        assert client.call_tool("order").text == "Ada likes red"


@pytest.mark.parametrize("way", WAYS)
def test_a_thousand_def_handlers_wait(way: str) -> None:
    with served(way) as client:
        before = client.call_tool("threads").data
        states = [begin(client, "order_sync") for _ in range(1_000)]
        left = ["left by Abandoned"]
        deadline = time.monotonic() + 30
        while events(client).count(*left) < 968:
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
        assert happened.count("begun") == 1_968 and happened.count(*left) == 968


def test_handlers_that_wait_leave_the_workers_to_others() -> None:
    with served("memory", threads=1, park_threads=8) as client:
        states = [begin(client, "order_on_worker") for _ in range(8)]
        assert events(client) == ["begun"] * 8
        for state in reversed(states):
            state = go_on(client, "order_on_worker", state)
            assert finish(client, "order_on_worker", state) == "Ada likes red"
        assert events(client) == ["begun"] * 8


# ── behind middleware ────────────────────────────────────────────────────────────────────────────────


def test_a_def_handler_behind_middleware_waits_and_leaves_like_any_other() -> None:
    app = make(threads=1, park_threads=2)

    @app.middleware
    async def around(request: Any, following: Any) -> Any:
        return await following(request)

    with SyncClient(app, on_elicit=said) as client:
        states = [begin(client, "order_sync") for _ in range(4)]
        until(client, *["begun"] * 3, "left by Abandoned", "begun", "left by Abandoned")
        for state in states:
            assert finish(client, "order_sync", go_on(client, "order_sync", state)) == "Ada likes red"


# ── steps ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["book", "book_sync"])
def test_a_step_is_not_done_again(way: str, name: str) -> None:
    with served(way, park_limit=0) as client:
        first = asked(client.call_tool_round(name, {"number": 7}), "elicit-1")
        done = client.call_tool_round(name, {"number": 7}, answers={"elicit-1": yes(True)}, state=first)
        assert done.text == "Ticket(number=7, seats=('a', 'b')) True True"
        assert events(client) == ["issued"]
        assert client.call_tool(name, {"number": 8}).text == "Ticket(number=8, seats=('a', 'b')) True True"


def test_a_step_goes_through_json_on_the_first_run_too() -> None:
    app: Server[Any] = Server("steps")
    ran: list[str] = []

    def anything() -> Any:
        ran.append("anything")
        return {"pair": (1, 2)}

    def unsayable() -> Any:
        ran.append("unsayable")
        return object()

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
        assert "step 'b' can't be remembered: a object can't be said in JSON" in unsaid
        assert keyless == "a step begins with its key, a text that names it, not ''"
        assert failed == "once" and rest == [1, 1]
        assert ran == ["anything", "unsayable", "fails", "fails"]
        ran.clear()
        first, second, unsaid, keyless, is_async = client.call_tool("steps_sync").data
        assert first == second == {"pair": [1, 2]} and "step 'b'" in unsaid and "a step begins" in keyless
        assert is_async == "step 'c' takes a plain function in a def handler: make the handler async def"
        assert ran == ["anything", "unsayable"]


# ── retries ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("way", ["memory", "stdio"])
def test_a_retry_that_comes_twice_joins_the_first(way: str) -> None:
    async def main() -> None:
        at: Any = make() if way == "memory" else Command(sys.executable, PROGRAM, "{}", env=dict(os.environ))
        async with Client(at, on_elicit=said) as client:
            first = await client.call_tool_round("held")
            state = asked(first, "elicit-1")
            again = [client.call_tool_round("held", answers={"elicit-1": yes(True)}, state=state) for _ in range(2)]
            both = asyncio.gather(*again)
            await asyncio.sleep(0)
            await client.call_tool("let_go")
            assert [it.text for it in await both] == ["True", "True"]
            assert (await client.call_tool("events")).data == ["begun", "done"]

    asyncio.run(main())


# ── prompts and resources ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("options", [{}, {"park_limit": 0}], ids=["parked", "replayed"])
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


# ── options ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "options, error, message",
    [
        ({"park_limit": -1}, ValueError, "park_limit= is a whole number, or 0 for none, not -1"),
        ({"park_threads": True}, ValueError, "park_threads= is a whole number, or 0 for none, not True"),
        ({"park_ttl": 0}, ValueError, "park_ttl= is a number of seconds above 0, not 0"),
        ({"state_ttl": float("inf")}, ValueError, "state_ttl= is a number of seconds above 0, not inf"),
        ({"max_request_state": 0}, ValueError, "max_request_state= is a whole number above 0, not 0"),
        ({"request_state_keys": "secret"}, TypeError, "request_state_keys= takes a list of bytes or texts"),
        ({"request_state_keys": [7]}, TypeError, "request_state_keys= takes a list of bytes or texts"),
        (
            {"request_state_keys": ["a", b""]},
            ValueError,
            "a key of requestState is empty: take at least 32 random bytes",
        ),
    ],
    ids=lambda it: next(iter(it)) if isinstance(it, dict) else "",
)
def test_an_option_that_cannot_be_meant_says_the_mend(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        Server("asks", **options)


def test_times_without_end_are_as_good_as_a_century() -> None:
    with served("memory", park_ttl=1e300, state_ttl=1e300) as client:
        assert client.call_tool("order").text == "Ada likes red"


def test_replay_is_allow_or_forbid() -> None:
    with pytest.raises(ValueError, match="replay= is one of 'allow', 'forbid', not 'never'"):
        Server("asks").tool(lambda: None, name="a", replay="never")
