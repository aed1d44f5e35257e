"""Rounds of questions driven by the test, against a server of `asking_server` over various transports."""

import asyncio
import json
import os
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import asgi_host
from asking_server import make
from gudgeon import Command, Server, SyncClient
from gudgeon.types import ElicitRequest, InputRequired

PROGRAM = str(Path(__file__).with_name("asking_server.py"))
BOTH = ["order", "order_sync"]
SAID = {"Name?": "Ada", "Colour?": "red", "Sure?": True, "Age?": 36, "Likes?": False, "Place?": "London"}
KEYS = {"request_state_keys": ["a secret of both " * 2]}


def said(request: ElicitRequest) -> Any:
    return SAID[request.message]


@contextmanager
def served(
    way: str, app: Server[Any] | None = None, *, env: Mapping[str, str] = {}, **options: Any
) -> Iterator[SyncClient]:
    """Opens a client of a new server."""
    app = app or make(**options)
    if way == "stdio":
        at: Any = Command(sys.executable, PROGRAM, json.dumps(options), env={**os.environ, **env})
    elif way == "memory":
        at = app
    else:
        with on_a_loop(listening if way == "http" else hosted, app) as url:
            with SyncClient(url, on_elicit=said) as client:
                yield client
        return
    with SyncClient(at, on_elicit=said) as client:
        yield client


@asynccontextmanager
async def listening(app: Server[Any]) -> AsyncIterator[str]:
    async with app.listen("http://127.0.0.1:0/mcp") as here:
        yield here.url


def hosted(app: Server[Any]) -> AbstractAsyncContextManager[str]:
    return asgi_host.hosted(app.asgi())


@contextmanager
def on_a_loop(serve: Callable[[Server[Any]], AbstractAsyncContextManager[str]], app: Server[Any]) -> Iterator[str]:
    """Serves on an event loop in a thread; yields the URL."""
    loop, stop = asyncio.new_event_loop(), asyncio.Event()
    found: list[str] = []
    ready = threading.Event()

    async def run() -> None:
        async with serve(app) as url:
            found.append(url)
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(run()))
    thread.start()
    assert ready.wait(60)
    try:
        yield found[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(60)
        loop.close()


def yes(value: Any) -> dict[str, Any]:
    return {"action": "accept", "content": {"value": value}}


def asked(answer: Any, *keys: str) -> str:
    """Returns the state of a round whose questions have these keys."""
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
    """Waits for events of the server, in any order."""
    deadline = time.monotonic() + 60
    while sorted(happened := events(client)) != sorted(wanted):
        assert time.monotonic() < deadline, happened
        time.sleep(0.01)
