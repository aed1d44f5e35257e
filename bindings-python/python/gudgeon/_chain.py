"""Middleware: what runs around handlers, and what it sees of a request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import copy_context
from functools import partial
from typing import Any

from ._native import expand
from .context import Context

_METHODS = {
    "tools": "tools/call",
    "resources": "resources/read",
    "templates": "resources/read",
    "prompts": "prompts/get",
}


class Request:
    """A request on its way to its handler, as middleware gets it: `method`, `params` as JSON says them, and `ctx`."""

    __slots__ = ("ctx", "method", "params")

    method: str
    params: Mapping[str, Any]
    ctx: Context

    def __init__(self, method: str, params: Mapping[str, Any], ctx: Context) -> None:
        self.method = method
        self.params = params
        self.ctx = ctx

    def __repr__(self) -> str:
        return f"Request({self.method!r}, {dict(self.params)!r})"


def method_of(kind: str, key: str) -> str:
    """The method that reaches a registration."""
    return _METHODS.get(kind) or ("completion/complete" if kind == "completions" else key)


def applies(on: str | Sequence[str], method: str) -> bool:
    """Whether middleware that is registered `on` these methods runs around this one."""
    return any(item in ("*", method) for item in ([on] if isinstance(on, str) else on))


def around(registration: Any) -> Callable[[Any, Any], Awaitable[Any]]:
    """An async function that stands in for a handler: all middleware, then the handler."""

    async def invoke(raw: bytes, call: Any) -> Any:
        from msgspec.json import decode

        arguments = decode(raw)
        params = _params(registration, arguments)
        ctx = Context(call, registration.server)
        last: list[Any] = [None, None]

        async def handler(request: Request) -> Any:
            given = raw if request.params is params else _encoded(_arguments(registration, request.params))
            reply = await run(registration.invoke, registration.is_async, given, call, registration.server)
            last[:] = [registration.result(reply), reply]
            return last[0]

        step: Callable[[Request], Awaitable[Any]] = handler
        for middleware, on in reversed(call.app._middleware_of(registration)):
            if applies(on, registration.method):
                step = partial(_step, middleware, step)
        result = await step(Request(registration.method, params, ctx))
        # What nobody changed is sent as the handler said it.
        return last[1] if result is last[0] else registration.reply(result)

    return invoke


async def _step(middleware: Callable[..., Any], following: Any, request: Request) -> Any:
    return await middleware(request, following)


async def run(invoke: Callable[[Any, Any], Any], is_async: bool, raw: bytes, call: Any, server: Any) -> Any:
    """Calls a handler from the event loop; a `def` runs on a thread."""
    if is_async:
        return await invoke(raw, call)
    import asyncio

    call_in: Any = copy_context().run
    return await asyncio.get_running_loop().run_in_executor(server._executor(), call_in, invoke, raw, call)


def _encoded(value: Any) -> bytes:
    from ._json import encode

    return encode(value)


def _params(registration: Any, arguments: Any) -> dict[str, Any]:
    if registration.kind in ("tools", "prompts"):
        return {"name": registration.key, "arguments": arguments}
    if registration.kind == "resources":
        return {"uri": registration.key}
    if registration.kind == "templates":
        return {"uri": expand(registration.key, _encoded(arguments)), "variables": arguments}
    if registration.kind == "completions":
        target, argument = registration.key
        return {"target": target, "argument": argument, **arguments}
    return dict(arguments)


def _arguments(registration: Any, params: Mapping[str, Any]) -> Any:
    if registration.kind in ("tools", "prompts"):
        return params.get("arguments") or {}
    if registration.kind == "resources":
        return {}
    if registration.kind == "templates":
        return params.get("variables") or {}
    if registration.kind == "completions":
        return {key: params[key] for key in ("value", "arguments") if key in params}
    return dict(params)
