"""Middleware of clients: functions around the requests of a program."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec.json import decode

from .._model.article import with_article
from .._model.callables import check_takes
from .._model.json import encode
from .._schema.annotations import place
from .read import read_result

_COROUTINE = 0x80  # CO_COROUTINE


class ClientRequest:
    """A request of a client as its middleware sees it: `method` and `params`, as plain JSON values.

    >>> request = ClientRequest("tools/call", {"name": "add", "arguments": {"a": 1}})
    >>> request.method, request.params["name"]
    ('tools/call', 'add')
    """

    __slots__ = ("method", "params")

    method: str
    params: Mapping[str, Any]

    def __init__(self, method: str, params: Mapping[str, Any]) -> None:
        self.method = method
        self.params = params

    def __repr__(self) -> str:
        return f"ClientRequest({self.method!r}, {dict(self.params)!r})"


def middleware_of(given: Any) -> tuple[Callable[..., Any], ...]:
    """Returns the functions of the option. Raises TypeError if it is not a sequence of functions."""
    if given is None:
        return ()
    functions = list(given) if isinstance(given, Sequence) and not isinstance(given, (str, bytes)) else None
    if functions is None or not all(callable(function) for function in functions):
        raise TypeError(
            f"Client: middleware= must be a list of functions (request, next), not {with_article(type(given).__name__)}"
        )
    for function in functions:
        check_takes(function, "request, next", "Client: a function of middleware=")
    return tuple(functions)


def refuse_async(functions: Sequence[Callable[..., Any]]) -> None:
    """Raises TypeError for middleware that needs an event loop."""
    for function in functions:
        called = function if hasattr(function, "__code__") else type(function).__call__
        if getattr(getattr(called, "__code__", None), "co_flags", 0) & _COROUTINE:
            raise TypeError(f"a SyncClient has no event loop: its middleware {_name(function)} must be a def")


async def run_on_loop(core: Any, event: tuple[Any, ...], send: Callable[[bytes], Awaitable[bytes]]) -> bytes:
    """Runs a client's async functions around a request; `send` sends it. Returns the result as JSON."""
    functions = core.options.middleware

    async def call(at: int, request: ClientRequest) -> Any:
        if at == len(functions):
            sent = await send(_params(request))
            return read_result(core, request.method, sent)
        result = functions[at](request, partial(call, at + 1))
        if not hasattr(result, "__await__"):
            raise TypeError(f"the middleware {_name(functions[at])} of a Client must be an async def")
        return _checked(functions[at], await result, "await next(request)")

    return encode(await call(0, ClientRequest(event[4], decode(event[5]))), "the result of middleware")


def run_blocking(core: Any, event: tuple[Any, ...], send: Callable[[bytes], bytes]) -> bytes:
    """Runs a client's functions around a request; `send` sends it. Returns the result as JSON."""
    functions = core.options.middleware

    def call(at: int, request: ClientRequest) -> Any:
        if at == len(functions):
            sent = send(_params(request))
            return read_result(core, request.method, sent)
        return _checked(functions[at], functions[at](request, partial(call, at + 1)), "next(request)")

    return encode(call(0, ClientRequest(event[4], decode(event[5]))), "the result of middleware")


def _params(request: Any) -> bytes:
    if not isinstance(request, ClientRequest):
        raise TypeError(
            f"middleware passes on a ClientRequest: next(request), not {with_article(type(request).__name__)}"
        )
    return encode(dict(request.params), "the params of middleware")


def _checked(function: Callable[..., Any], result: Any, source: str) -> Any:
    if hasattr(result, "__await__"):
        result.close()
        raise TypeError(f"the middleware {place(function)} returned next(…) before it was done: return {source}")
    if result is None:
        raise TypeError(f"the middleware {_name(function)} returned nothing; return what {source} returned")
    return result


def _name(function: Any) -> str:
    return repr(getattr(function, "__name__", type(function).__name__))
