"""Functions that the native half calls: running a handler, and describing its exception."""

from __future__ import annotations

import atexit
import os
import sys
from contextvars import ContextVar
from typing import Any

from .._model.json import encode
from .._plan.question_reply import QuestionReply
from ..errors import NotSupported
from .asking import Abandoned
from .failures import describe_error, kept_failure

current: ContextVar[Any] = ContextVar("gudgeon.call")


# A program that traces has imported this; it is not imported here.
_TRACES = "opentelemetry.trace"
GRACE = 2.0  # seconds for handlers that run when the interpreter exits


@atexit.register
def stop() -> None:
    """Cancels running handlers and gives their threads some time to end before the interpreter is finalised."""
    native = sys.modules.get("gudgeon._native")
    if native is not None:
        native.shut_down(GRACE)


def leave_fork(error: BaseException | None) -> None:
    """Ends a process that a handler forked, with the exit status that its main program would have."""
    status = 0
    if isinstance(error, SystemExit):
        if isinstance(error.code, int):
            status = error.code & 0xFF
        elif error.code is not None:
            print(error.code, file=sys.stderr)
            status = 1
    elif error is not None:
        import traceback

        traceback.print_exception(type(error), error, error.__traceback__)
        status = 1
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            pass
    os._exit(status)


def enter(invoke: Any, raw: bytes, call: Any) -> Any:
    """Runs a `def` handler, inside the `contextvars` context that the caller made for it."""
    current.set(call)
    if _TRACES in sys.modules:
        return _traced(invoke, raw, call)
    reply = invoke(raw, call)
    return reply.reply(call) if reply.__class__ is QuestionReply else reply


async def answer(invoke: Any, raw: bytes, call: Any, slot: Any) -> None:
    """Runs an `async def` handler in a task of its own. Raises nothing, not even SystemExit."""
    current.set(call)
    try:
        reply = await (_atraced(invoke, raw, call) if _TRACES in sys.modules else invoke(raw, call))
        if reply.__class__ is QuestionReply:
            reply = reply.reply(call)
    except BaseException as error:
        slot.fail(error)
    else:
        slot.reply(reply)


def _traced(invoke: Any, raw: bytes, call: Any) -> Any:
    subject = getattr(invoke, "subject", None)
    if subject is None:
        reply = invoke(raw, call)
        return reply.reply(call) if reply.__class__ is QuestionReply else reply
    from .tracing import outcome, span

    with span(subject, call) as started:
        reply = invoke(raw, call)
        reply = reply.reply(call) if reply.__class__ is QuestionReply else reply
        outcome(started, reply)
        return reply


async def _atraced(invoke: Any, raw: bytes, call: Any) -> Any:
    subject = getattr(invoke, "subject", None)
    if subject is None:
        return await invoke(raw, call)
    from .tracing import outcome, span

    with span(subject, call) as started:
        reply = await invoke(raw, call)
        outcome(started, reply)
        return reply


def describe(error: BaseException, expose: tuple[type[BaseException], ...]) -> bytes:
    """Returns the JSON that describes a handler's exception."""
    kept = kept_failure(error)
    if kept is not None:
        return kept
    if isinstance(error, Abandoned):
        return encode({"kind": "cancelled"})
    if isinstance(error, NotSupported):
        if isinstance(error.data, dict) and "requiredCapabilities" in error.data:
            return encode({"kind": "missingCapability", "message": str(error), "data": error.data})
        if error.code is None:
            return encode({"kind": "exposed", "message": str(error)})
        return encode({"kind": "protocol", "code": error.code, "message": str(error), "data": error.data})
    return describe_error(error, expose)


def session_json(values: dict[str, Any]) -> str:
    """Returns the values of `ctx.session` as JSON.

    Raises:
        TypeError: A name is not a string, or a value has no JSON; the text names it.
        ValueError: A value holds NaN or infinity.
    """
    for name in values:
        if not isinstance(name, str):
            raise TypeError(f"ctx.session: the name {name!r} is not a string, so it can't be stored")
    return encode(values, "ctx.session").decode()


def unknown_reply_type(reply: Any) -> BaseException:
    """Returns the error for a reply of a type that no plan makes."""
    return TypeError(f"a handler's reply can't be a {type(reply).__qualname__}")
