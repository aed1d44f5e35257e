"""Ends a process although threads that are not daemons still run."""

from __future__ import annotations

import os
import sys

from .._native import stderr_has_room

_EXIT_FUNCTIONS = 3.0  # seconds


def end_despite_threads() -> None:
    """Lets the program end although threads that are not daemons, or timers, still run."""
    import threading

    try:
        # The one hook that runs before the interpreter waits for these threads.
        threading._register_atexit(_leave)  # type: ignore[attr-defined]
    except (AttributeError, RuntimeError):
        _leave()


def _leave() -> None:
    import threading

    others = [thread for thread in threading.enumerate() if thread is not threading.main_thread() and not thread.daemon]
    if others:
        import atexit

        if not stderr_has_room():
            # Exit functions wait for a thread that holds stderr, or a log handler on it, because nobody reads it.
            timer = threading.Timer(_EXIT_FUNCTIONS, _end_now)
            timer.daemon = True
            timer.start()
        atexit._run_exitfuncs()
        leave_now()


def _end_now() -> None:
    os._exit(_status())


def leave_now() -> None:
    """Ends the process immediately, after writing all output."""
    for stream in (sys.stdout, sys.stderr):
        try:
            # A thread may hold the stream because nobody reads it.
            if stderr_has_room():
                stream.flush()
        except (OSError, ValueError, AttributeError):
            pass
    os._exit(_status())


def _status() -> int:
    failed = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    return 1 if failed is not None else 0
