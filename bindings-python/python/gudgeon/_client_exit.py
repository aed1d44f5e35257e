"""What happens off the main road: callbacks that fail, and the end of the process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

GRACE = 2.0  # seconds for servers to leave by themselves when the process ends
_is_registered = False


def close_at_exit() -> None:
    """Sees to it that clients which nobody closed are closed before the interpreter is gone."""
    global _is_registered
    if not _is_registered:
        import atexit

        from ._native import shut_down_clients

        _is_registered = True
        atexit.register(shut_down_clients, GRACE)


def log_failure(callback: Callable[..., Any], error: BaseException) -> None:
    """A callback's failure must not become the call's."""
    import logging

    name = getattr(callback, "__qualname__", None) or repr(callback)
    logging.getLogger("gudgeon").error("the callback %s failed", name, exc_info=error)
