"""Signals that stop a server."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

from .._native import NativeWatchdog


class Signals:
    """Handles SIGTERM and Ctrl-C: the first one stops the server, the second one ends the process.

    The native watchdog receives them as well, on a thread that no handler can block, and ends the process if handlers
    keep it from ending.

    Args:
        passes_interrupts: Whether Ctrl-C is ignored, because the parent process handles it.
    """

    def __init__(self, *, passes_interrupts: bool = False) -> None:
        self._passes_interrupts = passes_interrupts
        self._count = 0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Signals | None:
        """Returns None on a thread that gets no signals."""
        if threading.current_thread() is not threading.main_thread():
            return None
        self.watchdog = NativeWatchdog()
        # A signal may arrive on any thread, and while the main thread does not run Python.
        self._wakeup = signal.set_wakeup_fd(self.watchdog.signals_fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM):
            passes = self._passes_interrupts and number == signal.SIGINT
            self._before[number] = signal.signal(number, signal.SIG_IGN if passes else self._handle)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._restore)
        return self

    def __exit__(self, *exc: object) -> None:
        if self._before:
            self._restore()
            self.watchdog.close()

    def _restore(self) -> None:
        """Restores the handlers, also in forked processes, which signals end as usual."""
        if self._before:
            signal.set_wakeup_fd(self._wakeup)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def _handle(self, number: int, frame: Any) -> None:
        self._count += 1
        self.watchdog.signal(number, self._count)

    def fileno(self) -> int:
        return self.watchdog.fileno()

    def came(self) -> bool:
        """Returns whether a signal arrived."""
        self.watchdog.clear()
        return self.watchdog.came
