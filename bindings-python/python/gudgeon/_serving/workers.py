"""`app.run(url, workers=N)`: processes that share one port; the operating system distributes connections."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from .._call.log import log_event
from .standard_error import announce, reserve

_TOO_SOON = 1.0  # seconds; the next worker after one that ends earlier starts with a delay
_FIRST_DELAY = 0.5  # seconds; doubled by each further worker that ends too soon
_MAX_DELAY = 10.0


def run_workers(app: Any, at: str, count: int, run: Callable[[str, str | None, Any], None]) -> None:
    """Forks the workers, replaces those that die, and ends them all after a signal, or where one can't start to listen.

    Args:
        run: `(url, group, opened)`: serves in a worker until a signal arrives; `group` is the folder in which the
            workers find each other.

    Raises:
        SystemExit: With 1 if a worker can't start to listen, with 130 after a second SIGINT, which kills the workers,
            or with the status of a worker that a handler kept from ending.
    """
    reserve()
    held, url = _hold(at)
    app._native.share_key()
    group, warning = _group(app)
    workers: dict[int, float] = {}
    ending: list[int] = []
    status = quick = 0

    def end(number: int, frame: Any) -> None:
        nonlocal status
        is_repeated = bool(ending) and number == signal.SIGINT
        if is_repeated:
            status = 128 + signal.SIGINT
        ending.append(number)
        for worker in list(workers):
            _kill(worker, signal.SIGKILL if is_repeated else signal.SIGTERM)

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    # Only this process holds the second end, so workers read the end of the first one when this process was killed.
    lifeline = os.pipe()
    try:
        listening, listens = os.pipe()
        for _ in range(count):
            _fork(workers, url, group, run, lifeline, (listening, listens))
        os.close(listens)
        # Each worker writes a byte when it listens, and closes its end of the pipe then or when it ends.
        begun = 0
        while written := os.read(listening, count):
            begun += len(written)
        os.close(listening)
        if begun < count and not ending:
            status = 1
            end(0, None)
        if not ending:
            if warning is not None:
                log_event("WARN", "gudgeon", warning, {}, waits=False)
            name = app.name or "gudgeon"
            announce(f"{name} serves with {count} workers (Ctrl-C ends them)\n{url}")
        while workers:
            worker, ended = os.wait()
            started = workers.pop(worker, None)
            code = os.waitstatus_to_exitcode(ended)
            if started is not None and ending and code > 0:
                status = status or code
            if started is None or ending:
                continue
            # A cause that ends workers at once, such as a request that a client repeats, must not end the service.
            quick = quick + 1 if time.monotonic() - started < _TOO_SOON else 0
            delay = min(_FIRST_DELAY * 2 ** (quick - 1), _MAX_DELAY) if quick else 0.0
            when = f" in {delay:g} s" if delay else ""
            text = f"the worker {worker} ended with {code}: starting another{when}"
            fields = {"event": "worker.ended", "worker": worker, "exit_code": code}
            log_event("WARN", "gudgeon", text, fields, waits=False)
            _pause(delay, ending)
            if not ending:
                _fork(workers, url, group, run, lifeline, ())
    finally:
        for end_of_pipe in lifeline:
            os.close(end_of_pipe)
        for number, handler in before.items():
            signal.signal(number, handler)
        held.close()
        if group is not None:
            shutil.rmtree(group, ignore_errors=True)
    if status:
        raise SystemExit(status)


def _group(app: Any) -> tuple[Any, str | None]:
    """Returns the folder that the workers share, with their store if the server has none; or None and a warning."""
    try:
        group = app._native.new_group()
    except ValueError as error:
        return None, f"warning: {error}"
    if app._options.get("store") is None:
        app._native.share_store(group)
    return group, None


def _pause(seconds: float, ending: list[int]) -> None:
    """Waits, until the workers are to end at most."""
    until = time.monotonic() + seconds
    while not ending and (left := until - time.monotonic()) > 0:
        time.sleep(min(left, 0.05))


def _hold(at: str) -> tuple[socket.socket, str]:
    """Reserves the port that the workers share. Returns the socket and the URL with the port."""
    parts = urlsplit(at)
    if parts.scheme not in ("http", "https", "tcp") or not hasattr(socket, "SO_REUSEPORT"):
        raise ValueError(f"run(): workers= share a TCP port, and {at!r} has none: leave it out, or serve http://…")
    host = parts.hostname or "127.0.0.1"
    port = parts.port if parts.port is not None else (443 if parts.scheme == "https" else 80)
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    held = socket.socket(family, kind, protocol)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    # Connections of an earlier server may still be ending at this port.
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        held.bind(address)
    except OSError as error:
        held.close()
        raise OSError(error.errno, f"nothing can listen at {at}: {error.strerror}") from None
    shown = f"[{host}]" if ":" in host else host
    return held, parts._replace(netloc=f"{shown}:{held.getsockname()[1]}").geturl()


def _fork(
    workers: dict[int, float],
    url: str,
    group: str | None,
    run: Callable[[str, str | None, Any], None],
    lifeline: tuple[int, int],
    pipe: tuple[int, ...],
) -> None:
    """Forks a worker, which writes a byte to `pipe` and closes it as soon as it listens."""
    # The parent's handlers must not run in the child, nor in the parent before it knows the child.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    worker = os.fork()
    if worker:
        workers[worker] = time.monotonic()
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        return
    status = 1

    def opened(serving: Any) -> None:
        if pipe:
            os.write(pipe[1], b".")
        for end in pipe:
            os.close(end)

    try:
        # Until the server handles signals itself, SIGTERM ends the worker. On Ctrl-C the parent sends it.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.close(lifeline[1])
        threading.Thread(target=_end_with_parent, args=lifeline[:1], name="gudgeon-parent", daemon=True).start()
        run(url, group, opened)
        status = 0
    except SystemExit as leaving:
        status = leaving.code if isinstance(leaving.code, int) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        import atexit

        # Stop only what this process started; exit functions of the parent must not run twice.
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(AttributeError, OSError):  # it is closed
                stream.flush()
        os._exit(status)


def _end_with_parent(lifeline: int) -> None:
    """Ends this worker when its parent is gone, even if it was killed: nobody could end the worker then."""
    os.read(lifeline, 1)
    os.kill(os.getpid(), signal.SIGTERM)


def _kill(process: int, number: int) -> None:
    try:
        os.kill(process, number)
    except ProcessLookupError:
        pass
