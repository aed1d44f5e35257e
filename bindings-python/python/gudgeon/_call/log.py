"""Writes to the log of the program. The native half calls these functions."""

from __future__ import annotations

import sys
from typing import Any

from .tracebacks import exc_info, traceback_of


def report(text: str, error: BaseException | None = None) -> None:
    """Logs a line, and the exception that it is about; writes both to stderr where logging was not imported."""
    logging = sys.modules.get("logging")
    if logging is not None:
        logging.getLogger("gudgeon").error("%s", text, exc_info=None if error is None else exc_info(error))
        return
    if error is not None:
        text = f"{text}\n{traceback_of(error)}"
    print(text.rstrip(), file=sys.stderr, flush=True)


def detail(text: str) -> None:
    """Logs a message at level debug, if `logging` was imported."""
    logging = sys.modules.get("logging")
    if logging is not None:
        logging.getLogger("gudgeon").debug("%s", text)


def log_event(level: str, logger: str, line: str, fields: dict[str, Any]) -> None:
    """Logs an event of the core; a record has its values in `record.fields`. Without `logging`, warnings and errors go
    to stderr.
    """
    logging = sys.modules.get("logging")
    if logging is not None:
        number = _LEVELS[level]
        log = logging.getLogger(logger)
        if log.isEnabledFor(number):
            log.log(number, "%s", line, extra={"fields": fields})
    elif level in ("ERROR", "WARN"):
        print(f"{logger}: {line}", file=sys.stderr, flush=True)


_LEVELS = {"ERROR": 40, "WARN": 30, "INFO": 20, "DEBUG": 10}
