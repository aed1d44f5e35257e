"""Describes exceptions of handlers as JSON, from which the core makes a code, `isError` and a text."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any

from .._model.frames import is_ours
from .._model.json import encode
from ..errors import (
    Cancelled,
    Declined,
    ProtocolError,
    ResourceNotFound,
    ToolError,
    UrlElicitationRequired,
)


class InvalidArguments(Exception):
    """Arguments that fit the schema but fail the type's own validation."""


def describe_error(error: BaseException, expose: tuple[type[BaseException], ...] = ()) -> bytes:
    """Returns the JSON that describes a handler's exception."""
    error = _alone(error)
    described = _describe(error, expose)
    try:
        return encode(described, f"what the {type(error).__qualname__} carries")
    except Exception as problem:
        from .entry import report

        report(f"{type(error).__qualname__}: what it carries is left out: {problem}")
        return encode({name: value for name, value in described.items() if name not in ("meta", "data")})


def _describe(error: BaseException, expose: tuple[type[BaseException], ...]) -> dict[str, Any]:
    if isinstance(error, ToolError):
        out: dict[str, Any] = {"kind": "tool", "message": error.text}
        if error.meta:
            out["meta"] = dict(error.meta)
        return out
    if isinstance(error, ResourceNotFound):
        return {"kind": "notFound", "uri": error.uri, **({"message": error.message} if error.explicit else {})}
    if isinstance(error, (ProtocolError, UrlElicitationRequired)):
        described = {"kind": "protocol", "code": error.code, "message": error.message}
        return described if error.data is None else {**described, "data": error.data}
    if isinstance(error, InvalidArguments):
        return {"kind": "invalid", "message": str(error)}
    if isinstance(error, (Declined, Cancelled)):
        return {"kind": "declined", "message": str(error.question)}
    asyncio = sys.modules.get("asyncio")
    if asyncio is not None and isinstance(error, asyncio.CancelledError):
        return {"kind": "cancelled"}
    if expose and isinstance(error, expose):
        return {"kind": "exposed", "message": _message(error) or type(error).__qualname__}
    return _exception(error, _message(error))


def _exception(error: BaseException, message: str) -> dict[str, Any]:
    return {"kind": "exception", "type": type(error).__qualname__, "message": message, "traceback": traceback_of(error)}


def _alone(error: BaseException) -> BaseException:
    """Returns the exception inside a group of one, so that a task group does not hide a ToolError."""
    seen = 0
    while len(inner := getattr(error, "exceptions", ())) == 1 and isinstance(inner, tuple) and seen < 100:
        if not isinstance(inner[0], BaseException):
            break
        error, seen = inner[0], seen + 1
    return error


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # a broken __str__ must not hide the failure
        return f"<{type(error).__qualname__} whose text can't be read>"


def exc_info(error: BaseException) -> tuple[type[BaseException], BaseException, TracebackType | None]:
    """Returns an exception as `logging` takes it, without this package's frames before the program's."""
    error = _alone(error)
    trace = error.__traceback__
    while trace is not None and is_ours(trace.tb_frame.f_code.co_filename) and trace.tb_next is not None:
        trace = trace.tb_next
    return type(error), error, trace


def traceback_of(error: BaseException) -> str:
    """Returns the traceback as text, without this package's frames before the program's."""
    from traceback import format_exception

    try:
        return "".join(format_exception(*exc_info(error)))
    except Exception:
        return f"{type(error).__qualname__}: {_message(error)}"
