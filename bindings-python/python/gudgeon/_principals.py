"""Who makes a request, told by the host of an ASGI app."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

_SCOPES = (list, tuple, set, frozenset)


class Unidentified(Exception):
    """Finding out who asks failed, and the log knows why."""


class Identify:
    """Finds out who makes a request, from its ASGI scope: by a function of the program's, or by what the host has left.

    Raises:
        TypeError: What is given is no function.
    """

    def __init__(self, find: Callable[[Any], Any] | None) -> None:
        if find is not None and not callable(find):
            raise TypeError(
                "asgi(): principal= is a function of the ASGI scope that gives back a Principal, or None where nobody "
                f"is known: not {find!r}"
            )
        self._find = find or self._of_host
        self._is_told = False

    async def __call__(self, scope: Mapping[str, Any]) -> Any:
        """Who it is as the native half knows it, or None. Whatever goes wrong is told to the log: Unidentified."""
        try:
            found = self._find(scope)
            if hasattr(found, "__await__"):
                found = await found
            return None if found is None else native_principal(found)
        except Exception as error:
            from traceback import format_exception

            from ._calls import report

            told = "".join(format_exception(type(error), error, error.__traceback__))
            report(f"asgi(): principal= failed, so the request is answered with 500\n{told}")
            raise Unidentified from None

    def _of_host(self, scope: Mapping[str, Any]) -> Any:
        """Whom Starlette's `AuthenticationMiddleware`, or one that speaks like it, has let in."""
        user = scope.get("user")
        if user is None or getattr(user, "is_authenticated", None) is not True:
            return None
        subject = _subject(user)
        if subject is not None:
            from .types import Principal

            scopes: Any = getattr(scope.get("auth"), "scopes", ())
            return Principal(subject, scopes=frozenset(scopes) if isinstance(scopes, _SCOPES) else ())
        if not self._is_told:
            self._is_told = True
            from ._calls import report

            report(
                f"asgi(): the scope's user, a {type(user).__name__}, is authenticated but has no identity, so "
                "ctx.principal is None: tell who it is by app.asgi(principal=lambda scope: Principal(…))"
            )
        return None


def _subject(user: Any) -> str | None:
    """What tells a user from all others. A name for display does not."""
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
    from ._json import encode
    from ._native import Principal as Known
    from .types import Principal

    if not isinstance(found, Principal):
        raise TypeError(
            f"principal= gave back a {type(found).__name__}: give back a gudgeon.types.Principal, such as "
            "Principal('ada', scopes=['read']), or None where nobody is known"
        )
    return Known(encode(found.to_dict()))
