"""`app.run()`: signals, serving and the end of the process."""

from __future__ import annotations

import os
import sys
from typing import Any

from .serve import on_descriptors, serve_blocking


def run_stdio(app: Any) -> None:
    """Serves stdio until the client closes it or a signal arrives. Remaining threads then don't keep the process
    alive.
    """
    from .._native import take_stdio

    tell_terminal(app)
    fd_in, fd_out = take_stdio()
    # `print` writes to stderr from here on, which is expected to show lines immediately.
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(line_buffering=True)
    with Signals() as signals:
        serve_blocking(app, on_descriptors(fd_in, fd_out), signals=signals)
    os.close(fd_in)
    os.close(fd_out)
    _leave_in_the_end()


def tell_terminal(app: Any) -> None:
    """Says on stderr that the server waits for a client, where stdin is a terminal and it would look hung."""
    try:
        if not os.isatty(0):
            return
    except OSError:
        return
    from shlex import quote

    program = " ".join(map(quote, [os.path.basename(sys.orig_argv[0]), *sys.orig_argv[1:]]))
    print(
        f"{app.name or 'gudgeon'}: serving over stdio, waiting for an MCP client on standard input; to try it, run "
        f"`npx @modelcontextprotocol/inspector {program}`; Ctrl-C ends it",
        file=sys.stderr,
        flush=True,
    )


def run_at(app: Any, start: Any, opened: Any, *, is_worker: bool = False) -> None:
    """Serves an address until a signal arrives and the calls in flight are answered."""
    with Signals(passes_interrupts=is_worker) as signals:
        serve_blocking(app, start, grace=0.0, signals=signals, opened=opened)
    _leave_in_the_end()


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
        import signal
        import threading

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
        import signal

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


def _leave_in_the_end() -> None:
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
