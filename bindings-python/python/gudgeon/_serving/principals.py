"""Finds out who makes a request to an ASGI app."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .._call.log import report
from .._model.article import with_article
from .._model.callables import check_takes
from .._model.json import encode
from ..auth import InsufficientScope, InvalidToken, RequestInfo
from ..types import Principal

_SCOPES = (list, tuple, set, frozenset)


class Refused(Exception):
    """A request that is not served; `answer(head)` is the first part of its answer."""

    def __init__(self, answer: Callable[[Any], Any]) -> None:
        super().__init__()
        self.answer = answer


class Identify:
    """Finds out who makes a request: by a function of the program's, or by what the host left in the ASGI scope.

    Args:
        find: `(request) -> Principal | None`, or an `async def`. Default: what the host left.

    Raises:
        TypeError: `find` is not a function.
    """

    def __init__(self, find: Callable[[Any], Any] | None) -> None:
        if find is not None and not callable(find):
            raise TypeError(
                "asgi(): principal= must be a function of the request (gudgeon.auth.RequestInfo) that returns a "
                f"Principal, or None for an unknown caller; not {find!r}"
            )
        if find is not None:
            check_takes(find, "request", "asgi(): the function of principal=")
        self._find = find
        self._has_warned = False

    async def __call__(self, scope: Mapping[str, Any], head: tuple[Any, ...], client: str | None) -> Any:
        """Returns the native `Principal`, or None.

        Args:
            scope: The ASGI scope.
            head: The request's method, path, query, headers, and where it arrived, as the endpoint takes them.
            client: The address of the client, if the endpoint knows it.

        Raises:
            Refused: The program refuses the request, or finding out failed, which the log says.
        """
        try:
            found = self._of_host(scope) if self._find is None else self._find(_request(scope, head, client))
            if hasattr(found, "__await__"):
                found = await found
            return None if found is None else native_principal(found)
        except InvalidToken as error:
            message = error.message
            raise Refused(lambda head: head.unauthorized(message, None)) from None
        except InsufficientScope as error:
            message, scopes = error.message, list(error.scopes)
            raise Refused(lambda head: head.unauthorized(message, scopes)) from None
        except Exception as error:
            from traceback import format_exception

            trace = "".join(format_exception(type(error), error, error.__traceback__))
            report(f"asgi(): principal= failed, so the request is answered with 500\n{trace}")
            raise Refused(lambda head: head.unidentified()) from None

    def _of_host(self, scope: Mapping[str, Any]) -> Any:
        """Returns the user that Starlette's `AuthenticationMiddleware`, or one with its interface, authenticated."""
        user = scope.get("user")
        if user is None or getattr(user, "is_authenticated", None) is not True:
            return None
        subject = _subject(user)
        if subject is not None:
            scopes: Any = getattr(scope.get("auth"), "scopes", ())
            return Principal(subject, scopes=frozenset(scopes) if isinstance(scopes, _SCOPES) else ())
        if not self._has_warned:
            self._has_warned = True
            report(
                f"asgi(): the scope's user, a {type(user).__name__}, is authenticated but has no identity, so "
                "ctx.principal is None: pass app.asgi(principal=lambda request: Principal(…))"
            )
        return None


def _request(scope: Mapping[str, Any], head: tuple[Any, ...], client: str | None) -> RequestInfo:
    method, path, _, headers, _ = head
    named = scope.get("client")
    return RequestInfo(
        method,
        path.decode("ascii", "replace"),
        [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers],
        # A host may name a client that has no address.
        client=client or (named[0] if named else None),
        scope=scope,
    )


def _subject(user: Any) -> str | None:
    """Returns the identity of a user, which is not a name for display."""
    from uuid import UUID

    for name in ("identity", "username"):
        try:
            found = getattr(user, name, None)
        except NotImplementedError:  # Starlette's base class has the property, not everybody who derives from it
            continue
        if isinstance(found, (str, int, UUID)) and not isinstance(found, bool) and found != "":
            return str(found)
    return None


def native_principal(found: Any) -> Any:
    """Returns a `Principal` as the native half takes it."""
    from .._native import Principal as Known

    if not isinstance(found, Principal):
        raise TypeError(
            f"principal= returned {with_article(type(found).__name__)}; return a gudgeon.types.Principal, such as "
            "Principal('ada', scopes=['read']), or None for an unknown caller"
        )
    return Known(encode(found.to_dict()))
