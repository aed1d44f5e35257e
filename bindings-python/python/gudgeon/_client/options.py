"""Checks the options of clients and calls, and writes them as JSON for the native half."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from .._model.callables import check_takes
from .._model.mappings import value_of
from .._model.sign_in import credentials_of
from .._native import check_options, declared_options
from .middleware import middleware_of


class Retry:
    """Limits for repeating calls while the server can't be reached; for `retry=` of a client.

    Args:
        attempts: The number of attempts in all, after growing delays. Default 5.
        deadline: Seconds after which no further attempt begins. Default 30.
        only_safe: Repeats only reads, lists, and tools marked read-only or idempotent. Default True.

    Raises:
        ValueError: A number is not above 0.

    >>> Retry(attempts=2).deadline
    30
    """

    __slots__ = ("attempts", "deadline", "only_safe")

    def __init__(self, *, attempts: int = 5, deadline: float = 30, only_safe: bool = True) -> None:
        check_options("retry", "Retry", {"attempts": attempts, "deadline": deadline, "only_safe": only_safe})
        self.attempts = attempts
        self.deadline = deadline
        self.only_safe = only_safe

    def _limits(self) -> dict[str, Any]:
        return declared_options("retry", {name: getattr(self, name) for name in self.__slots__})


class Options:
    """The checked options of a client, which messages call `subject`."""

    def __init__(self, given: dict[str, Any], subject: str = "Client") -> None:
        retry = given.get("retry")
        if isinstance(retry, dict):
            retry = Retry(**retry)
        auth = credentials_of(given.get("auth"), subject)
        self._wire = {**given, "retry": retry._limits() if isinstance(retry, Retry) else retry}
        if auth is not None:
            self._wire["auth"] = auth._declared
        check_options("client", subject, self._wire)
        self.given = given
        self._subject = subject
        self.middleware = middleware_of(given.get("middleware"))
        self.callbacks: dict[str, Callable[..., Any]] = {
            name: value for name, value in given.items() if callable(value)
        }
        self.callbacks.pop("auth", None)
        for name, callback in self.callbacks.items():
            check_takes(callback, "" if name == "roots" else "value", f"{subject}: the function of {name}=")
        self.auth = auth

    def callback(self, kind: str) -> Callable[..., Any]:
        """Returns the function that answers questions of a kind."""
        return self.auth._call if kind == "auth" and self.auth is not None else self.callbacks[kind]

    def to_json(self) -> bytes:
        from .._model.json import encode

        declared = declared_options("client", self._wire)
        if "clientInfo" in declared:
            from ..types import Implementation

            where = f"{self._subject}: client_info="
            declared["clientInfo"] = value_of(Implementation, declared["clientInfo"], where).to_dict()
        roots = self.given.get("roots")
        callbacks = [*self.callbacks, *(["middleware"] if self.middleware else [])]
        return encode(
            {**declared, "roots": None if callable(roots) else roots, "callbacks": callbacks},
            f"{self._subject}: the options",
        )


# Imported by programs that trace; never imported here.
_TRACES = "opentelemetry.trace"


def encode_call_options(options: dict[str, Any]) -> bytes | None:
    """Returns the options of one call and its trace context as JSON; None if there are none."""
    if not options and _TRACES not in sys.modules:
        return None
    check_options("call", "call_tool()", options)
    out = declared_options("call", options)
    if _TRACES in sys.modules:
        from .._model.trace_context import with_trace_context

        out["meta"] = with_trace_context(options.get("meta"))
    if not out.get("meta"):
        out.pop("meta", None)
    if not out:
        return None
    from .._model.json import encode

    return encode(out)
