"""The official Python SDK 2.x as a client: mcp2.py URL legacy|modern IN_FLIGHT SECONDS [BYTES]."""

import asyncio

from common import command_line, keep_calling
from mcp import Client


async def main():
    url, era, in_flight, seconds, arguments = command_line()
    async with Client(url, mode="legacy" if era == "legacy" else "auto") as client:
        await keep_calling(lambda: client.call_tool("echo", arguments), in_flight, seconds)


asyncio.run(main())
