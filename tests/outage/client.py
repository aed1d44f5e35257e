"""Calls a server that is killed again and again: client.py URL[,URL…] REVISION CALLS.

Every second call is of the read-only tool `read`, the others of `count`, which may not be repeated. Several servers are
a group, in which they take turns. It prints the number of calls after every hundredth one, with a list of the group's
tools, and at last a report as JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from gudgeon import Client, ClientGroup, McpError

AT_ONCE = 16
WARM = 1_000  # calls before memory is measured for the first time

urls, revision, calls = sys.argv[1].split(","), sys.argv[2], int(sys.argv[3])
report: dict[str, Any] = {"reads": 0, "counted": [], "failed": {}, "lists": [], "unexpected": [], "memory": []}


def memory() -> int:
    """Returns the resident memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def tool(number: int) -> str:
    prefix = f"s{number // 2 % len(urls)}_" if len(urls) > 1 else ""
    return prefix + ("read" if number % 2 == 0 else "count")


async def call(client: Any, number: int) -> None:
    is_read = number % 2 == 0
    try:
        result = await client.call_tool(tool(number), {"number": number})
    except McpError as error:
        if is_read:
            report["unexpected"].append(f"read {number}: {type(error).__name__}: {error}")
        report["failed"].setdefault(type(error).__name__, []).append(number)
        return
    if result.data != number:
        report["unexpected"].append(f"call {number} returned {result.data!r}")
    elif is_read:
        report["reads"] += 1
    else:
        report["counted"].append(number)


async def work(client: Any, numbers: Any) -> None:
    for number in numbers:
        await call(client, number)
        if number % 100 == 0:
            print(number, flush=True)
            if len(urls) > 1:
                report["lists"].append([tool.name for tool in await client.list_tools()])
        if number in (WARM, calls - 1):
            report["memory"].append(memory())


async def main() -> None:
    targets = {f"s{at}": url for at, url in enumerate(urls)}
    options: dict[str, Any] = {"revision": revision, "timeout": 20}
    async with ClientGroup(targets, **options) if len(urls) > 1 else Client(urls[0], **options) as client:
        await client.list_tools()
        numbers = iter(range(calls))
        await asyncio.gather(*(work(client, numbers) for _ in range(AT_ONCE)))
    print(json.dumps(report), flush=True)


asyncio.run(main())
