from typing import Any

class McpError(Exception):
    message: str
    code: int | None  # JSON-RPC code, where there is one
    data: Any
    hint: str | None  # how to fix it
    target: str | None  # the URL or command
    phase: str | None  # "connect", "negotiate", "call", …
    status: int | None  # of the HTTP response that caused the error
    def __init__(
        self,
        message: str = "",
        *,
        code: int | None = None,
        data: Any = None,
        hint: str | None = None,
        target: str | None = None,
        phase: str | None = None,
    ) -> None: ...

class AuthError(McpError):
    www_authenticate: str | None
