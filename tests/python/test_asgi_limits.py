"""`app.asgi()`: limits of bodies, of messages, and of answers that are not read."""

import asyncio
import json
import selectors
from typing import Annotated, Any

import pytest
from msgspec import Meta

from asgi_host import META, Host, answer, call, scope_of
from gudgeon import Context, Server, SyncContext


def shelf() -> Server:
    app = Server("shelf")

    @app.tool
    def add(a: int, b: int) -> int:
        return a + b

    return app


async def test_a_body_in_pieces_and_one_over_the_limit() -> None:
    app = shelf()
    asgi = app.asgi(max_body=1000)
    scope, request = call("add", {"a": 1, "b": 2})
    pieces = [{"type": "http.request", "body": bytes([byte]), "more_body": True} for byte in request["body"]]
    host = Host(asgi, scope, *pieces, {"type": "http.request"})
    assert (await host.next())["status"] == 200
    large = {"type": "http.request", "body": b"x" * 600, "more_body": True}
    host = Host(asgi, scope, large, large)
    assert (await host.next())["status"] == 413
    assert b"max_body" in (await host.next())["body"]
    await host.done()
    await app.aclose()


async def test_unfinished_bodies_are_counted_together_and_for_each_client() -> None:
    app = shelf()
    asgi = app.asgi()
    piece = {"type": "http.request", "body": b"x" * 4_000_000, "more_body": True}
    scope, _ = call("add", {}, client=("192.0.2.1", 1))
    hosts = [Host(asgi, scope, piece) for _ in range(40)]
    # 128 MiB fit in, and those of another client do beyond that.
    for host in hosts[33:]:
        assert (await host.next())["status"] == 503
        assert b"too much is being received" in (await host.next())["body"]
        await host.done()
    assert not any(host.task.done() for host in hosts[:33])
    scope, request = call("add", {"a": 1, "b": 2}, client=("192.0.2.2", 1))
    other = Host(asgi, scope, {"type": "http.request", "body": b" " * 3_000_000, "more_body": True}, request)
    assert (await other.next())["status"] == 200
    for host in hosts[:33]:
        host.inbox.put_nowait({"type": "http.disconnect"})
        await host.done()
    assert await room_after(asgi, piece)
    await app.aclose()


async def room_after(asgi: Any, piece: dict[str, Any]) -> bool:
    """Returns whether a body is received that is not complete."""
    host = Host(asgi, call("add", {}, client=("192.0.2.1", 1))[0], piece)
    # It would be refused before what comes later is answered.
    later = Host(asgi, *call("add", {"a": 1, "b": 2}, client=("192.0.2.2", 1)))
    assert (await later.next())["status"] == 200
    is_received = not host.task.done()
    host.task.cancel()
    return is_received


def test_a_body_that_stops_is_refused() -> None:
    class Waiting(selectors.DefaultSelector):
        def select(self, timeout: float | None = None) -> Any:
            return super().select(timeout / 1000 if timeout else timeout)

    class Quick(asyncio.SelectorEventLoop):
        """A loop whose seconds are milliseconds."""

        def time(self) -> float:
            return super().time() * 1000

    async def use() -> None:
        app = shelf()
        scope, request = call("add", {"a": 1, "b": 2})
        host = Host(app.asgi(), scope, {**request, "more_body": True})
        assert (await host.sent.get())["status"] == 408
        assert b"did not come in time" in (await host.sent.get())["body"]
        await host.task
        await app.aclose()

    loop = Quick(Waiting())
    began = loop.time()
    loop.run_until_complete(use())
    assert 59 < loop.time() - began
    loop.close()


async def test_a_message_of_a_websocket_over_the_limit_is_refused() -> None:
    app = Server("limited", max_message=1000)

    @app.tool
    def length(text: str) -> int:
        return len(text)

    host = Host(app.asgi(), scope_of("websocket"), {"type": "websocket.connect"})
    await host.next()
    for size in (2000, 100):
        text = call("length", {"text": "x" * size})[1]["body"].decode()
        host.inbox.put_nowait({"type": "websocket.receive", "text": text})
    refused, answered = json.loads((await host.next())["text"]), json.loads((await host.next())["text"])
    assert refused["error"]["code"] == -32600 and "1000 bytes" in refused["error"]["message"]
    assert answered["result"]["content"][0]["text"] == "100"
    host.inbox.put_nowait({"type": "websocket.disconnect", "code": 1000})
    await host.done()
    await app.aclose()


async def test_a_streamed_result_may_be_larger_than_the_limit_of_unread_bytes() -> None:
    app = shelf()

    @app.tool
    def large(ctx: SyncContext) -> str:
        ctx.progress(1)
        return "x" * 6_000_000

    asgi = app.asgi()
    params = {"name": "large", "arguments": {}, "_meta": {**META, "progressToken": 1}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    request = {"type": "http.request", "body": body}
    host = Host(asgi, scope_of(headers=[(b"mcp-name", b"large")]), request)
    assert (await host.next())["status"] == 200
    received = 0
    while (part := await host.next()).get("more_body"):
        received += len(part["body"])
    assert received > 6_000_000
    await host.done()
    await app.aclose()


async def test_a_peer_that_reads_nothing_is_given_up() -> None:
    app, ended = shelf(), asyncio.Event()

    @app.tool
    async def flood(ctx: Context) -> str:
        try:
            for step in range(100):
                ctx.progress(step, message="x" * 100_000)
                await asyncio.sleep(0)
            return "done"
        finally:
            ended.set()

    asgi = app.asgi()
    params = {"name": "flood", "arguments": {}, "_meta": {**META, "progressToken": 1}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    reads = asyncio.Event()
    sent: list[Any] = []

    async def receive() -> Any:
        if not sent:
            sent.append(None)
            return {"type": "http.request", "body": body}
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)
        await reads.wait()

    serving = asyncio.ensure_future(asgi(scope_of(headers=[(b"mcp-name", b"flood")]), receive, send))
    await asyncio.wait_for(ended.wait(), 60)
    reads.set()
    await asyncio.wait_for(serving, 60)
    assert sum(len(message.get("body", b"")) for message in sent if message) < 8_000_000
    await app.aclose()


def passwords() -> Server:
    """A server with a tool whose pattern takes a large part of a second to check."""
    app = shelf()

    @app.tool
    def password(text: Annotated[str, Meta(pattern=r"(?=.*[a-z])(?=.*[0-9]).{8}")]) -> str:
        return "taken"

    return app


# One is checked apart because of its size, the other because of its pattern.
@pytest.mark.io
@pytest.mark.parametrize("length", [60_000, 200_000])
async def test_a_check_that_takes_long_does_not_hold_up_the_loop(length: int) -> None:
    app = passwords()
    asgi = app.asgi()
    slow = [asyncio.create_task(answer(asgi, "password", {"text": "b" * length})) for _ in range(16)]
    # They come to the server first, in this turn of the loop.
    await asyncio.sleep(0)
    assert (await answer(asgi, "add", {"a": 1, "b": 2}))[1]["result"]["content"][0]["text"] == "3"
    assert not all(task.done() for task in slow), "a call waited for the checks of others"
    for _, said in await asyncio.gather(*slow):
        assert "takes too many steps" in json.dumps(said)
    await app.aclose()


async def test_a_client_that_leaves_during_the_check_of_its_arguments() -> None:
    app = passwords()
    asgi = app.asgi()
    scope, request = call("password", {"text": "b" * 200_000})
    hosts = [Host(asgi, scope, request, {"type": "http.disconnect"}) for _ in range(4)]
    for host in hosts:
        await host.done()
        assert host.sent.empty()
    assert (await answer(asgi, "add", {"a": 1, "b": 2}))[1]["result"]["content"][0]["text"] == "3"
    await app.aclose()
