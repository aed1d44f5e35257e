"""The other end of a client's socket pair: a server of this program, or a transport of the user."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Coroutine
from typing import Any

from .._model.transport import message_bytes
from .targets import InMemory, Wire

CHUNK = 256 * 1024


class OtherEnd:
    """Serves one end of a socket pair on the running loop, or from a thread."""

    def __init__(self, place: InMemory | Wire) -> None:
        self._place = place
        self._served: Any = None
        self._pump: asyncio.Task[None] | None = None
        self._thread: _LoopThread | None = None

    async def open(self) -> socket.socket:
        """Opens the socket pair; returns the client's end."""
        ours, theirs = socket.socketpair()
        try:
            if isinstance(self._place, InMemory):
                self._served = await self._place.serve().start(theirs.fileno())
                theirs.close()
            else:
                self._pump = asyncio.ensure_future(pump(self._place.transport, theirs))
        except BaseException:
            ours.close()
            theirs.close()
            raise
        return ours

    async def close(self) -> None:
        if self._served is not None:
            await self._served.aclose()
        if self._pump is not None:
            self._pump.cancel()
            await asyncio.wait([self._pump])

    def leave(self) -> None:
        """Ends the server after its event loop was closed."""
        if self._served is not None:
            self._served.leave()

    def open_blocking(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        try:
            if isinstance(self._place, InMemory):
                self._served = self._place.serve().start_thread(theirs.fileno())
                theirs.close()
            else:
                self._thread = _LoopThread(pump(self._place.transport, theirs))
        except BaseException:
            ours.close()
            theirs.close()
            raise
        return ours

    def close_blocking(self) -> None:
        if self._served is not None:
            self._served.close()
        if self._thread is not None:
            self._thread.stop()


class _LoopThread:
    """Runs a coroutine on an event loop in a new thread."""

    def __init__(self, coroutine: Coroutine[Any, Any, None]) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Future[None] | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(coroutine,), name="gudgeon-transport", daemon=True)
        self._thread.start()
        self._ready.wait()

    def _run(self, coroutine: Coroutine[Any, Any, None]) -> None:
        async def main() -> None:
            self._loop = asyncio.get_running_loop()
            self._task = task = asyncio.ensure_future(coroutine)
            self._ready.set()
            await asyncio.wait([task])

        asyncio.run(main())

    def stop(self) -> None:
        if self._loop is not None and self._task is not None:
            try:
                self._loop.call_soon_threadsafe(self._task.cancel)
            except RuntimeError:
                pass  # it is over already
        self._thread.join()


async def pump(transport: Any, stream: socket.socket) -> None:
    """Copies messages between a transport of the user and a socket, until either ends."""
    stream.setblocking(False)

    async def send() -> None:
        async for line in lines(stream):
            await transport.send(line)

    async def receive() -> None:
        loop = asyncio.get_running_loop()
        while (message := await transport.receive()) is not None:
            # One message per line: in JSON, line breaks stand outside of strings only, where they are space.
            line = message_bytes(message).replace(b"\n", b" ").replace(b"\r", b" ")
            await loop.sock_sendall(stream, line + b"\n")

    halves = [asyncio.ensure_future(send()), asyncio.ensure_future(receive())]
    try:
        done, _ = await asyncio.wait(halves, return_when=asyncio.FIRST_COMPLETED)
        for half in done:
            error = half.exception()
            if error is not None and not isinstance(error, ConnectionError):
                _report(error)
    finally:
        await _undisturbed(_end(halves, stream, transport))


async def _end(halves: list[asyncio.Task[None]], stream: socket.socket, transport: Any) -> None:
    for half in halves:
        half.cancel()
    await asyncio.gather(*halves, return_exceptions=True)
    stream.close()
    await transport.close()


async def _undisturbed(coroutine: Coroutine[Any, Any, None]) -> None:
    """Awaits a coroutine to its end, also when the caller is cancelled."""
    task = asyncio.ensure_future(coroutine)
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            pass
    task.result()


async def lines(stream: socket.socket) -> AsyncIterator[bytes]:
    """Yields the lines that arrive at a socket."""
    loop, rest = asyncio.get_running_loop(), bytearray()
    while chunk := await loop.sock_recv(stream, CHUNK):
        rest += chunk
        if b"\n" in chunk:
            *whole, last = rest.split(b"\n")
            rest = bytearray(last)
            for line in whole:
                yield bytes(line)


def _report(error: BaseException) -> None:
    import logging

    logging.getLogger("gudgeon").error("the transport failed", exc_info=error)
