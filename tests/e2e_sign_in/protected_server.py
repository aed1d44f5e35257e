"""The server that the tests sign in at: `protected_server.py <sign-in> <issuer> <url>`."""

import sys
from collections.abc import Callable
from typing import Any

from gudgeon import Context, Server
from gudgeon.auth import OAuthProxy
from gudgeon.types import ToolAnnotations

# The client that the provider knows, by which the proxy signs users in.
PROXY = {"client_id": "shelf", "client_secret": "a secret as long as those of providers"}
# The values of `auth=`, by the name of the way in which users sign in.
SIGN_INS: dict[str, Callable[[str], Any]] = {
    "direct": lambda issuer: issuer,
    "proxied": lambda issuer: OAuthProxy(issuer, **PROXY),
}


def main(sign_in: str, issuer: str, url: str) -> None:
    app: Server[Any] = Server("shelf", auth=SIGN_INS[sign_in](issuer))

    @app.tool(annotations=ToolAnnotations(read_only=True))
    async def who(ctx: Context) -> str:
        """Says who is signed in."""
        assert ctx.principal is not None
        return ctx.principal.subject

    @app.tool(annotations=ToolAnnotations(read_only=True))
    async def scopes(ctx: Context) -> str:
        """Lists the scopes that the user granted."""
        assert ctx.principal is not None
        return " ".join(sorted(ctx.principal.scopes))

    @app.tool(scopes=["books:write"])
    async def add(title: str) -> str:
        """Adds a book."""
        return f"added {title}"

    app.run(url)


if __name__ == "__main__":
    main(*sys.argv[1:])
