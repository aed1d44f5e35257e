"""The exceptions. Each message says in one line what is wrong, where, and how to fix it."""

from ._model.mcp_error import AuthError, McpError

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
    """The connection could not be made. `exit_status` and `stderr` (its last lines) say how a command ended.

    `__cause__` is the operating system's error, such as a ConnectionRefusedError, if there was one.

    >>> from gudgeon import SyncClient
    >>> try:
    ...     SyncClient(["no-such-program"]).connect()
    ... except ConnectFailed as error:
    ...     error.phase, error.target
    ('connect', 'no-such-program')
    """

    def __init__(self, message="", *, exit_status=None, stderr="", **rest):
        super().__init__(message, **rest)
        self.exit_status = exit_status
        self.stderr = stderr

    def __str__(self):
        text = super().__str__()
        status = f"status {self.exit_status}"
        if self.exit_status is not None and status not in self.message:
            text += f"; it exited with {status}"
        if self.stderr:
            text += f"; its last lines on stderr: {' | '.join(self.stderr.strip().splitlines())}"
        return text


class ConnectionLost(McpError):
    """The connection broke while it was in use: the server ended, or closed its output."""


class CallTimeout(McpError, TimeoutError):
    """There was no answer in time; also a `TimeoutError`. `timeout=` of the client or the call sets the seconds."""


class NotSupported(McpError):
    """The other side or the revision does not support this; a call that the server did not declare is not sent.

    >>> from gudgeon import Server, SyncClient
    >>> with SyncClient(Server("empty")) as client:
    ...     try:
    ...         client.list_prompts()
    ...     except NotSupported as error:
    ...         "capability" in error.message
    True
    """


class ProtocolError(McpError):
    """A JSON-RPC error that was received, or that a handler raises to send it. Spec: Base Protocol › Messages.

    Args:
        code: The JSON-RPC code, such as -32602 (invalid params).
        message: One line.
        data: A JSON value.
    """

    def __init__(self, code, message, data=None, **rest):
        super().__init__(message, code=code, data=data, **rest)


class UrlElicitationRequired(McpError):
    """The user must first visit these URLs (-32042, 2025-11-25). Spec: Client Features › Elicitation › URL mode."""

    code = -32042

    def __init__(self, elicitations, message="a URL must be visited first", **rest):
        super().__init__(message, **rest)
        self.elicitations = tuple(elicitations)
        if self.data is None:
            self.data = {"elicitations": [item.to_dict() for item in self.elicitations]}


class ResourceNotFound(McpError):
    """The resource does not exist: -32002 up to 2025-11-25, -32602 from 2026-07-28. Spec: Server Features › Resources ›
    Error handling.

    Args:
        uri: The URI that was requested.
        message: Default "Resource not found: <uri>".
    """

    def __init__(self, uri, message=None, **rest):
        super().__init__(message or f"Resource not found: {uri}", **rest)
        self.uri = uri
        self.explicit = message is not None
        if self.data is None:
            self.data = {"uri": uri}


class ToolError(McpError):
    """A tool failed in a way that the model can correct: it reads this message as written.

    A handler raises it; `call_tool` raises it for a result with `isError`, which is then `error.result`.

    Args:
        message: The text that the model reads.
        meta: The result's `_meta`.

    Spec: Server Features › Tools › Error handling.

    >>> from gudgeon import Server, SyncClient
    >>> app = Server("shelf")
    >>> @app.tool
    ... def lend(title: str) -> str:
    ...     raise ToolError(f"{title} is lent already.")
    >>> with SyncClient(app) as client:
    ...     try:
    ...         client.call_tool("lend", {"title": "Dune"})
    ...     except ToolError as error:
    ...         print(error.text)
    Dune is lent already.
    """

    def __init__(self, message, /, **meta):
        super().__init__(message)
        self.text = str(message)
        self.meta = meta
        self._result = None

    def __str__(self):
        return self.text

    @property
    def result(self):
        """The whole result, with `is_error` set."""
        if self._result is None:
            from .types import ToolResult

            self._result = ToolResult(self.text, is_error=True, meta=self.meta)
        return self._result

    @classmethod
    def _from_result(cls, result):
        error = cls(result.text or "the tool failed without a message", **result.meta)
        error._result = result
        return error


class Declined(McpError):
    """The user declined. If a handler does not catch it, its result is the error "The user declined: <question>"."""

    def __init__(self, question="", **rest):
        super().__init__(f"The user declined: {question}" if question else "The user declined", **rest)
        self.question = question


class Cancelled(McpError):
    """The user dismissed the question without an answer."""

    def __init__(self, question="", **rest):
        super().__init__(f"The user dismissed: {question}" if question else "The user dismissed the question", **rest)
        self.question = question
