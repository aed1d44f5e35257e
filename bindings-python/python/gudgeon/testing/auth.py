"""An authorization server for tests that users write: of servers with `auth=`, and of clients that sign in."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from types import TracebackType
from typing import Any, Literal, NamedTuple

from .._model.string_list import string_list
from .._native import NativeAuthorizationServer, key_pair_for_tests

__all__ = ["AuthFaults", "AuthorizationServer", "Request", "generate_key"]


@dataclass(frozen=True, kw_only=True)
class AuthFaults:
    """Ways in which an `AuthorizationServer` deviates from a correct one. By default, it does not.

    Args:
        delay: Seconds before each response, 0 to 600. Default 0.
        errors: How many requests to an endpoint are answered with status 500, by the endpoint's name: `metadata`,
            `authorize`, `token`, `register`, `jwks`, `introspect`, `revoke`.
        metadata_issuer: The issuer that the metadata name in place of the right one.
        response_issuer: The issuer (`iss`) that authorization responses name in place of the right one.
        no_pkce: The metadata do not say that PKCE is supported.
        metadata_bytes: The minimum size of the metadata in bytes, at most 67,108,864. Default 0.
        expired_tokens: Tokens have expired before they are issued.
        refuse_registration: Registrations of clients are refused.
        rotate_keys: After each token that is issued to a client, the key is replaced, and the former one is no longer
            published.
    """

    delay: float = 0
    errors: Mapping[str, int] = field(default_factory=dict)
    metadata_issuer: str | None = None
    response_issuer: str | None = None
    no_pkce: bool = False
    metadata_bytes: int = 0
    expired_tokens: bool = False
    refuse_registration: bool = False
    rotate_keys: bool = False


class Request(NamedTuple):
    """A request that an `AuthorizationServer` answered."""

    method: str
    path: str
    form: dict[str, str]
    """The fields of the query, form or JSON body. Secrets, codes and tokens are `…`."""
    status: int


class AuthorizationServer:
    """An authorization server on this machine, with a user who agrees to everything.

    `with AuthorizationServer() as provider:` (also `async with`) starts it at `provider.issuer`, a URL of 127.0.0.1.
    It offers: metadata (RFC 8414, OpenID Connect Discovery), the authorization endpoint with PKCE (S256), tokens for
    codes, refresh tokens (each used once; reuse revokes all tokens of the grant), client credentials, assertions of
    other issuers and token exchange (enterprise-managed authorization, workload identity), dynamic registration
    (RFC 7591), client-id metadata documents, introspection (RFC 7662), revocation (RFC 7009), proofs of possession
    (DPoP, RFC 9449), and resource indicators (RFC 8707). A server for tests only: it is not for users.

    Args:
        port: The port of 127.0.0.1. Default 0: any free port.
        subject: The user who signs in. Default "user".
        scopes: The scopes that may be requested. Default None: any.
        resources: The URLs of MCP servers that tokens may be for. Default None: any.
        clients: Clients that are registered from the start, with the names of RFC 7591: `client_id`, and if there is a
            secret or key `client_secret` or `jwks`, also `redirect_uris` (default: `/callback` at any port of 127.0.0.1
            and localhost), `token_endpoint_auth_method`, `grant_types` (default: every grant) and `client_name`.
        client_documents: Client-id metadata documents: their contents by URL, or a list of URLs that may be fetched.
            Default: none, and the metadata say that they are not supported.
        registration: Whether clients may register themselves. Default True.
        consent: "automatic" (default): the user agrees. "page": a page asks. "deny": the user declines.
        token_format: "jwt" (default) or "opaque".
        expires_in: The life of access tokens in seconds, at most 315,360,000 (ten years). Default 3600.
        refresh_tokens: Whether codes are exchanged for refresh tokens too. Default True.
        dpop: "optional" (default): tokens are bound to a key for clients that send a proof. "required": for all.
            "nonce": for all, and proofs need a nonce.
        trusted_issuers: Other issuers whose assertions are exchanged for tokens; their keys are fetched. This server
            trusts itself.
        faults: Deviations from a correct server. Default: none.

    Raises:
        ValueError: When it starts: an option can't be used; the text says why.
        OSError: When it starts: the port is in use.

    Limits: 1,000 registered clients, 10,000 grants, access tokens and recorded requests, of which the oldest are
    forgotten; 256 connections; bodies of 256 KiB.

    >>> with AuthorizationServer(scopes=["books"]) as provider:
    ...     token = provider.token(scopes=["books"], audience="https://shelf.example.com/mcp")
    >>> token.count(".")
    2
    """

    def __init__(
        self,
        *,
        port: int = 0,
        subject: str = "user",
        scopes: Iterable[str] | None = None,
        resources: Iterable[str] | None = None,
        clients: Sequence[Mapping[str, Any]] = (),
        client_documents: Mapping[str, Mapping[str, Any]] | Iterable[str] = (),
        registration: bool = True,
        consent: Literal["automatic", "page", "deny"] = "automatic",
        token_format: Literal["jwt", "opaque"] = "jwt",
        expires_in: int = 3600,
        refresh_tokens: bool = True,
        dpop: Literal["optional", "required", "nonce"] = "optional",
        trusted_issuers: Iterable[str] = (),
        faults: AuthFaults | None = None,
    ) -> None:
        self._options = {
            "port": port,
            "subject": subject,
            "scopes": _strings("scopes", scopes),
            "resources": _strings("resources", resources),
            "clients": [dict(client) for client in clients],
            "clientDocuments": _documents(client_documents),
            "registration": registration,
            "consent": consent,
            "tokenFormat": token_format,
            "expiresIn": expires_in,
            "refreshTokens": refresh_tokens,
            "dpop": dpop,
            "trustedIssuers": _strings("trusted_issuers", trusted_issuers),
            "faults": _members(faults or AuthFaults()),
        }
        self._native: NativeAuthorizationServer | None = None

    def __enter__(self) -> AuthorizationServer:
        if self._native is not None:
            raise RuntimeError("AuthorizationServer: it runs already")
        self._native = NativeAuthorizationServer(_json(self._options))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        native, self._native = self._native, None
        if native is not None:
            native.close()

    async def __aenter__(self) -> AuthorizationServer:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)

    @property
    def issuer(self) -> str:
        """The URL, for `Server(auth=…)` and `issuer=` of clients."""
        return self._running.issuer

    @property
    def requests(self) -> list[Request]:
        """The requests that were answered so far, without secrets."""
        return [Request(**found) for found in json.loads(self._running.requests())]

    def token(
        self,
        *,
        subject: str | None = None,
        scopes: Iterable[str] = (),
        audience: str | None = None,
        expires_in: int | None = None,
        dpop_key: Mapping[str, Any] | str | None = None,
        client_id: str = "test",
        claims: Mapping[str, Any] | None = None,
    ) -> str:
        """Issues an access token without a request.

        Args:
            subject: The user. Default: the server's `subject`.
            scopes: The scopes that it grants.
            audience: The URL of the MCP server that it is for. Default: the issuer.
            expires_in: Seconds until it expires, negative for one that has expired. Default: the server's `expires_in`.
            dpop_key: The key that it is bound to: a public JWK, or its thumbprint. Default: none.
            client_id: The client that it is issued to.
            claims: Further claims, which replace others of the same name.

        Raises:
            ValueError: An argument can't be used.
        """
        params: dict[str, Any] = {
            "subject": subject,
            "clientId": client_id,
            "scopes": _strings("scopes", scopes),
            "audience": audience,
            "expiresIn": expires_in,
            "dpopKey": dpop_key if dpop_key is None or isinstance(dpop_key, str) else dict(dpop_key),
            "claims": dict(claims or {}),
        }
        return self._running.token(_json(params))

    def identity_token(self, client_id: str, *, subject: str | None = None, expires_in: int = 3600) -> str:
        """Issues an identity token (OpenID Connect) of a user for a client, without a request.

        Args:
            client_id: The client that signed the user in.
            subject: The user. Default: the server's `subject`.
            expires_in: Seconds until it expires, negative for one that has expired. Default 3600.
        """
        return self._running.identity_token(client_id, subject, expires_in)

    def browse(self, url: str) -> str:
        """Opens a URL of this server as the user's browser does. Returns the URL to which the browser is redirected.

        For `OAuth(on_redirect=provider.browse)`. It blocks until the server has answered, without `delay`.

        Raises:
            ValueError: The URL is of another server.
            RuntimeError: The server does not redirect the browser: it shows an error, or asks with `consent="page"`.
        """
        return self._running.browse(url)

    def rotate_keys(self, *, keep_former: bool = True) -> None:
        """Signs tokens with a new key.

        A Gudgeon server fetches the key set for the first token with a new key, at most once in 30 seconds. It refuses
        tokens of keys that are newer until then.

        Args:
            keep_former: Whether the former key stays published, so that its tokens remain valid. Default True; the last
                four are kept.
        """
        self._running.rotate_keys(keep_former)

    def revoke_all(self) -> None:
        """Revokes all codes, refresh tokens and access tokens.

        Access tokens that are JWTs stay valid for servers that do not introspect them.
        """
        self._running.revoke_all()

    def set_faults(self, faults: AuthFaults | None = None) -> None:
        """Replaces the faults, while the server runs. Default: no fault.

        Raises:
            ValueError: A fault can't be used.
        """
        self._running.set_faults(_json(_members(faults or AuthFaults())))

    @property
    def _running(self) -> NativeAuthorizationServer:
        if self._native is None:
            raise RuntimeError("AuthorizationServer: it does not run; use it in `with AuthorizationServer() as …:`")
        return self._native

    def __repr__(self) -> str:
        return f"AuthorizationServer({self.issuer!r})" if self._native else "AuthorizationServer()"


def generate_key() -> tuple[str, dict[str, str]]:
    """Creates a private key for ES256.

    Returns:
        The private key as PEM, for `ClientCredentials(private_key=…)`, and the public key as a JWK, for `jwks` of a
        client.
    """
    private, public = key_pair_for_tests()
    return private, json.loads(public)


def _strings(name: str, values: Iterable[str] | None) -> list[str] | None:
    return None if values is None else string_list("AuthorizationServer", f"{name}=", values)


def _documents(documents: Mapping[str, Mapping[str, Any]] | Iterable[str]) -> dict[str, dict[str, Any] | None]:
    if isinstance(documents, Mapping):
        return {url: dict(document) for url, document in documents.items()}
    return dict.fromkeys(_strings("client_documents", documents) or ())


def _members(faults: AuthFaults) -> dict[str, Any]:
    """Returns the faults with the core's names."""
    return {_camel_case(name): value for name, value in asdict(faults).items()}


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value).encode()
