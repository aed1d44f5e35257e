"""What can go wrong, as exceptions: each says in one line what is wrong, where, and what would mend it."""

from collections.abc import Mapping, Sequence
from typing import Any

from .types import ElicitRequest, ToolResult

class McpError(Exception):
    """The base of all. `str()` is one flat line, the hint included."""

    message: str
    code: int | None  # JSON-RPC code, where there is one
    data: Any
    hint: str | None  # what would mend it
    target: str | None  # the URL or command
    phase: str | None  # "connect", "negotiate", "call", …
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

class ConnectFailed(McpError):
    """No connection came about."""

    exit_status: int | None
    stderr: str
    def __init__(
        self,
        message: str = "",
        *,
        exit_status: int | None = None,
        stderr: str = "",
        code: int | None = None,
        data: Any = None,
        hint: str | None = None,
        target: str | None = None,
        phase: str | None = None,
    ) -> None: ...

class ConnectionLost(McpError):
    """The connection broke while it was in use."""

class CallTimeout(McpError, TimeoutError):
    """No answer in time."""

class AuthError(McpError):
    """Authorization failed."""

class NotSupported(McpError):
    """The other side, or the revision spoken, can't do this."""

class ProtocolError(McpError):
    """A JSON-RPC error, received or to be sent."""

    def __init__(
        self,
        code: int,
        message: str,
        data: Any = None,
        *,
        hint: str | None = None,
        target: str | None = None,
        phase: str | None = None,
    ) -> None: ...

class UrlElicitationRequired(McpError):
    """The user must first visit these URLs (-32042, 2025-11-25)."""

    elicitations: Sequence[ElicitRequest]
    def __init__(
        self,
        elicitations: Sequence[ElicitRequest],
        message: str = ...,
        *,
        data: Any = None,
        hint: str | None = None,
        target: str | None = None,
        phase: str | None = None,
    ) -> None: ...

class ResourceNotFound(McpError):
    """No such resource."""

    uri: str
    explicit: bool
    def __init__(
        self,
        uri: str,
        message: str | None = None,
        *,
        code: int | None = None,
        data: Any = None,
        hint: str | None = None,
        target: str | None = None,
        phase: str | None = None,
    ) -> None: ...

class ToolError(McpError):
    """A tool failed in a way that the model can mend: it reads this text as written."""

    text: str
    meta: Mapping[str, Any]
    @property
    def result(self) -> ToolResult:
        """The whole result, `is_error` set."""
    def __init__(self, message: str, /, **meta: Any) -> None: ...  # meta: the result's _meta
    @classmethod
    def _from_result(cls, result: ToolResult[Any]) -> ToolError: ...

class Declined(McpError):
    """The user said no."""

    question: str
    def __init__(
        self,
        question: str = "",
        *,
        hint: str | None = None,
        target: str | None = None,
        phase: str | None = None,
    ) -> None: ...

class Cancelled(McpError):
    """The user dismissed the question."""

    question: str
    def __init__(
        self,
        question: str = "",
        *,
        hint: str | None = None,
        target: str | None = None,
        phase: str | None = None,
    ) -> None: ...
