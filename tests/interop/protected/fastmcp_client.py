"""FastMCP's client signs in at a server and calls a tool."""

import asyncio
import json
import sys
from urllib.parse import parse_qs, urlsplit

from fastmcp import Client
from fastmcp.client.auth import OAuth
from follow import follow
from mcp.shared.auth import AuthorizationCodeResult


class Headless(OAuth):
    async def redirect_handler(self, authorization_url):
        redirected = await asyncio.to_thread(follow, authorization_url)
        self.redirected = parse_qs(urlsplit(redirected).query)

    async def callback_handler(self):
        return AuthorizationCodeResult(**{name: values[0] for name, values in self.redirected.items()})


async def main(url, tool):
    async with Client(url, auth=Headless()) as client:
        tools = await client.list_tools()
        result = await client.call_tool(tool, {})
        print(json.dumps({"tools": len(tools), "text": result.content[0].text}))


asyncio.run(main(*sys.argv[1:]))
