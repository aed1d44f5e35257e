"""The wire between a test's client and its server: recorded, and as bad as is wanted."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from ._client_memory import lines
from ._client_options import REVISIONS
from .errors import Declined, NotSupported


class TestLink:
    """How a test's client is connected."""

    __test__ = False  # pytest: this is no test

    def __init__(
        self, server: Any, era: str, answers: Mapping[str, Any] | None, replay: bool, faults: Any, recorder: Any
    ) -> None:
        if era not in REVISIONS:
            raise ValueError(f"era= is one of {', '.join(REVISIONS)}, not {era!r}")
        if replay or (faults is not None and faults.restart_between_rounds):
            raise NotSupported(
                "rounds of questions are not part of this version's servers: nothing can be replayed between them",
                hint="leave out replay= and restart_between_rounds=",
            )
        self._server = server
        self._era = era
        self._answers = answers
        self._faults = faults
        self._recorder = recorder

    def _options(self) -> dict[str, Any]:
        options: dict[str, Any] = {"revision": self._era}
        if self._answers is not None:
            answers = Answers(self._answers)
            options.update(on_elicit=answers.elicit, on_sample=answers.sample)
        return options

    @property
    def _is_plain(self) -> bool:
        return self._faults is None and self._recorder is None

    @asynccontextmanager
    async def connecting(self, client: Any) -> AsyncGenerator[Any]:
        target = self._server if self._is_plain else Tap(self._server, self._faults, self._recorder)
        async with client(target, **self._options()) as connected:
            yield connected

    @contextmanager
    def connecting_sync(self, client: Any) -> Generator[Any]:
        target = self._server if self._is_plain else Tap(self._server, self._faults, self._recorder)
        with client(target, **self._options()) as connected:
            yield connected


class Answers:
    """Answers by message: what `on_elicit` may give, texts of the model's, or functions of the request."""

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self._answers = answers

    def elicit(self, request: Any) -> Any:
        return self._find(request.message, request)

    def sample(self, request: Any) -> Any:
        return self._find(request.messages[-1].text if request.messages else "", request)

    def _find(self, message: str, request: Any) -> Any:
        if message not in self._answers:
            raise AssertionError(
                f"the server asks {message!r}, and answers= has only {', '.join(map(repr, self._answers))}"
            )
        answer = self._answers[message]
        if isinstance(answer, type) and issubclass(answer, Declined):
            return answer()
        return answer(request) if callable(answer) else answer


class Tap:
    """A transport that listens in: the server serves the far end of a pair of sockets."""

    def __init__(self, server: Any, faults: Any, recorder: Any) -> None:
        self._server = server
        self._faults = faults
        self._recorder = recorder
        self._random = random.Random(None if faults is None else faults.seed)
        self._stream: socket.socket | None = None
        self._served: Any = None
        self._lines: Any = None
        self._again: list[bytes] = []
        self._is_opening = True
        self._starting: asyncio.Lock | None = None

    async def _open(self) -> socket.socket:
        if self._starting is None:
            self._starting = asyncio.Lock()
        async with self._starting:
            if self._stream is None:
                from ._serving import Served

                ours, theirs = socket.socketpair()
                ours.setblocking(False)
                self._served = await Served(self._server).start(theirs.fileno())
                theirs.close()
                self._lines = lines(ours)
                self._stream = ours
            return self._stream

    async def send(self, message: bytes, /) -> None:
        stream = await self._open()
        if self._recorder is not None:
            self._recorder._say(">", message)
        await asyncio.get_running_loop().sock_sendall(stream, message + b"\n")

    async def receive(self) -> bytes | None:
        if self._again:
            return self._again.pop()
        await self._open()
        async for message in self._lines:
            if self._recorder is not None:
                self._recorder._say("<", message)
            faults = self._faults
            if faults is None or self._is_opening:
                self._is_opening = False
                return bytes(message)
            if self._random.random() < faults.drop:
                continue
            if self._random.random() < faults.duplicate:
                self._again.append(message)
            return bytes(message)
        return None

    async def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
        if self._served is not None:
            await self._served.aclose()
