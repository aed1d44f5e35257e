"""Runs a suite's steps with one Python client and prints what came of each, one JSON line a step."""

import asyncio
import base64
import json
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))
from jobs import perform_all as perform_all, print_line

ANSWERS = json.loads((Path(__file__).resolve().parents[1] / "answers.json").read_text())


#: Changes of lists, in the order in which the tool `grow` makes them.
LISTS = {"tools", "resources", "prompts"}
NOTIFIED = {f"notifications/{kind}/list_changed": kind for kind in LISTS}


async def run(peer, steps):
    """`peer` has one coroutine for each `do` of the suites; what it returns (or raises) is the line's `got`."""
    for step in steps:
        try:
            got = await getattr(peer, step["do"])(step)
        except Exception as error:
            code = getattr(error, "code", None) or getattr(getattr(error, "error", None), "code", None)
            got = {"code": code, "error": f"{type(error).__name__}: {error}"}
        print_line({"check": step["check"], "got": got})


def describe(result, progress=(), logs=()):
    """A tool's result as on the wire, in the terms that the suites expect."""
    content = result["content"]
    return {
        "is_error": result.get("isError", False),
        "structured": result.get("structuredContent"),
        "types": [block["type"] for block in content],
        "text": "\n".join(block["text"] for block in content if block["type"] == "text"),
        "image": next(
            ([b["mimeType"], len(base64.b64decode(b["data"]))] for b in content if b["type"] == "image"), None
        ),
        "links": [block["uri"] for block in content if block["type"] == "resource_link"],
        "progress": list(progress),
        "logs": list(logs),
    }


async def until(condition, seconds=2.0):
    """Waits for what comes beside a reply: notifications may be handed over after it."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        await asyncio.sleep(0.01)


async def changes(call, seen, wanted):
    """Makes the server change until all of these were told: a stream may open after the first."""
    for _ in range(20):
        for name in ("touch", "grow"):
            await call({"name": name})
        await until(lambda: seen >= wanted, 0.3)
        if seen >= wanted:
            break
    return sorted(seen)


async def paged(list_page):
    """Every entry of a list, and how many pages it came on; `list_page(cursor)` gives entries and the next cursor."""
    found, pages, cursor = [], 0, None
    while True:
        entries, cursor = await list_page(cursor)
        found += entries
        pages += 1
        if cursor is None:
            return found, pages


async def started(call_tool, step):
    """Starts a step's call; returns its task once progress shows that the handler runs.

    A server that counts no cancelled calls need not report progress, so the handler is not waited for there."""
    progress = []

    async def on_progress(*told):
        progress.append(told)

    call = asyncio.ensure_future(call_tool(step["name"], step["arguments"], progress_callback=on_progress))
    await until(lambda: progress, 5 if step.get("witness") else 0.3)
    return call


async def witnessed(call, before, seconds=3.0):
    """Asks the server's witness tool how many calls it saw cancelled since it told `before`, until it saw one."""
    end = time.monotonic() + seconds
    while True:
        count = int((await call())["text"]) - before
        if count or time.monotonic() > end:
            return count
        await asyncio.sleep(0.05)
