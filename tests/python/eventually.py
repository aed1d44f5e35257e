"""Waiting for what comes true on another thread, such as a record of the log, which may come after an answer."""

import time
from collections.abc import Callable


def eventually(what: Callable[[], object], seconds: float = 60) -> None:
    """Waits until `what()` is true. Fails after so many seconds."""
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.005)
