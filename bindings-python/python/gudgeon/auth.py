"""The request that `principal=` of `Server.asgi` is called with, and the exceptions by which it refuses one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ._model.headers import Headers

__all__ = ["InsufficientScope", "InvalidToken", "RequestInfo"]


class RequestInfo:
    """An HTTP request, or the request of a WebSocket, without its body.

    Attributes:
        method: The HTTP method, such as "POST"; "GET" for a WebSocket.
        path: The path as it stands in the request line, without the query.
        headers: Values by name, in any case; a header that came several times is joined by commas.
        client: The address of the peer that connected, or None where the host does not know it.
        scope: The ASGI scope of the request, with what the host's own middleware left in it.

    >>> request = RequestInfo("POST", "/mcp", [("authorization", "Bearer s3cret")], client="10.0.0.7")
    >>> request.headers["Authorization"], request.client
    ('Bearer s3cret', '10.0.0.7')
    """

    __slots__ = ("client", "headers", "method", "path", "scope")

    method: str
    path: str
    headers: Mapping[str, str]
    client: str | None
    scope: Mapping[str, Any]

    def __init__(
        self,
        method: str,
        path: str,
        headers: Iterable[tuple[str, str]] = (),
        *,
        client: str | None = None,
        scope: Mapping[str, Any] | None = None,
    ) -> None:
        self.method = method
        self.path = path
        self.headers = Headers([(name.lower(), value) for name, value in headers])
        self.client = client
        self.scope = {} if scope is None else scope

    def __repr__(self) -> str:
        # Not the headers: they hold secrets.
        return f"RequestInfo({self.method!r}, {self.path!r}, client={self.client!r})"


class InvalidToken(Exception):
    """Refuses a request whose credentials are missing or not valid: the answer is 401.

    `WWW-Authenticate` says `Bearer`, with `error="invalid_token"` and the message where the request has an
    `Authorization` header.

    Args:
        message: A text for the client. Default "the token is missing or not valid".

    Spec: RFC 6750, section 3.1.
    """

    def __init__(self, message: str = "the token is missing or not valid") -> None:
        super().__init__(message)
        self.message = message


class InsufficientScope(Exception):
    """Refuses a request whose credentials do not allow it: the answer is 403.

    `WWW-Authenticate` says `Bearer error="insufficient_scope"` and names the scopes, which the client can ask for.

    Args:
        scopes: The scopes that are needed.
        message: A text for the client. Default: one that names the scopes.

    Raises:
        TypeError: The scopes are one string.

    Spec: RFC 6750, section 3.1.
    """

    def __init__(self, scopes: Iterable[str], message: str | None = None) -> None:
        if isinstance(scopes, str):
            raise TypeError(f"InsufficientScope: scopes must be a list of strings, not {scopes!r}; write [{scopes!r}]")
        self.scopes = tuple(scopes)
        self.message = message or f"this needs the scopes: {' '.join(self.scopes)}"
        super().__init__(self.message)
