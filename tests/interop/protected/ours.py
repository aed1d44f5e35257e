"""Gudgeon's Python client signs in at a server and calls a tool."""

import asyncio
import json
import sys

from follow import follow

from gudgeon import Client
from gudgeon.auth import OAuth


async def main(url, tool):
    async def on_redirect(page):
        return await asyncio.to_thread(follow, page)

    async with Client(url, auth=OAuth(on_redirect=on_redirect)) as client:
        tools = await client.list_tools()
        result = await client.call_tool(tool)
        print(json.dumps({"tools": len(tools), "text": result.text}))


asyncio.run(main(*sys.argv[1:]))
