"""`app.asgi()`: under real servers and frameworks, and against the letter of ASGI."""

import asyncio
import json
import sys
import threading
import types
import urllib.request
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from asgi_host import Host, answer, call, hosted, scope_of
from gudgeon import Client, Context, Server, SyncContext

ERAS = ["2025-11-25", "2026-07-28"]


def shelf(**options: Any) -> Server:
    app: Server[Any] = Server("shelf", **options)
    app.begun, app.ended, app.seen = asyncio.Event(), asyncio.Event(), []  # type: ignore[attr-defined]
    app.four, app.gate = threading.Barrier(4), threading.Event()  # type: ignore[attr-defined]
    app.blocked = 0  # type: ignore[attr-defined]

    @app.tool
    def add(a: int, b: int) -> int:
        return a + b

    @app.tool
    async def loop_of(ctx: Context) -> int:
        await ctx.progress(1)
        return id(asyncio.get_running_loop())

    @app.tool
    def block() -> str:
        app.blocked += 1  # type: ignore[attr-defined]
        app.four.wait(60)  # type: ignore[attr-defined]
        assert app.gate.wait(60)  # type: ignore[attr-defined]
        return "open"

    @app.tool
    async def wait(seconds: float) -> str:
        app.begun.set()  # type: ignore[attr-defined]
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            app.seen.append("cancelled")  # type: ignore[attr-defined]
            app.ended.set()  # type: ignore[attr-defined]
            raise
        return f"waited {seconds}"

    @app.tool
    def life(ctx: SyncContext) -> str:
        return str(ctx.lifespan)

    return app


# ── frameworks ───────────────────────────────────────────────────────────────────────────────────────


def bare(asgi: Any) -> Any:
    return asgi


def starlette_mount(asgi: Any) -> Any:
    from starlette.applications import Starlette
    from starlette.routing import Mount

    return Starlette(routes=[Mount("/mcp", asgi)])


def starlette_route(asgi: Any) -> Any:
    from starlette.applications import Starlette
    from starlette.routing import Route

    return Starlette(routes=[Route("/mcp", asgi), Route("/mcp/", asgi)])


def starlette_root(asgi: Any) -> Any:
    from starlette.applications import Starlette
    from starlette.routing import Mount

    return Starlette(routes=[Mount("/", asgi)])


def fastapi(asgi: Any) -> Any:
    from fastapi import FastAPI

    outer = FastAPI()
    outer.mount("/mcp", asgi)
    return outer


def django(asgi: Any) -> Any:
    import django as package
    from django.conf import settings
    from django.core.asgi import get_asgi_application
    from django.http import HttpResponse
    from django.urls import path

    if not settings.configured:
        urls: Any = types.ModuleType("test_asgi_urls")
        urls.urlpatterns = [path("page", lambda _: HttpResponse("a page of Django's"))]
        sys.modules[urls.__name__] = urls
        settings.configure(ROOT_URLCONF=urls.__name__, ALLOWED_HOSTS=["*"])
        package.setup()
    site = get_asgi_application()

    async def outer(scope: Any, receive: Any, send: Any) -> None:
        is_ours = scope["type"] != "lifespan" and scope["path"].startswith("/mcp")
        if scope["type"] != "lifespan":
            await (asgi if is_ours else site)(scope, receive, send)

    return outer


MOUNTS = [bare, starlette_mount, starlette_route, starlette_root, fastapi, django]


@pytest.mark.io
@pytest.mark.parametrize(
    ("mount", "path", "era"),
    [*((mount, path, ERAS[1]) for mount in MOUNTS for path in ("/mcp", "/mcp/")), (bare, "/mcp", ERAS[0])],
)
async def test_it_is_mounted_anywhere(mount: Callable[[Any], Any], path: str, era: str) -> None:
    async with hosted(mount(shelf().asgi())) as url, Client(url + path, revision=era) as client:
        assert (await client.call_tool("add", {"a": 1, "b": 2})).data == 3
        assert (await client.call_tool("loop_of")).data == id(asyncio.get_running_loop())


@pytest.mark.io
async def test_the_hosts_own_pages_stay() -> None:
    async with hosted(django(shelf().asgi())) as url, Client(url + "/mcp") as client:
        page = await asyncio.to_thread(lambda: urllib.request.urlopen(url + "/page").read())
        assert page == b"a page of Django's"
        assert (await client.call_tool("add", {"a": 1, "b": 2})).data == 3


@pytest.mark.io
async def test_several_apps_in_one_process_are_each_their_own() -> None:
    from starlette.applications import Starlette
    from starlette.routing import Mount

    one, two = Server("one"), Server("two")
    outer = Starlette(routes=[Mount("/one", one.asgi()), Mount("/two", two.asgi())])
    async with hosted(outer) as url, Client(f"{url}/one/") as first, Client(f"{url}/two/") as second:
        assert (first.server.name, second.server.name) == ("one", "two")


@pytest.mark.io
@pytest.mark.parametrize("era", ERAS)
async def test_websockets(era: str) -> None:
    async with hosted(shelf().asgi()) as url, Client(url.replace("http", "ws") + "/mcp", revision=era) as client:
        assert (await client.call_tool("add", {"a": 1, "b": 2})).data == 3


@pytest.mark.io
async def test_a_websocket_with_much_in_flight_is_answered_in_full() -> None:
    from websockets.asyncio.client import connect

    app: Server[Any] = Server("big")

    @app.tool
    def big() -> str:
        return "x" * 20_000

    _, message = call("big", {})
    async with hosted(app.asgi()) as url, connect(url.replace("http", "ws") + "/mcp", max_size=None) as socket:

        async def ask() -> None:
            for id in range(1_500):  # 30 MB of answers
                await socket.send(json.dumps({**json.loads(message["body"]), "id": id}))

        asking = asyncio.ensure_future(ask())
        for _ in range(1_500):
            assert "xxx" in str(await asyncio.wait_for(socket.recv(), 60))
        await asking


@pytest.mark.io
async def test_progress_of_an_async_handler_is_streamed() -> None:
    seen: list[float] = []
    async with hosted(shelf().asgi()) as url, Client(url) as client:
        await client.call_tool("loop_of", on_progress=lambda step: seen.append(step.progress))
    assert seen == [1]


@pytest.mark.io
@pytest.mark.parametrize("era", ERAS)
async def test_a_slow_def_stalls_neither_the_loop_nor_others(era: str) -> None:
    app = shelf()
    async with hosted(app.asgi()) as url, Client(url, revision=era) as client:
        slow = [asyncio.ensure_future(client.call_tool("block")) for _ in range(4)]
        async with asyncio.timeout(60):
            while not app.blocked:  # type: ignore[attr-defined]
                await asyncio.sleep(0.005)
        assert (await client.call_tool("add", {"a": 1, "b": 2})).data == 3
        assert not any(task.done() for task in slow)
        app.gate.set()  # type: ignore[attr-defined]
        assert [(await task).text for task in slow] == ["open"] * 4


# ── the letter of ASGI ───────────────────────────────────────────────────────────────────────────────


async def test_one_answer_is_one_body_with_its_length() -> None:
    app = shelf()
    asgi = app.asgi()
    host = Host(asgi, *call("add", {"a": 1, "b": 2}))
    start, body = await host.next(), await host.next()
    assert start["status"] == 200
    assert dict(start["headers"])[b"content-length"] == str(len(body["body"])).encode()
    assert json.loads(body["body"])["result"]["content"][0]["text"] == "3"
    await app.aclose()


@pytest.mark.parametrize("when", ["before", "waiting", "in the body"])
async def test_a_peer_that_leaves_cancels_its_call(when: str) -> None:
    app = shelf()
    asgi = app.asgi()
    await answer(asgi, "add", {"a": 1, "b": 1})
    scope, request = call("wait", {"seconds": 600})
    gone = {"type": "http.disconnect"}
    if when == "in the body":
        host = Host(asgi, scope, {**request, "more_body": True}, gone)
    else:
        host = Host(asgi, scope, request, *([gone] if when == "before" else []))
        await asyncio.wait_for(app.begun.wait(), 60)  # type: ignore[attr-defined]
        host.inbox.put_nowait(gone)
    await host.done()
    if when != "in the body":
        # Before the server closes, which cancels every call.
        await asyncio.wait_for(app.ended.wait(), 60)  # type: ignore[attr-defined]
    await app.aclose()
    assert app.seen == ([] if when == "in the body" else ["cancelled"])  # type: ignore[attr-defined]


async def test_a_host_that_cancels_the_request_cancels_the_call() -> None:
    app = shelf()
    asgi = app.asgi()
    host = Host(asgi, *call("wait", {"seconds": 600}))
    await asyncio.wait_for(app.begun.wait(), 60)  # type: ignore[attr-defined]
    host.task.cancel()
    await asyncio.gather(host.task, return_exceptions=True)
    await asyncio.wait_for(app.ended.wait(), 60)  # type: ignore[attr-defined]
    await app.aclose()
    assert app.seen == ["cancelled"]  # type: ignore[attr-defined]


async def test_a_host_that_can_not_send_cancels_the_call() -> None:
    app = shelf()

    async def broken(message: dict[str, Any]) -> None:
        raise RuntimeError("the host has no room")

    @app.tool
    async def report(ctx: Context) -> str:
        await ctx.progress(1)
        try:
            await asyncio.sleep(600)
        finally:
            app.ended.set()  # type: ignore[attr-defined]
        return "reported"

    scope, request = call("report", {})
    body = json.loads(request["body"])
    body["params"]["_meta"]["progressToken"] = 1
    inbox: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    inbox.put_nowait({**request, "body": json.dumps(body).encode()})
    # The error that a host keeps, for its log, has the frames of the request.
    with pytest.raises(RuntimeError, match="no room") as kept:
        await app.asgi()(scope, inbox.get, broken)
    await asyncio.wait_for(app.ended.wait(), 60)  # type: ignore[attr-defined]
    assert kept.tb is not None
    await app.aclose()


@pytest.mark.parametrize(
    "server, host, status",
    [
        (("127.0.0.1", 80), b"localhost:80", 200),
        (("127.0.0.1", 80), b"evil.example", 421),
        (("::1", 80), b"evil.example", 421),
        (("192.0.2.1", 80), b"evil.example", 200),
        (None, b"evil.example", 200),
    ],
)
async def test_hosts_are_checked_as_strictly_as_the_request_came(server: Any, host: bytes, status: int) -> None:
    app = shelf()
    scope, request = call("add", {"a": 1, "b": 2}, server=server)
    scope["headers"] = [(b"host", host), *scope["headers"][1:]]
    got = Host(app.asgi(), scope, request)
    assert (await got.next())["status"] == status
    await got.done()
    await app.aclose()


@pytest.mark.parametrize("root", ["", "/api"])
@pytest.mark.parametrize("host, status", [(b"localhost", 200), (b"evil.example", 421)])
async def test_the_host_of_a_request_line_in_absolute_form_is_checked(root: str, host: bytes, status: int) -> None:
    app = shelf()
    scope, request = call("add", {"a": 1, "b": 2}, server=("127.0.0.1", 80))
    line = f"{root}http://".encode() + host + b"/mcp"
    scope |= {"raw_path": line, "path": line.decode(), "root_path": root}
    scope["headers"] = [(b"host", b"localhost"), *scope["headers"][1:]]
    got = Host(app.asgi(), scope, request)
    assert (await got.next())["status"] == status
    await got.done()
    await app.aclose()


@pytest.mark.parametrize("knows_http", [False, True])
async def test_a_websocket_of_a_foreign_page_is_refused(knows_http: bool) -> None:
    app = shelf()
    more = {"extensions": {"websocket.http.response": {}}} if knows_http else {}
    scope = scope_of("websocket", headers=[(b"origin", b"https://evil.example")], **more)
    host = Host(app.asgi(), scope, {"type": "websocket.connect"})
    refusal = await host.next()
    assert refusal.get("status", refusal.get("code")) == (403 if knows_http else 1008)
    if knows_http:
        assert b"allowed_origins" in (await host.next())["body"]
    await host.done()
    await app.aclose()


async def test_a_websocket_takes_texts_and_bytes_and_the_subprotocol() -> None:
    app = shelf()
    host = Host(app.asgi(), scope_of("websocket", subprotocols=["mcp"]), {"type": "websocket.connect"})
    assert await host.next() == {"type": "websocket.accept", "subprotocol": "mcp"}
    body = call("add", {"a": 1, "b": 2})[1]["body"]
    for message in ({"text": body.decode()}, {"bytes": body, "text": None}):
        host.inbox.put_nowait({"type": "websocket.receive", **message})
        assert json.loads((await host.next())["text"])["result"]["content"][0]["text"] == "3"
    host.inbox.put_nowait({"type": "websocket.disconnect", "code": 1000})
    await host.done()
    await app.aclose()


async def test_the_old_pair_says_the_path_that_clients_know() -> None:
    app = shelf()
    scope = {**scope_of(method="GET"), "root_path": "/tools", "path": "/sse"}
    scope["headers"] = [(b"host", b"127.0.0.1"), (b"accept", b"text/event-stream")]
    host = Host(app.asgi(legacy_sse=True), scope, {"type": "http.request"})
    assert (await host.next())["status"] == 200
    said = (await host.next())["body"]
    if not said:
        said = (await host.next())["body"]
    assert b"event: endpoint\ndata: /tools/sse?session_id=" in said
    host.inbox.put_nowait({"type": "http.disconnect"})
    await host.done()
    await app.aclose()


async def test_a_scope_of_another_kind() -> None:
    with pytest.raises(ValueError, match="'mqtt'"):
        await shelf().asgi()({"type": "mqtt"}, None, None)


# ── lifespans and loops ──────────────────────────────────────────────────────────────────────────────


def living() -> tuple[Server, list[str]]:
    steps: list[str] = []

    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[str]:
        steps.append("entered")
        try:
            yield "alive"
        finally:
            await asyncio.sleep(0)
            steps.append("left")

    return shelf(lifespan=lifespan), steps


async def test_startup_enters_and_shutdown_leaves() -> None:
    app, steps = living()
    asgi = app.asgi()
    for _ in range(2):
        host = Host(asgi, {"type": "lifespan"}, {"type": "lifespan.startup"})
        assert await host.next() == {"type": "lifespan.startup.complete"}
        assert steps == ["entered"]
        assert (await answer(asgi, "life", {}))[1]["result"]["content"][0]["text"] == "alive"
        host.inbox.put_nowait({"type": "lifespan.shutdown"})
        assert await host.next() == {"type": "lifespan.shutdown.complete"}
        await host.done()
        assert steps == ["entered", "left"]
        steps.clear()


async def test_without_startup_the_first_request_enters_and_aclose_leaves() -> None:
    app, steps = living()
    asgi = app.asgi()
    assert steps == []
    first = await asyncio.gather(*(answer(asgi, "life", {}) for _ in range(5)))
    assert {said["result"]["content"][0]["text"] for _, said in first} == {"alive"}
    assert steps == ["entered"]
    await app.aclose()
    await app.aclose()
    assert steps == ["entered", "left"]
    await answer(asgi, "life", {})
    await app.aclose()
    assert steps == ["entered", "left"] * 2


async def test_a_lifespan_that_fails_fails_the_startup_or_the_request() -> None:
    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[str]:
        raise RuntimeError("no database")
        yield ""

    asgi = shelf(lifespan=lifespan).asgi()
    host = Host(asgi, {"type": "lifespan"}, {"type": "lifespan.startup"})
    assert await host.next() == {"type": "lifespan.startup.failed", "message": "RuntimeError: no database"}
    with pytest.raises(RuntimeError):
        await host.done()
    with pytest.raises(RuntimeError, match="no database"):
        await asgi(*_io(call("life", {})))


def _io(request: Any) -> tuple[Any, Any, Any]:
    async def receive() -> Any:
        return request[1]

    async def send(message: Any) -> None:
        raise AssertionError(message)

    return request[0], receive, send


async def test_health_checks_do_not_wait_for_the_lifespan_that_the_first_one_enters() -> None:
    gate = asyncio.Event()
    steps: list[str] = []

    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[str]:
        steps.append("entered")
        await gate.wait()
        yield "alive"

    app = shelf(lifespan=lifespan)
    asgi = app.asgi(health="/healthz", ready="/readyz")

    async def ask(path: str, method: str = "GET") -> tuple[int, bytes]:
        scope = scope_of(method=method, path=f"/tools{path}", root_path="/tools", headers=[(b"host", b"10.0.0.7")])
        host = Host(asgi, scope, {"type": "http.request"})
        start, body = await host.next(), await host.next()
        await host.done()
        assert (b"cache-control", b"no-store") in start["headers"]
        return start["status"], body["body"]

    assert await ask("/healthz") == (200, b"ok\n")
    assert await ask("/readyz") == (503, b"the server has not started\n")
    assert (await ask("/readyz", "POST"))[0] == 405
    gate.set()
    assert (await answer(asgi, "life", {}))[1]["result"]["content"][0]["text"] == "alive"
    assert await ask("/healthz") == await ask("/readyz") == (200, b"ok\n")
    assert steps == ["entered"]

    call_in_flight = Host(asgi, *call("wait", {"seconds": 600}))
    await asyncio.wait_for(app.begun.wait(), 60)  # type: ignore[attr-defined]
    closing = asyncio.ensure_future(app.aclose())
    await asyncio.sleep(0)
    assert await ask("/healthz") == (200, b"ok\n")
    assert await ask("/readyz") == (503, b"the server is shutting down\n")
    assert steps == ["entered"]
    call_in_flight.inbox.put_nowait({"type": "http.disconnect"})
    await closing
    await call_in_flight.done()


@pytest.mark.parametrize("leaves_tasks", [False, True])
def test_one_loop_after_another(leaves_tasks: bool) -> None:
    app, steps = living()
    asgi = app.asgi()
    for _ in range(3):
        loop = asyncio.new_event_loop()

        async def use() -> None:
            _, said = await answer(asgi, "loop_of", {}, headers=[(b"accept", b"application/json")])
            assert said["result"]["content"][0]["text"] == str(id(loop))
            assert (await answer(asgi, "add", {"a": 1, "b": 2}))[0] == 200
            assert (await answer(asgi, "life", {}))[1]["result"]["content"][0]["text"] == "alive"

        if leaves_tasks:
            loop.run_until_complete(use())
        else:
            loop.run_until_complete(use())
            tasks = asyncio.all_tasks(loop)
            for task in tasks:
                task.cancel()
            loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        loop.close()
    assert steps.count("entered") == 3
    if not leaves_tasks:
        assert steps == ["entered", "left"] * 3


async def test_shutdown_ends_streams_and_waits_for_calls() -> None:
    app = shelf()
    asgi = app.asgi()
    host = Host(asgi, *call("wait", {"seconds": 0.3}))
    await asyncio.wait_for(app.begun.wait(), 60)  # type: ignore[attr-defined]
    await app.aclose()
    assert (await host.next())["status"] == 200
    assert b"waited 0.3" in (await host.next())["body"]
    await host.done()


async def test_shutdown_cuts_off_what_outlasts_the_grace() -> None:
    app = shelf()
    asgi = app.asgi(shutdown_grace=0.1)
    host = Host(asgi, *call("wait", {"seconds": 600}))
    await asyncio.wait_for(app.begun.wait(), 60)  # type: ignore[attr-defined]
    await asyncio.wait_for(app.aclose(), 60)
    assert (await host.next())["status"] == 503
    await host.done()
    assert app.seen == ["cancelled"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "peer, server, expected",
    [
        (("127.0.0.1", 1), ("127.0.0.1", 8000), "192.0.2.1"),
        (("192.0.2.9", 1), ("127.0.0.1", 8000), "192.0.2.9"),
        (("testclient", 1), ("127.0.0.1", 8000), "testclient"),
        (None, ("127.0.0.1", 8000), None),
        (None, ("/run/shelf.sock", None), "192.0.2.1"),
    ],
)
async def test_trusted_proxies_are_compared_with_the_scope_and_name_the_client(
    peer: Any, server: Any, expected: str | None
) -> None:
    app = shelf()
    clients = []
    asgi = app.asgi(principal=lambda request: clients.append(request.client), trusted_proxies=["127.0.0.1", "unix"])
    forwarded = [(b"forwarded", b"for=192.0.2.1")]
    await answer(asgi, "add", {"a": 1, "b": 2}, headers=forwarded, client=peer, server=server)
    assert clients == [expected]
    await app.aclose()
