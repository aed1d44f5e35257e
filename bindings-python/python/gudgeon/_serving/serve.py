"""Serves one source of calls until it ends; calls in flight then get some time before they are cancelled."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

from .asyncio_queue import CLEANUP, AsyncioQueue

GRACE = 3.0  # seconds for calls in flight when the input has ended

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
