"""How a test's client is connected: to a server that is rehearsed, over a wire as bad as is wanted."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from ._client_options import REVISIONS
from ._client_questions import Keyed
from ._client_targets import InMemory, is_server
from .errors import Cancelled, Declined, ProtocolError
from .types import RootsRequest, SampleRequest


class TestLink:
    """How a test's client is connected."""

    __test__ = False  # pytest: this is no test

    def __init__(
        self, server: Any, era: str | None, answers: Mapping[str, Any] | None, replay: bool, faults: Any, recorder: Any
    ) -> None:
        from .testing import Faults, Recorder

        if not is_server(server):
            raise TypeError(f"connect() takes a Server, not {server!r}: Client connects to anything else")
        if era is not None and era not in REVISIONS:
            raise ValueError(f"era= is one of {', '.join(REVISIONS)}, not {era!r}")
        if answers is not None and not isinstance(answers, Mapping):
            raise TypeError(f"answers= is a mapping of questions to answers, not {answers!r}")
        for name, given, wanted in (("faults", faults, Faults), ("recorder", recorder, Recorder)):
            if given is not None and not isinstance(given, wanted):
                raise TypeError(f"{name}= takes a {wanted.__name__}, not {given!r}")
        self._server = server
        self._era = era
        self._answers = answers
        self._rehearsal = (bool(replay), os.urandom(32))
        self._faults = faults
        self._recorder = recorder

    def _options(self) -> dict[str, Any]:
        options: dict[str, Any] = {"revision": self._era or "auto"}
        if self._answers is not None:
            answer = Keyed(Answers(self._answers))
            options.update(on_elicit=answer, on_sample=answer, roots=answer)
        return options

    def _target(self) -> Any:
        if self._faults is None and self._recorder is None:
            return InMemory(self._server, self._rehearsal)
        from ._testing_wire import Tap

        return Tap(self._server, self._rehearsal, self._faults, self._recorder)

    @asynccontextmanager
    async def connecting(self, client: Any) -> AsyncGenerator[Any]:
        async with client(self._target(), **self._options()) as connected:
            yield connected

    @contextmanager
    def connecting_sync(self, client: Any) -> Generator[Any]:
        with client(self._target(), **self._options()) as connected:
            yield connected


class Answers:
    """Answers by key or message: what `on_elicit` may give, a model's texts, roots, or functions of the request."""

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self._answers = dict(answers)

    def __call__(self, key: str | None, request: Any) -> Any:
        messages = _messages(request)
        for name in (key, *messages):
            if name is not None and name in self._answers:
                answer = self._answers[name]
                if isinstance(answer, type) and issubclass(answer, (Declined, Cancelled)):
                    return answer()
                return answer(request) if callable(answer) else answer
        asked = repr(messages[0] if messages else "") + ("" if key is None else f" (key {key!r})")
        known = ", ".join(map(repr, self._answers)) or "none"
        raise ProtocolError(-32603, f"answers= has nothing for {asked}: it answers {known}")


def _messages(request: Any) -> list[str]:
    """What a question may be answered by beside its key."""
    if isinstance(request, RootsRequest):
        return ["roots"]
    if isinstance(request, SampleRequest):
        return [message.text for message in reversed(request.messages)]
    return [request.message]
