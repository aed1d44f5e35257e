"""The exceptions that the values of this package raise as well, among them the base class of all."""


class McpError(Exception):
    """The base class of all errors. `str()` is one line, including the hint.

    Attributes: `message`; `code`, the JSON-RPC code where there is one; `data`; `hint`, how to fix it;
    `target`, the URL or command; `phase`, such as "connect" or "call"; `status`, of the HTTP response that caused it.

    >>> print(McpError("no such book", hint="list them", phase="call", target="shelf"))
    call shelf: no such book (hint: list them)
    """

    __module__ = "gudgeon.errors"

    code = None
    status = None

    def __init__(self, message="", *, code=None, data=None, hint=None, target=None, phase=None):
        self.message = " ".join(str(message).split())
        self.code = type(self).code if code is None else code
        self.data = data
        self.hint = hint
        self.target = target
        self.phase = phase
        super().__init__(self.message)

    def __reduce__(self):
        # Exceptions are copied from their `args`, which hold only the message.
        return _as_it_was, (type(self), self.args, self.__dict__)

    def __str__(self):
        where = " ".join(part for part in (self.phase, self.target) if part)
        text = f"{where}: {self.message}" if where else self.message
        return f"{text} (hint: {self.hint})" if self.hint else text


class AuthError(McpError):
    """Authorization failed. Spec: Base Protocol › Authorization.

    Attributes: `status`, 401 or 403; `www_authenticate`, the response's header of that name, if it had one.
    """

    __module__ = "gudgeon.errors"

    www_authenticate = None


def _as_it_was(cls, args, attributes):
    error = cls.__new__(cls, *args)
    error.__dict__.update(attributes)
    return error
