"""Who asks: told by the host of an ASGI app, seen by handlers, and what belongs to one belongs to nobody else."""

import asyncio
import json
import logging
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Annotated, Any

import pytest

from asgi_host import META, Host, hosted, scope_of
from gudgeon import Client, Context, Depends, Server, SyncContext, current_context, current_sync_context
from gudgeon.errors import NotSupported, ProtocolError, ResourceNotFound, ToolError
from gudgeon.middleware import RateLimit
from gudgeon.types import Principal

ADA, BOB = Principal("ada", scopes=["staff"]), Principal("bob")
WAYS = ["2024-11-05 /sse", "2025-03-26", "2025-11-25", "2026-07-28", "2025-11-25 ws", "2026-07-28 ws"]


# ── the host's side ──────────────────────────────────────────────────────────────────────────────────


def whom(scope: Mapping[str, Any]) -> Principal | None:
    who: Principal | None = scope["whom"]
    return who


def doorman(asgi: Any) -> Any:
    """A host's middleware: whoever says a name in a header is let in under it, with the scopes that follow."""

    async def outer(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "lifespan":
            said = dict(scope["headers"]).get(b"x-user", b"").decode().split()
            scope = {**scope, "whom": Principal(said[0], scopes=said[1:]) if said else None}
        await asgi(scope, receive, send)

    return outer


@asynccontextmanager
async def entering(app: Server[Any], way: str, *users: str, **options: Any) -> AsyncIterator[list[Client]]:
    """One client for each user, "" for nobody, of one server; `options` are the clients'."""
    revision, _, where = way.partition(" ")
    async with hosted(doorman(app.asgi(principal=whom, legacy_sse=True))) as url:
        if where == "ws":
            url = url.replace("http", "ws")
        url += "/sse" if where == "/sse" else "/mcp"
        clients = [Client(url, revision=revision, headers={"X-User": it} if it else {}, **options) for it in users]
        for client in clients:
            await client.__aenter__()
        try:
            yield clients
        finally:
            for client in clients:
                await client.__aexit__(None, None, None)


async def ask(asgi: Any, method: str, params: Mapping[str, Any], who: Any = None, **more: Any) -> Any:
    """The result of a request of 2026-07-28 by somebody; an error is raised."""
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


def name_of(who: Any) -> str:
    return "nobody" if who is None else " ".join([who.subject, *sorted(who.scopes)])


# ── who is seen ──────────────────────────────────────────────────────────────────────────────────────


def door() -> Server[Any]:
    """A server all of whose handlers tell who asks."""
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


@pytest.mark.parametrize("way", WAYS)
async def test_every_handler_sees_who_asks(way: str) -> None:
    app, heard = door(), []

    @app.middleware(on="*")
    async def listens(request: Any, next: Any) -> Any:
        heard.append((request.method, name_of(request.ctx.principal)))
        return await next(request)

    told: asyncio.Queue[str] = asyncio.Queue()

    @app.notification("acme/came")
    async def came(ctx: Context) -> None:
        told.put_nowait(name_of(ctx.principal))

    users = ["ada staff", "", "bob"]
    async with entering(app, way, *users) as clients:
        for client, user in zip(clients, users, strict=True):
            heard.clear()
            expected = " ".join(user.split()) or "nobody"
            tools = await asyncio.gather(*(client.call_tool(it.name) for it in app.tools))
            assert [it.text for it in tools] == [expected] * 6
            assert (await client.get_prompt("greet")).messages[0].text == expected
            if way[:4] != "2024":
                assert (await client.complete("greet", "name", "")).values == (expected,)
            assert (await client.read_resource("door://static")).text == expected
            assert (await client.read_resource("door://cellar")).text == expected
            assert (await client.request("acme/who"))["who"] == expected
            await client.notify("acme/came")
            assert await asyncio.wait_for(told.get(), 5) == expected
            methods, names = zip(*heard, strict=True)
            assert {"tools/call", "prompts/get", "resources/read"} <= set(methods) and set(names) == {expected}


async def test_calls_at_the_same_time_are_each_ones_own() -> None:
    app, came, all_came = Server("t"), [], asyncio.Event()

    @app.tool
    async def who(ctx: Context) -> list[str]:
        before = name_of(ctx.principal)
        came.append(before)
        if len(came) == 3:
            all_came.set()
        await all_came.wait()
        return [before, name_of(ctx.principal)]

    asgi = app.asgi(principal=whom)
    said = await asyncio.gather(*(ask(asgi, "tools/call", {"name": "who"}, it) for it in (ADA, None, BOB)))
    names = [it["structuredContent"] for it in said]
    assert names == [["ada staff"] * 2, ["nobody"] * 2, ["bob"] * 2]
    await app.aclose()


async def test_all_of_it_is_told_and_what_json_cant_say_is_text() -> None:
    from uuid import UUID

    app, seen = Server("t"), []

    @app.tool
    def who(ctx: SyncContext) -> None:
        seen.append(ctx.principal)
        assert ctx.principal is ctx.principal

    asgi = app.asgi(principal=whom)
    claims = {"iss": "https://id.example", "id": UUID(int=7), "deep": {"é": [1, None]}}
    given = Principal("ада", client_id="desk", scopes={"b", "a"}, claims=claims)
    await ask(asgi, "tools/call", {"name": "who"}, given)
    assert seen[0].claims == {**claims, "id": str(UUID(int=7))}
    assert seen[0] == Principal("ада", client_id="desk", scopes=["a", "b"], claims=seen[0].claims)
    await app.aclose()


async def test_nobody_is_known_without_a_host() -> None:
    async with Client(door()) as client:
        assert (await client.call_tool("in_place")).text == "nobody"
    app = door()
    async with app.listen("http://127.0.0.1:0/mcp") as here, Client(here.url, headers={"X-User": "ada"}) as client:
        assert (await client.call_tool("in_task")).text == "nobody"


# ── how it is found out ──────────────────────────────────────────────────────────────────────────────


class Named:
    """A user as frameworks have them."""

    def __init__(self, **known: Any) -> None:
        self.__dict__.update({"is_authenticated": True, **known})


class Scopes:
    scopes = ["read", "write"]


async def seen_by(asgi: Any, **scope: Any) -> str:
    said = await ask(asgi, "tools/call", {"name": "in_place"}, **scope)
    text: str = said["content"][0]["text"]
    return text


@pytest.mark.parametrize(
    "scope, expected",
    [
        ({}, "nobody"),
        ({"user": None}, "nobody"),
        ({"user": "ada"}, "nobody"),
        ({"user": {"identity": "ada", "is_authenticated": True}}, "nobody"),
        ({"user": Named(identity="ada")}, "ada"),
        ({"user": Named(identity=7), "auth": Scopes()}, "7 read write"),
        ({"user": Named(identity="ada"), "auth": None}, "ada"),
        ({"user": Named(username="ada"), "auth": object()}, "ada"),
        ({"user": Named(identity="ada", is_authenticated=False), "auth": Scopes()}, "nobody"),
        ({"user": Named(identity="ada", is_authenticated=lambda: True)}, "nobody"),
        ({"auth": Scopes()}, "nobody"),
    ],
)
async def test_by_default_it_is_whom_the_host_let_in(scope: dict[str, Any], expected: str) -> None:
    app = door()
    assert await seen_by(app.asgi(), **scope) == expected
    assert await seen_by(app.asgi(principal=lambda scope: None), **scope) == "nobody"
    await app.aclose()


async def test_starlettes_middleware_tells() -> None:
    from starlette.applications import Starlette
    from starlette.authentication import AuthCredentials, AuthenticationBackend, BaseUser, SimpleUser
    from starlette.middleware import Middleware
    from starlette.middleware.authentication import AuthenticationMiddleware
    from starlette.routing import Mount

    class Keyed(BaseUser):
        is_authenticated = True
        display_name = "Ada L."
        identity = "user-7"

    class Backend(AuthenticationBackend):
        async def authenticate(self, conn: Any) -> Any:
            name = conn.headers.get("x-user")
            user = Keyed() if name == "7" else SimpleUser(name)
            return None if name is None else (AuthCredentials(["authenticated"]), user)

    app = door()
    inside = Middleware(AuthenticationMiddleware, backend=Backend())
    outer = Starlette(routes=[Mount("/mcp", app.asgi())], middleware=[inside])
    async with hosted(outer) as url:
        for era in ("2025-11-25", "2026-07-28"):
            for name, expected in (("ada", "ada authenticated"), ("7", "user-7 authenticated"), ("", "nobody")):
                for way in (url, url.replace("http", "ws")):
                    headers = {"X-User": name} if name else {}
                    async with Client(f"{way}/mcp/", revision=era, headers=headers) as client:
                        assert (await client.call_tool("in_place")).text == expected


async def test_a_user_without_an_identity_is_nobody_and_the_log_says_so_once(caplog: Any) -> None:
    class Shown:
        is_authenticated = True
        display_name = "Ada"  # there may be two of that name

        @property
        def identity(self) -> str:
            raise NotImplementedError

    app = door()
    asgi = app.asgi()
    with caplog.at_level(logging.ERROR, "gudgeon"):
        for user in (Shown(), Named(identity=""), Named(identity=None, username=True)):
            assert await seen_by(asgi, user=user) == "nobody"
    assert len(caplog.messages) == 1
    assert "a Shown, is authenticated but has no identity" in caplog.messages[0]
    assert "app.asgi(principal=lambda scope: Principal(…))" in caplog.messages[0]
    await app.aclose()


async def test_finding_out_may_take_time() -> None:
    async def finds(scope: Mapping[str, Any]) -> Principal | None:
        await asyncio.sleep(0)
        return whom(scope)

    app = door()
    asgi = app.asgi(principal=finds)
    assert [await seen_by(asgi, who=it) for it in (ADA, None)] == ["ada staff", "nobody"]
    await app.aclose()


async def late(scope: Any) -> str:
    await asyncio.sleep(0)
    return "ada"


@pytest.mark.parametrize(
    "finds, told",
    [
        (lambda scope: scope["user_of_tomorrow"], ["KeyError: 'user_of_tomorrow'", "Traceback"]),
        (lambda scope: "ada", ["gave back a str: give back a gudgeon.types.Principal", "None where nobody is known"]),
        (lambda scope: {"subject": "ada"}, ["gave back a dict"]),
        (late, ["gave back a str"]),
        (lambda scope: Principal(7), ["the principal can't be meant", "integer `7`"]),  # type: ignore[arg-type]
        (lambda scope: Principal("ada", scopes=[1]), ["the principal can't be meant"]),  # type: ignore[list-item]
        (lambda scope: Principal("ada", claims={"key": object()}), ["TypeError"]),
    ],
)
async def test_where_it_fails_the_answer_tells_nothing_and_the_log_all(
    finds: Any, told: list[str], caplog: Any
) -> None:
    app = door()
    asgi = app.asgi(principal=finds)
    with caplog.at_level(logging.ERROR, "gudgeon"):
        with pytest.raises(ProtocolError) as caught:
            await ask(asgi, "tools/list", {})
        assert (caught.value.code, caught.value.message) == (-32603, "500: the server failed to find out who asks")
        assert len(caplog.messages) == 1
        for text in ["principal= failed, so the request is answered with 500", *told]:
            assert text in caplog.messages[0]
        for extensions, expected in (({}, 1008), ({"websocket.http.response": {}}, 500)):
            host = Host(asgi, scope_of("websocket", extensions=extensions), {"type": "websocket.connect"})
            refusal = await host.next()
            assert refusal.get("status", refusal.get("code")) == expected
            await host.done()
    assert len(caplog.messages) == 3
    await app.aclose()


async def test_who_is_refused_anyway_is_not_looked_at() -> None:
    looked: list[Any] = []
    app = door()
    asgi = app.asgi(principal=looked.append, max_body=1000)
    refused = [
        (scope_of(headers=[(b"content-length", b"2000")]), {"type": "http.request", "body": b"x" * 2000}),
        (scope_of(), {"type": "http.disconnect"}),
        (scope_of("websocket", headers=[(b"origin", b"https://evil.example")]), {"type": "websocket.connect"}),
    ]
    for scope, message in refused:
        await Host(asgi, scope, message).done()
    assert looked == []
    await app.aclose()


@pytest.mark.parametrize("wrong", [ADA, "ada", {"subject": "ada"}])
def test_it_must_be_a_function(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"principal= is a function of the ASGI scope that gives back a Principal"):
        door().asgi(principal=wrong)


# ── what belongs to somebody ─────────────────────────────────────────────────────────────────────────


async def test_a_session_is_there_for_who_began_it() -> None:
    app = door()
    asgi = app.asgi(principal=whom)
    session = b""

    async def send(method: str, body: Any, who: Any) -> tuple[int, Any]:
        nonlocal session
        headers = [
            (b"host", b"127.0.0.1"),
            (b"content-type", b"application/json"),
            (b"accept", b"text/event-stream" if method == "GET" else b"application/json"),
            *([(b"mcp-session-id", session)] if session else []),
        ]
        scope = {**scope_of(method=method), "headers": headers, "whom": who}
        host = Host(asgi, scope, {"type": "http.request", "body": json.dumps(body).encode() if body else b""})
        start, said = await host.next(), await host.next()
        host.inbox.put_nowait({"type": "http.disconnect"})
        await host.done()
        session = dict(start["headers"]).get(b"mcp-session-id", session)
        return start["status"], said["body"]

    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    assert (await send("POST", {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}, ADA))[0] == 200
    assert session
    await send("POST", {"jsonrpc": "2.0", "method": "notifications/initialized"}, ADA)
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "in_task"}}
    renewed = Principal("ada", scopes=["admin"], claims={"exp": 2})
    elsewhere = Principal("ada", claims={"iss": "https://other.example"})
    for who, text in ((ADA, b"ada staff"), (renewed, b"ada admin")):
        status, said = await send("POST", call, who)
        assert status == 200 and text in said
    for who in (BOB, None, elsewhere, Principal("ada", client_id="other")):
        for method, body in (("POST", call), ("GET", None), ("DELETE", None)):
            status, said = await send(method, body, who)
            assert status == 404 and b"ada" not in said, (method, who)
    assert (await send("GET", None, ADA))[0] == 200, "nobody else has ended it"
    assert (await send("DELETE", None, ADA))[0] in (200, 204)
    assert (await send("POST", call, ADA))[0] == 404
    await app.aclose()


async def test_the_old_pair_is_there_for_who_opened_it() -> None:
    app = door()
    asgi = app.asgi(principal=whom, legacy_sse=True)
    scope = {**scope_of(method="GET", path="/sse"), "whom": ADA}
    scope["headers"] = [(b"host", b"127.0.0.1"), (b"accept", b"text/event-stream")]
    stream = Host(asgi, scope, {"type": "http.request"})

    async def heard(what: bytes) -> bytes:
        while what not in (said := (await stream.next()).get("body", b"")):
            pass
        return said

    query = (await heard(b"event: endpoint")).split(b"/sse?")[1].split(b"\n")[0]

    async def post(who: Any, body: dict[str, Any]) -> int:
        scope = {**scope_of(path="/sse", query_string=query), "whom": who}
        host = Host(asgi, scope, {"type": "http.request", "body": json.dumps({"jsonrpc": "2.0", **body}).encode()})
        status: int = (await host.next())["status"]
        await host.next()
        await host.done()
        return status

    params = {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    began = {"id": 0, "method": "initialize", "params": params}
    call = {"id": 1, "method": "tools/call", "params": {"name": "in_place"}}
    assert [await post(BOB, began), await post(None, began), await post(ADA, began)] == [404, 404, 202]
    await heard(b'"id":0')
    await post(ADA, {"method": "notifications/initialized"})
    assert [await post(BOB, call), await post(ADA, call)] == [404, 202]
    assert b"ada staff" in await heard(b'"id":1')
    stream.inbox.put_nowait({"type": "http.disconnect"})
    await stream.done()
    await app.aclose()


@pytest.mark.parametrize("kind", ["async", "def"])
async def test_nobody_gets_what_was_read_for_another(kind: str) -> None:
    app, calls, goes_on = Server("t"), [], threading.Event()

    @app.resource("shelf://async", cache=60)
    async def read_async(ctx: Context) -> str:
        calls.append(name_of(ctx.principal))
        while not goes_on.is_set():
            await asyncio.sleep(0.001)
        return f"for {name_of(ctx.principal)}"

    @app.resource("shelf://def", cache=60, thread=True)
    def read_def(ctx: SyncContext) -> str:
        calls.append(name_of(ctx.principal))
        assert goes_on.wait(5)
        return f"for {name_of(ctx.principal)}"

    asgi = app.asgi(principal=whom)

    async def read(who: Any) -> str:
        text: str = (await ask(asgi, "resources/read", {"uri": f"shelf://{kind}"}, who))["contents"][0]["text"]
        return text

    reading = [asyncio.ensure_future(read(who)) for who in (ADA, ADA, BOB, None)]
    while len(calls) < 3:
        await asyncio.sleep(0.001)
    goes_on.set()
    assert await asyncio.gather(*reading) == ["for ada staff", "for ada staff", "for bob", "for nobody"]
    assert sorted(calls) == ["ada staff", "bob", "nobody"]
    assert [await read(BOB), await read(None)] == ["for bob", "for nobody"]
    assert len(calls) == 3
    assert await read(Principal("bob", scopes=["staff"])) == "for bob staff"
    assert len(calls) == 4, "somebody who may do more is another"
    await app.aclose()


async def test_who_sees_an_offer_is_asked_by_who_asks() -> None:
    app, is_open = Server("t"), [True]

    def staff(who: Principal | None) -> bool:
        return is_open[0] and who is not None and "staff" in who.scopes

    app.tool(lambda: "ok", name="add")

    @app.tool(visible=staff)
    def drop(ctx: SyncContext) -> str:
        assert ctx.principal is not None
        return f"dropped by {ctx.principal.subject}"

    app.prompt(lambda: "fire", name="fire", visible=staff)
    app.resource("staff://pay", name="pay", visible=staff)(lambda: "much")

    @app.resource("staff://people/{id}", visible=staff)
    async def people(id: str) -> str:
        return id

    house: Server[Any] = Server("house", page_size=1)
    house.mount("t", app)
    for asgi, prefix in ((app.asgi(principal=whom), ""), (house.asgi(principal=whom), "t_")):
        listed = await ask(asgi, "tools/list", {}, ADA)
        tools = [it["name"] for it in listed["tools"]]
        if cursor := listed.get("nextCursor"):
            following = await ask(asgi, "tools/list", {"cursor": cursor}, ADA)
            tools += [it["name"] for it in following["tools"]]
            with_hers = await ask(asgi, "tools/list", {"cursor": cursor}, BOB)
            assert with_hers["tools"] == [], "a cursor is a place, not a pass"
        assert tools == [f"{prefix}add", f"{prefix}drop"]
        for who in (BOB, None):
            assert [it["name"] for it in (await ask(asgi, "tools/list", {}, who))["tools"]] == [f"{prefix}add"]
        assert listed["cacheScope"] == "private"
        said = await ask(asgi, "tools/call", {"name": f"{prefix}drop"}, ADA)
        assert said["content"][0]["text"] == "dropped by ada"
        with pytest.raises(ProtocolError, match=f"Unknown tool: {prefix}drop"):
            await ask(asgi, "tools/call", {"name": f"{prefix}drop"}, BOB)
    asgi = app.asgi(principal=whom)
    assert (await ask(asgi, "resources/read", {"uri": "staff://people/7"}, ADA))["contents"][0]["text"] == "7"
    assert (await ask(asgi, "resources/read", {"uri": "staff://pay"}, ADA))["cacheScope"] == "private"
    assert len((await ask(asgi, "resources/templates/list", {}, ADA))["resourceTemplates"]) == 1
    assert (await ask(asgi, "resources/list", {}, BOB))["resources"] == []
    hidden = [
        ("prompts/get", {"name": "fire"}, "Unknown prompt: fire"),
        ("resources/read", {"uri": "staff://pay"}, "Resource not found: staff://pay"),
        ("resources/read", {"uri": "staff://people/7"}, "Resource not found"),
    ]
    for method, params, message in hidden:
        for who in (BOB, None):
            with pytest.raises(ProtocolError, match=message):
                await ask(asgi, method, params, who)
    is_open[0] = False
    assert [it["name"] for it in (await ask(asgi, "tools/list", {}, ADA))["tools"]] == ["add"]
    await app.aclose()
    await house.aclose()


@pytest.mark.parametrize("way", WAYS)
async def test_lists_and_updates_are_for_who_sees_them_in_every_era(way: str) -> None:
    app: Server[Any] = Server("t")
    staff = lambda who: who is not None and "staff" in who.scopes  # noqa: E731
    app.tool(lambda: "ok", name="add")
    app.tool(lambda: "ok", name="drop", visible=staff)
    app.resource("staff://pay", name="pay", visible=staff)(lambda: "much")
    async with entering(app, way, "ada staff", "bob", "") as (ada, *others):
        assert [it.name for it in await ada.list_tools()] == ["add", "drop"]
        async with ada.subscribe("staff://pay") as changes:
            for other in others:
                assert [it.name for it in await other.list_tools()] == ["add"]
                with pytest.raises(ResourceNotFound):
                    await other.read_resource("staff://pay")
                with pytest.raises((ProtocolError, NotSupported)):
                    async with other.subscribe("staff://pay"):
                        pass
            app.notify_updated("staff://pay")
            assert (await asyncio.wait_for(changes.__anext__(), 5)).uri == "staff://pay"


@pytest.mark.parametrize("way", WAYS)
async def test_rates_are_counted_by_who_asks(way: str) -> None:
    app: Server[Any] = Server("t")
    app.tool(lambda: "ok", name="add")
    app.middleware(RateLimit(0.01, burst=1, by="principal"), on="tools/call")
    async with entering(app, way, "ada", "ada staff", "bob", "") as (ada, too, bob, nobody):
        for client in (ada, bob, nobody):
            assert (await client.call_tool("add")).text == "ok"
        for client in (ada, too, bob, nobody):
            with pytest.raises(ToolError, match="too many requests"):
                await client.call_tool("add")


# ── rounds of questions ──────────────────────────────────────────────────────────────────────────────


def asks(**options: Any) -> tuple[Server[Any], list[str]]:
    app: Server[Any] = Server("asks", **options)
    runs: list[str] = []

    def facts(ctx: Context | SyncContext) -> list[str]:
        assert ctx.principal is not None
        return [name_of(ctx.principal), str(ctx.principal.claims.get("turn")), ctx.headers.get("x-turn", "")]

    async def asks_async(ctx: Context) -> str:
        runs.append("began")
        before = facts(ctx)
        await ctx.elicit("Go on?", bool)
        return " ".join([*before, *facts(ctx)])

    def asks_def(ctx: SyncContext) -> str:
        runs.append("began")
        before = facts(ctx)
        ctx.elicit("Go on?", bool)
        return " ".join([*before, *facts(ctx)])

    app.tool(asks_async, name="async")
    app.tool(asks_def, name="def")
    app.resource("asks://async", name="async")(asks_async)
    app.prompt(asks_def, name="def")
    return app, runs


async def round_of(asgi: Any, method: str, params: Mapping[str, Any], who: Principal, turn: int) -> Any:
    by = Principal(who.subject, client_id=who.client_id, scopes=who.scopes, claims={**who.claims, "turn": turn})
    return await ask(asgi, method, params, by, headers=[(b"x-turn", str(turn).encode())])


YES = {"elicit-1": {"action": "accept", "content": {"value": True}}}
ROUNDS = [
    ("tools/call", {"name": "async"}),
    ("tools/call", {"name": "def"}),
    ("resources/read", {"uri": "asks://async"}),
    ("prompts/get", {"name": "def"}),
]


@pytest.mark.parametrize("options", [{}, {"park_limit": 0}], ids=["parked", "replayed"])
@pytest.mark.parametrize("method, params", ROUNDS)
async def test_a_round_goes_on_for_who_began_it(method: str, params: Any, options: dict[str, Any]) -> None:
    app, runs = asks(**options)
    asgi = app.asgi(principal=whom)
    asked = await round_of(asgi, method, params, ADA, 1)
    answers = {**params, "requestState": asked["requestState"], "inputResponses": YES}
    others = [BOB, Principal("ada", client_id="other"), Principal("ada", claims={"iss": "elsewhere"})]
    refusals = set()
    for turn, other in enumerate(others, 2):
        with pytest.raises(ProtocolError) as caught:
            await round_of(asgi, method, answers, other, turn)
        refusals.add((caught.value.code, caught.value.message))
    with pytest.raises(ProtocolError) as caught:
        await ask(asgi, method, answers, None)
    refusals.add((caught.value.code, caught.value.message))
    assert len(refusals) == 1 and refusals.pop()[0] == -32602, "one message, whatever is wrong"
    assert runs == ["began"]
    promoted = Principal("ada", scopes=["admin"])
    done = json.dumps(await round_of(asgi, method, answers, promoted, 9))
    before = "ada admin 9 9" if options else "ada staff 1 1"
    assert f"{before} ada admin 9 9" in done
    assert runs == ["began"] * (2 if options else 1)
    await app.aclose()


@pytest.mark.parametrize("form", ["async", "def"])
async def test_a_handler_sees_the_request_that_it_runs_for(form: str) -> None:
    app: Server[Any] = Server("asks")
    goes_on = threading.Event()
    meanwhile: list[str] = []

    def turn(ctx: Any) -> str:
        return f"{ctx.principal.subject} {ctx.principal.claims['turn']}"

    @app.tool(name="async")
    async def asks_async(ctx: Context) -> str:
        before, question = turn(ctx), ctx.elicit("Go on?", bool)
        asking = asyncio.ensure_future(question)
        while not goes_on.is_set():
            await asyncio.sleep(0.001)
        meanwhile.append(turn(ctx))
        await asking
        return f"{before}, {turn(ctx)}, {turn(current_context())}"

    @app.tool(name="def")
    def asks_def(ctx: SyncContext) -> str:
        before = turn(ctx)
        meanwhile.append(turn(ctx))
        ctx.elicit("Go on?", bool)
        return f"{before}, {turn(ctx)}, {turn(current_sync_context())}"

    asgi = app.asgi(principal=whom)
    asked = await round_of(asgi, "tools/call", {"name": form}, ADA, 1)
    goes_on.set()
    while not meanwhile:
        await asyncio.sleep(0.001)
    answers = {"name": form, "requestState": asked["requestState"], "inputResponses": YES}
    done = await round_of(asgi, "tools/call", answers, ADA, 2)
    assert meanwhile == ["ada 1"]
    assert done["content"][0]["text"] == "ada 1, ada 2, ada 2"
    await app.aclose()


@pytest.mark.parametrize("way", WAYS[2:])
@pytest.mark.parametrize("form", ["async", "def"])
async def test_who_asks_stays_while_a_handler_asks(way: str, form: str) -> None:
    app, _ = asks()
    async with entering(app, way, "ada staff", "bob", on_elicit=lambda question: True) as clients:
        for client, name in zip(clients, ("ada staff", "bob"), strict=True):
            assert (await client.call_tool(form)).text == f"{name} None  {name} None "
