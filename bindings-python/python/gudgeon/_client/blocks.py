"""Nested `with` blocks of one client: the outermost closes it."""

from __future__ import annotations

from _thread import allocate_lock


class Blocks:
    """Counts the `with` blocks that a client or a group is inside of, on any thread."""

    __slots__ = ("_count", "_lock")

    def __init__(self) -> None:
        self._count = 0
        self._lock = allocate_lock()

    def enter(self) -> bool:
        """Enters a block; returns whether it is the outermost."""
        with self._lock:
            self._count += 1
            return self._count == 1

    def leave(self) -> bool:
        """Leaves a block; returns whether it was the outermost, so that the client is to be closed."""
        with self._lock:
            self._count = max(0, self._count - 1)
            return self._count == 0
