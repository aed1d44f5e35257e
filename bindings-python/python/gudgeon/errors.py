"""What can go wrong, as exceptions: each says in one line what is wrong, where, and what would mend it."""


class McpError(Exception):
    """The base of all. `str()` is one flat line, the hint included."""

    code = None

    def __init__(self, message="", *, code=None, data=None, hint=None, target=None, phase=None):
        self.message = " ".join(str(message).split())
        self.code = type(self).code if code is None else code
        self.data = data
        self.hint = hint
        self.target = target
        self.phase = phase
        super().__init__(self.message)

    def __str__(self):
        where = " ".join(part for part in (self.phase, self.target) if part)
        text = f"{where}: {self.message}" if where else self.message
        return f"{text} (hint: {self.hint})" if self.hint else text


class ConnectFailed(McpError):
    """No connection came about."""

    def __init__(self, message="", *, exit_status=None, stderr="", **rest):
        super().__init__(message, **rest)
        self.exit_status = exit_status
        self.stderr = stderr

    def __str__(self):
        text = super().__str__()
        told = f"status {self.exit_status}"
        if self.exit_status is not None and told not in self.message:
            text += f"; it exited with {told}"
        if self.stderr:
            text += f"; its last lines on stderr: {' | '.join(self.stderr.strip().splitlines())}"
        return text


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

    def __init__(self, code, message, data=None, **rest):
        super().__init__(message, code=code, data=data, **rest)


class UrlElicitationRequired(McpError):
    """The user must first visit these URLs."""

    code = -32042

    def __init__(self, elicitations, message="a URL must be visited first", **rest):
        super().__init__(message, **rest)
        self.elicitations = tuple(elicitations)
        if self.data is None:
            self.data = {"elicitations": [item.to_dict() for item in self.elicitations]}


class ResourceNotFound(McpError):
    """No such resource."""

    def __init__(self, uri, message=None, **rest):
        super().__init__(message or f"no such resource: {uri}", **rest)
        self.uri = uri
        self.explicit = message is not None
        if self.data is None:
            self.data = {"uri": uri}


class ToolError(McpError):
    """A tool failed in a way that the model can mend: it reads this text as written."""

    def __init__(self, message, /, **meta):
        super().__init__(message)
        self.text = str(message)
        self.meta = meta
        self._result = None

    def __str__(self):
        return self.text

    @property
    def result(self):
        """The whole result, `is_error` set."""
        if self._result is None:
            from .types import ToolResult

            self._result = ToolResult(self.text, is_error=True, meta=self.meta)
        return self._result

    @classmethod
    def _from_result(cls, result):
        error = cls(result.text or "the tool failed without a word", **result.meta)
        error._result = result
        return error


class Declined(McpError):
    """The user said no."""

    def __init__(self, question="", **rest):
        super().__init__(f"The user declined: {question}" if question else "The user declined", **rest)
        self.question = question


class Cancelled(McpError):
    """The user dismissed the question."""

    def __init__(self, question="", **rest):
        super().__init__(f"The user dismissed: {question}" if question else "The user dismissed the question", **rest)
        self.question = question
