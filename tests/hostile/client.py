"""Connects to evil servers: a job a line on stdin, its outcome a line on stdout. Argument: an honest server's URL.

A job has `target`, a URL or a command, `action`, `timeout`, in seconds, and `changes`, whether the client follows
changes of lists. Its outcome is the text of the result or the kind of the error, with the seconds that it took and the
longest ping of the honest server.
"""

import asyncio
import json
import logging
import sys
import time

from gudgeon import Client, McpError
from gudgeon.errors import AuthError, CallTimeout, ConnectFailed, ConnectionLost, NotSupported, ToolError

KINDS = {
    CallTimeout: "timeout",
    ConnectFailed: "connect",
    ConnectionLost: "lost",
    AuthError: "auth",
    NotSupported: "unsupported",
    ToolError: "tool",
    McpError: "protocol",
}


async def main():
    async with Client(sys.argv[1]) as honest:
        for line in iter(sys.stdin.readline, ""):
            print(json.dumps(await run(honest, json.loads(line))), flush=True)


async def run(honest, job):
    pings = asyncio.create_task(longest_ping(honest, stop := asyncio.Event()))
    await asyncio.sleep(0.02)
    began = time.monotonic()
    client = None
    try:
        client = client_of(job)
        await client.connect()
        outcome = await act(client, job["action"])
    except McpError as error:
        kind = next(kind for cls, kind in KINDS.items() if isinstance(error, cls))
        outcome, detail = kind, str(error)
    except ValueError as error:
        outcome, detail = "misuse", str(error)
    except Exception as error:
        outcome, detail = f"{type(error).__name__}: {error}", ""
    else:
        detail = ""
    took = time.monotonic() - began
    if client is not None:
        await client.close()
    closed = time.monotonic() - began - took
    stop.set()
    return {"outcome": outcome, "detail": detail[:300], "took": took, "closed": closed, "ping": await pings}


def client_of(job):
    headers = {"authorization": "Bearer secret"} if isinstance(job["target"], str) else None
    changes = {"on_list_changed": ignore} if job["changes"] else {}
    target = job["target"]
    return Client(
        target,
        headers=headers,
        timeout=job["timeout"],
        max_timeout=2 * job["timeout"],
        on_log=ignore,
        on_progress=ignore,
        on_elicit=answer,
        validate=job["action"] == "validate",
        **changes,
    )


def ignore(_):
    pass


def answer(_):
    return {"a": "x"}


async def act(client, action):
    if action == "connect":
        return "connected"
    if action == "list":
        return str(len(await client.list_tools()))
    if action == "list and call":
        await client.list_tools()
    if action == "list and call first":
        tools = await client.list_tools()
        return (await client.call_tool(tools[0].name, {"a": "x\r\nx-evil: 1"})).text
    if action == "call twice":
        await client.call_tool("evil")
    if action == "validate":
        return (await client.call_tool("evil", {"n": "b" * 200_000})).text
    if action == "push":
        calls = [asyncio.create_task(client.call_tool("evil", {"text": "x" * (1 << 20)})) for _ in range(8)]
        results = await asyncio.gather(*calls, return_exceptions=True)
        raise results[0]
    return (await client.call_tool("evil")).text


async def longest_ping(honest, stop):
    """Returns the longest of pings in milliseconds: of one below 3 seconds the part in which this process computed,
    because on a busy machine pings wait for other processes too.
    """
    longest = 0.0
    while not stop.is_set():
        began, computed = time.monotonic(), time.process_time()
        await honest.ping()
        took = time.monotonic() - began
        longest = max(longest, took if took > 3 else min(took, time.process_time() - computed))
        await asyncio.sleep(0.01)
    return longest * 1000


logging.disable()
asyncio.run(main())
