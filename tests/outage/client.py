"""Calls a server that is killed again and again: client.py URL REVISION CALLS.

Every second call is of the read-only tool `read`, the others of `count`, which may not be repeated. It prints the
number of calls after every hundredth one, and at last a report as JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from gudgeon import Client, McpError

AT_ONCE = 16
WARM = 1_000  # calls before memory is measured for the first time

url, revision, calls = sys.argv[1], sys.argv[2], int(sys.argv[3])
report: dict[str, Any] = {"reads": 0, "counted": [], "failed": {}, "unexpected": [], "memory": []}


def memory() -> int:
    """Returns the resident memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def call(client: Client, number: int) -> None:
    is_read = number % 2 == 0
    try:
        result = await client.call_tool("read" if is_read else "count", {"number": number})
    except McpError as error:
        if is_read:
            report["unexpected"].append(f"read {number}: {type(error).__name__}: {error}")
        kind = type(error).__name__
        report["failed"][kind] = report["failed"].get(kind, 0) + 1
        return
    if result.data != number:
        report["unexpected"].append(f"call {number} returned {result.data!r}")
    elif is_read:
        report["reads"] += 1
    else:
        report["counted"].append(number)


async def work(client: Client, numbers: Any) -> None:
    for number in numbers:
        await call(client, number)
        if number % 100 == 0:
            print(number, flush=True)
        if number in (WARM, calls - 1):
            report["memory"].append(memory())


async def main() -> None:
    async with Client(url, revision=revision, timeout=20) as client:
        await client.list_tools()
        numbers = iter(range(calls))
        await asyncio.gather(*(work(client, numbers) for _ in range(AT_ONCE)))
    print(json.dumps(report), flush=True)


asyncio.run(main())
