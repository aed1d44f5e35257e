"""Gudgeon's Python client signs in at the servers of its jobs and calls a tool."""

import asyncio

from follow import follow, perform_all, print_line

from gudgeon import Client
from gudgeon.auth import OAuth


async def perform(job):
    async def on_redirect(page):
        return await asyncio.to_thread(follow, page)

    async with Client(job["url"], auth=OAuth(on_redirect=on_redirect)) as client:
        tools = await client.list_tools()
        result = await client.call_tool(job["tool"])
        print_line({"tools": len(tools), "text": result.text})


perform_all(perform)
