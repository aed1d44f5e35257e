"""The methods by which a server authenticates its callers: read from `Server(auth=…)`, and called for each token."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._call.log import report
from .._model.article import with_article
from .._model.json import encode
from ..auth import (
    ApiKeys,
    InsufficientScope,
    Introspection,
    InvalidToken,
    Jwt,
    OAuthProxy,
    Provider,
    RequestInfo,
)
from ..types import Principal
from .options import hierarchy

_UNKNOWN = b'"unknown"'
_FAILED = b'"failed"'
# The seconds after which the native half has refused the request.
_TIME = 15


def set_methods(native: Any, auth: Any, scope_implies: Any, place: str) -> Verifiers:
    """Gives the native half the methods of a server. Returns the functions among them.

    Raises:
        TypeError, ValueError: A method can't work; the text says how to fix it.
    """
    methods = list(auth) if isinstance(auth, (list, tuple)) else [auth]
    functions: dict[int, Callable[..., Any]] = {}
    declared: dict[str, Any] = {"methods": [_declared(it, at, functions, place) for at, it in enumerate(methods)]}
    if scope_implies is not None:
        declared["scopeImplies"] = hierarchy(scope_implies, place)
    verifiers = Verifiers(functions)
    native.set_auth(encode(declared), verifiers)
    return verifiers


def _declared(method: Any, at: int, functions: dict[int, Callable[..., Any]], place: str) -> dict[str, Any]:
    if isinstance(method, str):
        method = Jwt(method)
    if isinstance(method, (Jwt, Introspection, ApiKeys, OAuthProxy, Provider)):
        declaration: dict[str, Any] = vars(method)["_declaration"]
        return {name: value for name, value in declaration.items() if value is not None}
    if callable(method) and not isinstance(method, type):
        functions[at] = method
        return {"kind": "verify"}
    raise TypeError(
        f"{place}: auth= takes the URL of an issuer, a Jwt, Introspection, ApiKeys or OAuthProxy, a provider of "
        f"providers, a function of a token, or a list of these, not {with_article(type(method).__name__)}"
    )


class Verifiers:
    """Calls the functions of a program that verify tokens. The native half calls it on threads of its own.

    Attributes:
        has_async: True if one of the functions is an `async def`, for which a server starts an event loop.
    """

    def __init__(self, functions: dict[int, Callable[..., Any]]) -> None:
        self.has_async = any(_is_async(it) for it in functions.values())
        self._functions = functions
        self._loop: Any = None
        self._has_loop: Any = None  # a threading.Event while the loop is expected

    def expect_loop(self) -> None:
        """Has functions wait for the event loop that the server is about to start."""
        import threading

        self._has_loop = threading.Event()

    def set_loop(self, loop: Any) -> None:
        """Sets the event loop that runs what an `async def` returns, while it runs; otherwise its own loop does."""
        self._loop = loop
        if self._has_loop is not None:
            self._has_loop.set()

    def __call__(self, method: int, token: str, request: tuple[Any, ...]) -> bytes:
        """Returns the reply for the native half, as JSON."""
        verb, path, headers, client = request
        info = RequestInfo(verb, path, [(name, value.decode("latin-1")) for name, value in headers], client=client)
        try:
            found = self._functions[method](token, info)
            if hasattr(found, "__await__"):
                found = self._wait(found)
            if found is None:
                return _UNKNOWN
            if not isinstance(found, Principal):
                raise TypeError(
                    f"auth= returned {with_article(type(found).__name__)}; return a gudgeon.types.Principal, such as "
                    "Principal('ada', scopes=['read']), or None for a token that is not valid"
                )
            return encode({"principal": found.to_dict()})
        except InvalidToken as error:
            return encode({"invalid": error.message})
        except InsufficientScope as error:
            return encode({"insufficientScope": {"scopes": error.scopes, "message": error.message}})
        except Exception as error:
            report("auth: a function that verifies tokens failed, so the request is answered with 500", error)
            return _FAILED

    def _wait(self, awaitable: Any) -> Any:
        import asyncio
        import concurrent.futures

        async def run() -> Any:
            return await asyncio.wait_for(awaitable, _TIME)

        if self._has_loop is not None:
            self._has_loop.wait(_TIME)
        loop = self._loop
        if loop is None or not loop.is_running():
            return asyncio.run(run())
        future = asyncio.run_coroutine_threadsafe(run(), loop)
        try:
            # Longer, for a loop that is blocked, or ends.
            return future.result(_TIME + 5)
        except concurrent.futures.TimeoutError:
            future.cancel()
            raise


def _is_async(function: Callable[..., Any]) -> bool:
    import inspect

    return any(inspect.iscoroutinefunction(it) for it in (function, type(function).__call__))
