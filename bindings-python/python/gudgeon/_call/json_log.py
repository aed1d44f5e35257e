"""Logs as JSON, one object a line, for `GUDGEON_LOG_FORMAT=json`."""

from __future__ import annotations

import json
import logging
import sys
from datetime import datetime, timezone
from typing import Any


class JsonFormatter(logging.Formatter):
    """Writes a record as a JSON object on one line."""

    def format(self, record: logging.LogRecord) -> str:
        """Returns the line: `time` (UTC), `level`, `logger`, `message`, `fields` of an event, and `exception`."""
        entry: dict[str, Any] = {
            "time": _time(record.created),
            "level": _LEVELS.get(record.levelname, record.levelname.lower()),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if fields := getattr(record, "fields", None):
            entry["fields"] = fields
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, ensure_ascii=False, default=str)


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


_LEVELS = {"WARNING": "warn"}


def write_json(format: str) -> None:
    """Has the program's log written to standard error as JSON. Handlers that write elsewhere stay as they are.

    Raises:
        ValueError: If the format is not `json`.
    """
    if format != "json":
        raise ValueError(f"GUDGEON_LOG_FORMAT: {format!r} is not a format; set it to json or text")
    root = logging.getLogger()
    if not root.handlers:
        root.addHandler(logging.StreamHandler())
    for handler in root.handlers:
        if isinstance(handler, logging.StreamHandler) and handler.stream in (sys.stderr, sys.stdout):
            handler.setFormatter(JsonFormatter())
    own = logging.getLogger("gudgeon")
    if own.level == logging.NOTSET:
        own.setLevel(logging.INFO)
