"""Routes: functions that answer HTTP requests beside the endpoint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._model.http import read_request
from .._plan.replies import route_reply
from .._plan.signature import Signature


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
    if not callable(fn) and not isinstance(fn, classmethod):
        raise TypeError(f"route {path!r}: the handler is a function, not {type(fn).__name__}")
    signature = Signature(fn)
    invoke = _invoke(signature)
    return [Route(method, path, auth, thread, invoke, signature.is_async) for method in methods]


def _invoke(signature: Signature) -> Callable[[Any, Any], Any]:
    given = signature.parameters
    others = [one for one in given if one.context is not None or one.depends is not None or one.keyword_only]
    if len(given) > 1 or others:
        raise TypeError(
            f"{signature.place} takes {', '.join(repr(one.name) for one in given)}: the function of a route takes an "
            "HttpRequest, or nothing"
        )
    fn, reply, takes_request = signature.fn, route_reply(signature.place), bool(given)

    def arguments(raw: Any) -> tuple[Any, ...]:
        return (read_request(raw),) if takes_request else ()

    def invoke(raw: Any, call: Any) -> Any:
        return reply(fn(*arguments(raw)))

    async def invoke_async(raw: Any, call: Any) -> Any:
        return reply(await fn(*arguments(raw)))

    return invoke_async if signature.is_async else invoke
