"""Serves standard input and output."""

from __future__ import annotations

import os
import sys
from typing import Any

from .._native import take_stdio
from .process_end import end_despite_threads
from .serve import GRACE, on_descriptors, serve, serve_blocking
from .signals import Signals


def run_stdio(app: Any, grace: float = GRACE) -> None:
    """Serves stdio until the client closes it or a signal arrives. Remaining threads then don't keep the process
    alive.
    """
    for descriptor, name in enumerate(("input", "output")):
        if _is_closed(descriptor):
            raise SystemExit(f"gudgeon: standard {name} is closed, which a server over stdio needs: a client starts it")
    announce_on_terminal(app)
    fd_in, fd_out = _take_stdio()
    with Signals() as signals:
        serve_blocking(app, on_descriptors(fd_in, fd_out), grace=grace, signals=signals)
    os.close(fd_in)
    os.close(fd_out)
    end_despite_threads()


async def serve_stdio(app: Any) -> None:
    """Serves standard input and output on the running loop."""
    announce_on_terminal(app)
    fd_in, fd_out = _take_stdio()
    try:
        await serve(app, on_descriptors(fd_in, fd_out))
    finally:
        os.close(fd_in)
        os.close(fd_out)


def _take_stdio() -> tuple[int, int]:
    """Takes both from the program, whose `print` writes to stderr from then on."""
    descriptors = take_stdio()
    # A stray print must not fail a call because of the terminal's encoding, and stderr shows lines immediately.
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        try:
            reconfigure(line_buffering=True, errors="backslashreplace")
        except OSError:  # it was a file, which has a position, and is none any more
            reconfigure(line_buffering=True)
    return descriptors


def _is_closed(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return True
    return False


def announce_on_terminal(app: Any) -> None:
    """Writes to stderr that the server waits for a client, where stdin is a terminal and it would look hung."""
    try:
        if not os.isatty(0):
            return
    except OSError:
        return
    from shlex import quote

    words = [os.path.basename(sys.orig_argv[0]), *sys.orig_argv[1:]]
    is_file = len(words) == 2 and words[1].endswith(".py")
    target = " ".join(map(quote, words[1:] if is_file else ["--", *words]))
    print(
        f"{app.name or 'gudgeon'}: serving over stdio, waiting for an MCP client on standard input; to try it, run "
        f"`gudgeon inspect {target}`; Ctrl-C ends it",
        file=sys.stderr,
        flush=True,
    )
