"""The value types of the protocol, in the newest revision's vocabulary."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Generic, Literal

from typing_extensions import Self, TypedDict, TypeVar

_D = TypeVar("_D", default=Any)
_T = TypeVar("_T")

class _Value:
    """Frozen; equal by value; `to_dict` and `from_dict` speak the newest revision's JSON."""

    def to_dict(self) -> dict[str, Any]: ...
    @classmethod
    def from_dict(cls, data: Mapping[str, Any], /) -> Self: ...

class Icon(_Value):
    """A picture that a host may show beside a name."""

    src: str
    mime_type: str | None
    sizes: Sequence[str]
    theme: Literal["light", "dark"] | None
    def __init__(
        self,
        src: str,
        *,
        mime_type: str | None = None,
        sizes: Sequence[str] = (),
        theme: Literal["light", "dark"] | None = None,
    ) -> None: ...

class Annotations(_Value):
    """For whom content is, and how much it matters."""

    audience: Sequence[Literal["user", "assistant"]]
    priority: float | None
    last_modified: str | None
    def __init__(
        self,
        *,
        audience: Sequence[Literal["user", "assistant"]] = (),
        priority: float | None = None,
        last_modified: str | None = None,
    ) -> None: ...

class ToolAnnotations(_Value):
    """What a tool does to the world, as hints."""

    title: str | None
    read_only: bool | None
    destructive: bool | None
    idempotent: bool | None
    open_world: bool | None
    def __init__(
        self,
        *,
        title: str | None = None,
        read_only: bool | None = None,
        destructive: bool | None = None,
        idempotent: bool | None = None,
        open_world: bool | None = None,
    ) -> None: ...

class Implementation(_Value):
    """A program's name and version."""

    name: str
    version: str
    title: str | None
    description: str | None
    website_url: str | None
    icons: Sequence[Icon]
    def __init__(
        self,
        name: str,
        version: str,
        *,
        title: str | None = None,
        description: str | None = None,
        website_url: str | None = None,
        icons: Sequence[Icon] = (),
    ) -> None: ...

class ClientInfo(Implementation):
    """Who calls, and what it can answer."""

    capabilities: Mapping[str, Any]
    def __init__(
        self,
        name: str,
        version: str,
        *,
        capabilities: Mapping[str, Any] | None = None,
        title: str | None = None,
        description: str | None = None,
        website_url: str | None = None,
        icons: Sequence[Icon] = (),
    ) -> None: ...

class Principal(_Value):
    """Who asks, as authorization proved it."""

    subject: str
    client_id: str | None
    scopes: frozenset[str]
    claims: Mapping[str, Any]
    def __init__(
        self,
        subject: str,
        *,
        client_id: str | None = None,
        scopes: Sequence[str] | frozenset[str] = (),
        claims: Mapping[str, Any] | None = None,
    ) -> None: ...

class Content(_Value):
    """One block of content; `from_dict` finds the kind by `type`."""

    type: str
    annotations: Annotations | None

class Text(Content):
    """Plain text."""

    text: str
    meta: Mapping[str, Any]
    def __init__(
        self, text: str, /, *, annotations: Annotations | None = None, meta: Mapping[str, Any] | None = None
    ) -> None: ...

class Image(Content):
    """A picture: bytes, or the path of a file that is read at once."""

    data: bytes
    mime_type: str
    meta: Mapping[str, Any]
    def __init__(
        self,
        data: bytes | PathLike[str],
        /,
        *,
        format: str | None = None,
        mime_type: str | None = None,
        annotations: Annotations | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> None: ...

class Audio(Content):
    """Sound: bytes, or the path of a file that is read at once."""

    data: bytes
    mime_type: str
    meta: Mapping[str, Any]
    def __init__(
        self,
        data: bytes | PathLike[str],
        /,
        *,
        format: str | None = None,
        mime_type: str | None = None,
        annotations: Annotations | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> None: ...

class EmbeddedResource(Content):
    """A resource's contents, given along."""

    uri: str
    text: str | None
    blob: bytes | None
    mime_type: str | None
    meta: Mapping[str, Any]
    def __init__(
        self,
        uri: str,
        /,
        *,
        text: str | None = None,
        blob: bytes | None = None,
        mime_type: str | None = None,
        annotations: Annotations | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> None: ...
    def contents(self) -> dict[str, Any]: ...

class File(EmbeddedResource):
    """A file on disk as an embedded resource."""

    def __init__(self, path: PathLike[str] | str, /, *, mime_type: str | None = None) -> None: ...

class ResourceLink(Content):
    """A resource that can be read, by its URI."""

    uri: str
    name: str
    title: str | None
    description: str | None
    mime_type: str | None
    size: int | None
    icons: Sequence[Icon]
    meta: Mapping[str, Any]
    def __init__(
        self,
        uri: str,
        /,
        *,
        name: str,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        size: int | None = None,
        annotations: Annotations | None = None,
    ) -> None: ...

class ToolUse(Content):
    """In sampling: the model wants this tool called."""

    id: str
    name: str
    input: Mapping[str, Any]
    meta: Mapping[str, Any]
    def __init__(self, id: str, name: str, input: Mapping[str, Any]) -> None: ...

class ToolOutcome(Content):
    """In sampling: what that tool answered."""

    tool_use_id: str
    content: Sequence[Content]
    structured_content: Any
    is_error: bool
    meta: Mapping[str, Any]
    def __init__(
        self, tool_use_id: str, content: Any, *, structured_content: Any = None, is_error: bool = False
    ) -> None: ...

class Other(Content):
    """A type unknown here, passed through unchanged."""

    raw: Mapping[str, Any]
    def __init__(self, raw: Mapping[str, Any], /) -> None: ...

def content_from_dict(data: Mapping[str, Any], /) -> Content:
    """The content that this JSON object says; a type unknown here comes back as `Other`."""

class _Offer(_Value):
    name: str
    title: str | None
    description: str | None
    icons: Sequence[Icon]
    meta: Mapping[str, Any]

class Tool(_Offer):
    """A tool as a client sees it."""

    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any] | None
    annotations: ToolAnnotations | None
    def __init__(
        self,
        *,
        name: str,
        input_schema: Mapping[str, Any],
        output_schema: Mapping[str, Any] | None = None,
        annotations: ToolAnnotations | None = None,
        title: str | None = None,
        description: str | None = None,
        icons: Sequence[Icon] = (),
        meta: Mapping[str, Any] = ...,
    ) -> None: ...

class Resource(_Offer):
    """A resource as a client sees it."""

    uri: str
    mime_type: str | None
    size: int | None
    annotations: Annotations | None
    def __init__(
        self,
        *,
        name: str,
        uri: str,
        mime_type: str | None = None,
        size: int | None = None,
        annotations: Annotations | None = None,
        title: str | None = None,
        description: str | None = None,
        icons: Sequence[Icon] = (),
        meta: Mapping[str, Any] = ...,
    ) -> None: ...

class ResourceTemplate(_Offer):
    """A family of resources, by RFC 6570 template."""

    uri_template: str
    mime_type: str | None
    annotations: Annotations | None
    def __init__(
        self,
        *,
        name: str,
        uri_template: str,
        mime_type: str | None = None,
        annotations: Annotations | None = None,
        title: str | None = None,
        description: str | None = None,
        icons: Sequence[Icon] = (),
        meta: Mapping[str, Any] = ...,
    ) -> None: ...

class PromptArgument(_Value):
    """What a prompt wants to know; always text."""

    name: str
    title: str | None
    description: str | None
    required: bool
    def __init__(
        self, *, name: str, title: str | None = None, description: str | None = None, required: bool = False
    ) -> None: ...

class Prompt(_Offer):
    """A prompt as a client sees it."""

    arguments: Sequence[PromptArgument]
    def __init__(
        self,
        *,
        name: str,
        arguments: Sequence[PromptArgument] = (),
        title: str | None = None,
        description: str | None = None,
        icons: Sequence[Icon] = (),
        meta: Mapping[str, Any] = ...,
    ) -> None: ...

class Page(_Value, Generic[_T]):
    """One page of a list."""

    items: Sequence[_T]
    next_cursor: str | None
    def __init__(self, items: Sequence[_T], *, next_cursor: str | None = None) -> None: ...

class ToolResult(_Value, Generic[_D]):
    """What a tool answered; a handler may return one to say everything itself."""

    def __init__(
        self,
        content: Any = (),
        *,
        structured_content: Any = None,
        is_error: bool = False,
        meta: Mapping[str, Any] | None = None,
    ) -> None: ...
    content: Sequence[Content]
    structured_content: Any
    is_error: bool
    meta: Mapping[str, Any]
    @property
    def data(self) -> _D: ...
    @property
    def text(self) -> str: ...
    def _with_data(self, data: _T) -> ToolResult[_T]: ...

class ResourceContents(_Value):
    """One piece of what a resource holds: text or blob."""

    uri: str
    mime_type: str | None
    text: str | None
    blob: bytes | None
    meta: Mapping[str, Any]
    def __init__(
        self,
        *,
        uri: str = "",
        mime_type: str | None = None,
        text: str | None = None,
        blob: bytes | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> None: ...

class ResourceResult(_Value):
    """What reading a resource answered."""

    def __init__(
        self, contents: Any, *, mime_type: str | None = None, meta: Mapping[str, Any] | None = None
    ) -> None: ...
    contents: Sequence[ResourceContents]
    meta: Mapping[str, Any]
    @property
    def text(self) -> str: ...
    @property
    def blob(self) -> bytes: ...

class Message(_Value):
    """What the user or the assistant said; several blocks of content in sampling only."""

    role: Literal["user", "assistant"]
    content: Content | Sequence[Content]
    meta: Mapping[str, Any]
    @property
    def text(self) -> str: ...
    def __init__(
        self,
        role: Literal["user", "assistant"],
        content: str | Content | Sequence[str | Content],
        *,
        meta: Mapping[str, Any] | None = None,
    ) -> None: ...

def user(content: str | Content | Sequence[str | Content], /) -> Message:
    """A message of the user."""

def assistant(content: str | Content | Sequence[str | Content], /) -> Message:
    """A message of the assistant."""

class PromptResult(_Value):
    """What a prompt expands to."""

    def __init__(
        self,
        messages: Sequence[Message | str],
        *,
        description: str | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> None: ...
    messages: Sequence[Message]
    description: str | None
    meta: Mapping[str, Any]

class Completion(_Value):
    """Suggestions for an argument's value."""

    def __init__(self, values: Sequence[str], *, total: int | None = None, has_more: bool = False) -> None: ...
    values: Sequence[str]
    total: int | None
    has_more: bool

class Root(_Value):
    """A place the client lets a server work in."""

    uri: str
    name: str | None
    meta: Mapping[str, Any]
    def __init__(self, uri: str, *, name: str | None = None, meta: Mapping[str, Any] | None = None) -> None: ...

class SampleOptions(TypedDict, total=False):
    """What `sample` takes besides messages."""

    max_tokens: int
    system: str
    temperature: float
    stop: Sequence[str]
    models: str | Sequence[str]  # hints, best first
    cost_priority: float
    speed_priority: float
    intelligence_priority: float
    tools: Sequence[Any]
    tool_choice: Literal["auto", "required", "none"]

class SampleResult(_Value):
    """What the client's model said."""

    def __init__(
        self,
        content: Any,
        *,
        model: str,
        stop_reason: str = "endTurn",
        role: Literal["user", "assistant"] = "assistant",
    ) -> None: ...
    @property
    def text(self) -> str: ...
    role: Literal["user", "assistant"]
    content: Sequence[Content]
    model: str
    stop_reason: str | None
    meta: Mapping[str, Any]

class SampleRequest(_Value):
    """A server wants the client's model asked."""

    messages: Sequence[Message]
    max_tokens: int
    system: str | None
    temperature: float | None
    stop: Sequence[str]
    models: Sequence[str]
    cost_priority: float | None
    speed_priority: float | None
    intelligence_priority: float | None
    tools: Sequence[Tool]
    tool_choice: Literal["auto", "required", "none"] | None
    def __init__(
        self,
        *,
        messages: Sequence[Message],
        max_tokens: int,
        system: str | None = None,
        temperature: float | None = None,
        stop: Sequence[str] = (),
        models: Sequence[str] = (),
        cost_priority: float | None = None,
        speed_priority: float | None = None,
        intelligence_priority: float | None = None,
        tools: Sequence[Tool] = (),
        tool_choice: Literal["auto", "required", "none"] | None = None,
    ) -> None: ...

class ElicitRequest(_Value):
    """A server wants the user asked: by a form, or by sending them to a URL."""

    mode: Literal["form", "url"]
    id: str | None
    message: str
    schema: Mapping[str, Any]
    url: str | None
    def __init__(
        self,
        *,
        mode: Literal["form", "url"],
        message: str,
        schema: Mapping[str, Any] = ...,
        url: str | None = None,
        id: str | None = None,
    ) -> None: ...

class Accepted(_Value, Generic[_T]):
    """The user answered."""

    value: _T
    def __init__(self, value: _T) -> None: ...

class LogMessage(_Value):
    """A line of a server's log."""

    level: str
    logger: str | None
    data: Any
    def __init__(self, *, level: str, data: Any, logger: str | None = None) -> None: ...

class Progress(_Value):
    """How far a call has come."""

    progress: float
    total: float | None
    message: str | None
    def __init__(self, *, progress: float, total: float | None = None, message: str | None = None) -> None: ...

class ListChanged(_Value):
    """A server offers something else than before."""

    kind: Literal["tools", "resources", "prompts"]
    def __init__(self, *, kind: Literal["tools", "resources", "prompts"]) -> None: ...

class Change(_Value):
    """A list changed, or a subscribed resource was updated."""

    kind: Literal["tools", "resources", "prompts", "updated"]
    uri: str | None
    def __init__(
        self, *, kind: Literal["tools", "resources", "prompts", "updated"], uri: str | None = None
    ) -> None: ...

class RootsRequest(_Value):
    """A server wants to know the client's roots."""

    def __init__(self) -> None: ...

class InputRequired(_Value):
    """A modern server wants answers first: give them by key to the next `call_tool_round`, with this state."""

    questions: Mapping[str, ElicitRequest | SampleRequest | RootsRequest]
    state: str | None
    def __init__(
        self,
        *,
        questions: Mapping[str, ElicitRequest | SampleRequest | RootsRequest],
        state: str | None = None,
    ) -> None: ...
