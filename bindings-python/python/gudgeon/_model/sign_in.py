"""The credentials of a client: the ways in which it signs in."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeAlias

from .callables import check_takes
from .keyring_store import BlockingCall, KeyringStore
from .store_locks import StoreLocks
from .string_list import string_list

__all__ = [
    "ClientAuth",
    "ClientCredentials",
    "EnterpriseManaged",
    "FileStore",
    "KeyringStore",
    "OAuth",
    "TokenStore",
    "WorkloadIdentity",
]


class TokenStore(Protocol):
    """A store of tokens and registrations. Values are secret.

    The methods may be async; in a `SyncClient` they must not be. If one raises, the sign-in fails with an `AuthError`;
    a failure to store tokens is only logged.

    A store that processes share should also have the method `lock(key)`. It returns a context manager, async or not, in
    which one process at a time renews the tokens of the key: a provider may revoke all tokens if two of them use the
    same refresh token. If the lock is not free within 30 seconds, the sign-in fails with an `AuthError`. A lock that is
    kept in a database needs an end of its own, for a process that is killed. Without the method each process renews
    tokens for itself.
    """

    async def get(self, key: str, /) -> bytes | None:
        """Returns the value that was stored last under the key, or None."""
        ...

    async def set(self, key: str, value: bytes, /) -> None:
        """Stores a value, a JSON record in UTF-8, under a key."""
        ...

    async def delete(self, key: str, /) -> None:
        """Removes the value of a key, if the store has one."""
        ...


class FileStore:
    """Keeps tokens and registrations in a file that only the user can read, and that several processes may share.

    Args:
        path: The file. Default: `gudgeon/tokens.json` below `$XDG_CONFIG_HOME`, or below `~/.config`.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        if path is None:
            folder = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
            path = os.path.join(folder, "gudgeon", "tokens.json")
        self.path = os.fspath(path)

    def __repr__(self) -> str:
        return f"FileStore({self.path!r})"


class _Credentials:
    _declared: dict[str, Any]
    _source: Callable[[], Any] | None = None

    def _call(self, request: dict[str, Any]) -> Any:
        """Carries out what the native half asks for; the result may be awaitable."""
        if request["call"] == "token" and self._source is not None:
            return self._source()
        raise RuntimeError(f"auth: nothing answers {request['call']!r}")

    def __repr__(self) -> str:
        # Not the secrets.
        return f"{type(self).__name__}(…)"


class OAuth(_Credentials):
    """Signs in with the user's browser, as `auth="oauth"` does without options.

    Where the server requires it, the browser opens at the authorization server that the server names, and the redirect
    is received on this machine. Tokens are renewed before they expire, and more scopes are requested when the server
    asks for them. Concurrent calls share one sign-in.

    Args:
        client_id, client_secret: The client as it was registered with the authorization server. Default: the URL of
            `client_metadata_url` where that is supported, else the client registers itself.
        issuer: The URL of the authorization server that knows `client_id`, exactly as its metadata name it. The client
            signs in there only. Needs `client_id`. Default: the first one that the server names.
        client_metadata_url: The https URL of a client-id metadata document.
        scopes: Scopes that are requested in addition to those that the server asks for.
        store: Keeps tokens and registrations: a `FileStore`, a `KeyringStore`, or an object with `get(key)`,
            `set(key, value)` and `delete(key)`, async or not, and `lock(key)` if processes share it (see `TokenStore`).
            Default: memory, until the client is gone.
        dpop: Whether tokens must be bound to a key of this client (RFC 9449). Default False.
        redirect_port: The port of the redirect URL `http://127.0.0.1:<port>/callback`. Default 0: any free port; with
            `on_redirect`, the port of the last registration, or else 3000.
        open_url: Called with the URL to open, in place of the browser.
        on_redirect: Called with the URL to open; returns the URL to which the browser was redirected. For programs
            where no listener is possible.

    Spec: Authorization.

    >>> OAuth(client_id="shelf", client_secret="s3cret")
    OAuth(…)
    """

    def __init__(
        self,
        *,
        client_id: str | None = None,
        client_secret: str | None = None,
        issuer: str | None = None,
        client_metadata_url: str | None = None,
        scopes: Sequence[str] = (),
        store: Any = None,
        dpop: bool = False,
        redirect_port: int = 0,
        open_url: Callable[[str], Any] | None = None,
        on_redirect: Callable[[str], Any] | None = None,
    ) -> None:
        for name, callback in (("open_url", open_url), ("on_redirect", on_redirect)):
            if callback is not None and not callable(callback):
                raise TypeError(f"OAuth: {name}= must be a function of a URL")
            if callback is not None:
                check_takes(callback, "url", f"OAuth: the function of {name}=")
        if isinstance(redirect_port, bool) or not isinstance(redirect_port, int) or not 0 <= redirect_port < 65536:
            raise ValueError("OAuth: redirect_port= must be a port, or 0 for any")
        if store is not None and not isinstance(store, FileStore):
            for method in ("get", "set", "delete"):
                if not callable(getattr(store, method, None)):
                    raise TypeError(f"OAuth: store= must be a FileStore or KeyringStore, or have the method {method}()")
        self._store = store._calls if isinstance(store, KeyringStore) else store
        lock = _lock_of(store)
        self._locks = StoreLocks(lock) if lock is not None else None
        self._open_url, self._on_redirect = open_url, on_redirect
        self._declared = {
            "kind": "oauth",
            "clientId": _text("OAuth", "client_id", client_id),
            "clientSecret": _text("OAuth", "client_secret", client_secret),
            "issuer": _text("OAuth", "issuer", issuer),
            "clientMetadataUrl": _text("OAuth", "client_metadata_url", client_metadata_url),
            "scopes": string_list("OAuth", "scopes=", scopes),
            "store": _declared_store(store),
            "dpop": bool(dpop),
            "redirectPort": redirect_port,
            "opensUrl": open_url is not None,
            "handlesRedirect": on_redirect is not None,
        }

    def _call(self, request: dict[str, Any]) -> Any:
        call = request["call"]
        store: Any = self._store
        if call == "openUrl" and self._open_url is not None:
            return _nothing(self._open_url(request["url"]))
        if call == "redirect" and self._on_redirect is not None:
            return self._on_redirect(request["url"])
        if call == "load":
            return _then(store.get(request["key"]), lambda value: None if value is None else bytes(value).decode())
        if call == "save":
            return _nothing(store.set(request["key"], request["value"].encode()))
        if call == "delete":
            return _nothing(store.delete(request["key"]))
        if call == "lock" and self._locks is not None:
            return self._locks.enter(request["key"])
        if call == "unlock" and self._locks is not None:
            return _nothing(self._locks.exit(request["lock"]))
        return super()._call(request)


class ClientCredentials(_Credentials):
    """Signs in as the program itself, without a user.

    Args:
        client_id: The client as it was registered with the authorization server.
        client_secret: The secret of the client. Exactly one of `client_secret` and `private_key` is required.
        private_key: The private key of the client, PKCS#8 as PEM, with which it signs `private_key_jwt` assertions
            (RFC 7523).
        algorithm: The algorithm of the key: ES256 (default), ES384, RS256, RS384, RS512, PS256 or EdDSA.
        issuer: The URL of the authorization server that knows the client, exactly as its metadata name it. Credentials
            are sent there only. Default: the first one that the server names.
        scopes: Scopes that are requested in addition to those that the server asks for.
        dpop: Whether tokens must be bound to a key of this client (RFC 9449). Default False.

    Spec: extension io.modelcontextprotocol/oauth-client-credentials.
    """

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
    ) -> None:
        if (client_secret is None) == (private_key is None):
            raise ValueError("ClientCredentials: pass either client_secret= or private_key=")
        if isinstance(private_key, bytes):
            private_key = private_key.decode("ascii", "replace")
        self._declared = {
            "kind": "clientCredentials",
            "clientId": _text("ClientCredentials", "client_id", client_id, required=True),
            "clientSecret": _text("ClientCredentials", "client_secret", client_secret),
            "privateKey": _text("ClientCredentials", "private_key", private_key),
            "algorithm": _text("ClientCredentials", "algorithm", algorithm, required=True),
            "issuer": _text("ClientCredentials", "issuer", issuer),
            "scopes": string_list("ClientCredentials", "scopes=", scopes),
            "dpop": bool(dpop),
        }


class EnterpriseManaged(_Credentials):
    """Exchanges the user's identity token at the organisation's identity provider for access to the server.

    Args:
        identity_token: The ID token of the user, or a function that returns it, async or not.
        idp: The issuer of the identity provider.
        client_id, client_secret: The client as the server's authorization server knows it.
        idp_client_id, idp_client_secret: The client as the identity provider knows it. Default: `client_id` and
            `client_secret`.
        issuer: The URL of the authorization server that knows the client, exactly as its metadata name it. Credentials
            are sent there only. Default: the first one that the server names.
        scopes: Scopes that are requested in addition to those that the server asks for.

    Spec: extension io.modelcontextprotocol/enterprise-managed-authorization.
    """

    def __init__(
        self,
        *,
        identity_token: str | Callable[[], Any],
        idp: str,
        client_id: str,
        client_secret: str | None = None,
        idp_client_id: str | None = None,
        idp_client_secret: str | None = None,
        issuer: str | None = None,
        scopes: Sequence[str] = (),
    ) -> None:
        self._source = _source("EnterpriseManaged", "identity_token", identity_token)
        self._declared = {
            "kind": "enterpriseManaged",
            "idp": _text("EnterpriseManaged", "idp", idp, required=True),
            "clientId": _text("EnterpriseManaged", "client_id", client_id, required=True),
            "clientSecret": _text("EnterpriseManaged", "client_secret", client_secret),
            "idpClientId": _text("EnterpriseManaged", "idp_client_id", idp_client_id),
            "idpClientSecret": _text("EnterpriseManaged", "idp_client_secret", idp_client_secret),
            "issuer": _text("EnterpriseManaged", "issuer", issuer),
            "scopes": string_list("EnterpriseManaged", "scopes=", scopes),
        }


class WorkloadIdentity(_Credentials):
    """Exchanges a token of the platform that the program runs on. A failed exchange is not repeated.

    Args:
        token: The platform's token, or a function that returns it, async or not.
        client_id: The client as the authorization server knows it.
        issuer: The URL of the authorization server that accepts the token, exactly as its metadata name it. The
            token is sent there only. Default: the first one that the server names.
        scopes: Scopes that are requested in addition to those that the server asks for.

    Spec: extension io.modelcontextprotocol/auth/wif; RFC 7523.
    """

    def __init__(
        self,
        *,
        token: str | Callable[[], Any],
        client_id: str | None = None,
        issuer: str | None = None,
        scopes: Sequence[str] = (),
    ) -> None:
        self._source = _source("WorkloadIdentity", "token", token)
        self._declared = {
            "kind": "workloadIdentity",
            "clientId": _text("WorkloadIdentity", "client_id", client_id),
            "issuer": _text("WorkloadIdentity", "issuer", issuer),
            "scopes": string_list("WorkloadIdentity", "scopes=", scopes),
        }


ClientAuth: TypeAlias = (
    str | Callable[[], str | Awaitable[str]] | OAuth | ClientCredentials | EnterpriseManaged | WorkloadIdentity
)
"""The values of `auth=` of a client."""


class _Token(_Credentials):
    def __init__(self, token: str) -> None:
        self._declared = {"kind": "token", "token": token}


class _Function(_Credentials):
    def __init__(self, function: Callable[[], Any]) -> None:
        self._source = function
        self._declared = {"kind": "source"}


def credentials_of(given: Any, owner: str) -> _Credentials | None:
    """Returns the credentials that `auth=` of a client or an upstream server stands for."""
    if given is None or isinstance(given, _Credentials):
        return given
    if given == "oauth":
        return OAuth()
    if isinstance(given, str):
        return _Token(given)
    if callable(given) and not isinstance(given, type):
        check_takes(given, "", f"{owner}: the function of auth=")
        return _Function(given)
    raise TypeError(
        f'{owner}: auth= must be "oauth", a token, a function that returns one, OAuth(…), ClientCredentials(…), '
        "EnterpriseManaged(…) or WorkloadIdentity(…)"
    )


def _text(owner: str, name: str, value: Any, *, required: bool = False) -> str | None:
    # The value may be secret.
    if (value is None and not required) or (isinstance(value, str) and value):
        return value
    raise TypeError(f"{owner}: {name}= must be a string that is not empty")


def _source(owner: str, name: str, given: Any) -> Callable[[], Any]:
    if callable(given):
        check_takes(given, "", f"{owner}: the function of {name}=")
        function: Callable[[], Any] = given
        return function
    token = _text(owner, name, given, required=True)
    return lambda: token


def _declared_store(store: Any) -> Any:
    if isinstance(store, FileStore):
        return {"file": store.path}
    if isinstance(store, KeyringStore):
        return {"keyring": store.service}
    if store is None:
        return None
    return "own" if _lock_of(store) is None else "shared"


def _lock_of(store: Any) -> Callable[[str], Any] | None:
    lock = getattr(store, "lock", None)
    return lock if callable(lock) else None


def _nothing(value: Any) -> Any:
    return _then(value, lambda _: None)


def _then(value: Any, change: Callable[[Any], Any]) -> Any:
    """Returns the changed value, or an awaitable of it."""
    if isinstance(value, BlockingCall):
        return value.then(change)
    if not hasattr(value, "__await__"):
        return change(value)

    async def changed() -> Any:
        return change(await value)

    return changed()
