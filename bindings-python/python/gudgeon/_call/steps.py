"""`ctx.step`: its result is converted through JSON, on the first run as on any later one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._model.json import decoder, encode
from .._plan.question_reply import running_step
from .._schema.annotations import raw_annotations, resolve


class _Step:
    """The step under one key of a call, done once however often it is requested."""

    __slots__ = ("_call", "_key", "_lock", "text")

    def __init__(self, key: str, call: Any) -> None:
        self._key = key
        self._call = call
        self._lock: Any = None
        self.text: bytes | None = call.step_before(key)

    def lock(self, make: Callable[[], Any]) -> Any:
        if self._lock is None:
            self._lock = make()
        return self._lock

    def done(self, value: Any) -> None:
        try:
            text = encode(value, "the result")
        except (TypeError, ValueError, RecursionError) as error:
            raise TypeError(f"step {self._key!r} can't be remembered: {error}") from None
        self._call.step_done(self._key, text)
        self.text = text

    def value(self, fn: Callable[..., Any]) -> Any:
        """Returns the recorded result, in the type of the function's return annotation."""
        assert self.text is not None
        annotation = raw_annotations(fn).get("return", Any)
        wanted = Any if annotation is Any else resolve(annotation, fn)
        return decoder(wanted)(self.text)


async def step_later(key: str, fn: Callable[..., Any], args: Any, kwargs: Any, call: Any) -> Any:
    """Runs a step in an `async def`, or returns its recorded result. A second one with the same key waits for the
    first.
    """
    step = _step(key, call)
    if step.text is None:
        from asyncio import Lock

        async with step.lock(Lock):
            if step.text is None:
                before = running_step.set(key)
                try:
                    value = fn(*args, **kwargs)
                    step.done(await value if hasattr(value, "__await__") else value)
                finally:
                    running_step.reset(before)
    return step.value(fn)


def step_now(key: str, fn: Callable[..., Any], args: Any, kwargs: Any, call: Any) -> Any:
    """Runs a step in a `def`, like `step_later`, with threads."""
    step = _step(key, call)
    if step.text is None:
        from threading import RLock

        with step.lock(RLock):
            if step.text is None:
                before = running_step.set(key)
                try:
                    value = fn(*args, **kwargs)
                finally:
                    running_step.reset(before)
                if hasattr(value, "__await__"):
                    if hasattr(value, "close"):
                        value.close()
                    raise TypeError(f"step {key!r} takes a plain function in a def handler: make the handler async def")
                step.done(value)
    return step.value(fn)


def _step(key: str, call: Any) -> _Step:
    if not isinstance(key, str) or not key:
        raise TypeError(f"step() takes its key first, which must be a string, not {key!r}")
    steps: dict[str, _Step] = call.steps
    return steps.get(key) or steps.setdefault(key, _Step(key, call))
