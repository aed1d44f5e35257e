"""Runs `async def` handlers on an event loop."""

from __future__ import annotations

from functools import partial
from typing import Any

CLEANUP = 1.0  # seconds for cancelled handlers to clean up


class AsyncioQueue:
    """Runs queued `async def` handlers on an event loop."""

    def __init__(self, serving: Any, loop: Any) -> None:
        import asyncio
        import sys

        # Imports threading, which servers without `async def` handlers do not need.
        from .loop_watch import LoopWatch

        self._serving = serving
        self._loop = loop
        eager = sys.version_info >= (3, 12) and loop.get_task_factory() is None
        task: Any = asyncio.Task  # `eager_start` came with Python 3.12
        spawn = partial(task, loop=loop, eager_start=True) if eager else loop.create_task
        self._watch = LoopWatch(serving, loop)
        loop.add_reader(serving.queue_fileno(), serving.drain)
        flush_soon, settle_soon = partial(loop.call_soon, serving.flush), partial(loop.call_soon, serving.settle)
        serving.attach(spawn, flush_soon, settle_soon, self._watch.begin)

    async def close(self) -> None:
        """Cancels the handlers that still run, and gives them time to clean up."""
        import asyncio

        serving = self._serving
        self._watch.end()
        serving.drain()
        running, ending = serving.tasks()
        serving.cancel()
        # Those that end already would be interrupted in their cleanup.
        for task in running:
            task.cancel()
        if running or ending:
            await asyncio.wait([*running, *ending], timeout=CLEANUP)
        self._loop.remove_reader(serving.queue_fileno())
        serving.flush()
        serving.detach()
