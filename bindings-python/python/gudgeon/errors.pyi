from collections.abc import Mapping, Sequence
from typing import Any

from ._model.mcp_error import AuthError as AuthError, McpError as McpError
from .types import ElicitRequest, ToolResult

__all__ = [
    "AuthError",
    "CallTimeout",
    "Cancelled",
    "ConnectFailed",
    "ConnectionLost",
    "Declined",
    "McpError",
    "NotSupported",
    "ProtocolError",
    "ResourceNotFound",
    "ToolError",
    "UrlElicitationRequired",
]

class ConnectFailed(McpError):
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

class ConnectionLost(McpError): ...
class CallTimeout(McpError, TimeoutError): ...
class NotSupported(McpError): ...

class ProtocolError(McpError):
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
    text: str
    meta: Mapping[str, Any]
    @property
    def result(self) -> ToolResult: ...
    def __init__(self, message: str, /, **meta: Any) -> None: ...  # meta: the result's _meta
    @classmethod
    def _from_result(cls, result: ToolResult[Any]) -> ToolError: ...

class Declined(McpError):
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
    question: str
    def __init__(
        self,
        question: str = "",
        *,
        hint: str | None = None,
        target: str | None = None,
        phase: str | None = None,
    ) -> None: ...
