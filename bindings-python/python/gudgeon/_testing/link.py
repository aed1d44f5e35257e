"""The connection between a test's client and the server under test."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from .._client.questions import Keyed
from .._client.targets import InMemory, is_server
from .._model.unknown import unknown_name
from .._native import TestServing, check_options
from .._serving.principals import native_principal
from ..errors import Cancelled, Declined, ProtocolError
from ..types import Principal, RootsRequest, SampleRequest
from .faults import Faults, Recorder

_ANSWERING = ("on_elicit", "on_sample", "roots")
_OPTIONS = ("revision", "answers", "principal", "headers", "on_log", "replay", "faults", "recorder")


class TestLink:
    """Connects a test's client."""

    __test__ = False  # pytest must not collect it

    def __init__(
        self,
        server: Any,
        revision: str | None,
        answers: Mapping[str, Any] | None,
        principal: Any,
        headers: Mapping[str, str] | None,
        on_log: Callable[[Any], Any] | None,
        replay: bool,
        faults: Any,
        recorder: Any,
        client_options: Mapping[str, Any],
    ) -> None:
        if not is_server(server):
            raise TypeError(f"connect() takes a Server, not {server!r}: Client connects to anything else")
        _check_options({**client_options, "revision": revision})
        for name in _ANSWERING if answers is not None else ():
            if name in client_options:
                raise TypeError(f"connect(): answers= answers every question, so {name}= is never called: give one")
        if answers is not None and not isinstance(answers, Mapping):
            raise TypeError(f"connect(): answers= is a mapping of questions to answers, not {answers!r}")
        if on_log is not None and not callable(on_log):
            raise TypeError(f"connect(): on_log= is a function of a LogMessage, not {on_log!r}")
        for name, given, wanted in (
            ("principal", principal, Principal),
            ("faults", faults, Faults),
            ("recorder", recorder, Recorder),
        ):
            if given is not None and not isinstance(given, wanted):
                raise TypeError(f"connect(): {name}= takes a {wanted.__name__}, not {given!r}")
        self._server = server
        self._client_options = client_options
        self._revision = revision
        self._answers = answers
        self._on_log = on_log
        self._testing = TestServing(
            replays=bool(replay),
            state_key=os.urandom(32),
            principal=None if principal is None else native_principal(principal),
            headers=_headers(headers),
        )
        self._faults = faults
        self._recorder = recorder

    def _options(self) -> dict[str, Any]:
        options = {**self._client_options, "revision": self._revision or "auto", "on_log": self._on_log}
        if self._answers is not None:
            options |= dict.fromkeys(_ANSWERING, Keyed(Answers(self._answers)))
        return options

    def _target(self) -> Any:
        if self._faults is None and self._recorder is None:
            return InMemory(self._server, self._testing)
        from .wire import Tap

        return Tap(self._server, self._testing, self._faults, self._recorder)

    @asynccontextmanager
    async def connecting(self, client: Any) -> AsyncGenerator[Any]:
        async with client(self._target(), **self._options()) as connected:
            yield connected

    @contextmanager
    def connecting_sync(self, client: Any) -> Generator[Any]:
        with client(self._target(), **self._options()) as connected:
            yield connected


def _check_options(options: dict[str, Any]) -> None:
    """Raises for options that a client does not have or take; names of `connect` itself are suggested first."""
    try:
        check_options("client", "connect()", options)
    except TypeError as error:
        for name in options:
            own = unknown_name("connect()", "option", name, _OPTIONS, {"era": "revision"})
            if f"unknown option {name!r}" in str(error) and "did you mean" in str(own):
                raise own from None
        raise


class Answers:
    """Answers questions by key or message: by values of `on_elicit`, strings, roots, or functions of the request."""

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


def _headers(headers: Mapping[str, str] | None) -> list[tuple[str, str]]:
    if headers is not None and not isinstance(headers, Mapping):
        raise TypeError(f"connect(): headers= is a mapping of names to values, not {headers!r}")
    for name, value in (headers or {}).items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise TypeError(f"connect(): headers= takes strings, not {{{name!r}: {value!r}}}")
    return list((headers or {}).items())


def _messages(request: Any) -> list[str]:
    """Returns the names of a question besides its key, by which it can be answered."""
    if isinstance(request, RootsRequest):
        return ["roots"]
    if isinstance(request, SampleRequest):
        return [message.text for message in reversed(request.messages)]
    return [request.message]
