"""Questions of a handler to its client: the awaitables of `ctx.elicit` and its kin, sending, and reading of answers."""

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
    key = key_of(question, call)
    found = _known(question, key, call)
    if found is None:
        return None
    try:
        return question.decode(found)
    except InvalidAnswer as invalid:
        problem = invalid.problem
    refusal = call.refuse(key, question.method, _params(question), problem)
    if refusal is not None:
        raise _refusal(*refusal)
    return None


def ask_later(questions: Sequence[Question[Any]], call: Any) -> Callable[[], Coroutine[Any, Any, tuple[Any, ...]]]:
    """Numbers the questions now, and returns a coroutine function that sends them together and returns the answers."""
    keys = _keys(questions, call)

    async def asked() -> tuple[Any, ...]:
        from asyncio import get_running_loop

        loop = get_running_loop()

        def put(at: int, problem: str | None = None) -> Any:
            future, question = loop.create_future(), questions[at]
            resolve = partial(_settle_soon, loop, future)
            call.ask(keys[at], question.method, _params(question), resolve, problem)
            # Other tasks of the same call may ask in this iteration of the loop as well.
            if call.begins_round():
                loop.call_soon(call.end_round, False)
            return future

        known = _looked_up(questions, keys, call)
        answers = _Answers(questions)
        open = [put(at) for at, found in enumerate(known) if found is None]
        invalid_answers = answers.take(_filled(known, [await it for it in open]))
        while invalid_answers:
            open = [put(*it) for it in invalid_answers]
            invalid_answers = answers.take([await it for it in open])
        return tuple(answers.read)

    return asked


def ask_now(questions: Sequence[Question[Any]], call: Any) -> tuple[Any, ...]:
    """Sends the questions of a `def` handler together and blocks until the answers are there; other calls go on."""
    keys = _keys(questions, call)

    def put(at: int, problem: str | None = None) -> Any:
        question = questions[at]
        return call.ask(keys[at], question.method, _params(question), None, problem)

    known = _looked_up(questions, keys, call)
    answers = _Answers(questions)
    open = [put(at) for at, found in enumerate(known) if found is None]
    if open:
        call.end_round(True)
    invalid_answers = answers.take(_filled(known, [it.wait() for it in open]))
    while invalid_answers:
        open = [put(*it) for it in invalid_answers]
        call.end_round(True)
        invalid_answers = answers.take([it.wait() for it in open])
    return tuple(answers.read)


class _Answers:
    """The answers to several questions, each in its type."""

    __slots__ = ("_open", "_questions", "read")

    def __init__(self, questions: Sequence[Question[Any]]) -> None:
        self._questions = questions
        self._open: Sequence[int] = range(len(questions))
        self.read: list[Any] = [None] * len(questions)

    def take(self, results: list[tuple[Any, Any]]) -> list[tuple[int, str]]:
        """Reads the answers to open questions; those that don't fit stay open and are returned with the reason."""
        invalid_answers = []
        for at, result in zip(self._open, results, strict=True):
            try:
                self.read[at] = _read(self._questions[at], result)
            except InvalidAnswer as invalid:
                invalid_answers.append((at, invalid.problem))
        self._open = [at for at, _ in invalid_answers]
        return invalid_answers


def _keys(questions: Sequence[Question[Any]], call: Any) -> list[str]:
    if not questions:
        raise TypeError("ask takes at least one question of gudgeon.ask")
    for question in questions:
        _check(question, "ask")
    return [key_of(question, call) for question in questions]


def _check(question: Any, name: str) -> None:
    if not isinstance(question, Question):
        raise TypeError(f"{name} takes questions of gudgeon.ask, not {type(question).__name__}")


def _params(question: Question[Any]) -> bytes:
    return encode(question.params, "the question")


def _known(question: Question[Any], key: str, call: Any) -> Any:
    found = call.answer(key, question.method, _params(question))
    return None if found is None else _decode(found)


def _looked_up(questions: Sequence[Question[Any]], keys: list[str], call: Any) -> list[Any]:
    """Returns the earlier answer to each question, or None. None of them is asked if one of them can't be."""
    known = [_known(it, key, call) for it, key in zip(questions, keys, strict=True)]
    if len(questions) > 1:
        open = [(it.method, _params(it)) for it, found in zip(questions, known, strict=True) if found is None]
        refusal = call.refusal(open)
        if refusal is not None:
            raise _refusal(*refusal)
    return known


def _filled(known: list[Any], came: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Returns the known answers with the new ones in the gaps, in order."""
    rest = iter(came)
    return [next(rest) if found is None else (found, None) for found in known]


def _settle_soon(loop: Any, future: Any, result: bytes | None, failure: Any) -> None:
    """Resolves the future of an answer, from any thread."""
    try:
        loop.call_soon_threadsafe(_settle, future, result, failure)
    except RuntimeError:
        pass  # the loop is closed: nobody waits any more


def _settle(future: Any, result: bytes | None, failure: Any) -> None:
    if future.done():
        return
    if failure is not None and failure[0] == _ABANDONED:
        future.cancel()
    else:
        future.set_result((None if result is None else _decode(result), failure))


def _read(question: Question[Any], answer: tuple[Any, Any]) -> Any:
    result, failure = answer
    if failure is not None:
        raise _refusal(*failure)
    return question.decode(_decode(result) if isinstance(result, (bytes, str)) else result)


def _refusal(kind: str, code: int, message: str, data: str | None) -> McpError | Abandoned:
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
