"""`app.asgi()`: the server as an ASGI app, which does its input and output on the host's event loop."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote

from .hosting import Hosting, resolve, room, send_all
from .http_options import OF_CONNECTIONS, SHUTDOWN_GRACE, checked
from .principals import Identify, Refused
from .serve import check_loop
from .uvicorn import ShutdownHook, is_stopping

Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[Any]]

_WATCH_DELAY = 0.02  # seconds before a request that has no answer yet watches for the peer to leave
_PIECE = 256 * 1024  # bytes
_SAFE = "/!$&'()*+,;=:@-._~"
_DRAIN_TICK = 0.01  # seconds between two looks whether all is answered
_EXPIRED = "the access token has expired: connect again with a new one"
_STOP_CHECK_INTERVAL = 0.25  # seconds between two looks whether the host wants to stop


class AsgiApp:
    """The server at whatever path it is mounted. Calling it serves one HTTP request, WebSocket or lifespan."""

    def __init__(self, app: Any, options: dict[str, Any], principal: Any = None) -> None:
        for name in options:
            if name in OF_CONNECTIONS:
                raise TypeError(f"asgi() has no option {name!r}: the ASGI server holds the connections, set it there")
        self._app = app
        self._options = checked(options, "asgi()")
        app._native.check_without_routes()
        if principal is not None and app._options.get("auth") is not None:
            raise TypeError("asgi(): principal= and Server(auth=…) both say who calls; leave one of them out")
        self._identify = Identify(principal)
        grace = options.get("shutdown_grace")
        self._grace = SHUTDOWN_GRACE if grace is None else float(grace)
        self._endpoint: Any = None
        # The endpoint that is being closed.
        self._closing: Any = None
        self._serving: _LoopServing | None = None
        self._shutdown_hook: ShutdownHook | None = None

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        kind = scope["type"]
        if kind == "http":
            if self._closing is not None and await _answer_probe(self._closing, True, scope, send):
                return
            serving = self._begin()
            if serving.hosting is None:
                # A host may send others only once the app is ready, so a probe enters the lifespan, and does not wait.
                if await _answer_probe(self._endpoint, False, scope, send):
                    return
                await serving.wait_until_ready()
            await _serve_http(self._endpoint, self._identify, self._watch_for_stop, scope, receive, send)
        elif kind == "websocket":
            endpoint = await self._open()
            await _serve_websocket(endpoint, self._identify, self._max_message(), scope, receive, send)
        elif kind == "lifespan":
            await self._serve_lifespan(receive, send)
        else:
            raise ValueError(f"unknown type of ASGI scope {kind!r}; expected http, websocket or lifespan")

    async def aclose(self) -> None:
        """Ends streams, gives calls in flight some time, leaves the lifespan. A later request begins anew."""
        serving, endpoint = self._serving, self._endpoint
        self._serving = self._endpoint = None
        hook, self._shutdown_hook = self._shutdown_hook, None
        if hook is not None:
            hook.forget()
        try:
            if endpoint is not None:
                self._closing = endpoint
                endpoint.shut_down()
                if serving is not None and serving.is_on_this_loop():
                    deadline = serving.loop.time() + self._grace
                    while endpoint.open_exchanges and serving.loop.time() < deadline:
                        await asyncio.sleep(_DRAIN_TICK)
        finally:  # also when a host that waits no longer cancels this
            if endpoint is not None:
                endpoint.close()
            try:
                if serving is not None:
                    await serving.end()
            finally:
                self._closing = None

    async def _open(self, *, sends_shutdown: bool = False) -> Any:
        """Returns the endpoint, served by this loop, or by another that runs.

        Args:
            sends_shutdown: Whether the host says when the lifespan is to be left.
        """
        serving = self._begin(sends_shutdown=sends_shutdown)
        if serving.hosting is None:
            await serving.wait_until_ready()
        return self._endpoint

    def _begin(self, *, sends_shutdown: bool = False) -> _LoopServing:
        """Returns what serves the app, which may still enter the lifespan; parameters as in `_open`."""
        serving = self._serving
        if serving is None or serving.is_over():
            if serving is not None:
                serving.abandon()
            if self._endpoint is None:
                self._endpoint = self._app._native.endpoint(self._options)
            serving = self._serving = _LoopServing(self._app, self._endpoint)
            if self._shutdown_hook is not None:
                self._shutdown_hook.forget()
                self._shutdown_hook = None
            if not sends_shutdown and self._app._lifespan.first() is not None:
                self._shutdown_hook = ShutdownHook(serving.loop, self.aclose)
        return serving

    def _watch_for_stop(self) -> None:
        if self._serving is not None:
            self._serving.watch_for_stop()

    def _max_message(self) -> int:
        serving = self._serving
        return 0 if serving is None or serving.hosting is None else serving.hosting.serving.max_message

    async def _serve_lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                try:
                    await self._open(sends_shutdown=True)
                except Exception as error:
                    await send({"type": "lifespan.startup.failed", "message": f"{type(error).__name__}: {error}"})
                    raise
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                try:
                    await self.aclose()
                except Exception as error:
                    await send({"type": "lifespan.shutdown.failed", "message": f"{type(error).__name__}: {error}"})
                    raise
                await send({"type": "lifespan.shutdown.complete"})
                return


class _LoopServing:
    """The time that one event loop serves the app. One task enters and leaves the lifespan, as `anyio` needs it."""

    def __init__(self, app: Any, endpoint: Any) -> None:
        check_loop()
        self.loop = asyncio.get_running_loop()
        self.hosting: Hosting | None = None
        self._app = app
        self._endpoint = endpoint
        if app._verifiers is not None:
            app._verifiers.set_loop(self.loop)
        self._end_requested = asyncio.Event()
        self._stop_check: asyncio.TimerHandle | None = None
        self._entered: asyncio.Future[None] = self.loop.create_future()
        self._task = self.loop.create_task(self._run())

    async def wait_until_ready(self) -> None:
        """Waits until requests can be served; raises what the lifespan raised."""
        if asyncio.get_running_loop() is self.loop:
            await asyncio.shield(self._entered)
        else:
            while self.hosting is None and not self.is_over():
                await asyncio.sleep(_DRAIN_TICK)

    def watch_for_stop(self) -> None:
        """Starts to check whether the host is stopping, because a response takes long."""
        if self._stop_check is None and self.is_on_this_loop():
            self._stop_check = self.loop.call_later(_STOP_CHECK_INTERVAL, self._check_for_stop)

    def _check_for_stop(self) -> None:
        self._stop_check = None
        if self.hosting is None:
            return
        if is_stopping():
            self._endpoint.end_streams()
        if self._endpoint.open_exchanges:
            self.watch_for_stop()

    def is_on_this_loop(self) -> bool:
        return asyncio.get_running_loop() is self.loop

    def is_over(self) -> bool:
        """Returns whether it has ended, or its loop has."""
        return self._task.done() or self.loop.is_closed() or not (self.is_on_this_loop() or self.loop.is_running())

    def abandon(self) -> None:
        """Stops serving on a loop that was closed with tasks pending."""
        hosting, self.hosting = self.hosting, None
        if hosting is not None:
            hosting.abandon()
            self._app._lifespan.forget()

    async def end(self) -> None:
        if self.is_over():
            self.abandon()
        elif self.is_on_this_loop():
            self._end_requested.set()
            await asyncio.shield(self._task)
        else:
            self.loop.call_soon_threadsafe(self._end_requested.set)

    async def _run(self) -> None:
        try:
            await self._app._lifespan.aenter()
        except Exception as error:
            self._entered.set_exception(error)
            return
        try:
            hosting = Hosting(self._app, self._endpoint)
        except BaseException as error:
            await self._app._lifespan.aexit()
            self._entered.set_exception(error)
            return
        self.hosting = hosting
        self._entered.set_result(None)
        try:
            await self._end_requested.wait()
        except GeneratorExit:
            # The loop is closed: nothing can be awaited.
            self.abandon()
            raise
        except asyncio.CancelledError:
            # The loop is about to close: handlers get their time to clean up now.
            pass
        self.hosting = None
        try:
            await hosting.close()
        finally:
            await self._app._lifespan.aexit()


async def _answer_probe(endpoint: Any, is_started: bool, scope: Any, send: Send) -> bool:
    """Responds to a request for `health` or `ready`. Returns False for every other request."""
    answer = endpoint.probe(scope["method"], _target(scope)[0], is_started)
    if answer is None:
        return False
    await _send_head(answer, send)
    return True


async def _serve_http(
    endpoint: Any, identify: Identify, watch_for_stop: Callable[[], None], scope: Any, receive: Receive, send: Send
) -> None:
    target = (scope["method"], *_target(scope))
    head = endpoint.head(*target, _peer(scope), _mount(scope), _active_trace())
    if isinstance(head, tuple):
        await _send_head(head, send)
        return
    if endpoint.has_auth:
        principal = await _authenticate(head)
        if isinstance(principal, tuple):
            await _send_head(principal, send)
            return
    else:
        try:
            principal = await identify(scope, target, head.remote)
        except Refused as refused:
            await _send_head(refused.answer(head), send)
            return
    body = await _read_body(head, endpoint.max_body, receive)
    if body is None:
        return
    if isinstance(body, tuple):
        await _send_head(body, send)
        return
    exchange = head.request(body, principal)
    del body
    watch = _Watch(exchange, receive, watch_for_stop)
    try:
        await _send_answer(exchange, watch, send)
    except OSError:
        # Hosts report a disconnected client so (ASGI, "Disconnected Client").
        pass
    finally:
        watch.end()
        exchange.give_up()


async def _authenticate(head: Any) -> Any:
    """Returns the native `Principal`, None if the head has it, or the first part of the response to a caller that is
    refused.
    """
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    if head.authenticate(done):
        await done
    return head.authenticated()


async def _read_body(head: Any, limit: int, receive: Receive) -> Any:
    """Returns the body; the first part of the response to a request that is refused; None if the client has left."""
    chunks: list[bytes] = []
    length = 0
    message = await receive()
    while message["type"] != "http.disconnect":
        chunk = message.get("body", b"")
        length += len(chunk)
        if length > limit:
            return head.too_large()
        chunks.append(chunk)
        if not message.get("more_body", False):
            return chunks[0] if len(chunks) == 1 else b"".join(chunks)
        seconds = head.received(length)
        if isinstance(seconds, tuple):
            return seconds
        try:
            message = await asyncio.wait_for(receive(), seconds)
        except asyncio.TimeoutError:
            return head.too_slow()
    return None


async def _send_answer(exchange: Any, watch: _Watch, send: Send) -> None:
    has_begun = False
    while not watch.is_gone:
        parts = exchange.take()
        if not parts:
            await watch.wait()
        for part in parts:
            if part is None and not has_begun:
                # The server ended before there was a response.
                await _send_head((503, [(b"content-length", b"0")], b"", False), send)
                return
            has_begun = True
            if part is None:
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                return
            if part.__class__ is bytes:
                await send({"type": "http.response.body", "body": part, "more_body": True})
            elif await _send_head(part, send):
                watch.begin()
            else:
                return


async def _send_head(part: Any, send: Send) -> bool:
    """Sends the first part of a response; returns whether more follows."""
    status, headers, body, more = part
    await send({"type": "http.response.start", "status": status, "headers": headers})
    # Hosts keep what they are given; between pieces they wait until the client has read.
    start = 0
    while len(body) - start > _PIECE:
        await send({"type": "http.response.body", "body": body[start : start + _PIECE], "more_body": True})
        start += _PIECE
    await send({"type": "http.response.body", "body": body[start:], "more_body": more})
    return bool(more)


class _Watch:
    """Waits for the response, and for the client to disconnect if that takes long."""

    def __init__(self, exchange: Any, receive: Receive, watch_for_stop: Callable[[], None]) -> None:
        self.is_gone = False
        self._exchange = exchange
        self._watch_for_stop = watch_for_stop
        self._receive = receive
        self._loop = asyncio.get_running_loop()
        self._future: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    async def wait(self) -> None:
        """Waits until there is more of the response, or the client has disconnected."""
        future: asyncio.Future[None] = self._loop.create_future()
        if self._exchange.wait(future):
            self._future = future
            if self._timer is None:
                self._timer = self._loop.call_later(_WATCH_DELAY, self.begin)
            await future

    def begin(self) -> None:
        if self._task is None:
            self._task = self._loop.create_task(self._run())
            self._watch_for_stop()

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.is_gone = True
        self._exchange.give_up()
        if self._future is not None:
            resolve(self._future)


async def _serve_websocket(
    endpoint: Any, identify: Identify, limit: int, scope: Any, receive: Receive, send: Send
) -> None:
    if (await receive())["type"] != "websocket.connect":
        return
    target = _target(scope)
    head = endpoint.upgrade(*target, _peer(scope), _mount(scope))
    if isinstance(head, tuple):
        await _refuse_websocket(head, scope, send)
        return
    if endpoint.has_auth:
        principal = await _authenticate(head)
        if isinstance(principal, tuple):
            await _refuse_websocket(principal, scope, send)
            return
    else:
        try:
            principal = await identify(scope, ("GET", *target), head.remote)
        except Refused as refused:
            await _refuse_websocket(refused.answer(head), scope, send)
            return
    offered = scope.get("subprotocols") or ()
    await send({"type": "websocket.accept", "subprotocol": "mcp" if "mcp" in offered else None})
    connection = endpoint.connect(principal, head.remote)

    async def send_messages() -> None:
        async def send_text(message: bytes) -> None:
            await send({"type": "websocket.send", "text": message.decode()})

        await send_all(connection, send_text)
        if connection.has_expired:
            await send({"type": "websocket.close", "code": 1008, "reason": _EXPIRED})
        else:
            await send({"type": "websocket.close", "code": 1000})

    sending = asyncio.ensure_future(send_messages())
    try:
        while (message := await receive())["type"] == "websocket.receive":
            text = message.get("text")
            frame = message.get("bytes") or b"" if text is None else text.encode()
            if len(frame) > limit:
                connection.too_long(limit, frame)
            else:
                connection.message(frame)
            await room(connection)
    finally:
        connection.hang_up()
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)


async def _refuse_websocket(refusal: Any, scope: Any, send: Send) -> None:
    if "websocket.http.response" not in (scope.get("extensions") or {}):
        # Before it is accepted, closing is a 403.
        await send({"type": "websocket.close", "code": 1008})
        return
    status, headers, body, _ = refusal
    await send({"type": "websocket.http.response.start", "status": status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": body})


def _active_trace() -> tuple[str | None, str | None, str | None] | None:
    """Returns the context of the span that is active in the host, if the program traces."""
    if "opentelemetry.trace" not in sys.modules:
        return None
    from .._call.tracing import active_context

    return active_context()


def _peer(scope: Any) -> str | None:
    """Returns the address of the other side of the connection, if the host knows it; "unix" for a Unix socket."""
    client, server = scope.get("client"), scope.get("server")
    if client and isinstance(client[0], str):
        return client[0]
    # The server of a Unix socket is its path, without a port.
    return "unix" if server and isinstance(server[0], str) and server[1] is None else None


def _mount(scope: Any) -> tuple[bytes, bool]:
    """Returns the prefix of the path below which the app is mounted, and whether the host is reached by https."""
    prefix = quote(scope.get("root_path") or "", safe=_SAFE).encode().rstrip(b"/")
    return prefix, scope.get("scheme") in ("https", "wss")


def _target(scope: Any) -> tuple[bytes, bytes, Any, tuple[bool, int | None]]:
    """Returns path, query, headers, and whether the request came over the loopback interface, with its port."""
    # The path as in the request line; older hosts leave out the path of the mount.
    path = scope.get("raw_path") or quote(scope["path"], safe=_SAFE).encode()
    root = quote(scope.get("root_path") or "", safe=_SAFE).encode().rstrip(b"/")
    line = path[len(root) :] if path.startswith(root) else path
    if not line.startswith(b"/") and b"://" in line:
        # A request line in absolute form: its host is checked as the Host header is.
        path, root = line, b""
    if root and not (path == root or path.startswith(root + b"/")):
        path = root + path
    server = scope.get("server")
    address = server[0] if server else None
    # The path of a Unix socket has none.
    port = server[1] if server and isinstance(server[1], int) else None
    via_loopback = isinstance(address, str) and (address in ("::1", "localhost") or address.startswith("127."))
    return path or b"/", scope.get("query_string") or b"", scope["headers"], (via_loopback, port)
