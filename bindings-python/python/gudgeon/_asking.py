"""Questions of a handler to its client: what `ctx.elicit` and its kin return."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Coroutine, Generator
from typing import Any

from .ask import Question
from .errors import NotSupported

_CAPABILITIES = {"elicit": "elicitation", "elicit_url": "elicitation", "sample": "sampling", "roots": "roots"}
MISSING_CAPABILITY = -32021


class Asking(Coroutine[Any, Any, Any]):
    """A question under way. Await it: tested for truth it raises, never awaited it warns."""

    __slots__ = ("_coroutine", "_make", "_name")

    def __init__(self, name: str, make: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        self._name = name
        self._make: Callable[[], Coroutine[Any, Any, Any]] | None = make
        self._coroutine: Coroutine[Any, Any, Any] | None = None

    def _begun(self) -> Coroutine[Any, Any, Any]:
        if self._coroutine is None:
            assert self._make is not None
            self._coroutine = self._make()
            self._make = None
        return self._coroutine

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._begun().__await__()

    def send(self, value: Any, /) -> Any:
        return self._begun().send(value)

    def throw(self, *error: Any) -> Any:
        return self._begun().throw(*error)

    def close(self) -> None:
        self._make = None
        if self._coroutine is not None:
            self._coroutine.close()

    def __bool__(self) -> bool:
        raise TypeError(f"await it: ctx.{self._name}(…) is not its answer, write `await ctx.{self._name}(…)`")

    def __del__(self) -> None:
        if self._make is not None:
            warnings.warn(
                f"ctx.{self._name}(…) was never awaited, so nobody was asked", RuntimeWarning, stacklevel=2, source=self
            )


def cannot_ask(question: Question[Any], call: Any) -> NotSupported:
    """Why a question can't be put to this call's client."""
    name = _CAPABILITIES[question.kind]
    declared = _declared(call)
    if name in declared:
        return NotSupported(
            f"this connection carries no questions, so the client can't be asked {question.message!r}",
            hint="take the answer as a parameter of the tool",
        )
    modern = call is not None and call.revision >= "2026-07-28"
    return NotSupported(
        f"the client did not declare {name}, so it can't be asked {question.message!r}",
        code=MISSING_CAPABILITY if modern else None,
        data={"requiredCapabilities": {name: {}}} if modern else None,
        hint="take the answer as a parameter of the tool, or use a client that can be asked",
    )


def _declared(call: Any) -> Any:
    text = None if call is None else call.client_capabilities
    if not text:
        return {}
    from msgspec.json import decode

    return decode(text)
