"""Gudgeon's client: ours.py URL legacy|modern IN_FLIGHT SECONDS [BYTES]."""

import asyncio

from common import command_line, keep_calling

from gudgeon import Client


async def main():
    url, era, in_flight, seconds, arguments = command_line()
    async with Client(url, revision="2025-11-25" if era == "legacy" else "2026-07-28") as client:
        await keep_calling(lambda: client.call_tool("echo", arguments), in_flight, seconds)


asyncio.run(main())
