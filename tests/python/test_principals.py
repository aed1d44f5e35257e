"""The principal: given by the host of an ASGI app, and passed to every handler, whatever the transport."""

import asyncio
import logging
from typing import Any

import pytest

from asgi_host import Host, hosted, scope_of
from gudgeon import Client, Context, Server, SyncContext
from gudgeon.auth import InsufficientScope, InvalidToken, RequestInfo
from gudgeon.errors import AuthError, ProtocolError
from gudgeon.types import Principal
from principals import ADA, BOB, WAYS, ask, door, entering, name_of, whom

# ── who is seen ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.io
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
            tools = await asyncio.gather(*(client.call_tool(tool.name) for tool in app.tools))
            assert [result.text for result in tools] == [expected] * 6
            assert (await client.get_prompt("greet")).messages[0].text == expected
            if way[:4] != "2024":
                assert (await client.complete("greet", "name", "")).values == (expected,)
            assert (await client.read_resource("door://static")).text == expected
            assert (await client.read_resource("door://cellar")).text == expected
            assert (await client.request("acme/who"))["who"] == expected
            await client.notify("acme/came")
            assert await asyncio.wait_for(told.get(), 60) == expected
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
        await asyncio.wait_for(all_came.wait(), 60)
        return [before, name_of(ctx.principal)]

    asgi = app.asgi(principal=whom)
    said = await asyncio.gather(*(ask(asgi, "tools/call", {"name": "who"}, user) for user in (ADA, None, BOB)))
    names = [answer["structuredContent"] for answer in said]
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


@pytest.mark.io
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
    assert await seen_by(app.asgi(principal=lambda request: None), **scope) == "nobody"
    await app.aclose()


@pytest.mark.io
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
    assert "app.asgi(principal=lambda request: Principal(…))" in caplog.messages[0]
    await app.aclose()


async def test_finding_out_may_take_time() -> None:
    async def finds(request: RequestInfo) -> Principal | None:
        await asyncio.sleep(0)
        return whom(request)

    app = door()
    asgi = app.asgi(principal=finds)
    assert [await seen_by(asgi, who=user) for user in (ADA, None)] == ["ada staff", "nobody"]
    await app.aclose()


async def late(scope: Any) -> str:
    await asyncio.sleep(0)
    return "ada"


@pytest.mark.parametrize(
    "finds, told",
    [
        (lambda request: request.scope["user_of_tomorrow"], ["KeyError: 'user_of_tomorrow'", "Traceback"]),
        (lambda request: "ada", ["returned a str; return a gudgeon.types.Principal", "None for an unknown caller"]),
        (lambda request: {"subject": "ada"}, ["returned a dict"]),
        (late, ["returned a str"]),
        (lambda request: Principal(7), ["the principal is invalid", "integer `7`"]),  # type: ignore[arg-type]
        (lambda request: Principal("ada", scopes=[1]), ["the principal is invalid"]),  # type: ignore[list-item]
        (lambda request: Principal("ada", claims={"key": object()}), ["TypeError"]),
    ],
)
async def test_a_failure_is_logged_and_not_sent(finds: Any, told: list[str], caplog: Any) -> None:
    app = door()
    asgi = app.asgi(principal=finds)
    with caplog.at_level(logging.ERROR, "gudgeon"):
        with pytest.raises(ProtocolError) as caught:
            await ask(asgi, "tools/list", {})
        assert (caught.value.code, caught.value.message) == (-32603, "500: the server could not identify the caller")
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
        (scope_of("websocket", headers=[(b"origin", b"https://evil.example")]), {"type": "websocket.connect"}),
    ]
    for scope, message in refused:
        await Host(asgi, scope, message).done()
    assert looked == []
    await app.aclose()


@pytest.mark.parametrize("wrong", [ADA, "ada", {"subject": "ada"}])
def test_it_must_be_a_function(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"principal= must be a function of the request \(gudgeon\.auth\.RequestInfo\)"):
        door().asgi(principal=wrong)


# ── what it is called with, and how it refuses ───────────────────────────────────────────────────────


async def test_it_sees_the_request() -> None:
    app, seen = door(), []
    asgi = app.asgi(principal=seen.append)
    headers = [(b"x-api-key", b"s3cret"), (b"x-forwarded-for", b"a"), (b"x-forwarded-for", b"b")]
    await ask(asgi, "tools/list", {}, client=("10.0.0.7", 4711), headers=headers, path="/b\u00fccher", extra=7)
    (request,) = seen
    assert isinstance(request, RequestInfo)
    assert (request.method, request.path, request.client) == ("POST", "/b%C3%BCcher", "10.0.0.7")
    assert request.headers["X-API-Key"] == "s3cret" and request.headers.get("X-Forwarded-For") == "a, b"
    assert "nothing" not in request.headers and request.scope["extra"] == 7
    assert "s3cret" not in repr(request)
    host = Host(asgi, scope_of("websocket"), {"type": "websocket.connect"})
    assert (await host.next())["type"] == "websocket.accept"
    host.inbox.put_nowait({"type": "websocket.disconnect"})
    await host.done()
    assert (seen[1].method, seen[1].client) == ("GET", None)
    await app.aclose()


def guard(request: RequestInfo) -> Principal:
    token = request.headers.get("authorization", "").removeprefix("Bearer ")
    if token == "reader":
        raise InsufficientScope(["books:write", "books:read"])
    if token != "writer":
        raise InvalidToken("this token is not known")
    return Principal("ada")


@pytest.mark.parametrize(
    "token, status, challenge, told",
    [
        (None, 401, "Bearer", "this token is not known"),
        (
            "wrong",
            401,
            'Bearer error="invalid_token", error_description="this token is not known"',
            "this token is not known",
        ),
        (
            "reader",
            403,
            'Bearer error="insufficient_scope", scope="books:write books:read", '
            'error_description="this needs the scopes: books:write books:read"',
            "this needs the scopes: books:write books:read",
        ),
    ],
)
async def test_it_may_refuse(token: str | None, status: int, challenge: str, told: str, caplog: Any) -> None:
    app = door()
    asgi = app.asgi(principal=guard)
    headers = [] if token is None else [(b"authorization", f"Bearer {token}".encode())]
    host = Host(asgi, scope_of(headers=headers), {"type": "http.request", "body": b"{}"})
    start, body = await host.next(), await host.next()
    await host.done()
    assert start["status"] == status and told in body["body"].decode()
    assert dict(start["headers"])[b"www-authenticate"].decode() == challenge
    opening = scope_of("websocket", headers=headers, extensions={"websocket.http.response": {}})
    host = Host(asgi, opening, {"type": "websocket.connect"})
    assert (await host.next())["status"] == status
    await host.next()
    await host.done()
    assert not caplog.messages, "a refusal is not a failure"
    await app.aclose()


@pytest.mark.io
async def test_a_client_gets_the_error_of_a_refused_request() -> None:
    async with hosted(door().asgi(principal=guard)) as url:
        async with Client(f"{url}/mcp", headers={"Authorization": "Bearer writer"}) as client:
            assert (await client.call_tool("in_place")).text == "ada"
        for headers in ({}, {"Authorization": "Bearer reader"}):
            with pytest.raises(AuthError):
                async with Client(f"{url}/mcp", headers=headers):
                    raise AssertionError("it was let in")


def test_scopes_are_a_list() -> None:
    with pytest.raises(TypeError, match=r"must be a list of strings, not 'books:read'; write \['books:read'\]"):
        InsufficientScope("books:read")
