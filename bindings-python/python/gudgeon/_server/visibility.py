"""Evaluates `visible=` of tools, resources and prompts for a request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .._call.log import report
from ..types import Principal

_KINDS = {"tool": "tools", "resource": "resources", "resource template": "templates", "prompt": "prompts"}


def visibility_filter(published: Mapping[tuple[str, Any], Any]) -> Callable[[bytes], bytes]:
    """Answers the core's question which components a principal sees: one answer for each, in order."""

    def invoke(raw: bytes) -> bytes:
        from msgspec.json import decode, encode

        asked = decode(raw)
        who = None if asked["principal"] is None else Principal.from_dict(asked["principal"])
        return encode([_sees(who, published.get((_KINDS[kind], key)), kind, key) for kind, key in asked["components"]])

    return invoke


def _sees(who: Any, published: Any, kind: str, key: str) -> bool:
    """Returns whether a principal sees a component. Removed ones, and those whose function fails, are hidden."""
    if published is None:
        return False
    try:
        seen = published.registration.options["visible"](who)
        if hasattr(seen, "__await__"):
            getattr(seen, "close", lambda: None)()
            raise TypeError("visible= must return a bool, not an awaitable; write def, not async def")
        return bool(seen)
    except Exception as error:
        import traceback

        trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        report(f"visible= of the {kind} {key!r} failed: it stays hidden\n{trace}")
        return False
