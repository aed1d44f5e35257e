from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, Protocol, TypeAlias

from .types import Principal

__all__ = [
    "ApiKeys",
    "Auth",
    "ClientAuth",
    "ClientCredentials",
    "EnterpriseManaged",
    "FileStore",
    "InsufficientScope",
    "Introspection",
    "InvalidToken",
    "Jwt",
    "KeyringStore",
    "OAuth",
    "OAuthProxy",
    "Provider",
    "RequestInfo",
    "TokenStore",
    "Verify",
    "WorkloadIdentity",
    "providers",
]

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

class OAuthProxy:
    provider: Any
    def __init__(
        self,
        provider: Any,
        *,
        client_id: str,
        client_secret: str | None = None,
        scopes: Sequence[str] = (),
        allowed_redirects: Sequence[str] | None = None,
    ) -> None: ...

class Provider:
    name: str

class providers:
    auth0: Callable[..., Provider]
    azure: Callable[..., Provider]
    clerk: Callable[..., Provider]
    cognito: Callable[..., Provider]
    descope: Callable[..., Provider]
    discord: Callable[..., Provider]
    entra: Callable[..., Provider]
    github: Callable[..., Provider]
    google: Callable[..., Provider]
    keycloak: Callable[..., Provider]
    okta: Callable[..., Provider]
    scalekit: Callable[..., Provider]
    supabase: Callable[..., Provider]
    workos: Callable[..., Provider]
    def __class_getitem__(cls, name: str, /) -> Callable[..., Provider]: ...

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
Auth: TypeAlias = str | Jwt | Introspection | ApiKeys | OAuthProxy | Provider | Verify

class InvalidToken(Exception):
    message: str
    def __init__(self, message: str = ...) -> None: ...

class InsufficientScope(Exception):
    scopes: tuple[str, ...]
    message: str
    def __init__(self, scopes: Iterable[str], message: str | None = None) -> None: ...

class TokenStore(Protocol):
    async def get(self, key: str, /) -> bytes | None: ...
    async def set(self, key: str, value: bytes, /) -> None: ...
    async def delete(self, key: str, /) -> None: ...

class FileStore:
    path: str
    def __init__(self, path: str | PathLike[str] | None = None) -> None: ...

class KeyringStore:
    service: str
    def __init__(self, service: str = "gudgeon") -> None: ...
    async def get(self, key: str, /) -> bytes | None: ...
    async def set(self, key: str, value: bytes, /) -> None: ...
    async def delete(self, key: str, /) -> None: ...

class OAuth:
    def __init__(
        self,
        *,
        client_id: str | None = None,
        client_secret: str | None = None,
        issuer: str | None = None,
        client_metadata_url: str | None = None,
        scopes: Sequence[str] = (),
        store: FileStore | KeyringStore | TokenStore | None = None,
        dpop: bool = False,
        redirect_port: int = 0,
        open_url: Callable[[str], Any] | None = None,
        on_redirect: Callable[[str], str | Awaitable[str]] | None = None,
    ) -> None: ...

class ClientCredentials:
    def __init__(
        self,
        *,
        client_id: str,
        client_secret: str | None = None,
        private_key: str | bytes | None = None,
        algorithm: str = "ES256",
        issuer: str | None = None,
        scopes: Sequence[str] = (),
        dpop: bool = False,
    ) -> None: ...

class EnterpriseManaged:
    def __init__(
        self,
        *,
        identity_token: str | Callable[[], str | Awaitable[str]],
        idp: str,
        client_id: str,
        client_secret: str | None = None,
        idp_client_id: str | None = None,
        idp_client_secret: str | None = None,
        issuer: str | None = None,
        scopes: Sequence[str] = (),
    ) -> None: ...

class WorkloadIdentity:
    def __init__(
        self,
        *,
        token: str | Callable[[], str | Awaitable[str]],
        client_id: str | None = None,
        issuer: str | None = None,
        scopes: Sequence[str] = (),
    ) -> None: ...

ClientAuth: TypeAlias = (
    str | Callable[[], str | Awaitable[str]] | OAuth | ClientCredentials | EnterpriseManaged | WorkloadIdentity
)
