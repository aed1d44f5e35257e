"""`Question`: what a handler asks its client, as a value."""

from types import GenericAlias

from ..errors import Cancelled, Declined, ProtocolError

UNSET = object()


class InvalidAnswer(ProtocolError):
    """An answer that does not fit the type of its question; `problem` says why."""

    def __init__(self, message, error):
        self.problem = problem_of(error)
        super().__init__(-32602, f"the answer to {message!r} does not fit: {self.problem}")


class Question:
    """A question that was not asked yet.

    `kind`, `message`, `key`, `default`, `method` and `params` describe it; `decode` converts the client's result to
    the answer. A handler whose annotations name a `Question[T]` is refused when it is registered, where no
    revision has a form for T.
    """

    __module__ = "gudgeon.ask"
    __slots__ = ("_read", "default", "key", "kind", "message", "method", "params")

    def __init__(self, kind, method, message, params, read, key=None, default=UNSET):
        if key is not None and (not isinstance(key, str) or not key):
            raise TypeError(f"key= must be a string that names the question, not {key!r}")
        self.kind = kind
        self.method = method
        self.message = message
        self.params = params
        self.key = key
        self.default = default
        self._read = read

    @property
    def schema(self):
        """Returns the form's JSON Schema, or None."""
        return self.params.get("requestedSchema")

    def request(self):
        """Returns the question as a member of `inputRequests`."""
        return {"method": self.method, "params": self.params}

    def decode(self, result):
        """Returns the answer in its type. Raises Declined or Cancelled for a refusal, ProtocolError for an invalid
        answer.

        In handlers, `ctx` decodes answers, and asks again after an invalid one.
        """
        if not isinstance(result, dict):
            raise ProtocolError(-32602, f"the answer to {self.message!r} is not an object")
        if self.kind in ("elicit", "elicit_url"):
            action = result.get("action")
            if action == "decline":
                raise Declined(self.message)
            if action == "cancel":
                raise Cancelled(self.message)
            if action != "accept":
                raise ProtocolError(-32602, f"the answer to {self.message!r} has no action: accept, decline or cancel")
        try:
            return self._read(result)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise InvalidAnswer(self.message, error) from None

    def __bool__(self):
        raise TypeError("a Question is not its answer: return it, or await ctx.ask(question) and test what that gives")

    def __repr__(self):
        key = f", key={self.key!r}" if self.key else ""
        return f"Question({self.kind}: {self.message!r}{key})"

    def __class_getitem__(cls, item):
        return GenericAlias(cls, item)


def problem_of(error):
    """Returns the reason of a refused value in one line; pydantic writes several."""
    errors = getattr(error, "errors", None)
    if type(error).__name__ != "ValidationError" or errors is None:
        return " ".join(str(error).split())
    found = errors(include_url=False, include_context=False, include_input=False)
    problems = [(".".join(map(str, item["loc"])), item["msg"]) for item in found]
    return " ".join("; ".join(f"{place}: {text}" if place else text for place, text in problems).split())
