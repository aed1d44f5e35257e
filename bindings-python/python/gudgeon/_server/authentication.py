"""The methods by which a server authenticates its callers: read from `Server(auth=…)`, and called for each token."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._call.log import report
from .._model.article import with_article
from .._model.callables import check_takes
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
from .awaiting import Awaiting
from .options import hierarchy
from .store import methods_of, set_store

_UNKNOWN = b'"unknown"'
_FAILED = b'"failed"'


def set_methods(native: Any, auth: Any, scope_implies: Any, store: Any, place: str) -> Verifiers:
    """Gives the native half the methods of a server, if it has any, and its store. Returns the functions among them.

    Raises:
        TypeError, ValueError: A method or the store can't work; the text says how to fix it.
    """
    functions: dict[int, Callable[..., Any]] = {}
    verifiers = Verifiers(functions, methods_of(store))
    set_store(native, store, verifiers, place)
    if auth is None:
        return verifiers
    methods = list(auth) if isinstance(auth, (list, tuple)) else [auth]
    declared: dict[str, Any] = {
        "methods": [_declared(method, at, functions, place) for at, method in enumerate(methods)]
    }
    if scope_implies is not None:
        declared["scopeImplies"] = hierarchy(scope_implies, place)
    verifiers.add(functions.values())
    native.set_auth(encode(declared), verifiers)
    return verifiers


def _declared(method: Any, at: int, functions: dict[int, Callable[..., Any]], place: str) -> dict[str, Any]:
    if isinstance(method, str):
        method = Jwt(method)
    if isinstance(method, (Jwt, Introspection, ApiKeys, OAuthProxy, Provider)):
        declaration: dict[str, Any] = vars(method)["_declaration"]
        return {name: value for name, value in declaration.items() if value is not None}
    if callable(method) and not isinstance(method, type):
        check_takes(method, "token, request", f"{place}: the function of auth=")
        functions[at] = method
        return {"kind": "verify"}
    raise TypeError(
        f"{place}: auth= takes the URL of an issuer, a Jwt, Introspection, ApiKeys or OAuthProxy, a provider of "
        f"providers, a function of a token, or a list of these, not {with_article(type(method).__name__)}"
    )


class Verifiers(Awaiting):
    """Calls the functions of a program that verify tokens. The native half calls it on threads of its own."""

    def __init__(
        self, functions: dict[int, Callable[..., Any]], methods: dict[str, Callable[..., Any]] | None = None
    ) -> None:
        super().__init__((methods or {}).values())
        # Its iterator is async, whatever returns it.
        self.has_async = self.has_async or "subscribe" in (methods or {})
        self._functions = functions

    def __call__(self, method: int, token: str, request: tuple[Any, ...]) -> bytes:
        """Returns the reply for the native half, as JSON."""
        verb, path, headers, client = request
        info = RequestInfo(verb, path, [(name, value.decode("latin-1")) for name, value in headers], client=client)
        try:
            found = self.result(self._functions[method](token, info))
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
