"""A server that accepts the tokens of an authorization server for tests."""

from typing import Any

from gudgeon import Context, Server
from gudgeon.auth import Jwt
from gudgeon.testing.auth import AuthorizationServer


def shelf(provider: AuthorizationServer) -> Server[Any]:
    app: Server[Any] = Server("shelf", auth=Jwt(provider.issuer))

    @app.tool
    async def who(ctx: Context) -> str:
        assert ctx.principal is not None
        return ctx.principal.subject

    return app
