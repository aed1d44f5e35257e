"""Serves one source of calls until it ends; calls in flight then get some time before they are cancelled."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import Any

GRACE = 3.0  # seconds for calls in flight when the input has ended
CLEANUP = 1.0  # seconds for cancelled handlers to clean up

Start = Callable[[Any, Any], Any]


def serve_blocking(app: Any, start: Start, *, grace: float = GRACE, signals: Any = None, opened: Any = None) -> None:
    """Serves on this thread, on an event loop once a handler needs one.

    Args:
        start: `(app, context)` → the native `Serving`.
        grace: Seconds for calls in flight after the end.
    """
    if app._native.has_async or app._lifespan.is_async:
        _run_loop(serve(app, start, grace=grace, signals=signals, opened=opened))
        return
    app._lifespan.enter()
    try:
        serving = start(app, copy_context())
        try:
            if opened is not None:
                opened(serving)
            if not _wait(serving, grace, signals):
                _run_loop(_on_loop(serving, grace, signals))
        finally:
            serving.cancel()
            serving.stop(CLEANUP)
    finally:
        app._lifespan.exit()


def _run_loop(coroutine: Any) -> None:
    import asyncio

    asyncio.run(coroutine)


def _wait(serving: Any, grace: float, signals: Any) -> bool:
    """Waits for the end and for the calls in flight. Returns False once an event loop is needed."""
    deadline = None
    other = None if signals is None else signals.fileno()
    while True:
        if serving.wants_loop:
            return False
        if serving.ended:
            now = time.monotonic()
            deadline = deadline or now + grace
            if not serving.in_flight or now >= deadline:
                return True
        serving.wait(None if deadline is None else deadline - time.monotonic(), other)
        if signals is not None and signals.came():
            serving.end()


async def serve_stdio(app: Any) -> None:
    """Serves standard input and output on the running loop."""
    import os

    from .._native import take_stdio
    from .run import tell_terminal

    tell_terminal(app)
    fd_in, fd_out = take_stdio()
    try:
        await serve(app, on_descriptors(fd_in, fd_out))
    finally:
        os.close(fd_in)
        os.close(fd_out)


def on_descriptors(fd_in: int, fd_out: int, testing: Any = None) -> Start:
    """Starts to serve one stream of frames; the descriptors are duplicated.

    Args:
        testing: The `TestServing` of a test's connection. Default None.
    """
    return lambda app, context: app._native.serve(fd_in, fd_out, app, context, testing)


async def serve(app: Any, start: Start, *, grace: float = GRACE, signals: Any = None, opened: Any = None) -> None:
    """Serves on the running loop; parameters as in `serve_blocking`."""
    await app._lifespan.aenter()
    try:
        serving = start(app, copy_context())
        try:
            if opened is not None:
                opened(serving)
            await _on_loop(serving, grace, signals)
        finally:
            serving.cancel()
            # A thread writes the rest; a handler that does not return is not waited for.
            serving.stop(0.1)
    finally:
        await app._lifespan.aexit()


async def _on_loop(serving: Any, grace: float, signals: Any = None) -> None:
    """Runs `async def` handlers on this loop until it is over."""
    import asyncio

    loop = asyncio.get_running_loop()
    changed = asyncio.Event()

    def on_status() -> None:
        serving.clear()
        changed.set()

    def on_signal() -> None:
        if signals.came():
            serving.end()

    async def wait(timeout: float | None) -> None:
        try:
            await asyncio.wait_for(changed.wait(), timeout)
        except (asyncio.TimeoutError, TimeoutError):
            pass
        changed.clear()

    loop.add_reader(serving.fileno(), on_status)
    if signals is not None:
        loop.add_reader(signals.fileno(), on_signal)
    asyncio_queue = AsyncioQueue(serving, loop)
    try:
        while not serving.ended:
            await wait(None)
        deadline = loop.time() + grace
        while serving.in_flight and loop.time() < deadline:
            await wait(deadline - loop.time())
    finally:
        loop.remove_reader(serving.fileno())
        await asyncio_queue.close()
        if signals is not None:
            loop.remove_reader(signals.fileno())


class AsyncioQueue:
    """Runs queued `async def` handlers on an event loop."""

    def __init__(self, serving: Any, loop: Any) -> None:
        import asyncio
        import sys

        self._serving = serving
        self._loop = loop
        eager = sys.version_info >= (3, 12) and loop.get_task_factory() is None
        task: Any = asyncio.Task  # `eager_start` came with Python 3.12
        spawn = partial(task, loop=loop, eager_start=True) if eager else loop.create_task
        from .loop_watch import LoopWatch

        self._watch = LoopWatch(serving, loop)
        loop.add_reader(serving.lane_fileno(), serving.drain)
        flush_soon, settle_soon = partial(loop.call_soon, serving.flush), partial(loop.call_soon, serving.settle)
        serving.attach(spawn, flush_soon, settle_soon, self._watch.begin)

    async def close(self) -> None:
        """Cancels the handlers that still run, and gives them time to clean up."""
        import asyncio

        serving = self._serving
        self._watch.end()
        serving.drain()
        tasks = serving.tasks()
        serving.cancel()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CLEANUP)
        self._loop.remove_reader(serving.lane_fileno())
        serving.flush()
        serving.detach()


class Served:
    """A server in memory, on one end of a pair of sockets. Close it when its client is gone."""

    def __init__(self, app: Any, testing: Any = None) -> None:
        self._app = app
        self._testing = testing
        self._serving: Any = None
        self._runner: Any = None

    async def start(self, fd: int) -> Served:
        """Serves this descriptor on the running loop; it is duplicated, the caller keeps its own."""
        import asyncio

        opened: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        start = on_descriptors(fd, fd, self._testing)
        self._runner = asyncio.ensure_future(serve(self._app, start, opened=opened.set_result))
        await asyncio.wait([opened, self._runner], return_when=asyncio.FIRST_COMPLETED)
        if not opened.done():
            await self._runner
        self._serving = opened.result()
        self._runner.add_done_callback(self._hang_up)
        return self

    def _hang_up(self, runner: Any) -> None:
        """Drops the serving after its end: the loop may end before the client, and a reference keeps the descriptor
        open.
        """
        self._serving = None
        if runner.cancelled():
            self._runner = None

    async def aclose(self) -> None:
        if self._serving is not None:
            self._serving.end()
        if self._runner is not None:
            await self._runner

    def start_thread(self, fd: int) -> Served:
        """Serves this descriptor from a thread; it is duplicated, the caller keeps its own."""
        import threading

        ready = threading.Event()
        failed: list[BaseException] = []

        def opened(serving: Any) -> None:
            self._serving = serving
            ready.set()

        def run() -> None:
            try:
                serve_blocking(self._app, on_descriptors(fd, fd, self._testing), opened=opened)
            except BaseException as error:
                failed.append(error)
            finally:
                ready.set()

        self._runner = threading.Thread(target=copy_context().run, args=(run,), name="gudgeon-server", daemon=True)
        self._runner.start()
        ready.wait()
        if failed:
            raise failed[0]
        return self

    def close(self) -> None:
        if self._serving is not None:
            self._serving.end()
        if self._runner is not None:
            self._runner.join()
