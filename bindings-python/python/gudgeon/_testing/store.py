"""The checks of a store that servers share."""

from __future__ import annotations

import asyncio
from typing import Any

from .._native import check_store
from .._server.awaiting import Awaiting
from .._server.store import StoreCalls, methods_of


async def check(store: Any) -> None:
    """Raises `AssertionError` with the first rule that a store does not keep."""
    awaiting = Awaiting([])
    awaiting.set_loop(asyncio.get_running_loop())
    await asyncio.to_thread(check_store, StoreCalls(store, awaiting), list(methods_of(store)))
