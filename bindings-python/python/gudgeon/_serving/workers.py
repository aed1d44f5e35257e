"""`app.run(url, workers=N)`: processes that share one port; the operating system distributes connections."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

_NO_KEYS = (
    "warning: every worker seals requestState with a key of its own, so that others refuse a client's answers; "
    "set request_state_keys= or GUDGEON_STATE_KEYS"
)
_TOO_SOON = 1.0  # seconds; a worker that fails earlier is expected to fail again


def run_workers(app: Any, at: str, count: int, run: Callable[[str, Any], None]) -> None:
    """Forks the workers, replaces those that die, and ends them all after a signal.

    Args:
        run: `(url, opened)`: serves in a worker until a signal arrives.
    """
    held, url = _hold(at)
    workers: dict[int, float] = {}
    ending: list[int] = []

    def end(number: int, frame: Any) -> None:
        ending.append(number)
        for worker in list(workers):
            _kill(worker, signal.SIGTERM)

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    failed = 0
    try:
        listening, listens = os.pipe()
        for _ in range(count):
            _fork(workers, url, run, (listening, listens))
        os.close(listens)
        # Each worker closes its end of the pipe when it listens or ends.
        os.read(listening, 1)
        os.close(listening)
        name = app.name or "gudgeon"
        if not app._native.has_state_keys:
            print(_NO_KEYS, file=sys.stderr)
        print(f"{name} serves with {count} workers (Ctrl-C ends them)\n{url}", file=sys.stderr, flush=True)
        while workers:
            worker, status = os.wait()
            started = workers.pop(worker, None)
            if started is None or ending:
                continue
            failed = os.waitstatus_to_exitcode(status)
            if time.monotonic() - started < _TOO_SOON:
                end(0, None)
            else:
                print(f"the worker {worker} ended with {failed}: starting another", file=sys.stderr, flush=True)
                _fork(workers, url, run, ())
                failed = 0
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        held.close()
    if failed:
        raise SystemExit(1)


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
    try:
        held.bind(address)
    except OSError as error:
        held.close()
        raise OSError(error.errno, f"nothing can listen at {at}: {error.strerror}") from None
    shown = f"[{host}]" if ":" in host else host
    return held, parts._replace(netloc=f"{shown}:{held.getsockname()[1]}").geturl()


def _fork(workers: dict[int, float], url: str, run: Callable[[str, Any], None], pipe: tuple[int, ...]) -> None:
    """Forks a worker, which closes `pipe` as soon as it listens."""
    worker = os.fork()
    if worker:
        workers[worker] = time.monotonic()
        return
    status = 1

    def opened(serving: Any) -> None:
        for end in pipe:
            os.close(end)

    try:
        run(url, opened)
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
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _kill(process: int, number: int) -> None:
    try:
        os.kill(process, number)
    except ProcessLookupError:
        pass
