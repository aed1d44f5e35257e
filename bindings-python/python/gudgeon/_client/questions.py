"""A server's questions → the user's callbacks → answers, which the native half reads."""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from typing import Any

from .._model.json import encode
from ..errors import Cancelled, Declined
from ..types import Accepted, ElicitRequest, RootsRequest, SampleRequest
from .errors import UnreadableQuestion
from .read import UNREADABLE

Answering = Generator[Any, Any, bytes]
"""Yields what the callback returned, which may be awaitable, and receives its result."""


class Keyed:
    """A callback that also gets the question's key, where the server sends one: `answer(key, request)`."""

    def __init__(self, answer: Callable[[str | None, Any], Any]) -> None:
        self.answer = answer

    def __call__(self, request: Any = None) -> Any:
        return self.answer(None, request)


def answering(
    kind: str, callback: Callable[..., Any], params: bytes, key: str | None, server: str | None = None
) -> Answering:
    """Returns what a callback answers, as JSON; `server` is the name of the asking server in a group."""
    ask: Callable[..., Any] = partial(callback.answer, key) if isinstance(callback, Keyed) else callback
    if kind == "auth":
        # Asked by the client itself, not by the server.
        from msgspec.json import decode

        answer = yield callback(decode(params))
        return encode(answer, "the value that the function of auth= returned")
    if kind == "roots":
        answer = yield (ask(RootsRequest()) if isinstance(callback, Keyed) else callback())
    else:
        request = _read_request(ElicitRequest if kind == "on_elicit" else SampleRequest, params)
        answer = yield ask(_asked_by(server, request))
    if isinstance(answer, (Declined, Cancelled)) or answer is Declined or answer is Cancelled:
        raise answer
    return encode(answer.value if isinstance(answer, Accepted) else answer, "the answer")


def _read_request(type: Any, params: bytes) -> Any:
    from msgspec.json import decode

    try:
        return type.from_dict(decode(params))
    except UNREADABLE as error:
        raise UnreadableQuestion(-32602, f"the server's question can't be read: {error}") from error


def _asked_by(server: str | None, request: Any) -> Any:
    return request if server is None else type(request)(**{**vars(request), "server": server})
