"""Handlers that ask in the modern era, of a server that listens and of one that a host serves."""

import os
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from asking_server import make
from gudgeon import Context, Server, SyncClient, SyncContext
from gudgeon.errors import ProtocolError
from rounds import BOTH, KEYS, begin, events, finish, go_on, hosted, listening, on_a_loop, said, served, until, yes

pytestmark = pytest.mark.io

WAYS = ["http", "asgi"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", [*BOTH, "order_in_place", "order_on_worker"])
def test_a_handler_that_asks_goes_on_from_that_line(way: str, name: str) -> None:
    with served(way) as client:
        assert client.revision == "2026-07-28"
        state = go_on(client, name, begin(client, name))
        assert finish(client, name, state) == "Ada likes red"
        assert events(client) == ["begun"]


@pytest.mark.parametrize("way", WAYS)
def test_the_oldest_leaves_in_good_order_and_runs_again(way: str) -> None:
    with served(way, suspended_limit=1) as client:
        one, two = begin(client, "order"), begin(client, "order_sync")
        until(client, "begun", "begun", "left by CancelledError")
        two = go_on(client, "order_sync", two)
        one = go_on(client, "order", one)
        until(client, "begun", "begun", "left by CancelledError", "begun", "left by Abandoned")
        assert [finish(client, "order", one), finish(client, "order_sync", two)] == ["Ada likes red"] * 2


@pytest.mark.parametrize("way", WAYS)
def test_handlers_leave_in_time_also_when_nobody_says_anything(way: str) -> None:
    app: Server[Any] = Server("asks", suspended_ttl=0.2)
    left = threading.Semaphore(0)

    @app.tool
    async def waits(ctx: Context) -> None:
        try:
            await ctx.elicit("Sure?", bool)
        finally:
            left.release()

    @app.tool
    def waits_sync(ctx: SyncContext) -> None:
        try:
            ctx.elicit("Sure?", bool)
        finally:
            left.release()

    with served(way, app) as client:
        for form in ("waits", "waits_sync"):
            begin(client, form)
        assert left.acquire(timeout=60) and left.acquire(timeout=60)


@pytest.mark.parametrize("way", WAYS)
def test_who_waits_when_the_server_ends_leaves_in_good_order(way: str) -> None:
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

    with served(way, app) as client:
        for name in ("waits", "waits_sync"):
            begin(client, name)
        assert left == []
    deadline = time.monotonic() + 60
    while sorted(left) != ["Abandoned", "CancelledError"]:
        assert time.monotonic() < deadline, left
        time.sleep(0.01)


@pytest.mark.parametrize("serve", [listening, hosted])
def test_headers_are_those_of_the_request(serve: Any) -> None:
    with on_a_loop(serve, make()) as url:
        with SyncClient(url, on_elicit=said, headers={"X-Mark": "one"}) as client:
            state = begin(client, "facts")
        with SyncClient(url, on_elicit=said, headers={"X-Mark": "two"}) as client:
            seen = client.call_tool_round("facts", answers={"elicit-1": yes(True)}, state=state).data
        assert [seen[2], seen[5]] == ["one", "two"]


@pytest.mark.parametrize("way", WAYS)
def test_another_server_that_shares_the_keys_runs_it_again_with_the_answers(way: str) -> None:
    with served(way, **KEYS) as one, served(way, **KEYS) as two:
        second = go_on(two, "order", begin(one, "order"))
        assert finish(one, "order", second) == "Ada likes red"
        assert events(one) == ["begun", "begun"] and events(two) == ["begun"]


def test_keys_of_the_environment_count_where_the_program_names_none() -> None:
    new, old = "new " * 8, "old " * 8
    env = {"GUDGEON_STATE_KEYS": f"{new}.,{old}."}
    with served("stdio", request_state_keys=[f"{old}."]) as one, served("stdio", env=env) as two:
        state = go_on(two, "order", begin(one, "order"))
        with pytest.raises(ProtocolError, match="requestState"):
            finish(one, "order", state)
        with served("stdio", env=env, request_state_keys=[f"{old}."]) as three:
            with pytest.raises(ProtocolError, match="requestState"):
                finish(three, "order", state)
        assert finish(two, "order", state) == "Ada likes red"


def test_workers_that_reach_each_other_are_not_warned_about() -> None:
    source = "from asking_server import make; make().run('http://127.0.0.1:0/mcp', workers=2)"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", source], stderr=subprocess.PIPE, text=True, env=env) as program:
        assert program.stderr is not None
        told = ""
        for line in program.stderr:
            told += line
            if line.startswith("http://"):
                break
        program.terminate()
        program.stderr.read()
    assert "serves with 2 workers" in told
    assert "can't reach" not in told
