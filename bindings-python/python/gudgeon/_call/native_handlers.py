"""Native handlers, such as those of upstream servers, that run within a call of a handler or of middleware."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import Cancelled, Declined, McpError, NotSupported, ProtocolError, ResourceNotFound, ToolError
from ..types import ResourceResult
from .failures import keep_failure


async def read_resource(uri: str, call: Any) -> ResourceResult:
    """Reads a resource of an upstream server within a call. Raises ResourceNotFound if none has this URI."""

    def start(resolve: Any) -> None:
        if not call.read_upstream(call.app._native, uri, resolve):
            raise ResourceNotFound(uri)

    return _read(await answer(start))


def read_resource_now(uri: str, call: Any) -> ResourceResult:
    """Reads as `read_resource` for a `def` handler, whose thread waits."""
    from queue import SimpleQueue

    answered: SimpleQueue[tuple[str | None, str | None]] = SimpleQueue()
    if not call.read_upstream(call.app._native, uri, lambda *outcome: answered.put(outcome)):
        raise ResourceNotFound(uri)
    return _read(_settled(*answered.get()))


async def answer(start: Callable[[Any], None]) -> str:
    """Calls `start(resolve)`, and returns the result of the upstream server with which `resolve` is called, JSON."""
    import asyncio

    loop = asyncio.get_running_loop()
    answered: asyncio.Future[tuple[str | None, str | None]] = loop.create_future()

    def settle(outcome: tuple[str | None, str | None]) -> None:
        if not answered.done():
            answered.set_result(outcome)

    def resolve(result: str | None, failure: str | None) -> None:
        try:
            loop.call_soon_threadsafe(settle, (result, failure))
        except RuntimeError:
            pass  # the loop is closed: nobody waits any more

    start(resolve)
    return _settled(*await answered)


def _settled(result: str | None, failure: str | None) -> str:
    if failure is not None:
        raise keep_failure(_error(failure), failure.encode())
    assert result is not None
    return result


def _read(result: str) -> ResourceResult:
    from msgspec.json import decode

    return ResourceResult.from_dict(decode(result))


def _error(failure: str) -> Exception:
    """Returns the error that a failure of the upstream server is to a handler and to middleware."""
    from msgspec.json import decode

    failed = decode(failure)
    kind, message, data = failed["kind"], failed["message"], failed.get("data")
    if kind == "tool":
        return ToolError(message, **failed.get("meta", {}))
    if kind == "protocol":
        return ProtocolError(failed["code"], message, data)
    if kind == "notFound":
        return ResourceNotFound(failed["uri"], message or None)
    if kind == "missingCapability":
        return NotSupported(message, data=data)
    if kind in ("declined", "dismissed"):
        return Declined(message)
    return Cancelled(message) if kind == "cancelled" else McpError(message)
