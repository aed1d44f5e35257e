"""The running event loop, which must be one of asyncio."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio


def running_loop(what: str, instead: str) -> asyncio.AbstractEventLoop:
    """Returns the running loop.

    Args:
        what: The name of what needs it, for the error.
        instead: What works on a thread without a loop.

    Raises:
        RuntimeError: No loop of asyncio runs on this thread; under trio the message says that.
    """
    import asyncio

    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        if not _runs_trio():
            raise RuntimeError(
                f"no running event loop: {what} needs one on this thread; use asyncio.run(), from other threads "
                f"asyncio.run_coroutine_threadsafe(), or {instead}"
            ) from None
    raise RuntimeError(
        f"{what} needs asyncio, and this task runs on trio: run the program with asyncio.run() (with anyio: "
        f'backend="asyncio"), or use {instead} on a thread: trio.to_thread.run_sync()'
    )


def _runs_trio() -> bool:
    lowlevel = getattr(sys.modules.get("trio"), "lowlevel", None)
    if lowlevel is None:
        return False
    try:
        # Raises RuntimeError outside of trio.run().
        lowlevel.current_task()
    except RuntimeError:
        return False
    return True
