"""A host that authenticates callers, and a server whose handlers return the caller."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Annotated, Any

from asgi_host import META, Host, hosted, scope_of
from gudgeon import Client, Context, Depends, Server, SyncContext, current_context, current_sync_context
from gudgeon.auth import RequestInfo
from gudgeon.errors import ProtocolError
from gudgeon.types import Principal

ADA, BOB = Principal("ada", scopes=["staff"]), Principal("bob")
WAYS = ["2024-11-05 /sse", "2025-03-26", "2025-11-25", "2026-07-28", "2025-11-25 ws", "2026-07-28 ws"]


def whom(request: RequestInfo) -> Principal | None:
    who: Principal | None = request.scope["whom"]
    return who


def doorman(asgi: Any) -> Any:
    """A host's middleware that takes the caller's name, followed by scopes, from a header."""

    async def outer(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "lifespan":
            said = dict(scope["headers"]).get(b"x-user", b"").decode().split()
            scope = {**scope, "whom": Principal(said[0], scopes=said[1:]) if said else None}
        await asgi(scope, receive, send)

    return outer


@asynccontextmanager
async def entering(app: Server[Any], way: str, *users: str, **options: Any) -> AsyncIterator[list[Client]]:
    """Opens a client for each user of a server ("" for no user); `options` are those of the clients."""
    revision, _, where = way.partition(" ")
    async with hosted(doorman(app.asgi(principal=whom, legacy_sse=True))) as url:
        if where == "ws":
            url = url.replace("http", "ws")
        url += "/sse" if where == "/sse" else "/mcp"
        clients = [
            Client(url, revision=revision, headers={"X-User": user} if user else {}, **options) for user in users
        ]
        for client in clients:
            await client.__aenter__()
        try:
            yield clients
        finally:
            for client in clients:
                await client.__aexit__(None, None, None)


async def ask(asgi: Any, method: str, params: Mapping[str, Any], who: Any = None, **more: Any) -> Any:
    """Sends a request of 2026-07-28 as a user; returns the result or raises the error."""
    name = params.get("name", params.get("uri", ""))
    headers = [
        (b"host", b"127.0.0.1"),
        (b"content-type", b"application/json"),
        (b"accept", b"application/json"),
        (b"mcp-protocol-version", b"2026-07-28"),
        (b"mcp-method", method.encode()),
        *([(b"mcp-name", name.encode())] if name else []),
        *more.pop("headers", []),
    ]
    capabilities = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": {**META, **capabilities}}}
    scope = {**scope_of(), "headers": headers, "whom": who, **more}
    host = Host(asgi, scope, {"type": "http.request", "body": json.dumps(body).encode()})
    status, said = (await host.next())["status"], json.loads((await host.next())["body"])
    await host.done()
    if "error" in said:
        raise ProtocolError(said["error"]["code"], f"{status}: {said['error']['message']}")
    return said["result"]


async def until(happened: Callable[[], bool]) -> None:
    deadline = asyncio.get_running_loop().time() + 60
    while not happened():
        assert asyncio.get_running_loop().time() < deadline
        await asyncio.sleep(0.001)


def name_of(who: Any) -> str:
    return "nobody" if who is None else " ".join([who.subject, *sorted(who.scopes)])


def door() -> Server[Any]:
    """Creates a server whose handlers return the caller."""
    app: Server[Any] = Server("door")

    def from_context(ctx: SyncContext) -> str:
        return name_of(ctx.principal)

    @app.tool
    async def in_task(ctx: Context) -> str:
        return name_of(ctx.principal)

    @app.tool
    def in_place(ctx: SyncContext) -> str:
        return name_of(ctx.principal)

    @app.tool(thread=True)
    def on_worker(ctx: SyncContext) -> str:
        return name_of(ctx.principal)

    @app.tool
    async def current() -> str:
        await asyncio.sleep(0)
        return name_of(current_context().principal)

    @app.tool
    def current_sync() -> str:
        return name_of(current_sync_context().principal)

    @app.tool
    def needs(who: Annotated[str, Depends(from_context)]) -> str:
        return who

    @app.prompt
    def greet(ctx: SyncContext, name: str = "") -> str:
        return name_of(ctx.principal)

    @app.complete("greet", "name")
    def names(value: str, ctx: SyncContext) -> list[str]:
        return [name_of(ctx.principal)]

    @app.resource("door://static")
    async def static(ctx: Context) -> str:
        return name_of(ctx.principal)

    @app.resource("door://{room}")
    def room(room: str, ctx: SyncContext) -> str:
        return name_of(ctx.principal)

    @app.method("acme/who")
    def vendors(ctx: SyncContext) -> dict[str, str]:
        return {"who": name_of(ctx.principal)}

    return app
