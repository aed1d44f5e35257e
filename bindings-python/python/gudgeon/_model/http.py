"""Requests and responses of routes."""

from __future__ import annotations

from .components import Principal
from .headers import Headers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

_NOTHING: Any = object()


class HttpRequest:
    """An HTTP request for a route of `Server.route`.

    Attributes:
        method: "GET", "HEAD", "POST", "PUT", "PATCH" or "DELETE".
        url: The complete URL, as the client addressed the server.
        path: The path, as registered.
        query: What follows "?" in the URL, without it; "" if there is nothing. `urllib.parse.parse_qs` reads it.
        headers: The headers by name, in any case; repeated headers are joined by commas.
        body: The body, whole; b"" if there is none.
        principal: The authenticated caller of a route with `auth=True`, else None.
        remote: The address that the request came from, or None if it is not known.
    """

    __slots__ = ("body", "headers", "method", "path", "principal", "query", "remote", "url")

    def __init__(
        self,
        method: str = "GET",
        url: str = "http://localhost/",
        *,
        headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
        body: bytes = b"",
        principal: Principal | None = None,
        remote: str | None = None,
    ) -> None:
        from urllib.parse import urlsplit

        parts = urlsplit(url)
        self.method = method
        self.url = url
        self.path: str = parts.path
        self.query: str = parts.query
        self.headers: Mapping[str, str] = Headers([(name.lower(), value) for name, value in _pairs(headers)])
        self.body = body
        self.principal = principal
        self.remote = remote

    @property
    def text(self) -> str:
        """The body as UTF-8. Raises UnicodeDecodeError if it is not."""
        return self.body.decode()

    def json(self) -> Any:
        """Returns the body as JSON values. Raises ValueError if it is not JSON."""
        from msgspec.json import decode

        return decode(self.body)

    def __repr__(self) -> str:
        return f"HttpRequest({self.method!r}, {self.url!r})"


class HttpResponse:
    """A response of a route of `Server.route`, with its status and headers.

    Args:
        body: A str (UTF-8), bytes, or JSON values: a mapping, a list, a dataclass, a model. Default: no body.
        status: 200 to 599. Default 200.
        headers: A mapping, or pairs of names and values, for headers such as `Set-Cookie` that are repeated. Default:
            none. The length and the headers of the connection are the server's.
        content_type: Default: "text/plain; charset=utf-8" for a str, "application/octet-stream" for bytes,
            "application/json" for JSON values.

    Raises:
        TypeError: The status or a header has another type.
    """

    __slots__ = ("body", "content_type", "headers", "status")

    def __init__(
        self,
        body: Any = _NOTHING,
        status: int = 200,
        headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
        *,
        content_type: str | None = None,
    ) -> None:
        if isinstance(status, bool) or not isinstance(status, int):
            raise TypeError(f"HttpResponse: status= is a number such as 200, not {status!r}")
        pairs = list(_pairs(headers))
        for pair in pairs:
            if not (isinstance(pair, tuple) and len(pair) == 2 and all(isinstance(part, str) for part in pair)):
                raise TypeError(f"HttpResponse: headers= has names and values that are strings, not {pair!r}")
        self.body = body
        self.status = int(status)
        self.headers: list[tuple[str, str]] = pairs
        self.content_type = content_type

    @property
    def has_body(self) -> bool:
        """True if the response has a body, which may be empty or None as JSON."""
        return self.body is not _NOTHING

    def __repr__(self) -> str:
        return f"HttpResponse(status={self.status})"


def _pairs(headers: Any) -> Any:
    return headers.items() if hasattr(headers, "items") else headers


def read_request(raw: Any) -> HttpRequest:
    """Returns the request that the core gives to a handler."""
    from base64 import b64decode

    from msgspec.json import decode

    given = decode(raw)
    blob, principal = given.get("blob"), given.get("principal")
    request = HttpRequest.__new__(HttpRequest)
    request.method, request.url = given["method"], given["url"]
    request.path, request.query = given["path"], given["query"]
    request.headers = Headers(given["headers"])
    request.body = given["body"].encode() if blob is None else b64decode(blob)
    request.principal = None if principal is None else Principal.from_dict(principal)
    request.remote = given.get("remote")
    return request
