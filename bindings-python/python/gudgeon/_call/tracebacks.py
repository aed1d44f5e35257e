"""Exceptions as logs and clients see them: without the frames of this package before the program's."""

from __future__ import annotations

from types import TracebackType

from .._model.frames import is_ours


def unwrap_group(error: BaseException) -> BaseException:
    """Returns the exception inside a group of one, so that a task group does not hide a ToolError."""
    seen = 0
    while len(inner := getattr(error, "exceptions", ())) == 1 and isinstance(inner, tuple) and seen < 100:
        if not isinstance(inner[0], BaseException):
            break
        error, seen = inner[0], seen + 1
    return error


def message_of(error: BaseException) -> str:
    """Returns the text of an exception, also if that fails."""
    try:
        return str(error)
    except Exception:  # a broken __str__ must not hide the failure
        return f"<{type(error).__qualname__} whose text can't be read>"


def exc_info(error: BaseException) -> tuple[type[BaseException], BaseException, TracebackType | None]:
    """Returns an exception as `logging` takes it, without this package's frames before the program's."""
    error = unwrap_group(error)
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
        return f"{type(error).__qualname__}: {message_of(error)}"
