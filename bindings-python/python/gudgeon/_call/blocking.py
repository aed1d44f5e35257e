"""Runs a handler with middleware around it for a thread that waits for the result."""

from __future__ import annotations

from contextvars import ContextVar, copy_context
from typing import Any

is_waited_for: ContextVar[bool] = ContextVar("gudgeon_is_waited_for", default=False)


def run_for_waiter(invoke: Any, raw: bytes, call: Any) -> Any:
    """Runs what `around` made of a `def` handler, for a thread that waits: its handler takes no thread of the pool."""
    import asyncio
    from concurrent.futures import Future
    from threading import Thread

    done: Future[Any] = Future()
    context = copy_context()
    context.run(is_waited_for.set, True)

    def run() -> None:
        try:
            done.set_result(context.run(asyncio.run, invoke(raw, call)))
        except BaseException as error:
            done.set_exception(error)

    Thread(target=run, name="gudgeon-reads").start()
    return done.result()
