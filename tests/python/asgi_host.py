"""Hosts for ASGI apps: a real server on the test's event loop, or direct ASGI calls."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


@asynccontextmanager
async def hosted(asgi: Any, **options: Any) -> AsyncIterator[str]:
    """Starts a real server on this event loop; yields the URL of its root."""
    config = uvicorn.Config(asgi, port=0, log_level="warning", timeout_graceful_shutdown=1, **options)
    server = uvicorn.Server(config)
    task = asyncio.ensure_future(server.serve())
    while not server.started:
        assert not task.done()
        await asyncio.sleep(0.005)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        await task


class Host:
    """The host's side of an ASGI call."""

    def __init__(self, asgi: Any, scope: dict[str, Any], *messages: dict[str, Any]) -> None:
        self.sent: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.inbox: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        for message in messages:
            self.inbox.put_nowait(message)
        self.task = asyncio.ensure_future(asgi(scope, self.inbox.get, self.sent.put))

    async def next(self) -> dict[str, Any]:
        return await asyncio.wait_for(self.sent.get(), 60)

    async def done(self) -> None:
        await asyncio.wait_for(self.task, 60)


def scope_of(kind: str = "http", **more: Any) -> dict[str, Any]:
    headers = [
        (b"host", b"127.0.0.1:8000"),
        (b"content-type", b"application/json"),
        (b"accept", b"application/json, text/event-stream"),
        (b"mcp-protocol-version", b"2026-07-28"),
        (b"mcp-method", b"tools/call"),
        *more.pop("headers", []),
    ]
    scope = {"type": kind, "path": "/", "query_string": b"", "headers": headers, "server": ("127.0.0.1", 8000)}
    return {**scope, **({"method": "POST"} if kind == "http" else {}), **more}


def call(tool: str, arguments: dict[str, Any], **more: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the scope and the body of a stateless call."""
    params = {"name": tool, "arguments": arguments, "_meta": META}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    scope = scope_of(headers=[(b"mcp-name", tool.encode()), *more.pop("headers", [])], **more)
    return scope, {"type": "http.request", "body": body, "more_body": False}


async def answer(asgi: Any, tool: str, arguments: dict[str, Any], **more: Any) -> tuple[int, dict[str, Any]]:
    host = Host(asgi, *call(tool, arguments, **more))
    start, body = await host.next(), await host.next()
    await host.done()
    assert not body["more_body"]
    return start["status"], json.loads(body["body"])
