"""Servers at addresses, as far as Python is concerned: contexts, threads, how they end."""

import asyncio
import json
import os
import threading
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from ports import reserve_port

from gudgeon import Client, Context, Server, SyncContext
from gudgeon.errors import ConnectFailed

pytestmark = pytest.mark.io

ANYWHERE = "http://127.0.0.1:0/mcp"
ERAS = ["2025-11-25", "2026-07-28"]
META = {"protocolVersion": "2026-07-28", "clientCapabilities": {}}


# ── contexts ─────────────────────────────────────────────────────────────────────────────────────────


def shelf() -> Server:
    app: Server[Any] = Server("shelf")

    @app.tool
    def facts(ctx: SyncContext) -> dict[str, Any]:
        return {"type": ctx.headers["Content-Type"], "names": sorted(ctx.headers), "session": ctx.session_id}

    @app.tool
    async def count(ctx: Context) -> int:
        ctx.session["count"] = ctx.session.get("count", 0) + 1
        return int(ctx.session["count"])

    @app.tool
    async def leave(ctx: Context) -> str:
        await ctx.close_stream(retry=0.01)
        return "left"

    app.four, app.gate = threading.Barrier(4), threading.Event()  # type: ignore[attr-defined]
    app.blocked = 0  # type: ignore[attr-defined]
    app.begun = asyncio.Event()  # type: ignore[attr-defined]

    @app.tool
    def block() -> str:
        app.blocked += 1  # type: ignore[attr-defined]
        app.four.wait(60)  # type: ignore[attr-defined]
        assert app.gate.wait(60)  # type: ignore[attr-defined]
        return "open"

    @app.tool
    async def sleep_async(seconds: float) -> str:
        app.begun.set()  # type: ignore[attr-defined]
        await asyncio.sleep(seconds)
        return f"slept {seconds}"

    @app.tool
    def quick() -> str:
        return "quick"

    @app.resource("shelf://about")
    def about() -> str:
        return "about"

    return app


@pytest.mark.parametrize("era", ERAS)
async def test_handlers_see_headers_and_the_session(era: str) -> None:
    async with shelf().listen(ANYWHERE) as here, Client(here.url, revision=era) as client:
        facts = (await client.call_tool("facts")).data
        assert facts["type"] == "application/json"
        assert {"accept", "host", "mcp-protocol-version"} <= set(facts["names"])
        assert facts["session"] == client.session_id
        assert (facts["session"] is None) == (era == "2026-07-28")


async def test_what_is_kept_in_a_session_is_its_own() -> None:
    async with shelf().listen(ANYWHERE) as here:
        async with Client(here.url, revision="2025-11-25") as one, Client(here.url, revision="2025-11-25") as two:
            counts = [(await client.call_tool("count")).data for client in (one, two, one, two, one)]
        async with Client(here.url, revision="2025-11-25") as three:
            counts.append((await three.call_tool("count")).data)
    assert counts == [1, 1, 2, 2, 3, 1]


async def test_a_stream_that_a_handler_closes_is_gone_on_with() -> None:
    async with shelf().listen(ANYWHERE) as here:
        async with Client(here.url, revision="2025-11-25") as client:
            assert (await client.call_tool("leave")).text == "left"
        async with Client(here.url) as client:
            refused = await client.call_tool("leave", raise_on_error=False)
            assert "legacy HTTP" in refused.text


async def test_subscribers_are_notified_of_an_update() -> None:
    app = shelf()
    async with app.listen(ANYWHERE) as here, Client(here.url, revision="2025-11-25") as client:
        async with client.subscribe("shelf://about") as changes:
            app.notify_updated("shelf://about")
            change = await asyncio.wait_for(anext(changes), 60)
    assert change.uri == "shelf://about"


# ── threads ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("era", ERAS)
async def test_a_slow_def_stalls_nobody(era: str) -> None:
    app = shelf()
    async with app.listen(ANYWHERE) as here, Client(here.url, revision=era) as client:
        slow = [asyncio.ensure_future(client.call_tool("block")) for _ in range(4)]
        async with asyncio.timeout(60):
            while not app.blocked:  # type: ignore[attr-defined]
                await asyncio.sleep(0.005)
        assert (await client.call_tool("quick")).text == "quick"
        assert not any(task.done() for task in slow)
        app.gate.set()  # type: ignore[attr-defined]
        assert [(await task).text for task in slow] == ["open"] * 4


async def test_async_handlers_run_on_the_loop_that_listens() -> None:
    app: Server[Any] = Server("shelf")
    loop = asyncio.get_running_loop()

    @app.tool
    async def here() -> bool:
        return asyncio.get_running_loop() is loop

    async with app.listen(ANYWHERE) as listening, Client(listening.url) as client:
        assert (await client.call_tool("here")).data is True


# ── addresses ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("kind", ["http", "ws", "tcp", "unix", "http+unix", "sse"])
async def test_every_address_serves_every_era(kind: str, era: str, tmp_path: Path) -> None:
    if kind == "sse":  # the pair belongs to the handshake
        era = {"2026-07-28": "2024-11-05"}.get(era, era)
    addresses = {"tcp": "tcp://127.0.0.1:0", "unix": f"unix:{tmp_path}/s", "http+unix": f"http+unix:{tmp_path}/s"}
    at = addresses.get(kind, ANYWHERE)
    async with shelf().listen(at, legacy_sse=True) as here:
        url = {"ws": here.url.replace("http", "ws"), "sse": here.url.replace("/mcp", "/sse")}.get(kind, here.url)
        async with Client(url, revision=era) as client:
            assert (await client.call_tool("quick")).text == "quick"
            assert (await client.call_tool("sleep_async", {"seconds": 0.01})).text == "slept 0.01"


async def test_an_http_request_or_a_tls_handshake_at_a_tcp_address_runs_no_tool() -> None:
    """A web page can make a browser send one, with messages as the lines of its body."""
    app: Server[Any] = Server("s")
    runs = []

    @app.tool
    def delete() -> str:
        runs.append(1)
        return "deleted"

    meta = {f"io.modelcontextprotocol/{name}": value for name, value in META.items()}
    meta["io.modelcontextprotocol/clientInfo"] = {"name": "page", "version": "1"}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "delete", "_meta": meta}}
    line = json.dumps(call).encode() + b"\n"
    head = f"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: {len(line)}\r\n\r\n"
    async with app.listen("tcp://127.0.0.1:0") as here:
        host, port = here.url.removeprefix("tcp://").split(":")
        client_hello = b"\x16\x03\x01\x02\x00\x01"
        for sent, answer in (head.encode() + line, b""), (client_hello + line, b""), (line, b"deleted"):
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(sent)
            try:
                received = await asyncio.wait_for(reader.readline(), 60)
            except ConnectionError:  # the server closed the connection before it read everything
                received = b""
            assert (answer in received) if answer else received == b""
            assert len(runs) == (1 if answer else 0)
            writer.close()


class Wire:
    """One end of a pair of queues."""

    def __init__(self, inbox: asyncio.Queue[bytes | None], outbox: asyncio.Queue[bytes | None]) -> None:
        self.inbox, self.outbox, self.is_closed = inbox, outbox, False

    async def receive(self) -> bytes | None:
        return await self.inbox.get()

    async def send(self, message: bytes, /) -> None:
        await self.outbox.put(message)

    async def close(self) -> None:
        self.is_closed = True
        await self.outbox.put(None)


@pytest.mark.parametrize("era", ERAS)
async def test_a_wire_of_ones_own(era: str) -> None:
    one: asyncio.Queue[bytes | None] = asyncio.Queue()
    two: asyncio.Queue[bytes | None] = asyncio.Queue()
    wire = Wire(one, two)
    serving = asyncio.ensure_future(shelf().serve(wire))
    async with Client(Wire(two, one), revision=era) as client:
        assert (await client.call_tool("quick")).text == "quick"
        assert (await client.call_tool("sleep_async", {"seconds": 0.01})).text == "slept 0.01"
    await asyncio.wait_for(serving, 60)
    assert wire.is_closed


@pytest.mark.parametrize("given, shown", [("{}", "str"), (7, "int"), ({}, "dict")])
async def test_an_invalid_message_ends_server_and_client_with_the_fix(given: Any, shown: str, caplog: Any) -> None:
    class Wrong:
        is_closed = False

        async def receive(self) -> Any:
            return given

        async def send(self, message: bytes, /) -> None: ...

        async def close(self) -> None:
            self.is_closed = True

    wire = Wrong()
    with pytest.raises(TypeError, match=f"must return bytes, or None at the end, not {shown}"):
        await asyncio.wait_for(shelf().serve(wire), 60)
    assert wire.is_closed
    with pytest.raises(ConnectFailed):
        await asyncio.wait_for(Client(Wrong()).connect(), 60)
    assert f"not {shown}" in caplog.text


async def test_a_wire_that_talks_and_talks_is_read_no_faster_than_it_is_answered() -> None:
    app: Server[Any] = Server("big")
    running: list[int] = [0, 0]
    full = asyncio.Event()

    @app.tool
    def big() -> str:
        return "x" * 20_000

    @app.tool
    async def slow() -> str:
        running[0] += 1
        running[1] = max(running)
        if running[0] == 1_000:
            full.set()
        await full.wait()
        running[0] -= 1
        return "slow"

    class Endless:
        """A client that never lets anybody else have a turn."""

        def __init__(self, tool: str, count: int) -> None:
            meta = {f"io.modelcontextprotocol/{name}": value for name, value in META.items()}
            params = {"name": tool, "arguments": {}, "_meta": meta}
            self.calls = (
                json.dumps({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).encode()
                for id in range(count)
            )
            self.answered = 0

        async def receive(self) -> bytes | None:
            return next(self.calls, None)

        async def send(self, message: bytes, /) -> None:
            self.answered += 1
            await asyncio.sleep(0)

        async def close(self) -> None: ...

    for tool, count in (("big", 2_000), ("slow", 3_000)):
        wire = Endless(tool, count)
        await asyncio.wait_for(app.serve(wire), 60)
        assert wire.answered == count
    assert running[1] == 1_000


async def test_a_reader_of_a_transport_is_woken_when_there_is_room_instead_of_polling(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app: Server[Any] = Server("full")
    running, released = asyncio.Semaphore(0), asyncio.Event()

    @app.tool
    async def waits() -> None:
        running.release()
        await released.wait()

    meta = {f"io.modelcontextprotocol/{name}": value for name, value in META.items()}
    params = {"name": "waits", "arguments": {}, "_meta": meta}
    one: asyncio.Queue[bytes | None] = asyncio.Queue()
    for id in range(1_100):
        message = {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}
        one.put_nowait(json.dumps(message).encode())
    two: asyncio.Queue[bytes | None] = asyncio.Queue()
    slept: list[float] = []
    sleep = asyncio.sleep

    async def noted(delay: float) -> None:
        if delay > 0:
            slept.append(delay)
        await sleep(delay)

    monkeypatch.setattr(asyncio, "sleep", noted)
    serving = asyncio.ensure_future(app.serve(Wire(one, two)))
    for _ in range(1_000):
        await asyncio.wait_for(running.acquire(), 60)
    await sleep(0.05)
    assert one.qsize() == 100, "it is full"
    released.set()
    one.put_nowait(None)
    await asyncio.wait_for(serving, 60)
    assert two.qsize() == 1_101
    assert slept == []


async def test_a_wire_that_ends_leaves_time_to_answer() -> None:
    sent: list[bytes] = []

    class Short:
        def __init__(self) -> None:
            self.left = [
                b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"sleep_async","arguments":{"seconds":0.2},'
                b'"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":'
                b'{"name":"","version":""},"io.modelcontextprotocol/clientCapabilities":{}}}}'
            ]

        async def receive(self) -> bytes | None:
            return self.left.pop() if self.left else None

        async def send(self, message: bytes, /) -> None:
            sent.append(message)

        async def close(self) -> None:
            sent.append(b"closed")

    await asyncio.wait_for(shelf().serve(Short()), 60)
    assert b"slept 0.2" in sent[0] and sent[1:] == [b"closed"]


# ── the end ──────────────────────────────────────────────────────────────────────────────────────────


async def test_serve_that_is_cancelled_answers_what_is_in_flight() -> None:
    url = f"http://127.0.0.1:{reserve_port()}/mcp"
    app = shelf()
    serving = asyncio.ensure_future(app.serve(url))
    client = Client(url)
    async with asyncio.timeout(60):
        while True:
            try:
                await client.connect()
                break
            except Exception:
                await asyncio.sleep(0.02)
    call = asyncio.ensure_future(client.call_tool("sleep_async", {"seconds": 0.4}))
    await asyncio.wait_for(app.begun.wait(), 60)  # type: ignore[attr-defined]
    serving.cancel()
    assert (await call).text == "slept 0.4"
    with pytest.raises(asyncio.CancelledError):
        await serving
    await client.close()


async def test_the_lifespan_surrounds_what_listens() -> None:
    steps: list[str] = []

    @asynccontextmanager
    async def lifespan(server: Server) -> Any:
        steps.append("entered")
        yield {"shelf": "here"}
        steps.append("left")

    app: Server[Any] = Server("shelf", lifespan=lifespan)

    @app.tool
    def look(ctx: SyncContext) -> str:
        steps.append("called")
        return str(ctx.lifespan["shelf"])

    async with app.listen(ANYWHERE) as here:
        async with Client(here.url) as client:
            assert (await client.call_tool("look")).text == "here"
        await here.close()
        await here.close()
    assert steps == ["entered", "called", "left"]


async def test_a_lifespan_that_fails_can_be_tried_again() -> None:
    attempts: list[int] = []

    @asynccontextmanager
    async def lifespan(server: Server) -> Any:
        attempts.append(1)
        if len(attempts) == 1:
            raise RuntimeError("no database")
        yield "database"

    app: Server[Any] = Server("shelf", lifespan=lifespan)
    with pytest.raises(RuntimeError, match="no database"):
        async with app.listen(ANYWHERE):
            pass
    async with app.listen(ANYWHERE):
        assert app._lifespan.value == "database"


@pytest.mark.parametrize("umask", [0, 0o022, 0o777])
async def test_only_this_user_may_connect_to_a_unix_socket(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        async with shelf().listen(f"unix:{tmp_path}/s") as here:
            assert (tmp_path / "s").stat().st_mode & 0o777 == 0o600
            async with Client(here.url) as client:
                assert client.server.name == "shelf"
    finally:
        os.umask(before)
