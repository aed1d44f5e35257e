from collections.abc import Mapping, Sequence
from typing import Any, Generic, Literal, overload

from typing_extensions import TypeVar

from .content import Content
from .value import Value

_D = TypeVar("_D", default=Any)
_T = TypeVar("_T")

class ToolResult(Value, Generic[_D]):
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

class ResourceContents(Value):
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

class ResourceResult(Value):
    def __init__(
        self, contents: Any, *, mime_type: str | None = None, meta: Mapping[str, Any] | None = None
    ) -> None: ...
    contents: Sequence[ResourceContents]
    meta: Mapping[str, Any]
    @property
    def text(self) -> str: ...
    @property
    def blob(self) -> bytes: ...

class Message(Value):
    role: Literal["user", "assistant"]
    content: Content | Sequence[Content]
    meta: Mapping[str, Any]
    @property
    def text(self) -> str: ...
    @overload
    def __init__(
        self,
        role: Literal["user", "assistant"],
        content: str | Content | Sequence[str | Content],
        *,
        meta: Mapping[str, Any] | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self,
        content: str | Content | Sequence[str | Content],
        *,
        role: Literal["user", "assistant"],
        meta: Mapping[str, Any] | None = None,
    ) -> None: ...

def user(content: str | Content | Sequence[str | Content]) -> Message: ...
def assistant(content: str | Content | Sequence[str | Content]) -> Message: ...

class PromptResult(Value):
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

class Completion(Value):
    def __init__(self, values: Sequence[str], *, total: int | None = None, has_more: bool = False) -> None: ...
    values: Sequence[str]
    total: int | None
    has_more: bool

class SampleResult(Value):
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

def resource_contents(value: Any, mime_type: str | None = None) -> ResourceContents: ...
def messages_of(messages: str | Content | Message | Sequence[str | Content | Message]) -> tuple[Message, ...]: ...
