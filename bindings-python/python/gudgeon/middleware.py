"""Ready-made middleware: `app.middleware(RateLimit(100), on="tools/call")`."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any

from ._server.middleware import Request
from .errors import ProtocolError, ToolError

__all__ = ["Logging", "Next", "RateLimit", "Request", "ResponseLimit", "Timing"]

Next = Callable[[Request], Awaitable[Any]]
# The HTTP status: codes below zero are not for new uses (2026-07-28, "Error Codes").
_TOO_MANY = 429
_TOO_LARGE = 413
_KEPT = 10_000
# A client that is refused these could not learn the reason.
_SPARED = frozenset(("initialize", "server/discover", "ping"))


def _logger() -> Any:
    import logging

    return logging.getLogger("gudgeon")


def _subject(request: Request) -> str:
    name = request.params.get("name") or request.params.get("uri")
    return f"{request.method} {name}" if name else request.method


class Timing:
    """Logs to the logger "gudgeon" how many milliseconds each request took.

    >>> from gudgeon import Server, middleware
    >>> app = Server("shelf")
    >>> _ = app.middleware(middleware.Timing())
    """

    async def __call__(self, request: Request, next: Next) -> Any:
        start = time.perf_counter()
        try:
            return await next(request)
        finally:
            _logger().info("%s took %.1f ms", _subject(request), (time.perf_counter() - start) * 1e3)


class Logging:
    """Logs to the logger "gudgeon" each request and its outcome; with `params=True` (default False) its params as
    well.
    """

    def __init__(self, *, params: bool = False) -> None:
        self.params = params

    async def __call__(self, request: Request, next: Next) -> Any:
        log = _logger()
        params = f" {dict(request.params)!r}" if self.params else ""
        log.info("%s%s", _subject(request), params)
        try:
            result = await next(request)
        except BaseException as error:
            log.info("%s failed: %s: %s", _subject(request), type(error).__name__, error)
            raise
        log.info("%s is done", _subject(request))
        return result


class RateLimit:
    """Refuses requests above a rate. `initialize`, `server/discover`, `ping` and notifications are not counted.

    Args:
        per_second: Requests a second.
        burst: Requests at once. Default 1.
        by: The unit that has a rate of its own: "principal" (default; without one the client's name), "client" or
            "server".

    Raises:
        ValueError: A number is not above 0, or `by` is another word. In use: ToolError for tools, else ProtocolError
            429.

    >>> from gudgeon import Server, SyncClient, middleware
    >>> app = Server("shelf")
    >>> _ = app.tool(lambda: "ok", name="tidy")
    >>> _ = app.middleware(middleware.RateLimit(0.1), on="tools/call")
    >>> with SyncClient(app) as client:
    ...     [client.call_tool("tidy", raise_on_error=False).is_error for _ in range(2)]
    [False, True]
    """

    def __init__(self, per_second: float, *, burst: int = 1, by: str = "principal") -> None:
        if not per_second > 0:
            raise ValueError(f"RateLimit: per_second= must be greater than 0, got {per_second!r}")
        if burst < 1:
            raise ValueError(f"RateLimit: burst= must be at least 1, got {burst!r}")
        if by not in ("principal", "client", "server"):
            raise ValueError(f"RateLimit: by= must be 'principal', 'client' or 'server', got {by!r}")
        self.per_second = per_second
        self.burst = burst
        self.by = by
        self._buckets: dict[str, tuple[float, float]] = {}

    async def __call__(self, request: Request, next: Next) -> Any:
        if request.method in _SPARED or request.ctx.request_id is None:
            return await next(request)
        now = time.monotonic()
        who = self._who(request)
        left, then = self._buckets.pop(who, (float(self.burst), now))
        left = min(float(self.burst), left + (now - then) * self.per_second)
        granted = left >= 1
        self._buckets[who] = (left - granted, now)
        if len(self._buckets) > _KEPT:
            self._forget_one()
        if granted:
            return await next(request)
        wait = (1 - left) / self.per_second
        text = (
            f"too many requests: at most {_number(self.per_second)} per second are allowed; try again in {wait:.1f} s"
        )
        raise ToolError(text) if request.method == "tools/call" else ProtocolError(_TOO_MANY, text)

    def _forget_one(self) -> None:
        """Drops the bucket that was used longest ago, which is probably full again."""
        del self._buckets[next(iter(self._buckets))]

    def _who(self, request: Request) -> str:
        if self.by == "server":
            return ""
        principal = request.ctx.principal
        if self.by == "principal" and principal is not None:
            return str(principal.subject)
        return f"client {request.ctx.client.name}"


class ResponseLimit:
    """Refuses results above a size: ToolError for tools, else ProtocolError 413. Questions and the requests that
    `RateLimit` does not count pass.

    Args:
        max_bytes: Bytes of the result as JSON, above 0; else ValueError.
    """

    def __init__(self, max_bytes: int) -> None:
        if max_bytes < 1:
            raise ValueError(f"ResponseLimit: max_bytes= must be at least 1, got {max_bytes!r}")
        self.max_bytes = max_bytes

    async def __call__(self, request: Request, next: Next) -> Any:
        from ._plan.replies import json_reply
        from .ask import Question

        result = await next(request)
        is_question = all(isinstance(item, Question) for item in (result if isinstance(result, list) else [result]))
        if is_question or request.method in _SPARED:
            return result
        size = len(json_reply(result))
        if size <= self.max_bytes:
            return result
        text = (
            f"the result of {_subject(request)} has {size} bytes, more than the limit of {self.max_bytes}; request less"
        )
        raise ToolError(text) if request.method == "tools/call" else ProtocolError(_TOO_LARGE, text)


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)
