"""Describes exceptions of handlers as JSON, from which the core makes a code, `isError` and a message."""

from __future__ import annotations

from typing import Any

from .._model.json import encode
from .._model.loaded import loaded
from .._plan.invalid_arguments import InvalidArguments
from ..errors import (
    Cancelled,
    Declined,
    ProtocolError,
    ResourceNotFound,
    ToolError,
    UrlElicitationRequired,
)
from .log import report
from .tracebacks import message_of, traceback_of, unwrap_group


def keep_failure(error: Exception, failure: bytes) -> Exception:
    """Returns the exception, which is described by this JSON if a handler raises it as it is."""
    error._failure = failure  # type: ignore[attr-defined]
    return error


def kept_failure(error: BaseException) -> bytes | None:
    """Returns the JSON of an exception that stands for a failure of the native half."""
    return getattr(error, "_failure", None)


def describe_error(error: BaseException, expose: tuple[type[BaseException], ...] = ()) -> bytes:
    """Returns the JSON that describes a handler's exception."""
    error = unwrap_group(error)
    described = _describe(error, expose)
    try:
        return encode(described, f"what the {type(error).__qualname__} carries")
    except Exception as problem:
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
    if isinstance(error, Declined):
        return {"kind": "declined", "message": str(error.question)}
    if isinstance(error, Cancelled):
        return {"kind": "dismissed", "message": str(error.question)}
    asyncio = loaded("asyncio")
    if asyncio is not None and isinstance(error, asyncio.CancelledError):
        return {"kind": "cancelled"}
    if expose and isinstance(error, expose):
        return {"kind": "exposed", "message": message_of(error) or type(error).__qualname__}
    return _exception(error, message_of(error))


def _exception(error: BaseException, message: str) -> dict[str, Any]:
    return {"kind": "exception", "type": type(error).__qualname__, "message": message, "traceback": traceback_of(error)}
