"""Middleware: the functions around requests, and the requests and results that they see."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from contextvars import copy_context
from functools import partial
from typing import Any

from .. import types
from .._call.blocking import is_waited_for
from .._model.article import with_article
from .._model.callables import check_takes
from .._model.json import encode
from .._native import middleware_input, middleware_params, nothing_returned, params_changed
from .._plan import replies as _replies
from .._schema.annotations import place
from ..context import Context
from ..errors import ProtocolError
from ..types import Page

_METHODS = {
    "tools": "tools/call",
    "resources": "resources/read",
    "templates": "resources/read",
    "prompts": "prompts/get",
}

Step = Callable[["Request"], Awaitable[Any]]
# A handler with its input as JSON, or the middleware of a server around it.
Handle = Callable[[bytes, Context], Awaitable[Any]]


class Request:
    """A request as middleware gets it: `method`, `params` as plain JSON values, and `ctx`."""

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
    """Returns the method by which clients reach a registration."""
    return _METHODS.get(kind) or ("completion/complete" if kind == "completions" else key)


def check_middleware(middleware: Any) -> None:
    """Refuses what can't be called as `await middleware(request, next)`: TypeError with the fix."""
    import inspect

    wanted = "middleware is an async function (request, next)"
    if inspect.isclass(middleware):
        raise TypeError(f"{wanted}, not a class; give an instance: {middleware.__name__}(…)")
    if not callable(middleware):
        raise TypeError(f"{wanted}, not {type(middleware).__name__}")
    where = place(middleware)
    called = middleware if inspect.isroutine(middleware) else type(middleware).__call__
    if inspect.isgeneratorfunction(called) or inspect.isasyncgenfunction(called):
        raise TypeError(f"{where} is a generator; {wanted} that returns what `await next(request)` returned")
    check_takes(middleware, "request, next", where)


def applies(on: str | Sequence[str], method: str) -> bool:
    """Returns whether middleware that is registered `on` these methods runs around this one."""
    return any(item in ("*", method) for item in ([on] if isinstance(on, str) else on))


def around(published: Any) -> Callable[[Any, Any], Awaitable[Any]]:
    """Returns an async function in place of a handler: the middleware of every server on the way to it, then the
    handler. Each server's sees the name that the thing has there.
    """
    registration = published.registration

    async def invoke(raw: bytes, call: Any) -> Any:
        async def handler(given: bytes, _: Context) -> Any:
            if registration.is_async:
                return registration.result(await registration.invoke(given, call))
            if is_waited_for.get():
                return registration.result(registration.invoke(given, call))
            return registration.result(await _on_a_thread(published.handle, given, call))

        handle: Handle = handler
        for server, key in reversed(published.path):
            if any(applies(on, registration.method) for _, on in server._middleware):
                handle = partial(served, server, registration, key, handle)
        return registration.reply(await handle(raw, Context(call, registration.server)))

    return invoke


async def served(server: Any, registration: Any, key: Any, following: Handle, given: bytes, ctx: Context) -> Any:
    """Runs the middleware of one server around what follows; both see the params as that server has them."""
    from msgspec.json import decode

    name, argument = key if isinstance(key, tuple) else (key, "")
    params = decode(middleware_params(registration.kind, name, argument, given))
    before = _encoded(params)

    async def go_on(request: Request) -> Any:
        after = _encoded(dict(request.params))
        # Equal input is passed on as it was sent.
        changed = None if after == before else middleware_input(registration.kind, after)
        return await following(given if changed is None else changed.encode(), request.ctx)

    return await _through(server, registration.method, go_on)(Request(registration.method, params, ctx))


def middleware_runner(server: Any) -> Callable[[Any, Any], Awaitable[Any]]:
    """Returns an async function that runs a server's middleware around what the core answers by itself."""

    async def invoke(raw: bytes, call: Any) -> Any:
        from msgspec.json import decode

        exchange = decode(raw)
        method, params, error = exchange["method"], exchange["params"], exchange.get("error")
        failure = error and ProtocolError(error["code"], error["message"], error.get("data"))
        prepared = None if failure else _typed(exchange)
        before = None if failure else _encoded(prepared)
        asked = _encoded(params)

        async def core(request: Request) -> Any:
            if failure:
                raise failure
            if exchange["fixedParams"] and _encoded(dict(request.params)) != asked:
                raise TypeError(params_changed(method))
            return prepared

        with _span(method, call) as span:
            try:
                changed = await _through(server, method, core)(Request(method, params, Context(call, server)))
            except ProtocolError as raised:
                if raised is not failure:
                    raise
                if span is not None:
                    from .._call.tracing import failed

                    failed(span, error["code"], error["message"])
                return None
        after = _encoded({} if changed is None else changed)
        return None if after == before else (_replies.RESULT, after)

    return invoke


def _span(method: str, call: Any) -> Any:
    if "opentelemetry.trace" not in sys.modules:
        return nullcontext()
    from .._call.tracing import span

    return span((method, None), call)


def _typed(exchange: Mapping[str, Any]) -> Any:
    """Returns a result of the core as middleware sees it, in the type that the core names."""
    result = exchange["result"]
    if "type" not in exchange:
        return result
    from_dict = getattr(types, exchange["type"]).from_dict
    value = result[exchange["member"]] if "member" in exchange else result
    if isinstance(value, list):
        return Page([from_dict(item) for item in value], next_cursor=result.get("nextCursor"))
    return from_dict(value)


def _through(server: Any, method: str, step: Step) -> Step:
    """Chains all middleware of one server for this method, the first registered outermost."""
    for middleware, on in reversed(server._middleware):
        if applies(on, method):
            step = partial(_step, middleware, step)
    return step


async def _step(middleware: Callable[..., Any], following: Any, request: Request) -> Any:
    given = None

    async def go_on(request: Request) -> Any:
        nonlocal given
        given = await following(request)
        return given

    awaitable = middleware(request, go_on)
    if not hasattr(awaitable, "__await__"):
        raise TypeError(
            f"{place(middleware)} is not async: it returned {with_article(type(awaitable).__name__)}; "
            "declare it with async def"
        )
    result = await awaitable
    if hasattr(result, "__await__"):
        result.close()
        raise TypeError(f"{place(middleware)} returned next(…) before it was done: write `return await next(request)`")
    if result is None and given is not None:
        raise TypeError(nothing_returned(request.method))
    return result


async def _on_a_thread(handle: Any, raw: bytes, call: Any) -> Any:
    """Runs a `def` handler where it would run without middleware."""
    import asyncio

    loop = asyncio.get_running_loop()
    future = loop.create_future()
    call.run_deferred(handle, copy_context(), raw, partial(_resolve_soon, loop, future))
    reply, error = await future
    if error is not None:
        raise error
    return reply


def _resolve_soon(loop: Any, future: Any, reply: Any, error: BaseException | None) -> None:
    try:
        loop.call_soon_threadsafe(_resolve, future, reply, error)
    except RuntimeError:
        pass  # the loop is closed: nobody waits any more


def _resolve(future: Any, reply: Any, error: BaseException | None) -> None:
    if not future.done():
        future.set_result((reply, error))


async def run(invoke: Callable[[Any, Any], Any], is_async: bool, raw: bytes, call: Any, server: Any) -> Any:
    """Calls a handler from the event loop; a `def` runs on a thread of the pool."""
    if is_async:
        return await invoke(raw, call)
    import asyncio

    call_in: Any = copy_context().run
    return await asyncio.get_running_loop().run_in_executor(server._executor(), call_in, invoke, raw, call)


def _encoded(value: Any) -> bytes:
    return encode(value, "the result")
