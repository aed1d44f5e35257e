from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["InsufficientScope", "InvalidToken", "RequestInfo"]

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

class InvalidToken(Exception):
    message: str
    def __init__(self, message: str = ...) -> None: ...

class InsufficientScope(Exception):
    scopes: tuple[str, ...]
    message: str
    def __init__(self, scopes: Iterable[str], message: str | None = None) -> None: ...
