"""The official Python SDK 2.x signs in at the servers of its jobs and calls a tool."""

import asyncio
from urllib.parse import parse_qs, urlsplit

import httpx2
from follow import follow, perform_all, print_line
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata


class Memory:
    tokens = client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


async def perform(job):
    url, redirected = job["url"], {}

    async def on_redirect(page):
        redirected.update(parse_qs(urlsplit(await asyncio.to_thread(follow, page)).query))

    async def on_callback():
        return AuthorizationCodeResult(**{name: values[0] for name, values in redirected.items()})

    provider = OAuthClientProvider(
        url,
        OAuthClientMetadata(client_name="mcp 2", redirect_uris=["http://127.0.0.1:9/callback"]),
        Memory(),
        on_redirect,
        on_callback,
    )
    async with (
        httpx2.AsyncClient(auth=provider) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        tools = (await client.list_tools()).tools
        result = await client.call_tool(job["tool"], {})
        print_line({"tools": len(tools), "text": result.content[0].text})


perform_all(perform)
