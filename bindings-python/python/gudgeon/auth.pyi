from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from .types import Principal

__all__ = ["ApiKeys", "Auth", "InsufficientScope", "Introspection", "InvalidToken", "Jwt", "RequestInfo", "Verify"]

class Jwt:
    issuer: str
    def __init__(
        self,
        issuer: str,
        *,
        audience: str | Sequence[str] | None = None,
        jwks_url: str | None = None,
        keys: Mapping[str, Any] | None = None,
        algorithms: Sequence[str] | None = None,
        scopes: Sequence[str] = (),
        leeway: float = 60,
        dpop: bool | str = True,
    ) -> None: ...

class Introspection:
    url: str
    def __init__(
        self,
        url: str,
        *,
        client_id: str,
        client_secret: str,
        issuer: str | None = None,
        audience: str | Sequence[str] | None = None,
        scopes: Sequence[str] = (),
        cache: float = 60,
    ) -> None: ...

class ApiKeys:
    header: str
    def __init__(self, keys: Mapping[str, Principal | str], *, header: str = "Authorization") -> None: ...

class RequestInfo:
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
    ) -> None: ...

Verify: TypeAlias = Callable[[str, RequestInfo], Principal | Awaitable[Principal | None] | None]
Auth: TypeAlias = str | Jwt | Introspection | ApiKeys | Verify

class InvalidToken(Exception):
    message: str
    def __init__(self, message: str = ...) -> None: ...

class InsufficientScope(Exception):
    scopes: tuple[str, ...]
    message: str
    def __init__(self, scopes: Iterable[str], message: str | None = None) -> None: ...
