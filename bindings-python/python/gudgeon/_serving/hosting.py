"""An endpoint with input and output on the running event loop: behind an ASGI server, or a transport of the user."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from typing import Any

from .._model.transport import message_bytes
from .asyncio_queue import CLEANUP, AsyncioQueue
from .serve import GRACE, export_metrics


class Hosting:
    """One event loop that serves an endpoint, with its timer and wake-ups."""

    def __init__(self, app: Any, endpoint: Any) -> None:
        self.loop = asyncio.get_running_loop()
        self.endpoint = endpoint
        export_metrics(app)
        self.serving = endpoint.serve(app._native, app, copy_context())
        self._timer: asyncio.TimerHandle | None = None
        self._queue = AsyncioQueue(self.serving, self.loop)
        self.loop.add_reader(endpoint.fileno(), self._on_wake_up)
        # Timers that expired while no loop was serving.
        endpoint.tick()

    async def close(self) -> None:
        """Stops serving on this loop. The endpoint and its sessions stay."""
        if self._timer is not None:
            self._timer.cancel()
        await self._queue.close()
        self.loop.remove_reader(self.endpoint.fileno())
        # Resolves the futures that wait for the last messages.
        self._on_wake_up(is_last=True)
        self.serving.stop(CLEANUP)

    def abandon(self) -> None:
        """Stops serving after the loop was closed."""
        self.serving.detach()
        self.serving.stop(0.0)

    def _on_wake_up(self, *, is_last: bool = False) -> None:
        for future in self.endpoint.collect():
            loop = future.get_loop()
            if loop is self.loop:
                resolve(future)
            elif not loop.is_closed():
                loop.call_soon_threadsafe(resolve, future)
        delay = None if is_last else self.endpoint.alarm()
        if delay is not None:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self.loop.call_later(delay, self.endpoint.tick)


def resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


async def send_all(connection: Any, send: Callable[[bytes], Awaitable[Any]]) -> None:
    """Sends the messages of a connection until it is closed."""
    loop = asyncio.get_running_loop()
    while True:
        messages = connection.take()
        for message in messages:
            if message is None:
                return
            await send(message)
        if not messages:
            future = loop.create_future()
            if connection.wait(future):
                await future


async def room(connection: Any) -> None:
    """Waits while too much is unanswered or unsent; this is the reader's back pressure."""
    if connection.is_full:
        # Gives the sending task a turn first.
        await asyncio.sleep(0)
        loop = asyncio.get_running_loop()
        while connection.wait_for_room(future := loop.create_future()):
            await future


async def serve_wire(app: Any, wire: Any) -> None:
    """Serves a transport of the user until it ends; then calls in flight get some time."""
    for name in ("receive", "send", "close"):
        if not callable(getattr(wire, name, None)):
            raise TypeError(
                f"serve takes 'stdio', an address such as 'http://127.0.0.1:8000/mcp', or a Transport with receive, "
                f"send and close; {type(wire).__name__} has no {name}()"
            )
    await app._lifespan.aenter()
    try:
        hosting = Hosting(app, app._native.endpoint(b"{}"))
        try:
            await _carry(hosting, wire)
        finally:
            hosting.endpoint.close()
            await hosting.close()
    finally:
        await app._lifespan.aexit()


async def _carry(hosting: Hosting, wire: Any) -> None:
    connection = hosting.endpoint.connect()
    receiving = asyncio.ensure_future(_receive_all(hosting, connection, wire))
    sending = asyncio.ensure_future(send_all(connection, wire.send))
    try:
        await asyncio.wait([receiving, sending], return_when=asyncio.FIRST_COMPLETED)
        if receiving.done():
            deadline = hosting.loop.time() + GRACE
            while hosting.serving.in_flight and hosting.loop.time() < deadline and not sending.done():
                await asyncio.wait([sending], timeout=0.01)
            # Nothing more is sent after that.
            hosting.endpoint.close()
            await asyncio.wait([sending], timeout=CLEANUP)
    finally:
        connection.hang_up()
        for task in (receiving, sending):
            task.cancel()
        results = await asyncio.gather(receiving, sending, return_exceptions=True)
        await wire.close()
    for result in results:
        if isinstance(result, Exception):
            raise result


async def _receive_all(hosting: Hosting, connection: Any, wire: Any) -> None:
    limit = hosting.serving.max_message
    while (given := await wire.receive()) is not None:
        message = message_bytes(given)
        if len(message) > limit:
            connection.too_long(limit, message)
        else:
            connection.message(message)
        await room(connection)
