"""Writes to the log of the program. The native half calls these functions.

The record of an event has its values in `record.fields`, and each as an attribute whose name begins with `mcp_`.

A host may never read standard error. A message that it has no room for would block its thread, and with it the handler
and every later message; a thread of the package logs it once there is room.
"""

from __future__ import annotations

import os
import sys
from _thread import allocate_lock
from collections.abc import Callable
from typing import Any

from .._model.loaded import loaded
from .._native import log_later, stderr_has_room
from .tracebacks import exc_info, message_of, traceback_of

_LONG = 16 * 1024  # characters; more may not fit into a pipe that has room
_TURN = 0.05  # seconds to wait for another thread that logs; an event loop may wait here
_WAIT = 0.05  # seconds between two looks for room
_turn = allocate_lock()


def report(text: str, error: BaseException | None = None, fields: dict[str, Any] | None = None) -> None:
    """Logs an error, with the exception that it is about; writes both to stderr where logging was not imported.

    Args:
        fields: The fields of the event that it is, if it is one.
    """
    length = len(text) if error is None else len(text) + len(message_of(error))
    if not _log_now(length, lambda: _report(text, error, fields)):
        log_later(40, "gudgeon", text if error is None else f"{text}\n{traceback_of(error)}", fields)


def log_request(
    call: Any, stage: str, method: str, named: str | None, text: str | None = None, after: float = 0
) -> None:
    """Logs what ready-made middleware tells of a request.

    Args:
        stage: "received", "done", "failed" or "timed".
        named: The name or URI in the params.
        text: The params or the error, as far as they are to be logged.
        after: Seconds since the request came.
    """
    import logging

    name, line, fields = call.describe_request(stage, method, named, text, after)
    logger = logging.getLogger(name)
    if logger.isEnabledFor(20) and not _log_now(len(line), lambda: logger.info("%s", line, extra=_extra(fields))):
        log_later(20, name, line, fields)


def log(level: int, text: str, *args: Any) -> None:
    """Logs a line, if `logging` was imported. `args` are put into the text, as `logging` does."""
    logging = loaded("logging")
    if logging is None or not (logger := logging.getLogger("gudgeon")).isEnabledFor(level):
        return
    line = text % args
    if not _log_now(len(line), lambda: logger.log(level, text, *args)):
        log_later(level, "gudgeon", line)


def log_event(level: str, logger: str, line: str, fields: dict[str, Any], waits: bool) -> None:
    """Logs an event. Without `logging`, warnings and errors go to stderr.

    Args:
        waits: Whether the event waits until it can be logged without blocking. Otherwise it is dropped.
    """
    logging = loaded("logging")
    if logging is not None:
        number = _LEVELS[level]
        log = logging.getLogger(logger)
        if log.isEnabledFor(number) and _has_room(log, waits):
            log.log(number, "%s", line, extra=_extra(fields))
    # Without standard error, `print` writes to standard output.
    elif level in ("ERROR", "WARN") and sys.stderr is not None and _has_room(None, waits):
        try:
            print(line if logger == "gudgeon" else f"{logger}: {line}", file=sys.stderr, flush=True)
        except OSError:
            pass  # the host has closed it


_LEVELS = {"ERROR": 40, "WARN": 30, "INFO": 20, "DEBUG": 10}


def _extra(fields: dict[str, Any]) -> dict[str, Any]:
    """Returns the attributes of an event's record. Those of `logging` itself can't be replaced, hence the prefix."""
    if "opentelemetry.trace" in sys.modules:
        from .tracing import active_ids

        fields = {**fields, **active_ids()}
    return {"fields": fields, **{f"mcp_{name}": value for name, value in fields.items()}}


def _report(text: str, error: BaseException | None, fields: dict[str, Any] | None) -> None:
    logging = loaded("logging")
    if logging is not None:
        about = None if error is None else exc_info(error)
        logging.getLogger("gudgeon").error("%s", text, exc_info=about, extra=_extra(fields or {}))
        return
    if error is not None:
        text = f"{text}\n{traceback_of(error)}"
    print(text.rstrip(), file=sys.stderr, flush=True)


def _log_now(length: int, log: Callable[[], None]) -> bool:
    """Calls the function unless it might block. One thread at a time, because each takes some of the room."""
    if length > _LONG or not _turn.acquire(timeout=_TURN):
        return False
    try:
        if not stderr_has_room():
            return False
        log()
    except Exception as error:
        # A handler of the log that raises does not take the call with it.
        if sys.stderr is not None:
            print(f"gudgeon: the log failed\n{traceback_of(error)}", file=sys.stderr)
    finally:
        _turn.release()
    return True


def _has_room(logger: Any, waits: bool) -> bool:
    """Waits until a message can be logged without blocking."""
    import time

    while not stderr_has_room() and _may_use_stderr(logger):
        if not waits:
            return False
        time.sleep(_WAIT)
    return True


def _may_use_stderr(logger: Any) -> bool:
    """Returns whether a handler of the logger may write to stderr, or to stdout, which is stderr over stdio."""
    handlers: list[Any] = []
    while logger is not None:
        handlers += logger.handlers
        logger = logger.parent if logger.propagate else None
    standard = (sys.stderr, sys.__stderr__, sys.stdout, sys.__stdout__)
    others = [
        handler
        for handler in handlers
        if hasattr(handler, "queue") or (hasattr(handler, "stream") and handler.stream not in standard)
    ]
    # Without a handler `logging` writes to stderr.
    return not handlers or len(others) < len(handlers)


# Set by `gudgeon run --log-format`. This module is imported before anything can be logged.
if (_format := os.environ.get("GUDGEON_LOG_FORMAT", "text")) != "text":
    from .json_log import write_json

    write_json(_format)
