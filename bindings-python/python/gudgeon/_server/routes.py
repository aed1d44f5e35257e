"""Routes: functions that answer HTTP requests beside the endpoint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._model.callables import check_takes
from .._model.http import read_request
from .._plan.replies import route_reply
from .._schema.annotations import place, target


class Route:
    """The handler of one method of a path."""

    __slots__ = ("auth", "invoke", "is_async", "method", "path", "thread")

    def __init__(self, method: str, path: str, auth: bool, thread: bool | None, invoke: Any, is_async: bool) -> None:
        self.method = method
        self.path = path
        self.auth = auth
        self.thread = thread
        self.invoke = invoke
        self.is_async = is_async

    def register(self, native: Any) -> None:
        native.add_route(self.method, self.path, self.auth, self.invoke, self.is_async, self.thread)


def routes_of(fn: Any, path: str, methods: list[str], auth: bool, thread: bool | None) -> list[Route]:
    """Returns the routes that a function answers, one for each method.

    Raises:
        TypeError: It is not a function that takes the request, or nothing.
    """
    import inspect

    if not callable(fn):
        raise TypeError(f"route {path!r}: the handler is a function, not {type(fn).__name__}")
    inner, where = target(fn), place(fn)
    if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
        raise TypeError(f"{where} is a generator: return the whole response instead of yielding")
    is_async = inspect.iscoroutinefunction(inner)
    invoke = _invoke(fn, is_async, _takes_request(fn, where), route_reply(where))
    return [Route(method, path, auth, thread, invoke, is_async) for method in methods]


def _takes_request(fn: Any, where: str) -> bool:
    """Returns whether a function takes the request; False if it takes nothing."""
    try:
        check_takes(fn, "request", f"{where}, the function of a route,")
    except TypeError:
        try:
            check_takes(fn, "", where)
        except TypeError:
            pass
        else:
            return False
        raise
    return True


def _invoke(fn: Any, is_async: bool, takes_request: bool, reply: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    def arguments(raw: Any) -> tuple[Any, ...]:
        return (read_request(raw),) if takes_request else ()

    def invoke(raw: Any, call: Any) -> Any:
        return reply(fn(*arguments(raw)))

    async def invoke_async(raw: Any, call: Any) -> Any:
        return reply(await fn(*arguments(raw)))

    return invoke_async if is_async else invoke
