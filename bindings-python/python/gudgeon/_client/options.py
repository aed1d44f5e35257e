"""Checks the options of clients and calls, and writes them as JSON for the native half."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

from .._model.mappings import value_of
from .._native import check_options, declared_options

DIALECTS = ("0.7", "bare")
REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
_CALLBACKS = {
    "on_elicit": "elicit",
    "on_sample": "sample",
    "on_log": "log",
    "on_progress": "progress",
    "on_list_changed": "changed",
    "on_url_done": "url_done",
    "on_reconnect": "reconnect",
}


class Retry:
    """Limits for repeating calls after the connection was lost; for `retry=` of a client.

    Args:
        attempts: The number of attempts in all. Default 5.
        deadline: Seconds in all. Default 30.
        only_safe: Repeats only reads, lists, and tools marked read-only or idempotent. Default True.

    Raises:
        ValueError: A number is not above 0.

    >>> Retry(attempts=2).deadline
    30
    """

    __slots__ = ("attempts", "deadline", "only_safe")

    def __init__(self, *, attempts: int = 5, deadline: float = 30, only_safe: bool = True) -> None:
        if not isinstance(attempts, int) or attempts < 1:
            raise ValueError(f"attempts= is a whole number above 0, not {attempts!r}")
        if isinstance(deadline, bool) or not isinstance(deadline, (int, float)) or not deadline > 0:
            raise ValueError(f"deadline= is a number of seconds above 0, not {deadline!r}")
        self.attempts = attempts
        self.deadline = deadline
        self.only_safe = only_safe


class Options:
    """The checked options of a client."""

    def __init__(self, given: dict[str, Any]) -> None:
        check_options("client", "Client", given)
        self.revisions = _revisions(given.get("revision", "auto"))
        self.retry = _retry(given.get("retry", "safe"))
        self.callbacks: dict[str, Callable[..., Any]] = {}
        for name, event in _CALLBACKS.items():
            if given.get(name) is not None:
                self.callbacks[event] = given[name]
        roots = given.get("roots")
        if callable(roots):
            self.callbacks["roots"] = roots
        self.roots = None if roots is None or callable(roots) else roots_of(roots)
        self._given = dict(given)

    @property
    def given(self) -> dict[str, Any]:
        return dict(self._given)

    def to_json(self) -> bytes:
        from .._model.json import encode

        declared = declared_options("client", self._given)
        if "clientInfo" in declared:
            from ..types import Implementation

            declared["clientInfo"] = value_of(Implementation, declared["clientInfo"], "Client: client_info=").to_dict()
        return encode(
            {
                **declared,
                "revisions": self.revisions,
                "retry": self.retry,
                "roots": self.roots,
                "callbacks": sorted(self.callbacks),
            }
        )


# Imported by programs that trace; never imported here.
_TRACES = "opentelemetry.trace"


def how(options: dict[str, Any]) -> bytes | None:
    """Returns the options of one call and its trace context as JSON; None if there are none."""
    if not options and _TRACES not in sys.modules:
        return None
    check_options("call", "call_tool()", options)
    out = declared_options("call", options)
    if _TRACES in sys.modules:
        from .._model.trace_context import with_trace_context

        out["meta"] = with_trace_context(options.get("meta"))
    if not out.get("meta"):
        out.pop("meta", None)
    if not out:
        return None
    from .._model.json import encode

    return encode(out)


def roots_of(roots: Sequence[Any]) -> list[dict[str, Any]]:
    """Returns roots, given as `Root` values or URIs, as on the wire."""
    from ..types import Root

    if isinstance(roots, (str, Root)):
        raise TypeError(f"roots are a list: [{roots!r}]")
    out: list[dict[str, Any]] = []
    for root in roots:
        one = root if isinstance(root, Root) else Root(root)
        if not isinstance(one.uri, str) or one.uri[:7].lower() != "file://":
            raise ValueError(f"a root must be a file:// URI such as 'file:///srv/shelf', got {one.uri!r}")
        out.append(one.to_dict())
    return out


def _revisions(wanted: Any) -> list[str] | None:
    if wanted == "auto":
        return None
    if wanted in DIALECTS:
        return [wanted]
    names = [wanted] if isinstance(wanted, str) else list(wanted)
    if not names:
        raise ValueError('revision= names none: leave it out, or name one such as "2025-11-25"')
    for name in names:
        if name not in REVISIONS:
            raise ValueError(
                f'revision= is "auto", one or more of {", ".join(REVISIONS)}, or one of {" and ".join(DIALECTS)} '
                f"by itself, not {name!r}"
            )
    return names


def _retry(wanted: Any) -> Any:
    """Returns the limits as the native half reads them."""
    if wanted in ("safe", "never"):
        return wanted
    if isinstance(wanted, Retry):
        deadline = None if wanted.deadline == math.inf else wanted.deadline * 1000
        return {"attempts": wanted.attempts, "deadlineMs": deadline, "onlySafe": bool(wanted.only_safe)}
    raise ValueError(f'retry= is "safe", "never" or a Retry, not {wanted!r}')
