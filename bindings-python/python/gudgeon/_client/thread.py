"""The queue of responses that blocking clients wait on, in the native half, which checks for signals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._model.frames import from_here
from ..errors import ProtocolError
from .core import PAUSE, Ask, Core, Steps, answer_of, progress_of
from .exit import log_failure
from .middleware import refuse_async

_COROUTINE = 0x80  # CO_COROUTINE


class ThreadQueue:
    """The responses for one blocking client, or for those of a group; several threads may wait on it."""

    def __init__(self) -> None:
        from .._native import Mailbox

        self.mailbox = Mailbox()
        self._cores: dict[int, Core] = {}

    def adopt(self, core: Core) -> None:
        """Delivers the notifications of a client from now on. Raises TypeError if a callback needs an event loop."""
        for name, callback in core.options.callbacks.items():
            if getattr(getattr(callback, "__code__", None), "co_flags", 0) & _COROUTINE:
                raise TypeError(
                    f"a SyncClient has no event loop: its callback {name!r} must be a def, not an async def"
                )
        refuse_async(core.options.middleware)
        self._cores[core.number] = core

    def run(self, core: Core, steps: Steps) -> Any:
        """Runs the steps of an operation."""
        try:
            step = next(steps)
            while True:
                try:
                    value = self.ask(core.native, step)
                except BaseException as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(value)
        except StopIteration as end:
            return end.value
        except Exception as error:
            raise from_here(error)  # noqa: B904

    def start(self, core: Core, steps: Steps) -> Callable[[], None]:
        """Makes the first request of an operation; the function that is returned does the rest."""
        ask = next(steps, None)
        if ask is None:
            return lambda: None
        ticket = ask.start(self.mailbox)

        def finish() -> None:
            try:
                try:
                    outcome = self.wait(core.native, ask, ticket)
                except BaseException as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(outcome)
                while True:
                    step = steps.send(self.ask(core.native, step))
            except StopIteration:
                pass
            except Exception as error:
                raise from_here(error)  # noqa: B904

        return finish

    def ask(self, native: Any, ask: Ask) -> Any:
        """Makes a request of a client or a group, and waits for its outcome."""
        if ask is PAUSE:
            return None
        return self.wait(native, ask, ask.start(self.mailbox))

    def wait(self, native: Any, ask: Ask, ticket: int) -> Any:
        """Waits for the outcome of a request that was started."""
        end: tuple[Any, ...] | None = None
        try:
            while end is None:
                event = self.mailbox.wait(ticket)
                if event[0] in ("done", "failed", "raised"):
                    end = event
                elif event[0] == "progress":
                    if ask.on_progress is not None:
                        self._notify(ask.on_progress, progress_of(event))
                elif event[0] == "middleware":
                    self._run_middleware(ask, ticket, event)
                else:
                    self._deliver(event)
        except BaseException:
            native.cancel(self.mailbox, ticket)
            raise
        return answer_of(end)

    def _run_middleware(self, ask: Ask, ticket: int, event: tuple[Any, ...]) -> None:
        from .middleware import run_blocking

        core = self._cores[event[2]]
        native, run = core.native, event[3]

        def send(params: bytes) -> Any:
            # Under the same ticket, so that its progress arrives meanwhile.
            return self.wait(native, ask, native.middleware_next(self.mailbox, run, params, ticket))[2]

        try:
            native.middleware_finish(run, run_blocking(core, event, send))
        except BaseException as error:
            native.middleware_fail(run, error)
            if not isinstance(error, Exception):
                raise

    def _deliver(self, event: tuple[Any, ...]) -> None:
        core = self._cores[event[1]]
        if event[0] == "question":
            self._answer(core, event)
        elif event[0] != "withdrawn":
            step = core.notified(event)
            if step is not None:
                self._notify(step.callback, step.value)

    def _notify(self, callback: Callable[..., Any], value: Any) -> None:
        """Calls a callback; its exception is logged."""
        try:
            callback(value)
        except Exception as error:
            log_failure(callback, error)

    def _answer(self, core: Core, event: tuple[Any, ...]) -> None:
        from .._model.keyring_store import BlockingCall
        from .questions import answering

        _, _, number, kind, params, key = event
        callback = core.options.callback(kind)
        try:
            steps = answering(kind, callback, params, key, core.group_name)
            try:
                value = next(steps)
                while True:
                    if isinstance(value, BlockingCall):
                        value = value.run()
                    if hasattr(value, "__await__"):
                        raise _awaitable(kind, value)
                    value = steps.send(value)
            except StopIteration as end:
                wrong = core.native.answer(number, end.value)
                if wrong is not None:
                    log_failure(callback, TypeError(wrong))
        except Exception as error:
            core.refuse(number, error, callback)


def _awaitable(kind: str, value: Any) -> ProtocolError:
    """Returns the error for a callback that returned an awaitable."""
    if hasattr(value, "close"):
        value.close()
    return ProtocolError(-32603, f"a SyncClient has no event loop: the callback {kind!r} returned an awaitable")
