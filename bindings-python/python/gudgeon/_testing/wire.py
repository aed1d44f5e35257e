"""The wire between a test's client and its server, which records, injects faults and restarts the server."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from .._client.memory import CHUNK
from .faults import Faults


class Tap:
    """A transport that records and changes messages; the server serves the other end of a socket pair."""

    def __init__(self, server: Any, testing: Any, faults: Any, recorder: Any) -> None:
        self._server = server
        self.stands_for = f"Server({server.name!r})"
        self._testing = testing
        self._recorder = recorder
        self._link = (faults or Faults())._link()
        # Messages for the client, and those of the server that were not passed to the link yet.
        self._ready: list[bytes] = []
        self._inbox: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._serving: _Serving | None = None
        self._lock: asyncio.Lock | None = None

    async def send(self, message: bytes, /) -> None:
        restart, to_server, to_client = self._link.sent_by_client(message)
        serving = await self._served(restart=restart)
        if self._recorder is not None:
            self._recorder._add(">", message)
        for copy in to_server:
            await serving.send(copy)
        if to_client:
            self._ready += to_client
            self._inbox.put_nowait(b"")  # wakes `receive`

    async def receive(self) -> bytes | None:
        await self._served()
        while not self._ready:
            message = await self._inbox.get()
            if message is None:
                return None
            if message:
                _, to_server, to_client = self._link.sent_by_server(message)
                for copy in to_server:
                    await (await self._served()).send(copy)
                if self._recorder is not None:
                    self._recorder._add("<", message)
                self._ready += to_client
        return self._ready.pop(0)

    async def close(self) -> None:
        if self._serving is not None:
            await self._serving.close()

    async def _served(self, restart: bool = False) -> _Serving:
        if self._lock is None:
            self._lock = asyncio.Lock()
        async with self._lock:
            if restart and self._serving is not None:
                await self._serving.end()
                self._serving = None
            if self._serving is None:
                self._serving = await _Serving(self._inbox).start(self._server, self._testing)
            return self._serving


class _Serving:
    """The server as one process serves it; its messages go into the inbox."""

    def __init__(self, inbox: asyncio.Queue[bytes | None]) -> None:
        self._inbox = inbox
        self._rest = bytearray()
        self._stream: Any = None
        self._served: Any = None
        self._reader: Any = None
        self._is_ending = False

    async def start(self, server: Any, testing: Any) -> _Serving:
        self._stream, theirs = socket.socketpair()
        self._stream.setblocking(False)
        try:
            self._served = await server._serve_in_memory(testing).start(theirs.fileno())
        except BaseException:
            self._stream.close()
            raise
        finally:
            theirs.close()
        self._reader = asyncio.ensure_future(self._read())
        return self

    async def send(self, message: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self._stream, message + b"\n")

    async def end(self) -> None:
        """Waits for the calls in flight; handlers that wait for answers are dropped."""
        self._is_ending = True
        self._stream.shutdown(socket.SHUT_WR)
        await self._served.aclose()
        await self._stop_reading()
        try:
            while chunk := self._stream.recv(CHUNK):
                self._take(chunk)
        except BlockingIOError:
            pass  # the end of the messages
        self._stream.close()

    async def close(self) -> None:
        await self._stop_reading()
        self._stream.close()
        await self._served.aclose()

    async def _read(self) -> None:
        loop = asyncio.get_running_loop()
        while chunk := await loop.sock_recv(self._stream, CHUNK):
            self._take(chunk)
        if not self._is_ending:
            self._inbox.put_nowait(None)

    async def _stop_reading(self) -> None:
        self._reader.cancel()
        await asyncio.wait([self._reader])

    def _take(self, chunk: bytes) -> None:
        self._rest += chunk
        *whole, rest = self._rest.split(b"\n")
        self._rest = bytearray(rest)
        for line in whole:
            self._inbox.put_nowait(bytes(line))
