"""The base of `Context` and `SyncContext`, by which a signature recognises the parameter that takes one."""

from __future__ import annotations

from typing import Any, ClassVar


class CallContext:
    """The context of a call; a class that sets `_is_async` is passed to handlers of that kind."""

    __slots__ = ()
    # True if `async def` handlers take it; not set on classes that no handler takes.
    _is_async: ClassVar[bool]

    def __init__(self, call: Any, app: Any) -> None:
        raise NotImplementedError


def context_class(annotation: Any) -> type[CallContext] | None:
    """Returns `Context` or `SyncContext` for one of them or a class derived from it; None for anything else."""
    base = getattr(annotation, "__origin__", annotation)
    if not isinstance(base, type) or not issubclass(base, CallContext):
        return None
    return next((cls for cls in base.__mro__ if "_is_async" in cls.__dict__), None)
