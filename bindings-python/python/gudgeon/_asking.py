"""Questions of a handler to its client: what `ctx.elicit` and its kin return, how they are asked, what answers them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Coroutine, Generator, Sequence
from functools import partial
from typing import Any

from .ask import Question
from .errors import McpError, NotSupported, ProtocolError

QUESTIONS = 8  # the kind of a reply that is questions
_ABANDONED = "abandoned"  # the kind of a failure that is no answer: the handler's call is over


class Abandoned(BaseException):
    """Nobody waits for this `def` handler any more: what unwinds its thread, past `except Exception`."""


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


class QuestionReply:
    """The handler answered with questions: the client has to be asked before there is a result."""

    __slots__ = ("questions",)

    def __init__(self, questions: list[Question[Any]]) -> None:
        self.questions = questions

    def reply(self, call: Any) -> tuple[int, bytes]:
        """The reply as the core takes it, each question under its key."""
        from ._json import encode

        return QUESTIONS, encode([{"key": key_of(it, call), **it.request()} for it in self.questions], "the questions")


def key_of(question: Question[Any], call: Any) -> str:
    """The question's own key, or the number that it got when the call first named it."""
    if question.key is not None:
        return str(question.key)
    keys = call.questions
    key = keys.get(question)
    if key is None:
        kind = question.kind.partition("_")[0]
        keys[kind] = keys.get(kind, 0) + 1
        key = keys[question] = f"{kind}-{keys[kind]}"
    return str(key)


def answer_to(question: Question[Any], call: Any) -> Any:
    """The answer that came with the call; None where there is none."""
    _check(question, "answer")
    found = _known(question, key_of(question, call), call)
    return None if found is None else question.decode(found)


def ask_later(questions: Sequence[Question[Any]], call: Any) -> Callable[[], Coroutine[Any, Any, tuple[Any, ...]]]:
    """For `async def`: what asks all at once and gives the answers. The questions are numbered now."""
    keys = _keys(questions, call)

    async def asked() -> tuple[Any, ...]:
        from asyncio import get_running_loop

        loop = get_running_loop()
        waiting: list[Any] = []
        for question, key, found in _looked_up(questions, keys, call):
            future = loop.create_future()
            waiting.append(future)
            if found is not None:
                future.set_result((found, None))
            else:
                call.ask(key, question.method, _params(question), partial(_settle_soon, loop, future))
                # Others that run for the same call may ask in this turn of the loop's, too.
                if call.begins_round():
                    loop.call_soon(call.end_round, False)
        results = [await future for future in waiting]
        return tuple(_read(*pair) for pair in zip(questions, results, strict=True))

    return asked


def ask_now(questions: Sequence[Question[Any]], call: Any) -> tuple[Any, ...]:
    """For `def`: asks all at once and waits for the answers; other calls go on meanwhile."""
    asks = False
    waiting: list[Callable[[], Any]] = []
    for question, key, found in _looked_up(questions, _keys(questions, call), call):
        if found is not None:
            waiting.append(partial(_already, found))
        else:
            waiting.append(call.ask(key, question.method, _params(question)).wait)
            asks = True
    if asks:
        call.end_round(True)
    results = [wait() for wait in waiting]
    return tuple(_read(*pair) for pair in zip(questions, results, strict=True))


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
    from ._json import encode

    return encode(question.params, "the question")


def _known(question: Question[Any], key: str, call: Any) -> Any:
    found = call.answer(key, question.method, _params(question))
    return None if found is None else _decode(found)


def _looked_up(questions: Sequence[Question[Any]], keys: list[str], call: Any) -> list[tuple[Question[Any], str, Any]]:
    """Each with its key, and its answer or None. Of several questions none is asked where one can't be."""
    looked_up = [(it, key, _known(it, key, call)) for it, key in zip(questions, keys, strict=True)]
    if len(questions) > 1:
        open = [(it.method, _params(it)) for it, _, found in looked_up if found is None]
        refusal = call.refusal(open)
        if refusal is not None:
            raise _refusal(*refusal)
    return looked_up


def _already(found: Any) -> tuple[Any, None]:
    return found, None


def _settle_soon(loop: Any, future: Any, result: bytes | None, failure: Any) -> None:
    """The answer is here: told from any thread."""
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
    """Why there is no answer, as the core put it."""
    if kind == _ABANDONED:
        return Abandoned("nobody waits for this handler any more")
    said = None if data is None else _decode(data)
    if kind in ("missingCapability", "notSupported"):
        return NotSupported(message, data=said)
    return ProtocolError(code, message, said)


def _decode(text: bytes | str) -> Any:
    from msgspec.json import decode

    return decode(text)
