"""Signals that stop a server."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any


class Signals:
    """Handles SIGTERM and Ctrl-C: the first one stops the server, the second one ends the process.

    Args:
        passes_interrupts: Whether Ctrl-C is ignored, because the parent process handles it.
    """

    def __init__(self, *, passes_interrupts: bool = False) -> None:
        self._passes_interrupts = passes_interrupts
        self._asked = False
        self._before: dict[int, Any] = {}
        self._pipe: tuple[int, int] | None = None

    def __enter__(self) -> Signals | None:
        """Returns None on a thread that gets no signals."""
        if threading.current_thread() is not threading.main_thread():
            return None
        self._pipe = os.pipe()
        os.set_blocking(self._pipe[0], False)
        os.set_blocking(self._pipe[1], False)
        # A signal may arrive on any thread; the byte in the pipe wakes the waiting one.
        self._wakeup = signal.set_wakeup_fd(self._pipe[1], warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM):
            passes = self._passes_interrupts and number == signal.SIGINT
            self._before[number] = signal.signal(number, signal.SIG_IGN if passes else self._handle)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._restore)
        return self

    def __exit__(self, *exc: object) -> None:
        self._restore()
        if self._pipe is not None:
            for fd in self._pipe:
                os.close(fd)

    def _restore(self) -> None:
        """Restores the handlers, also in forked processes, which signals end as usual."""
        if self._before:
            signal.set_wakeup_fd(self._wakeup)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def _handle(self, number: int, frame: Any) -> None:
        if self._asked:
            os._exit(128 + number)
        self._asked = True

    def fileno(self) -> int:
        return -1 if self._pipe is None else self._pipe[0]

    def came(self) -> bool:
        """Returns whether a signal arrived."""
        if self._pipe is not None:
            try:
                os.read(self._pipe[0], 64)
            except BlockingIOError:
                pass
        return self._asked
