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
    announce_on_terminal(app)
    fd_in, fd_out = take_stdio()
    # `print` writes to stderr from here on, which is expected to show lines immediately.
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(line_buffering=True)
    with Signals() as signals:
        serve_blocking(app, on_descriptors(fd_in, fd_out), grace=grace, signals=signals)
    os.close(fd_in)
    os.close(fd_out)
    end_despite_threads()


async def serve_stdio(app: Any) -> None:
    """Serves standard input and output on the running loop."""
    announce_on_terminal(app)
    fd_in, fd_out = take_stdio()
    try:
        await serve(app, on_descriptors(fd_in, fd_out))
    finally:
        os.close(fd_in)
        os.close(fd_out)


def announce_on_terminal(app: Any) -> None:
    """Writes to stderr that the server waits for a client, where stdin is a terminal and it would look hung."""
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
