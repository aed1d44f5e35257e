"""Ends a process although threads that are not daemons still run."""

from __future__ import annotations

import os
import sys


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

        atexit._run_exitfuncs()
        leave_now()


def leave_now() -> None:
    """Ends the process immediately, after writing all output."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            pass
    failed = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    os._exit(1 if failed is not None else 0)
