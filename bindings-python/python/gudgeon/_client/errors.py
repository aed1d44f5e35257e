"""Maps errors of the native half to exceptions, and exceptions of callbacks to errors for the server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

from msgspec.json import decode

from .. import errors
from ..types import ElicitRequest, ToolResult
from .exit import log_failure
from .read import UNREADABLE

_MAX_RAISED = 16

_raised: dict[int, BaseException] = {}
"""The last exceptions of callbacks, by the numbers under which errors of the native half name them as their cause."""

_numbers = count()

_CLASSES: dict[str, type[errors.McpError]] = {
    "auth": errors.AuthError,
    "unsupported": errors.NotSupported,
}


def read_error(encoded: bytes) -> Exception:
    """Returns the exception for an error that the native module describes in JSON, without data that can't be read."""
    try:
        described = decode(encoded)
    except UNREADABLE:
        # The data is the last member. A string can't contain these bytes, because its quotes are escaped.
        described = decode(encoded[: encoded.index(b',"data":')] + b"}")
    return error_of(described)


def error_of(described: Mapping[str, Any]) -> Exception:
    """Returns the exception for an error that the native module describes."""
    error = _error_of(described)
    if isinstance(error, errors.McpError):
        error.status = described.get("status")
    if isinstance(error, errors.AuthError):
        error.www_authenticate = described.get("wwwAuthenticate")
    if (cause := _raised.get(described.get("raised", -1))) is not None:
        error.__cause__ = cause
    errno = described.get("errno")
    if errno is not None:
        import os

        # OSError makes a ConnectionRefusedError, a FileNotFoundError, … of the number.
        error.__cause__ = OSError(errno, os.strerror(errno))
    return error


def _error_of(described: Mapping[str, Any]) -> Exception:
    kind, message, data = described["kind"], described["message"], described.get("data")
    where: dict[str, Any] = {name: described.get(name) for name in ("hint", "target", "phase")}
    code = described.get("code")
    if kind == "misuse":
        return ValueError(f"{message} (hint: {where['hint']})" if where["hint"] else message)
    if kind == "tool":
        return _tool_error(message, data, where)
    if kind in ("connect", "connectTimeout", "lost", "timeout"):
        return _broken(kind, message, described, where)
    if kind == "notFound":
        uri = data.get("uri") if isinstance(data, dict) else None
        return errors.ResourceNotFound(uri or "", message, code=code, data=data, **where)
    if code == errors.UrlElicitationRequired.code and isinstance(data, dict):
        return _url_required(message, data, where)
    if kind in ("declined", "cancelled"):
        return _refused(errors.Declined if kind == "declined" else errors.Cancelled, message, {"data": data, **where})
    if kind == "protocol" and code is not None:
        return errors.ProtocolError(code, message, data, **where)
    cls = _CLASSES.get(kind, errors.McpError)
    return cls(message, code=code, data=data, **where)


def _refused(cls: Any, message: str, where: dict[str, Any]) -> Exception:
    """Returns Declined or Cancelled with the message as it came."""
    error: Any = cls(**where)
    error.message = message
    error.args = (message,)
    refused: Exception = error
    return refused


def _broken(kind: str, message: str, described: Mapping[str, Any], where: dict[str, Any]) -> Exception:
    status, stderr = described.get("exitStatus"), described.get("stderr") or ""
    if kind in ("connect", "connectTimeout"):
        cls = ConnectTimeout if kind == "connectTimeout" else errors.ConnectFailed
        details = {name: described.get(name) for name in ("code", "data")}
        return cls(message, exit_status=status, stderr=stderr, **details, **where)
    lost = errors.CallTimeout if kind == "timeout" else errors.ConnectionLost
    if stderr:
        message = f"{message}; its last lines on stderr: {' | '.join(stderr.strip().splitlines())}"
    return lost(message, **where)


class UnreadableQuestion(errors.ProtocolError):
    """A question of the server that can't be read."""


class ConnectTimeout(errors.ConnectFailed, errors.CallTimeout):
    """No answer while connecting: both a failed connect and a timeout."""


def _tool_error(message: str, data: Any, where: dict[str, Any]) -> Exception:
    error: Any = errors.ToolError(message)
    error.hint, error.target, error.phase = where["hint"], where["target"], where["phase"]
    if isinstance(data, dict):
        try:
            error._result = ToolResult.from_dict(data)
            error.meta = error._result.meta
        except UNREADABLE:
            # An invalid result is replaced by one with the message.
            pass
    raised: Exception = error
    return raised


def _url_required(message: str, data: dict[str, Any], where: dict[str, Any]) -> Exception:
    asked = data.get("elicitations")
    elicitations = [ElicitRequest.from_dict(request) for request in asked or () if isinstance(request, dict)]
    return errors.UrlElicitationRequired(elicitations, message, data=data, **where)


def refusal_of(error: BaseException, callback: Callable[..., Any]) -> dict[str, Any]:
    """Returns the error that the server gets for a question. Logs it if the callback failed."""
    refusals = {"declined": errors.Declined, "cancelled": errors.Cancelled}
    kind = next((name for name, cls in refusals.items() if isinstance(error, cls)), "")
    if not kind and not isinstance(error, UnreadableQuestion):
        log_failure(callback, error)
    if isinstance(error, errors.McpError):
        return {"kind": kind, "message": error.message, "code": error.code, "data": error.data}
    number = next(_numbers) % 2**32
    _raised[number] = error
    while len(_raised) > _MAX_RAISED:
        del _raised[next(iter(_raised))]
    return {"name": type(error).__name__, "raised": number}
