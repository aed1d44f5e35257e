"""Notices that uvicorn stops: it sends mounted apps no shutdown, and ends the process after SIGTERM."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine
from typing import Any


def is_stopping() -> bool:
    """Returns whether uvicorn is stopping. It then waits for streams, which would never end by themselves."""
    handlers = (signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM))
    return any(getattr(getattr(handler, "__self__", None), "should_exit", False) is True for handler in handlers)


class ShutdownHook:
    """Runs a coroutine when uvicorn gets SIGTERM, and has uvicorn wait for it before it ends the process.

    After SIGINT nothing is needed: then the event loop is closed in good order, which cancels its tasks.

    Args:
        loop: The loop that uvicorn runs on.
        leave: Makes the coroutine.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, leave: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._loop = loop
        self._leave: Callable[[], Coroutine[Any, Any, None]] | None = None
        self._before: Any = signal.getsignal(signal.SIGTERM)
        # As of a bound method, so that others find the server as they do without this handler.
        self.__self__ = getattr(self._before, "__self__", None)
        if self._tasks() is not None and threading.current_thread() is threading.main_thread():
            self._leave = leave
            signal.signal(signal.SIGTERM, self)

    def __call__(self, number: int, frame: Any) -> None:
        if callable(self._before):
            self._before(number, frame)
        if self._leave is not None:
            self._loop.call_soon_threadsafe(self._begin)

    def forget(self) -> None:
        """Does nothing on SIGTERM any more."""
        self._leave = None
        on_top: Any = signal.getsignal(signal.SIGTERM)
        if on_top is self and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self._before)

    def _begin(self) -> None:
        leave, self._leave = self._leave, None
        tasks = self._tasks()
        if leave is None or tasks is None:
            return
        task = self._loop.create_task(leave())
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    def _tasks(self) -> set[Any] | None:
        """The tasks that uvicorn waits for when it stops; None for another host."""
        tasks = getattr(getattr(self.__self__, "server_state", None), "tasks", None)
        return tasks if isinstance(tasks, set) else None
