"""Standard error, which a host may have closed or leave unread."""

from __future__ import annotations

import os
import sys


def reserve() -> None:
    """Opens the null device as descriptor 2 if it is closed, because the next file or socket would take its place."""
    try:
        os.fstat(2)
    except OSError:
        null = os.open(os.devnull, os.O_WRONLY)
        if null != 2:
            os.dup2(null, 2)
            os.close(null)
        os.set_inheritable(2, True)


def announce(text: str) -> None:
    """Writes lines that another program may read.

    Does nothing if standard error is closed, or takes logs as JSON, whose event `server.started` says the same.
    """
    # Without standard error, `print` writes to standard output.
    if sys.stderr is None or os.environ.get("GUDGEON_LOG_FORMAT") == "json":
        return
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        pass  # the host has closed it
