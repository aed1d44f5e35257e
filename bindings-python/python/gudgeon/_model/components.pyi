from collections.abc import Mapping, Sequence
from typing import Any, Generic

from typing_extensions import TypeVar

from .content import Annotations, Icon
from .value import Value

_T = TypeVar("_T")

class ToolAnnotations(Value):
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

class Implementation(Value):
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

class _Peer(Implementation):
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

class ClientInfo(_Peer): ...
class ServerInfo(_Peer): ...

class Principal(Value):
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

class _Component(Value):
    name: str
    title: str | None
    description: str | None
    icons: Sequence[Icon]
    meta: Mapping[str, Any]

class Tool(_Component):
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

class Resource(_Component):
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

class ResourceTemplate(_Component):
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

class PromptArgument(Value):
    name: str
    title: str | None
    description: str | None
    required: bool
    def __init__(
        self, *, name: str, title: str | None = None, description: str | None = None, required: bool = False
    ) -> None: ...

class Prompt(_Component):
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

class Page(Value, Generic[_T]):
    items: Sequence[_T]
    next_cursor: str | None
    def __init__(self, items: Sequence[_T], *, next_cursor: str | None = None) -> None: ...

class Root(Value):
    uri: str
    name: str | None
    meta: Mapping[str, Any]
    def __init__(self, uri: str, *, name: str | None = None, meta: Mapping[str, Any] | None = None) -> None: ...
