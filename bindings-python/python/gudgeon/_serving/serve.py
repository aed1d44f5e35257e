"""Serves one source of calls until it ends; calls in flight then get some time before they are cancelled."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Coroutine
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from .asyncio_queue import CLEANUP, AsyncioQueue

if TYPE_CHECKING:
    import asyncio

GRACE = 3.0  # seconds for calls in flight when the input has ended

# A program that exports metrics has imported this; it is not imported here.
METRICS = "opentelemetry.metrics"

Start = Callable[[Any, Any], Any]


def serve_blocking(app: Any, start: Start, *, grace: float = GRACE, signals: Any = None, opened: Any = None) -> None:
    """Serves on this thread, on an event loop once a handler needs one.

    Without a lifespan the server answers before the loop exists, because the import of asyncio takes as long as the
    rest of its start.

    Args:
        start: `(app, context)` → the native `Serving`.
        grace: Seconds for calls in flight after the end.
    """
    has_async = app._native.has_async or (app._verifiers is not None and app._verifiers.has_async)
    if app._lifespan.is_async or (has_async and app._lifespan.first() is not None):
        _run_loop(serve(app, start, grace=grace, signals=signals, opened=opened))
        return
    app._lifespan.enter()
    export_metrics(app)
    if has_async and app._verifiers is not None:
        app._verifiers.expect_loop()
    try:
        serving = start(app, copy_context())
        try:
            _watch(serving, grace, signals)
            if opened is not None:
                opened(serving)
            if has_async or not _wait(serving, grace, signals):
                _run_loop(_on_loop(app, serving, grace, signals))
        finally:
            serving.cancel()
            serving.stop(CLEANUP)
            _handlers_ended(signals)
    finally:
        app._lifespan.exit()


def _watch(serving: Any, grace: float, signals: Any) -> None:
    """Has the process ended if handlers keep it from ending, where the server owns the process."""
    if signals is not None:
        serving.watch(signals.watchdog, grace)


def _handlers_ended(signals: Any) -> None:
    if signals is not None:
        signals.watchdog.handlers_ended()


def _run_loop(coroutine: Coroutine[Any, Any, None]) -> None:
    """Runs a coroutine on a new loop, as `asyncio.run` does, which waits forever for tasks that ignore their
    cancellation and for threads of `asyncio.to_thread` that do not end.
    """
    import asyncio

    loop = asyncio.new_event_loop()
    try:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(coroutine)
    finally:
        try:
            _end_tasks(loop)
            loop.run_until_complete(loop.shutdown_asyncgens())
            # Not cancelled, which would wait for the threads.
            _wait_for(loop, [loop.create_task(loop.shutdown_default_executor())])
        finally:
            asyncio.set_event_loop(None)
            loop.close()


def _end_tasks(loop: asyncio.AbstractEventLoop) -> None:
    import asyncio

    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    for task in _wait_for(loop, tasks):
        error = None if task.cancelled() else task.exception()
        if error is not None:
            context = {"message": "unhandled exception at the end of the event loop", "exception": error, "task": task}
            loop.call_exception_handler(context)


def _wait_for(loop: asyncio.AbstractEventLoop, tasks: Collection[asyncio.Task[Any]]) -> set[asyncio.Task[Any]]:
    """Waits for tasks at most `CLEANUP` seconds, and abandons those that still run. Returns the others."""
    import asyncio

    if not tasks:
        return set()
    done, pending = loop.run_until_complete(asyncio.wait(tasks, timeout=CLEANUP))
    for task in pending:
        # Otherwise asyncio reports when it is collected that it was pending.
        task._log_destroy_pending = False  # type: ignore[attr-defined]
    return done


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


def on_descriptors(fd_in: int, fd_out: int, testing: Any = None) -> Start:
    """Starts to serve one stream of frames; the descriptors are duplicated.

    Args:
        testing: The `TestServing` of a test's connection. Default None.
    """
    return lambda app, context: app._native.serve(fd_in, fd_out, app, context, testing)


def check_loop() -> None:
    """Raises RuntimeError where no loop of asyncio runs."""
    from .._model.event_loop import running_loop

    running_loop("the server", "app.run()")


def export_metrics(app: Any) -> None:
    """Has the metrics of a server that begins to serve exported, if the program uses OpenTelemetry for metrics."""
    if METRICS in sys.modules:
        from .telemetry import export

        export(app)


async def serve(app: Any, start: Start, *, grace: float = GRACE, signals: Any = None, opened: Any = None) -> None:
    """Serves on the running loop; parameters as in `serve_blocking`."""
    await app._lifespan.aenter()
    try:
        export_metrics(app)
        serving = start(app, copy_context())
        try:
            _watch(serving, grace, signals)
            if opened is not None:
                opened(serving)
            await _on_loop(app, serving, grace, signals)
        finally:
            serving.cancel()
            # A thread writes the rest; a handler that does not return is not waited for.
            serving.stop(0.1)
            _handlers_ended(signals)
    finally:
        await app._lifespan.aexit()


async def _on_loop(app: Any, serving: Any, grace: float, signals: Any = None) -> None:
    """Runs `async def` handlers, and functions that verify tokens, on this loop until it is over."""
    import asyncio

    loop = asyncio.get_running_loop()
    if app._verifiers is not None:
        app._verifiers.set_loop(loop)
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
        # The loop of a server in memory may be closed without an end of its tasks.
        if not loop.is_closed():
            loop.remove_reader(serving.fileno())
            await asyncio_queue.close()
            if signals is not None:
                loop.remove_reader(signals.fileno())
