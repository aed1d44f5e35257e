"""The loop of a caller in Python, which makes calls that come as JSON lines and prints what becomes of each.

`{"number": 7, "kind": "echo"}` is answered with `{"number": 7, "got": "7"}`, or with the name and the text of an error.
Calls are made at once when they come. The caller ends with its input.
"""

import asyncio
import json
import os
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Protocol

URI = "shelf://top"
STEPS = 5
# Changes that are made until one is told of; each reaches the subscribers of one replica if there is no store.
CHANGES = 12
PATIENCE = 0.3  # seconds for the notification of a change, before another one is made
LONG = 10.0  # seconds for the notification of one change, in which a client connects again


class ToolFailed(Exception):
    """The result is an error of the tool."""


class Caller(Protocol):
    """A client of one kind."""

    async def call(self, name: str, arguments: dict[str, Any], on_progress: Callable[[float], None] | None) -> str:
        """Returns the text of a result. Raises `ToolFailed` for one that is an error."""

    def subscription(self, notified: Callable[[], None]) -> AbstractAsyncContextManager[None]:
        """Subscribes to the resource; `notified` is called for each change."""


async def echo(caller: Caller, number: int) -> str:
    return await caller.call("echo", {"text": f"{number}"}, None)


async def order(caller: Caller, number: int) -> str:
    return await caller.call("order", {"number": number}, None)


async def counted(caller: Caller, number: int) -> str:
    told: list[float] = []
    text = await caller.call("counted", {"steps": STEPS}, told.append)
    return text if told == sorted(set(told)) and set(told) <= set(range(1, STEPS + 1)) else f"progress was {told}"


async def subscribed(caller: Caller, number: int) -> str:
    return await told_of(caller, CHANGES, PATIENCE)


async def notified(caller: Caller, number: int) -> str:
    # The first change is not told if its replica is killed in the moment after its answer.
    return await told_of(caller, 2, LONG)


async def told_of(caller: Caller, changes: int, patience: float) -> str:
    changed = asyncio.Event()
    async with caller.subscription(changed.set):
        for _ in range(changes):
            await caller.call("change", {}, None)
            try:
                await asyncio.wait_for(changed.wait(), patience)
            except asyncio.TimeoutError:
                continue
            return "told"
    return "not told"


KINDS = {made.__name__: made for made in (echo, order, counted, subscribed, notified)}


async def run(caller: Caller) -> None:
    """Makes the calls of the standard input."""
    print(json.dumps({"number": -1, "got": "connected"}), flush=True)
    running = set()
    async for line in lines():
        call = json.loads(line)
        task = asyncio.ensure_future(perform(caller, call["kind"], call["number"]))
        running.add(task)
        task.add_done_callback(running.discard)
    await asyncio.gather(*running)


async def perform(caller: Caller, kind: str, number: int) -> None:
    outcome: dict[str, Any] = {"number": number}
    try:
        outcome["got"] = await KINDS[kind](caller, number)
    except Exception as error:
        outcome |= {"error": type(error).__name__, "message": str(error)[:300]}
    outcome["memory"] = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    print(json.dumps(outcome), flush=True)


async def lines() -> AsyncIterator[str]:
    loop, queue = asyncio.get_running_loop(), asyncio.Queue[str]()

    def read() -> None:
        for line in sys.stdin:
            loop.call_soon_threadsafe(queue.put_nowait, line)
        loop.call_soon_threadsafe(queue.put_nowait, "")

    threading.Thread(target=read, daemon=True).start()
    while line := await queue.get():
        yield line


def main(connected: Callable[[str, str, float], Awaitable[None]]) -> None:
    """Runs `connected(url, era, timeout)` with the arguments of the program."""
    url, era, timeout = sys.argv[1:]
    asyncio.run(connected(url, era, float(timeout)))
