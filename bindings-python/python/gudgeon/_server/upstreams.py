"""Upstream servers of a server: the middleware of the program around their calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from .._call.native_handlers import answer
from .._native import mounted_key
from .._plan import replies as _replies
from ..context import Context
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
            return _result(kind, await answer(partial(call.pass_on, raw if kind == "resources" else given)))

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
