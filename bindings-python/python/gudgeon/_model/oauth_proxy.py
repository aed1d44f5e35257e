"""An OAuth proxy in front of a provider, and the known providers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .string_list import string_list

__all__ = ["OAuthProxy", "Provider", "providers"]


class OAuthProxy:
    """Lets MCP clients sign in by a provider at which they can't register themselves.

    The server becomes an authorization server of its own: clients register at it or have a metadata document, users
    see a page that asks whether the client may act for them, and then sign in at the provider. The tokens are the
    server's own, for its URL only. Register an OAuth app at the provider, with the redirect URL
    `{URL of the server}/oauth/callback`.

    Nothing is stored: client ids, codes and tokens are sealed with `request_state_keys` of the server, or else with a
    key made from `client_secret` if that has at least 32 characters, so that restarts and replicas with the same key
    accept them.

    Args:
        provider: The URL of the provider (an OpenID Connect issuer), or a `Jwt` or a provider of `providers` that
            names it.
        client_id, client_secret: The credentials of the OAuth app. The secret may be left out if the app has none.
        scopes: The provider's scopes that each sign-in asks for. Default: "openid", "profile" and "email", or those of
            the provider in `providers`.
        allowed_redirects: The redirect URLs that clients may have; `*` at the end stands for the rest of a path.
            Default None: every URL with https, on a loopback address, or with a scheme of an app.

    Spec: Authorization › Security Considerations; RFC 6749, RFC 7591, RFC 7636, RFC 8414, RFC 9207.
    """

    def __init__(
        self,
        provider: Any,
        *,
        client_id: str,
        client_secret: str | None = None,
        scopes: Sequence[str] = (),
        allowed_redirects: Sequence[str] | None = None,
    ) -> None:
        declared = provider if isinstance(provider, str) else getattr(provider, "_declaration", None)
        if declared is None:
            raise TypeError(
                "OAuthProxy: provider must be the URL of an issuer, a Jwt, or a provider such as providers.google(…), "
                f"not {type(provider).__name__}"
            )
        if isinstance(declared, dict):
            declared = {name: value for name, value in declared.items() if value is not None}
        self.provider = provider
        self._declaration: dict[str, Any] = {
            "kind": "proxy",
            "provider": declared,
            **_client("OAuthProxy", client_id, client_secret, scopes, allowed_redirects),
        }

    def __repr__(self) -> str:
        # Not the credentials.
        return f"OAuthProxy({self.provider!r})"


class Provider:
    """A provider of `providers` with its options."""

    def __init__(self, name: str, declaration: dict[str, Any]) -> None:
        self.name = name
        self._declaration = declaration

    def __repr__(self) -> str:
        # Not the credentials.
        return f"providers.{self.name}(…)"


def _preset(name: str) -> Callable[..., Provider]:
    def provider(
        *,
        client_id: str | None = None,
        client_secret: str | None = None,
        scopes: Sequence[str] = (),
        allowed_redirects: Sequence[str] | None = None,
        **options: str,
    ) -> Provider:
        place = f"providers.{name}"
        for option, value in options.items():
            if not isinstance(value, str):
                raise TypeError(f"{place}: {option} must be a string, not {type(value).__name__}")
        client = _client(place, client_id, client_secret, scopes, allowed_redirects)
        return Provider(name, {"kind": "provider", "name": name, "options": options, **client})

    provider.__name__ = provider.__qualname__ = name
    return provider


def _client(
    place: str,
    client_id: str | None,
    client_secret: str | None,
    scopes: Sequence[str],
    allowed_redirects: Sequence[str] | None,
) -> dict[str, Any]:
    for name, value in (("client_id", client_id), ("client_secret", client_secret)):
        if value is not None and not isinstance(value, str):
            raise TypeError(f"{place}: {name} must be a string, not {type(value).__name__}")
    allowed = allowed_redirects
    return {
        "clientId": client_id,
        "clientSecret": client_secret,
        "scopes": string_list(place, "scopes", scopes) or None,
        "allowedRedirects": None if allowed is None else string_list(place, "allowed_redirects", allowed),
    }


class providers:
    """Known providers, for `Server(auth=providers.google(client_id=…, client_secret=…))`.

    With `client_id` the server is an `OAuthProxy` in front of the provider. Without, MCP clients register at the
    provider themselves, and the server verifies its tokens; Auth0, Clerk, Descope, Keycloak, Scalekit and WorkOS can do
    that.

    Each takes `client_id`, `client_secret`, `scopes` and `allowed_redirects` as `OAuthProxy` does, and:

    - `auth0`: `domain`, and `audience`, the identifier of the API (default: the URL of this server)
    - `azure`, `entra`: `tenant_id`, which is a UUID
    - `clerk`: `domain`
    - `cognito`: `user_pool_id`
    - `descope`: `project_id`, `mcp_server_id`, and `audience` and `base_url`, which have defaults
    - `discord`, `github`, `google`: nothing more
    - `keycloak`: `realm_url`, and `audience` (default: the URL of this server)
    - `okta`: `domain`, and `authorization_server_id` (default: "default")
    - `scalekit`: `environment_url`, `resource_id`
    - `supabase`: `project_ref`
    - `workos`: `domain`, that of AuthKit

    `providers["google"]` is the same as `providers.google`.
    """

    auth0 = staticmethod(_preset("auth0"))
    azure = staticmethod(_preset("azure"))
    clerk = staticmethod(_preset("clerk"))
    cognito = staticmethod(_preset("cognito"))
    descope = staticmethod(_preset("descope"))
    discord = staticmethod(_preset("discord"))
    entra = staticmethod(_preset("entra"))
    github = staticmethod(_preset("github"))
    google = staticmethod(_preset("google"))
    keycloak = staticmethod(_preset("keycloak"))
    okta = staticmethod(_preset("okta"))
    scalekit = staticmethod(_preset("scalekit"))
    supabase = staticmethod(_preset("supabase"))
    workos = staticmethod(_preset("workos"))

    def __class_getitem__(cls, name: str, /) -> Callable[..., Provider]:
        return _preset(name)
