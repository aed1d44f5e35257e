"""The wire between a test's client and its server, which records, injects faults and restarts the server."""

from __future__ import annotations

import asyncio
import random
import socket
from typing import Any

from .._client.memory import CHUNK

_HANDSHAKE = ("initialize", "notifications/initialized", "server/discover")


class Tap:
    """A transport that records and changes messages; the server serves the other end of a socket pair."""

    def __init__(self, server: Any, testing: Any, faults: Any, recorder: Any) -> None:
        self._server = server
        self.stands_for = f"Server({server.name!r})"
        self._testing = testing
        self._recorder = recorder
        self._restarts = faults is not None and faults.restart_between_rounds
        # Separately for each direction: their interleaving is random.
        self._to_server = _Faults(faults, ">")
        self._to_client = _Faults(faults, "<")
        self._inbox: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._again: list[bytes] = []
        self._opening: set[Any] = set()
        self._late: dict[Any, bytes] = {}
        # The same for requests of the server.
        self._late_questions: dict[Any, bytes] = {}
        self._copies: list[bytes] = []
        self._serving: _Serving | None = None
        self._lock: asyncio.Lock | None = None

    async def send(self, message: bytes, /) -> None:
        frame = _decode(message)
        is_request = "method" in frame and "id" in frame
        serving = await self._served(restart=self._restarts and "requestState" in (frame.get("params") or {}))
        if self._recorder is not None:
            self._recorder._add(">", message)
        if frame.get("method") in _HANDSHAKE:
            self._opening.add(frame.get("id"))
            return await serving.send(message)
        copies = self._to_server.copies(frame.get("id"))
        for _ in range(min(copies, 1) if is_request else copies):
            await serving.send(message)
        if is_request and copies == 2:
            # A copy of a request in flight would be refused: it is sent after the answer.
            self._late[frame["id"]] = message
        if "method" not in frame and frame.get("id") in self._late_questions:
            copy = self._late_questions.pop(frame["id"])
            self._copies.append(copy)
            self._inbox.put_nowait(copy)

    async def receive(self) -> bytes | None:
        if self._again:
            return self._again.pop()
        await self._served()
        while (message := await self._inbox.get()) is not None:
            if message in self._copies:
                self._copies.remove(message)
                return message
            frame = _decode(message)
            number = frame.get("id") if "method" not in frame else None
            if number in self._late:
                await (await self._served()).send(self._late.pop(number))
            if self._recorder is not None:
                self._recorder._add("<", message)
            copies = 1 if number is not None and number in self._opening else self._to_client.copies(frame.get("id"))
            if copies == 2 and "method" in frame and "id" in frame:
                self._late_questions[frame["id"]] = message
            elif copies == 2:
                self._again.append(message)
            if copies:
                return message
        return None

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


class _Faults:
    """Decides whether messages of one direction are dropped or duplicated."""

    def __init__(self, faults: Any, mark: str) -> None:
        self._drop = 0.0 if faults is None else faults.drop
        self._duplicate = 0.0 if faults is None else faults.duplicate
        self._seed = f"{0 if faults is None else faults.seed}{mark}"
        self._others = random.Random(self._seed)

    def copies(self, number: Any) -> int:
        """Decides by the message's id if it has one, because the order of messages is random."""
        chance = self._others if number is None else random.Random(f"{self._seed}{number!r}")
        if chance.random() < self._drop:
            return 0
        return 2 if chance.random() < self._duplicate else 1


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


def _decode(message: bytes) -> dict[str, Any]:
    from msgspec.json import decode

    frame: Any = decode(message)
    # A batch has no id of its own.
    return frame if isinstance(frame, dict) else {}
