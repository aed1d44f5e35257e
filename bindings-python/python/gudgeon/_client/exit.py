"""Failing callbacks, and open clients at the end of the process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

GRACE = 2.0  # seconds for servers to leave by themselves when the process ends
_is_registered = False


def close_at_exit() -> None:
    """Registers a hook that closes open clients before the interpreter is finalised."""
    global _is_registered
    if not _is_registered:
        import atexit

        from .._native import shut_down_clients

        _is_registered = True
        atexit.register(shut_down_clients, GRACE)


def log_failure(callback: Callable[..., Any], error: BaseException) -> None:
    """Logs the exception of a callback, which must not fail the call."""
    import logging

    name = getattr(callback, "__qualname__", None) or repr(callback)
    logging.getLogger("gudgeon").error("the callback %s failed", name, exc_info=error)


def log_unstarted(server: str, error: BaseException) -> None:
    """Logs the reason that a server in memory could not be started."""
    import logging

    logging.getLogger("gudgeon").error("%s could not be started", server, exc_info=error)
