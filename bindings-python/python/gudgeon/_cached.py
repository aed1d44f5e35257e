"""`cache=` of a resource: the server keeps what a handler answered for some seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ._asking import QuestionReply

_KEPT = 1000


def cached(invoke: Callable[[Any, Any], Any], is_async: bool, seconds: float) -> Callable[[Any, Any], Any]:
    """The same handler with a memory, by its variables; the oldest entry makes room."""
    kept: dict[bytes, tuple[float, Any]] = {}

    def recall(raw: bytes) -> tuple[float, Any] | None:
        found = kept.get(raw)
        return found if found is not None and found[0] > time.monotonic() else None

    def keep(raw: bytes, reply: Any) -> Any:
        if isinstance(reply, QuestionReply):
            return reply
        kept.pop(raw, None)
        kept[raw] = (time.monotonic() + seconds, reply)
        if len(kept) > _KEPT:
            kept.pop(next(iter(kept)), None)
        return reply

    async def ainvoke(raw: bytes, call: Any) -> Any:
        found = recall(raw)
        return found[1] if found else keep(raw, await invoke(raw, call))

    def sync_invoke(raw: bytes, call: Any) -> Any:
        found = recall(raw)
        return found[1] if found else keep(raw, invoke(raw, call))

    return ainvoke if is_async else sync_invoke
