"""Results of tools, resources, prompts and completions."""

from .content import Content, EmbeddedResource, _Media, content_from_dict, contents_of, text_of
from .value import REQUIRED, Value, all_decoded, bytes_property, each, plain, read_object, received_bytes, string


class ToolResult(Value):
    """A tool's result; a handler may return one to set every part of it.

    `-> ToolResult[Book]` declares a `Book` as structured content, from which the tool's output schema is made.

    Args:
        content: A str, content, or a list of them. Default: none.
        structured_content: A JSON value, for programs.
        is_error: Whether the tool failed. Default False.
        meta: The result's `_meta`.

    Raises:
        TypeError: `content` is a JSON value, not content.

    Spec: Server Features › Tools › Tool result.

    >>> result = ToolResult("2 books", structured_content={"count": 2})
    >>> result.text, result.data
    ('2 books', {'count': 2})
    """

    _fields = {"content": REQUIRED, "structured_content": None, "is_error": False, "meta": {}}
    _known_as = {"error": "is_error", "output": "data", "result": "data", "structured": "data", "value": "data"}
    _readers = {"content": each(content_from_dict)}

    def __init__(self, content=(), *, structured_content=None, is_error=False, meta=None):
        self._put(
            {
                "content": contents_of(content, "ToolResult"),
                "structured_content": structured_content,
                "is_error": bool(is_error),
                "meta": dict(meta or {}),
            }
        )

    @classmethod
    def from_dict(cls, data):
        read_object("ToolResult", data)
        return super().from_dict(data if "content" in data else {"content": (), **data})

    @property
    def data(self):
        """The structured content as JSON values; without structured content, the text as it is.

        `call_tool(…, returns=…)` gives it a type: a model, a datetime, or the JSON in a text. A Gudgeon server marks
        text that stands for structured content in revisions that can't carry that, so that `data` is the same in every
        revision.
        """
        if "_data" in self.__dict__:
            return self.__dict__["_data"]
        return self.text if self.structured_content is None else self.structured_content

    @property
    def text(self):
        """All text content, joined by newlines."""
        return text_of(self.content)

    def _with_data(self, data):
        """Returns the same result with `data` in the type that the caller requested."""
        new = type(self).__new__(type(self))
        new.__dict__.update(self.__dict__, _data=data)
        return new

    def __eq__(self, other):
        # The `data` that was received follows from the fields.
        return type(self) is type(other) and self._values() == other._values()

    def __hash__(self):
        return hash((type(self), self.content, self.is_error))

    def _values(self):
        return [self.__dict__[name] for name in self._fields]


class ResourceContents(Value):
    """One part of a resource: `text=` or `blob=` (bytes), not both (ValueError). "" as `uri` stands for the requested
    URI.
    """

    _fields = {"uri": "", "mime_type": None, "text": None, "blob": None, "meta": {}}
    _readers = {"uri": string, "mime_type": string, "text": string, "blob": received_bytes}
    blob = bytes_property("blob")

    def __init__(self, *, uri="", mime_type=None, text=None, blob=None, meta=None):
        if text is not None and blob is not None:
            raise ValueError("ResourceContents takes text= or blob=, not both")
        self._put({"uri": uri, "mime_type": mime_type, "text": text, "blob": blob, "meta": dict(meta or {})})

    @classmethod
    def from_dict(cls, data):
        return all_decoded(super().from_dict(data))

    @classmethod
    def _received(cls, data):
        """Returns the value of a JSON object. Bytes that can't be decoded raise an error when they are read."""
        return super().from_dict(data)


def resource_contents(value, mime_type=None):
    """Converts a str, bytes, ResourceContents, EmbeddedResource or JSON value to ResourceContents."""
    if isinstance(value, ResourceContents):
        return value
    if isinstance(value, str):
        return ResourceContents(text=value, mime_type=mime_type)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return ResourceContents(blob=bytes(value), mime_type=mime_type)
    if isinstance(value, EmbeddedResource):
        return ResourceContents(
            uri=value.uri, text=value.text, blob=value.blob, mime_type=value.mime_type or mime_type, meta=value.meta
        )
    if isinstance(value, _Media):
        return ResourceContents(blob=value.data, mime_type=value.mime_type)
    from .json import encode

    return ResourceContents(text=encode(value).decode(), mime_type=mime_type or "application/json")


_PARTS = (str, bytes, bytearray, memoryview, ResourceContents, Content)


class ResourceResult(Value):
    """The contents of a resource; a handler may return one.

    Args:
        contents: A str, bytes, `ResourceContents`, a JSON object or array, or a list of such parts.
        mime_type: The media type of parts that have none.
        meta: The result's `_meta`.

    Raises:
        TypeError: The contents are None or a number.

    Spec: Server Features › Resources › Reading resources.

    >>> ResourceResult(["a", b"b"]).text
    'a'
    """

    _fields = {"contents": REQUIRED, "meta": {}}
    _readers = {"contents": each(ResourceContents._received)}

    def __init__(self, contents, *, mime_type=None, meta=None):
        if contents is None or isinstance(contents, (int, float)):
            raise TypeError(
                "ResourceResult takes a str, bytes, ResourceContents, an object that can be converted to JSON, or a "
                f"list of these, not {contents!r}; write ResourceResult({str(contents)!r}) for text"
            )
        if isinstance(contents, (list, tuple)) and all(isinstance(item, _PARTS) for item in contents):
            parts = tuple(resource_contents(item, mime_type) for item in contents)
        else:
            parts = (resource_contents(contents, mime_type),)
        self._put({"contents": parts, "meta": dict(meta or {})})

    @property
    def text(self):
        """All text contents, joined by newlines."""
        return "\n".join(item.text for item in self.contents if item.text is not None)

    @property
    def blob(self):
        """All binary contents, one after the other."""
        return b"".join(item.blob for item in self.contents if item.blob is not None)


def _message_content(content):
    if isinstance(content, (str, Content)):
        return contents_of(content, "Message")[0]
    return contents_of(content, "Message")


def _role_and_content(given, role, content):
    """Returns both, given in this order or one of them by keyword."""
    rest = list(given)
    if role is None and rest:
        role = rest.pop(0)
    if content is None and rest:
        content = rest.pop(0)
    if rest or role is None or content is None:
        raise TypeError('Message takes a role and content: write Message("user", "Review Emma.")')
    return role, content


class Message(Value):
    """One message of a conversation; `user(…)` and `assistant(…)` make them.

    Args:
        role: "user" or "assistant"; else ValueError.
        content: A str, content, or a list of them.
        meta: The message's `_meta`.

    Spec: Server Features › Prompts › PromptMessage.

    >>> Message("user", "Review Emma.") == Message("Review Emma.", role="user")
    True
    """

    _fields = {"role": REQUIRED, "content": REQUIRED, "meta": {}}
    _readers = {
        "content": lambda wire: each(content_from_dict)(wire) if isinstance(wire, list) else content_from_dict(wire)
    }

    def __init__(self, *given, role=None, content=None, meta=None):
        role, content = _role_and_content(given, role, content)
        if role not in ("user", "assistant"):
            raise ValueError(f'a message\'s role is "user" or "assistant", not {role!r}')
        self._put({"role": role, "content": _message_content(content), "meta": dict(meta or {})})

    @property
    def text(self):
        """All text content, joined by newlines."""
        return text_of(self.content if isinstance(self.content, tuple) else (self.content,))


def user(content):
    """Returns a message of the user.

    >>> user("Review Emma.").role
    'user'
    """
    return Message("user", content)


def assistant(content):
    """Returns a message of the assistant."""
    return Message("assistant", content)


def messages_of(messages):
    """Converts messages, and strings and content of the user, to a tuple of Message."""
    if isinstance(messages, (str, Content, Message)):
        messages = (messages,)
    return tuple(item if isinstance(item, Message) else user(item) for item in messages)


class PromptResult(Value):
    """The messages of a prompt (a str is the user's) and a description; a handler may return one.

    >>> PromptResult(["Review Emma.", assistant("Gladly.")]).messages[1].text
    'Gladly.'
    """

    _fields = {"messages": REQUIRED, "description": None, "meta": {}}
    _readers = {"messages": each(Message.from_dict)}

    def __init__(self, messages, *, description=None, meta=None):
        self._put({"messages": messages_of(messages), "description": description, "meta": dict(meta or {})})


class Completion(Value):
    """Suggestions of a completion, best first.

    Args:
        values: A list of strings; one str is a TypeError.
        total: The number of all suggestions.
        has_more: Whether there are more than these. Default False.

    Spec: Server Features › Utilities › Completion.

    >>> Completion(["Emma"], total=7, has_more=True).to_dict()
    {'values': ['Emma'], 'total': 7, 'hasMore': True}
    """

    _fields = {"values": REQUIRED, "total": None, "has_more": False}
    _readers = {"values": tuple}

    def __init__(self, values, *, total=None, has_more=False):
        if isinstance(values, str):
            raise TypeError(f"Completion takes a list of str: write Completion([{values!r}])")
        self._put({"values": tuple(values), "total": total, "has_more": has_more})


class SampleResult(Value):
    """The answer of the client's model; `on_sample` may return one.

    Args:
        content: A str, content, or a list of them.
        model: The name of the model.
        stop_reason: Default "endTurn".
        role: Default "assistant".

    Spec: Client Features › Sampling.
    """

    _fields = {"role": "assistant", "content": REQUIRED, "model": REQUIRED, "stop_reason": None, "meta": {}}
    _readers = {
        "content": lambda wire: tuple(content_from_dict(item) for item in (wire if isinstance(wire, list) else [wire]))
    }

    def __init__(self, content, *, model, stop_reason="endTurn", role="assistant"):
        self._put(
            {
                "role": role,
                "content": contents_of(content, "SampleResult"),
                "model": model,
                "stop_reason": stop_reason,
            }
        )

    @property
    def text(self):
        """All text content, joined by newlines."""
        return text_of(self.content)

    def to_dict(self):
        out = {"role": self.role, **super().to_dict()}
        # Revisions before 2025-11-25 have one block only; one block is valid in every revision.
        if len(self.content) == 1:
            out["content"] = plain(self.content[0])
        return out
