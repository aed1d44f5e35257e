"""Ready-made middleware: `app.middleware(RateLimit(100), on="tools/call")`."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any

from . import _native
from ._call.log import log_request
from ._server.middleware import Request
from .errors import ProtocolError, ToolError

__all__ = ["Logging", "Next", "RateLimit", "Request", "ResponseLimit", "Timing"]

Next = Callable[[Request], Awaitable[Any]]


def _name(request: Request) -> str | None:
    name = request.params.get("name") or request.params.get("uri")
    return None if name is None else str(name)


def _log(request: Request, stage: str, text: str | None = None, start: float | None = None) -> None:
    after = 0 if start is None else time.perf_counter() - start
    log_request(request.ctx._call, stage, request.method, _name(request), text, after)


def _error(code: int | None, message: str) -> ToolError | ProtocolError:
    return ToolError(message) if code is None else ProtocolError(code, message)


class Timing:
    """Logs how long each request took: the event `request.timed` of the logger "gudgeon.request" at level INFO, with
    `mcp_method`, `mcp_duration_ms` and others as attributes of the record.

    >>> from gudgeon import Server, middleware
    >>> app = Server("shelf")
    >>> _ = app.middleware(middleware.Timing())
    """

    async def __call__(self, request: Request, next: Next) -> Any:
        start = time.perf_counter()
        try:
            return await next(request)
        finally:
            _log(request, "timed", start=start)


class Logging:
    """Logs each request and its outcome: the events `request.received` and `request.done` of the logger
    "gudgeon.request" at level INFO, with `mcp_outcome` and others as attributes of the record.

    Args:
        params: Whether the text has the params as well, up to 16 KiB of them. Default False.
    """

    def __init__(self, *, params: bool = False) -> None:
        self.params = params

    async def __call__(self, request: Request, next: Next) -> Any:
        start = time.perf_counter()
        _log(request, "received", repr(dict(request.params)) if self.params else None)
        try:
            result = await next(request)
        except BaseException as error:
            _log(request, "failed", f"{type(error).__name__}: {error}", start)
            raise
        _log(request, "done", start=start)
        return result


class RateLimit:
    """Refuses requests above a rate. `initialize`, `server/discover`, `ping` and notifications are not counted.

    Args:
        per_second: Requests a second.
        burst: Requests at once. Default 1.
        by: The unit that has a rate of its own: "principal" (default; without one the address that requests come
            from, and where that is unknown all callers together), "client" (its name, which it chooses itself) or
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
        self._limit = _native.RateLimit(per_second, burst, by)
        self.per_second = per_second
        self.burst = burst
        self.by = by

    async def __call__(self, request: Request, next: Next) -> Any:
        ctx = request.ctx
        if ctx.request_id is not None and self._limit.counts(request.method):
            principal = None if ctx.principal is None else str(ctx.principal.subject)
            remote = ctx._call.remote
            rejected = self._limit.admit(time.monotonic(), request.method, principal, ctx.client.name, remote)
            if rejected is not None:
                raise _error(*rejected)
        return await next(request)


class ResponseLimit:
    """Refuses results above a size: ToolError for tools, else ProtocolError 413. Questions and the requests that
    `RateLimit` does not count pass.

    Args:
        max_bytes: Bytes of the result as JSON, above 0; else ValueError.
    """

    def __init__(self, max_bytes: int) -> None:
        self._limit = _native.ResponseLimit(max_bytes)
        self.max_bytes = max_bytes

    async def __call__(self, request: Request, next: Next) -> Any:
        from collections.abc import Mapping

        from ._plan import replies
        from ._plan.question_reply import QuestionReply

        result = await next(request)
        if isinstance(result, Mapping):
            reply: Any = replies.RESULT, replies.json_reply(result)
        else:
            reply = replies.reply_for(request.method, "middleware")(result)
        if not isinstance(reply, QuestionReply):
            rejected = self._limit.check(request.method, _name(request), reply)
            if rejected is not None:
                raise _error(*rejected)
        return result
