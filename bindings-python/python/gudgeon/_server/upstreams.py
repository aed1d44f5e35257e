"""Upstream servers of a server: the middleware of the program around their calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from .._call.failures import keep_failure
from .._native import mounted_key
from .._plan import replies as _replies
from ..context import Context
from ..errors import Cancelled, Declined, McpError, NotSupported, ProtocolError, ResourceNotFound, ToolError
from ..types import Completion, PromptResult, ResourceResult, ToolResult
from .middleware import Handle, applies, method_of, served

KINDS = ("tools", "resources", "templates", "prompts", "completions")

_RESULTS: dict[str, Any] = {
    "tools": ToolResult,
    "resources": ResourceResult,
    "prompts": PromptResult,
    "completions": Completion,
}
# The servers that a call passes, the innermost first, each with the prefix that its names have there.
Path = tuple[tuple[Any, str], ...]


class _Subject:
    """A registration of an upstream server, as middleware needs it."""

    __slots__ = ("kind", "method")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.method = method_of(kind, "")


def wrapped_kinds(path: Path) -> list[str]:
    """Returns the kinds of registrations around which middleware of these servers runs."""
    middleware = [on for server, _ in path for _, on in server._middleware]
    return [kind for kind in KINDS if any(applies(on, method_of(kind, "")) for on in middleware)]


def around_upstream(path: Path, rest: str) -> Callable[[bytes, Any], Awaitable[Any]]:
    """Returns an async function that runs the middleware of these servers around a call of an upstream server.

    `rest` follows the prefixes.
    """

    async def invoke(raw: bytes, call: Any) -> Any:
        kind, key, argument = call.native_subject
        if kind == "templates":
            from msgspec.json import decode

            kind, key = "resources", decode(raw)["uri"]
        subject = _Subject(kind)

        async def handler(given: bytes, _: Context) -> Any:
            # Middleware can't change which resource is read.
            return _result(kind, await _answer(partial(call.pass_on, raw if kind == "resources" else given)))

        handle: Handle = handler
        for server, prefix in path:
            if any(applies(on, subject.method) for _, on in server._middleware):
                name = mounted_key(kind, prefix + rest, key)
                handle = partial(served, server, subject, (name, argument) if argument else name, handle)
        result = await handle(raw, Context(call, path[0][0]))
        return _replies.reply_for(subject.method, "the middleware")(result)

    return invoke


def _result(kind: str, result: str) -> Any:
    """Returns a result of the upstream server as middleware sees it."""
    from msgspec.json import decode

    value = decode(result)
    return _RESULTS[kind].from_dict(value["completion"] if kind == "completions" else value)


async def read_resource(uri: str, call: Any) -> ResourceResult:
    """Reads a resource of an upstream server within a call. Raises ResourceNotFound if none has this URI."""

    def start(resolve: Any) -> None:
        if not call.read_upstream(call.app._native, uri, resolve):
            raise ResourceNotFound(uri)

    result: ResourceResult = _result("resources", await _answer(start))
    return result


def read_resource_now(uri: str, call: Any) -> ResourceResult:
    """Reads as `read_resource` for a `def` handler, whose thread waits."""
    from queue import SimpleQueue

    answered: SimpleQueue[tuple[str | None, str | None]] = SimpleQueue()
    if not call.read_upstream(call.app._native, uri, lambda *outcome: answered.put(outcome)):
        raise ResourceNotFound(uri)
    result: ResourceResult = _result("resources", _settled(*answered.get()))
    return result


async def _answer(start: Callable[[Any], None]) -> str:
    """Calls `start(resolve)`, and returns the result of the upstream server with which `resolve` is called, JSON."""
    import asyncio

    loop = asyncio.get_running_loop()
    answered: asyncio.Future[tuple[str | None, str | None]] = loop.create_future()

    def settle(outcome: tuple[str | None, str | None]) -> None:
        if not answered.done():
            answered.set_result(outcome)

    def resolve(result: str | None, failure: str | None) -> None:
        loop.call_soon_threadsafe(settle, (result, failure))

    start(resolve)
    return _settled(*await answered)


def _settled(result: str | None, failure: str | None) -> str:
    if failure is not None:
        raise keep_failure(_error(failure), failure.encode())
    assert result is not None
    return result


def _error(failure: str) -> Exception:
    """Returns the error that a failure of the upstream server is to middleware."""
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
