"""Functions of a program that the native half calls on threads of its own: what they return may be awaitable."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from typing import Any

# The seconds after which the native half has refused the request.
TIME = 15
# The seconds for which a server may have no event loop yet.
STARTING = 2


class Awaiting:
    """Waits for awaitables on the event loop of the server.

    Attributes:
        has_async: True if one of the functions is an `async def`, for which a server starts an event loop.
    """

    def __init__(self, functions: Iterable[Any]) -> None:
        self.has_async = False
        self.add(functions)
        self._loop: Any = None
        self._has_loop: Any = None  # a threading.Event while the loop is expected

    def add(self, functions: Iterable[Any]) -> None:
        """Adds functions to those that are called."""
        self.has_async = self.has_async or any(_is_async(function) for function in functions)

    def expect_loop(self) -> None:
        """Has functions wait for the event loop that the server is about to start."""
        import threading

        self._has_loop = threading.Event()

    def set_loop(self, loop: Any) -> None:
        """Sets the event loop that runs what an `async def` returns, while it runs; otherwise its own loop does."""
        self._loop = loop
        if self._has_loop is not None:
            self._has_loop.set()

    def result(self, returned: Any) -> Any:
        """Returns what a function returned, or the result of the awaitable that it returned."""
        return self._wait(returned) if hasattr(returned, "__await__") else returned

    def begin(self, run: Coroutine[Any, Any, None]) -> Callable[[], object]:
        """Begins to run a coroutine on the event loop of the server. Returns a function that cancels it.

        Raises:
            RuntimeError: The server runs no event loop.
        """
        import asyncio
        import time

        until = time.monotonic() + STARTING
        # A server that starts may be asked for this before its loop runs.
        while (loop := self._running_loop()) is None and time.monotonic() < until:
            time.sleep(0.02)
        if loop is None:
            run.close()
            raise RuntimeError("the server runs no event loop")
        return asyncio.run_coroutine_threadsafe(run, loop).cancel

    def _running_loop(self) -> Any:
        if self._has_loop is not None:
            self._has_loop.wait(TIME)
        loop = self._loop
        return loop if loop is not None and loop.is_running() else None

    def _wait(self, awaitable: Any) -> Any:
        import asyncio
        import concurrent.futures

        async def run() -> Any:
            return await asyncio.wait_for(awaitable, TIME)

        loop = self._running_loop()
        if loop is None:
            return asyncio.run(run())
        future = asyncio.run_coroutine_threadsafe(run(), loop)
        try:
            # Longer, for a loop that is blocked, or ends.
            return future.result(TIME + 5)
        except concurrent.futures.TimeoutError:
            future.cancel()
            raise


def _is_async(function: Any) -> bool:
    import inspect

    candidates = (function, type(function).__call__)
    return any(inspect.iscoroutinefunction(each) or inspect.isasyncgenfunction(each) for each in candidates)
