"""The methods by which a server authenticates its callers, `Server(auth=…)`, and those by which a client signs in,
`Client(auth=…)`.

A function that verifies tokens, and `principal=` of `Server.asgi`, get a `RequestInfo`, and refuse a request by an
exception.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from os import PathLike, fsdecode
from typing import Any, TypeAlias

from ._model.headers import Headers
from ._model.oauth_proxy import OAuthProxy, Provider, providers
from ._model.sign_in import (
    ClientAuth,
    ClientCredentials,
    EnterpriseManaged,
    FileStore,
    KeyringStore,
    OAuth,
    TokenStore,
    WorkloadIdentity,
)
from ._model.string_list import string_list
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
    """Accepts access tokens that are JWTs of one issuer.

    Signatures are verified with the issuer's keys, which are fetched when they are needed and kept. `exp` is required;
    `iss` and `aud` have to be those of the issuer and of this server.

    Args:
        issuer: The URL of the authorization server, exactly as tokens name it in `iss`.
        audience: The accepted values of `aud`. Default: the URL of this server (`public_url`, or the address).
        jwks_url: The URL of the issuer's key set. Default: the one in the issuer's metadata.
        keys: The keys themselves, as a JSON Web Key Set.
        algorithms: The accepted signature algorithms. Default: all that are supported: RS256, RS384, RS512, PS256,
            PS384, PS512, ES256, ES384 and EdDSA. HMAC and `none` are not supported.
        scopes: The scopes that every request needs.
        leeway: Seconds by which the clocks may differ. Default 60.
        dpop: True (default) accepts tokens that are bound to a key, with a proof, beside others; "required" refuses the
            others; "nonce" also requires proofs with a nonce of this server; False refuses tokens that are bound.

    Spec: Authorization › Access Token Usage; RFC 9068, RFC 9449.
    """

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
    ) -> None:
        self.issuer = issuer
        self._declaration: dict[str, Any] = {
            "kind": "jwt",
            "issuer": _text("Jwt", "issuer", issuer),
            "audience": None if audience is None else [audience] if isinstance(audience, str) else list(audience),
            "jwksUrl": jwks_url,
            "keys": None if keys is None else dict(keys),
            "algorithms": None if algorithms is None else string_list("Jwt", "algorithms", algorithms),
            "scopes": string_list("Jwt", "scopes", scopes),
            "leeway": float(leeway),
            "dpop": dpop,
        }

    def __repr__(self) -> str:
        return f"Jwt({self.issuer!r})"


class Introspection:
    """Accepts opaque access tokens, which are verified at the introspection endpoint of their issuer.

    Args:
        url: The introspection endpoint.
        client_id, client_secret: The credentials of this server there.
        issuer: The URL of the authorization server, for clients that look for it. An answer with another
            `iss` is refused. Default None: no Protected Resource Metadata is served, so clients must know the
            authorization server.
        audience: The accepted values of `aud`, which the answer must have. Default: the URL of this server, if the
            answer has `aud`.
        scopes: The scopes that every request needs.
        cache: Seconds for which an answer is kept. Default 60.

    Spec: RFC 7662.
    """

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
    ) -> None:
        self.url = url
        self._declaration: dict[str, Any] = {
            "kind": "introspection",
            "url": _text("Introspection", "url", url),
            "clientId": _text("Introspection", "client_id", client_id),
            "clientSecret": _text("Introspection", "client_secret", client_secret),
            "issuer": issuer,
            "audience": None if audience is None else [audience] if isinstance(audience, str) else list(audience),
            "scopes": string_list("Introspection", "scopes", scopes),
            "cache": float(cache),
        }

    def __repr__(self) -> str:
        # Not the credentials.
        return f"Introspection({self.url!r})"


class ApiKeys:
    """Accepts keys that the program gives out itself. The server keeps their SHA-256 only.

    Args:
        keys: Each key, or `sha256:` and its SHA-256 in hexadecimal, with its owner: a `Principal` or a subject. Or the
            path of a file with them as a JSON object; an owner there is a subject, or an object such as
            `{"subject": "ada", "scopes": ["read"]}`. The file is read again within seconds after it has changed; if it
            can't be used then, an error is logged, and the keys that were read before stay in use.
        header: The header that keys come in: "Authorization" (default, `Bearer` and the key), or one of your own, such
            as "X-Api-Key", with the key alone.
    """

    def __init__(
        self, keys: Mapping[str, Principal | str] | str | PathLike[str], *, header: str = "Authorization"
    ) -> None:
        self.header = header
        self._declaration: dict[str, Any]
        if isinstance(keys, (str, PathLike)):
            self._declaration = {"kind": "apiKeys", "keys": [], "header": header, "file": fsdecode(keys)}
            return
        if not isinstance(keys, Mapping):
            raise TypeError(
                "ApiKeys takes a mapping of keys to their owners, or the path of a file: ApiKeys({'s3cret': 'ada'})"
            )
        owners = []
        for place, (key, owner) in enumerate(keys.items(), 1):
            if not isinstance(key, str) or not isinstance(owner, (str, Principal)):
                raise TypeError(
                    f"ApiKeys: key {place} must be a string, and its owner a Principal or a string (its subject)"
                )
            owners.append([_digested(key), (Principal(owner) if isinstance(owner, str) else owner).to_dict()])
        self._declaration = {"kind": "apiKeys", "keys": owners, "header": header}

    def __repr__(self) -> str:
        keys = self._declaration.get("file") or len(self._declaration["keys"])
        return f"ApiKeys of {keys} in {self.header!r}"


def _digested(key: str) -> str:
    """Returns a key as `sha256:` and its SHA-256; an empty one as it is, which is refused later."""
    import hashlib

    if not key or key.startswith("sha256:"):
        return key
    return f"sha256:{hashlib.sha256(key.encode()).hexdigest()}"


def _text(method: str, name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{method}: {name} must be a string, not {type(value).__name__}")
    return value


class RequestInfo:
    """An HTTP request, or the request of a WebSocket, without its body.

    Attributes:
        method: The HTTP method, such as "POST"; "GET" for a WebSocket.
        path: The path as it stands in the request line, without the query.
        headers: Values by name, in any case; a header that came several times is joined by commas.
        client: The address of the client, which a trusted proxy may have named; None where the host does not know it.
        scope: The ASGI scope of the request, including the entries that the host's middleware added. Empty for a
            function in `Server(auth=…)`.

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


Verify: TypeAlias = Callable[[str, RequestInfo], "Principal | Awaitable[Principal | None] | None"]
Auth: TypeAlias = str | Jwt | Introspection | ApiKeys | OAuthProxy | Provider | Verify


class InvalidToken(Exception):
    """Refuses a request whose credentials are missing or not valid: the answer is 401.

    `WWW-Authenticate` says `Bearer`, with `error="invalid_token"` and the message where the request has an
    `Authorization` header.

    Args:
        message: A string for the client. Default "the token is missing or not valid".

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
        message: A string for the client. Default: one that names the scopes.

    Raises:
        TypeError: The scopes are one string.

    Spec: RFC 6750, section 3.1.
    """

    def __init__(self, scopes: Iterable[str], message: str | None = None) -> None:
        self.scopes = tuple(string_list("InsufficientScope", "scopes", scopes))
        self.message = message or f"this needs the scopes: {' '.join(self.scopes)}"
        super().__init__(self.message)
