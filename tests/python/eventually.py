"""Waiting for what comes true on another thread, such as a record of the log, which may come after an answer."""

import time
from collections.abc import Callable


def eventually(what: Callable[[], object]) -> None:
    """Waits until `what()` is true."""
    deadline = time.monotonic() + 60
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.005)
