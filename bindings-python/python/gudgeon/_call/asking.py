"""Questions of a handler to its client: the awaitables of `ctx.elicit`, `ctx.sample` and `ctx.roots`, and answers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Coroutine, Generator, Sequence
from functools import partial
from typing import Any

from .._model.json import encode
from .._plan.question_reply import key_of
from .._schema.question import InvalidAnswer, Question
from ..errors import Declined, McpError, NotSupported, ProtocolError

_ABANDONED = "abandoned"  # the kind of a failure for a question of a call that has ended


class Abandoned(BaseException):
    """Unwinds the thread of a cancelled `def` handler, past `except Exception`."""


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
        raise TypeError(f"ctx.{self._name}(…) is not the answer; write `await ctx.{self._name}(…)`")

    def __del__(self) -> None:
        if self._make is not None:
            warnings.warn(
                f"ctx.{self._name}(…) was never awaited, so no question was sent",
                RuntimeWarning,
                stacklevel=2,
                source=self,
            )


def answer_to(question: Question[Any], call: Any) -> Any:
    """Returns the answer that came with the call; None without one, or if it does not fit and is asked for again."""
    _check(question, "answer")
    key, params = key_of(question, call), _params(question)
    found = call.answer(key, question.method, params)
    if found is None:
        return None
    try:
        return question.decode(_decode(found))
    except InvalidAnswer as invalid:
        problem = invalid.problem
    refusal = call.refuse(key, question.method, params, problem)
    if refusal is not None:
        raise _refusal(*refusal)
    return None


def ask_later(questions: Sequence[Question[Any]], call: Any) -> Callable[[], Coroutine[Any, Any, tuple[Any, ...]]]:
    """Numbers the questions now, and returns a coroutine function that sends them together and returns the answers."""
    wire = _wire(questions, call)

    async def asked() -> tuple[Any, ...]:
        from asyncio import get_running_loop

        loop = get_running_loop()
        asked = call.ask(wire)
        answers: list[Any] = [None] * len(questions)
        while asked.is_open:
            future = loop.create_future()
            if asked.send(partial(_settle_soon, loop, future)):
                # Other tasks of the same call may ask in this iteration of the loop as well.
                if call.begins_round():
                    loop.call_soon(call.end_round, False)
                await future
            _read(asked, questions, answers)
        return tuple(answers)

    return asked


def ask_now(questions: Sequence[Question[Any]], call: Any) -> tuple[Any, ...]:
    """Sends the questions of a `def` handler together and blocks until the answers are there; other calls go on."""
    asked = call.ask(_wire(questions, call))
    answers: list[Any] = [None] * len(questions)
    while asked.is_open:
        if not asked.wait():
            raise _refusal(_ABANDONED)
        _read(asked, questions, answers)
    return tuple(answers)


def _read(asked: Any, questions: Sequence[Question[Any]], answers: list[Any]) -> None:
    """Reads the answers that have arrived; those that don't fit are rejected, and then asked for again."""
    for at, (result, failure) in asked.take():
        if failure is not None:
            raise _refusal(*failure)
        try:
            answers[at] = questions[at].decode(_decode(result))
        except InvalidAnswer as invalid:
            asked.reject(at, invalid.problem)


def _wire(questions: Sequence[Question[Any]], call: Any) -> list[tuple[str, str, bytes]]:
    """Returns the key, the method and the params of each question."""
    if not questions:
        raise TypeError("ask takes at least one question of gudgeon.ask")
    for question in questions:
        _check(question, "ask")
    return [(key_of(question, call), question.method, _params(question)) for question in questions]


def _check(question: Any, name: str) -> None:
    if not isinstance(question, Question):
        raise TypeError(f"{name} takes questions of gudgeon.ask, not {type(question).__name__}")


def _params(question: Question[Any]) -> bytes:
    return encode(question.params, "the question")


def _settle_soon(loop: Any, future: Any, answered: bool) -> None:
    """Resolves the future of an answer, from any thread."""
    try:
        loop.call_soon_threadsafe(_settle, future, answered)
    except RuntimeError:
        pass  # the loop is closed: nobody waits any more


def _settle(future: Any, answered: bool) -> None:
    if not answered:
        future.cancel()
    elif not future.done():
        future.set_result(None)


def _refusal(kind: str, code: int = 0, message: str = "", data: str | None = None) -> McpError | Abandoned:
    """Returns the exception for a question without an answer, with the core's text."""
    if kind == _ABANDONED:
        return Abandoned("the request was cancelled or its connection closed")
    details = None if data is None else _decode(data)
    if kind == "declined":
        return Declined(message)
    if kind in ("missingCapability", "notSupported"):
        return NotSupported(message, data=details)
    return ProtocolError(code, message, details)


def _decode(text: bytes | str) -> Any:
    from msgspec.json import decode

    return decode(text)
