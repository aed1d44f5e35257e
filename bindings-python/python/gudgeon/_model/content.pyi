from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Literal

from .value import Value

class Icon(Value):
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

class Annotations(Value):
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

class Content(Value):
    type: str
    annotations: Annotations | None

class Text(Content):
    text: str
    meta: Mapping[str, Any]
    def __init__(
        self, text: str, *, annotations: Annotations | None = None, meta: Mapping[str, Any] | None = None
    ) -> None: ...

class Image(Content):
    data: bytes
    mime_type: str
    meta: Mapping[str, Any]
    def __init__(
        self,
        data: bytes | PathLike[str],
        *,
        format: str | None = None,
        mime_type: str | None = None,
        annotations: Annotations | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> None: ...

class Audio(Content):
    data: bytes
    mime_type: str
    meta: Mapping[str, Any]
    def __init__(
        self,
        data: bytes | PathLike[str],
        *,
        format: str | None = None,
        mime_type: str | None = None,
        annotations: Annotations | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> None: ...

class EmbeddedResource(Content):
    uri: str
    text: str | None
    blob: bytes | None
    mime_type: str | None
    meta: Mapping[str, Any]
    def __init__(
        self,
        uri: str,
        *,
        text: str | None = None,
        blob: bytes | None = None,
        mime_type: str | None = None,
        annotations: Annotations | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> None: ...
    def contents(self) -> dict[str, Any]: ...

class File(EmbeddedResource):
    def __init__(self, path: PathLike[str] | str, *, mime_type: str | None = None) -> None: ...

class ResourceLink(Content):
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
        *,
        name: str,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        size: int | None = None,
        annotations: Annotations | None = None,
    ) -> None: ...

class ToolUse(Content):
    id: str
    name: str
    input: Mapping[str, Any]
    meta: Mapping[str, Any]
    def __init__(self, id: str, name: str, input: Mapping[str, Any]) -> None: ...

class ToolOutcome(Content):
    tool_use_id: str
    content: Sequence[Content]
    structured_content: Any
    is_error: bool
    meta: Mapping[str, Any]
    def __init__(
        self, tool_use_id: str, content: Any, *, structured_content: Any = None, is_error: bool = False
    ) -> None: ...

class Other(Content):
    raw: Mapping[str, Any]
    def __init__(self, raw: Mapping[str, Any]) -> None: ...

def content_from_dict(data: Mapping[str, Any]) -> Content: ...
