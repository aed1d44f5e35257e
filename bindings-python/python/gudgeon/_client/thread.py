"""The queue of responses that blocking clients wait on, in the native half, which checks for signals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._model.frames import from_here
from .._model.json import encode
from ..errors import ProtocolError
from .core import Ask, Core, Steps, answer_of, progress_of
from .errors import refusal_of
from .exit import log_failure

_COROUTINE = 0x80  # CO_COROUTINE


class ThreadQueue:
    """The responses for one blocking client; several threads may wait on it."""

    def __init__(self, core: Core) -> None:
        from .._native import Mailbox

        for name, callback in core.options.callbacks.items():
            if getattr(getattr(callback, "__code__", None), "co_flags", 0) & _COROUTINE:
                raise TypeError(
                    f"a SyncClient has no event loop: its callback {name!r} must be a def, not an async def"
                )
        self.core = core
        self.mailbox = Mailbox()

    def run(self, steps: Steps) -> Any:
        """Runs the steps of an operation."""
        try:
            step = next(steps)
            while True:
                try:
                    value = self._ask(step)
                except BaseException as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(value)
        except StopIteration as end:
            return end.value
        except Exception as error:
            raise from_here(error)  # noqa: B904

    def _ask(self, ask: Ask) -> Any:
        ticket = ask.start(self.mailbox)
        end: tuple[Any, ...] | None = None
        try:
            while end is None:
                event = self.mailbox.wait(ticket)
                if event[0] in ("done", "failed"):
                    end = event
                elif event[0] == "progress":
                    if ask.on_progress is not None:
                        self._notify(ask.on_progress, progress_of(event))
                else:
                    self._deliver(event)
        except BaseException:
            self.core.native.cancel(self.mailbox, ticket)
            raise
        return answer_of(end)

    def _deliver(self, event: tuple[Any, ...]) -> None:
        if event[0] == "question":
            self._answer(event)
        elif event[0] != "withdrawn":
            step = self.core.notified(event)
            if step is not None:
                self._notify(step.callback, step.value)

    def _notify(self, callback: Callable[..., Any], value: Any) -> None:
        """Calls a callback; its exception is logged."""
        try:
            callback(value)
        except Exception as error:
            log_failure(callback, error)

    def _answer(self, event: tuple[Any, ...]) -> None:
        from .questions import answering

        _, _, number, kind, params, key = event
        callback = self.core.options.callbacks[kind]
        try:
            steps = answering(kind, callback, params, key, self.core.group_name)
            try:
                value = next(steps)
                while True:
                    if hasattr(value, "__await__"):
                        raise _awaitable(kind, value)
                    value = steps.send(value)
            except StopIteration as end:
                wrong = self.core.native.answer(number, end.value)
                if wrong is not None:
                    log_failure(callback, TypeError(wrong))
        except Exception as error:
            self.core.native.refuse(number, encode(refusal_of(error, callback)))


def _awaitable(kind: str, value: Any) -> ProtocolError:
    """Returns the error for a callback that returned an awaitable."""
    if hasattr(value, "close"):
        value.close()
    return ProtocolError(-32603, f"a SyncClient has no event loop: the callback {kind!r} returned an awaitable")
