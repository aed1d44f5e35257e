"""`Server(auth=…)`: who may call, at an address and mounted in a host."""

import asyncio
import json
import threading
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from asgi_host import META, hosted
from gudgeon import Client, Context, Server
from gudgeon._server import authentication, awaiting
from gudgeon.auth import ApiKeys, InsufficientScope, Introspection, InvalidToken, Jwt, RequestInfo
from gudgeon.errors import AuthError, McpError
from gudgeon.testing.auth import AuthorizationServer
from gudgeon.types import Principal

pytestmark = pytest.mark.io

PLACES = ["listen", "asgi", "mount"]


def shelf(auth: Any, **options: Any) -> Server[Any]:
    app: Server[Any] = Server("shelf", auth=auth, **options)

    @app.tool
    async def who(ctx: Context) -> str:
        assert ctx.principal is not None
        return " ".join([ctx.principal.subject, *sorted(ctx.principal.scopes)])

    return app


@asynccontextmanager
async def at(place: str, app: Server[Any]) -> AsyncIterator[str]:
    """Serves an app; yields the URL of its endpoint."""
    if place == "listen":
        async with app.listen("http://127.0.0.1:0/mcp") as here:
            yield here.url
    elif place == "asgi":
        async with hosted(app.asgi()) as url:
            yield f"{url}/mcp"
    else:
        async with hosted(Starlette(routes=[Mount("/sub", app.asgi())])) as url:
            yield f"{url}/sub/mcp"


async def call(url: str, *headers: tuple[str, str]) -> Any:
    async with Client(url, headers=dict(headers)) as client:
        return (await client.call_tool("who")).text


def bearer(text: str) -> tuple[str, str]:
    return "Authorization", f"Bearer {text}"


async def refused(url: str, *headers: tuple[str, str]) -> tuple[int, str]:
    """Returns the status and the challenge of a request that is refused."""

    def post() -> tuple[int, str]:
        request = urllib.request.Request(url, b"{}", {"Content-Type": "application/json", **dict(headers)})
        with pytest.raises(urllib.error.HTTPError) as error:
            urllib.request.urlopen(request, timeout=60)
        return error.value.code, error.value.headers.get("WWW-Authenticate", "")

    return await asyncio.to_thread(post)


async def document(url: str) -> Any:
    return json.loads(await asyncio.to_thread(lambda: urllib.request.urlopen(url, timeout=60).read()))


@pytest.mark.parametrize("place", PLACES)
async def test_the_tokens_of_an_issuer_are_accepted(place: str) -> None:
    async with AuthorizationServer() as provider, at(place, shelf(Jwt(provider.issuer, scopes=["books"]))) as url:
        metadata = url.replace("/mcp", "/.well-known/oauth-protected-resource/mcp")
        assert await refused(url) == (401, f'Bearer resource_metadata="{metadata}", scope="books"')
        found = await document(metadata)
        assert found["resource"] == url and found["authorization_servers"] == [provider.issuer]
        right: dict[str, Any] = {"audience": url, "scopes": ["books"]}
        assert await call(url, bearer(provider.token(**right))) == "user books"
        for changes, reason in (({"audience": "https://other.example"}, "audience"), ({"expires_in": -600}, "expired")):
            status, challenge = await refused(url, bearer(provider.token(**{**right, **changes})))
            assert status == 401 and 'error="invalid_token"' in challenge and reason in challenge
        status, challenge = await refused(url, bearer(provider.token(audience=url)))
        assert status == 403 and challenge.startswith('Bearer error="insufficient_scope", scope="books"')


async def test_an_issuer_alone_is_enough() -> None:
    async with AuthorizationServer() as provider, at("listen", shelf(provider.issuer)) as url:
        assert await call(url, bearer(provider.token(audience=url))) == "user"


async def test_keys_are_given_and_scopes_imply_others() -> None:
    async with AuthorizationServer() as provider:
        method = Jwt(provider.issuer, keys=await document(f"{provider.issuer}/jwks"), scopes=["read"])
        async with at("listen", shelf(method, scope_implies={"write": ["read"]})) as url:
            assert await call(url, bearer(provider.token(audience=url, scopes=["write"]))) == "user write"
        assert [request.path for request in provider.requests] == ["/jwks"]


@pytest.mark.parametrize("place", PLACES)
async def test_api_keys_come_in_a_header_of_their_own(place: str) -> None:
    keys = ApiKeys({"s3cret": "ada", "sha256:" + "0" * 64: Principal("bob")}, header="X-Api-Key")
    async with at(place, shelf(keys)) as url:
        assert await call(url, ("X-Api-Key", "s3cret")) == "ada"
        assert (await refused(url, ("X-Api-Key", "other")))[0] == 401
        assert (await refused(url, bearer("s3cret")))[0] == 401
        with pytest.raises(McpError):
            await call(url)
    assert "s3cret" not in repr(keys) and "s3cret" not in str(vars(keys))


@pytest.mark.parametrize("place", PLACES)
async def test_a_file_of_api_keys_is_read_again_when_it_changes(place: str, tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    path.write_text('{"old": "ada"}')
    keys = ApiKeys(path)
    assert str(path) in repr(keys)
    async with at(place, shelf(keys)) as url:
        assert await call(url, bearer("old")) == "ada"
        (tmp_path / "new").write_text('{"new": {"subject": "bob"}}')
        (tmp_path / "new").rename(path)
        while (await refused_or_called(url, bearer("new"))) != "bob":
            await asyncio.sleep(0.02)
        assert (await refused(url, bearer("old")))[0] == 401


async def refused_or_called(url: str, header: tuple[str, str]) -> str | None:
    """Returns the text of the call, or None if its sender is refused."""
    try:
        return await call(url, header)
    except AuthError:
        return None


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("is_async", [False, True])
async def test_a_function_decides_and_its_failure_refuses(place: str, is_async: bool) -> None:
    seen: list[RequestInfo] = []

    def decide(text: str, request: RequestInfo) -> Principal | None:
        seen.append(request)
        if text == "blocked":
            raise InvalidToken("it is blocked")
        if text == "narrow":
            raise InsufficientScope(["books"])
        if text == "fails":
            raise RuntimeError("s3cret")
        if text == "wrong":
            return "ada"  # type: ignore[return-value]
        return Principal("ada", scopes=["a"]) if text == "good" else None

    async def later(text: str, request: RequestInfo) -> Principal | None:
        await asyncio.sleep(0)
        return decide(text, request)

    async with at(place, shelf(later if is_async else decide)) as url:
        assert await call(url, bearer("good")) == "ada a"
        assert seen[0].headers["authorization"] == "Bearer good" and seen[0].path.endswith("/mcp")
        for text, status, challenge in (
            ("unknown", 401, 'error="invalid_token"'),
            ("blocked", 401, "it is blocked"),
            ("narrow", 403, 'scope="books"'),
            ("fails", 500, ""),
            ("wrong", 500, ""),
        ):
            answer = await refused(url, bearer(text))
            assert answer[0] == status and challenge in answer[1], text
        assert (await refused(url))[0] == 401


@pytest.mark.parametrize("place", ["listen", "asgi"])
async def test_a_request_can_not_choose_the_audience(place: str) -> None:
    async with AuthorizationServer() as provider, at(place, shelf(provider.issuer)) as url:
        own = urlsplit(url).port
        for port, status in ((own, 400), (1 if own != 1 else 2, 500)):
            aud = f"http://127.0.0.1:{port}/mcp"
            answer = await refused(url, bearer(provider.token(audience=aud)), ("Host", f"127.0.0.1:{port}"))
            assert answer[0] == status


async def test_a_function_waits_for_the_loop_that_the_server_is_about_to_start() -> None:
    loops = []

    async def verify(text: str, request: RequestInfo) -> Principal | None:
        loops.append(asyncio.get_running_loop())
        return Principal(text)

    verifiers = authentication.Verifiers({0: verify})
    verifiers.expect_loop()
    reply = asyncio.ensure_future(asyncio.to_thread(verifiers, 0, "ada", ("POST", "/mcp", [], None)))
    await asyncio.sleep(0.05)
    assert not reply.done()
    verifiers.set_loop(asyncio.get_running_loop())
    assert b"ada" in await reply
    assert loops == [asyncio.get_running_loop()]


@pytest.mark.parametrize("has_loop", [False, True])
async def test_a_coroutine_that_hangs_is_cancelled(has_loop: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(awaiting, "TIME", 0.05)
    cancelled = threading.Event()

    async def hang(text: str, request: RequestInfo) -> Principal | None:
        try:
            await asyncio.sleep(600)
        finally:
            cancelled.set()
        return None

    verifiers = authentication.Verifiers({0: hang})
    if has_loop:
        verifiers.set_loop(asyncio.get_running_loop())
    assert await asyncio.to_thread(verifiers, 0, "text", ("POST", "/mcp", [], None)) == b'"failed"'
    assert cancelled.is_set()


async def test_the_number_of_running_functions_is_bounded() -> None:
    running, release = threading.Semaphore(0), threading.Event()

    def hang(text: str, request: RequestInfo) -> Principal | None:
        running.release()
        release.wait(600)
        return None

    async with at("listen", shelf(hang)) as url:
        place = urlsplit(url).netloc
        host, port = place.split(":")
        request = f"GET /mcp HTTP/1.1\r\nHost: {place}\r\nConnection: close\r\nAuthorization: Bearer x\r\n\r\n"
        writers = []
        try:
            readers = []
            for _ in range(256):
                reader, writer = await asyncio.open_connection(host, int(port))
                writer.write(request.encode())
                readers.append(reader)
                writers.append(writer)
            for _ in range(256):
                assert await asyncio.to_thread(running.acquire, True, 60)
            assert (await refused(url, bearer("x")))[0] == 500
        finally:
            release.set()
        for reader in readers:
            assert (await reader.readline()).startswith(b"HTTP/1.1 401 ")
        for writer in writers:
            writer.close()
        assert (await refused(url, bearer("x")))[0] == 401


@pytest.mark.parametrize("place", PLACES)
async def test_a_component_needs_scopes(place: str) -> None:
    keys = ApiKeys({"a": Principal("ada"), "b": Principal("bob", scopes=["admin"])})
    app = shelf(keys, scope_implies={"admin": ["books:read", "books:write"]})

    @app.tool(scopes=["books:read", "books:write"])
    def write() -> str:
        return "written"

    async with at(place, app) as url:
        async with Client(url, headers=dict([bearer("b")])) as client:
            assert (await client.call_tool("write")).text == "written"
        async with Client(url, headers=dict([bearer("a")])) as client:
            assert await call(url, bearer("a")) == "ada"
            with pytest.raises(McpError, match="books:read books:write"):
                await client.call_tool("write")


async def test_a_server_may_hide_what_a_caller_has_no_scopes_for() -> None:
    app = shelf(ApiKeys({"a": "ada", "b": Principal("bob", scopes=["books"])}), hide_unauthorized=True)

    @app.tool(scopes=["books"])
    def write() -> str:
        return "written"

    async with at("listen", app) as url:
        async with Client(url, headers=dict([bearer("a")])) as client:
            assert [tool.name for tool in await client.list_tools()] == ["who"]
            with pytest.raises(McpError, match="Unknown tool: write"):
                await client.call_tool("write")
        async with Client(url, headers=dict([bearer("b")])) as client:
            assert [tool.name for tool in await client.list_tools()] == ["who", "write"]


@pytest.mark.parametrize("place", PLACES)
async def test_keys_and_functions_need_no_public_url(place: str) -> None:
    def verify(text: str, request: RequestInfo) -> Principal | None:
        return Principal("eve") if text == "good" else None

    async with at(place, shelf([ApiKeys({"k3y": "robot"}), verify])) as url:
        host = ("Host", "127.0.0.1:1" if urlsplit(url).port != 1 else "127.0.0.1:2")
        for text in ("k3y", "good"):
            assert (await refused(url, bearer(text), host))[0] == 400, "the body is not a message"
        for headers in ([bearer("x")], []):
            assert (await refused(url, *headers, host))[0] == 401


@pytest.mark.parametrize("place", PLACES)
async def test_streams_end_with_their_token(place: str) -> None:
    from websockets.asyncio.client import connect
    from websockets.exceptions import ConnectionClosed

    def verify(text: str, request: RequestInfo) -> Principal:
        return Principal("eve", claims={"exp": 1})

    listen = {"notifications": {"toolsListChanged": True}, "_meta": META}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": listen})
    headers = {
        "Content-Type": "application/json",
        "Accept": "text/event-stream, application/json",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "subscriptions/listen",
        **dict([bearer("x")]),
    }
    async with at(place, shelf(verify)) as url:
        assert await call(url, bearer("x")) == "eve"
        async with connect(url.replace("http", "ws", 1), additional_headers=dict([bearer("x")])) as socket:
            with pytest.raises(ConnectionClosed) as closed:
                await asyncio.wait_for(socket.recv(), 60)
        assert closed.value.rcvd is not None and closed.value.rcvd.code == 1008
        assert "the access token has expired" in closed.value.rcvd.reason
        request = urllib.request.Request(url, body.encode(), headers)
        stream = await asyncio.to_thread(lambda: urllib.request.urlopen(request, timeout=60).read())
        assert b'"result"' in stream


async def test_stdio_and_memory_are_not_affected() -> None:
    app = shelf(ApiKeys({"s3cret": "ada"}))

    @app.tool
    def plain() -> int:
        return 1

    async with Client(app) as client:
        assert (await client.call_tool("plain")).data == 1


def test_methods_that_can_not_work_are_refused_with_the_fix() -> None:
    for auth, error, reason in (
        (7, TypeError, "auth= takes the URL of an issuer"),
        (Jwt, TypeError, "auth= takes the URL of an issuer"),
        ({"s3cret": "ada"}, TypeError, "or a list of these, not a dict$"),
        ([], Exception, "lists no method"),
        ("http://as.example.com", Exception, "use https"),
        (Jwt("https://as.example.com", algorithms=["HS256"]), Exception, "choose one of RS256"),
        (Introspection("http://a.example", client_id="a", client_secret="s3cret"), Exception, "use https"),
    ):
        with pytest.raises(error, match=reason) as raised:
            Server("shelf", auth=auth)
        assert "s3cret" not in str(raised.value)
    with pytest.raises(TypeError, match="scope_implies="):
        Server("shelf", auth=ApiKeys({"a": "b"}), scope_implies={"a": "b"})
    with pytest.raises(TypeError, match=r"write \['books'\]"):
        Jwt("https://as.example.com", scopes="books")
    with pytest.raises(TypeError, match="leave one of them out"):
        Server("shelf", auth=ApiKeys({"a": "b"})).asgi(principal=lambda request: None)
    assert "s3cret" not in repr(Introspection("https://a.example", client_id="a", client_secret="s3cret"))
