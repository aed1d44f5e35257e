from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from os import PathLike
from types import TracebackType
from typing import Any, Literal, Protocol, TypeAlias, overload

from typing_extensions import Self, TypedDict, TypeForm, TypeVar, Unpack

from . import LogLevel, Revision, Server
from .auth import ClientAuth
from .errors import McpError
from .types import (
    Change,
    Completion,
    ElicitRequest,
    Implementation,
    InputRequired,
    ListChanged,
    LogMessage,
    Page,
    Progress,
    Prompt,
    PromptResult,
    Reconnected,
    Resource,
    ResourceResult,
    ResourceTemplate,
    Root,
    SampleRequest,
    ServerInfo,
    Tool,
    ToolResult,
)

__all__ = [
    "CallOptions",
    "Client",
    "ClientGroup",
    "ClientOptions",
    "ClientRequest",
    "Command",
    "Retry",
    "Subscription",
    "SyncClient",
    "SyncClientGroup",
    "SyncSubscription",
    "Target",
    "Transport",
    "Upstream",
]

_T = TypeVar("_T")

class Command:
    def __init__(
        self,
        *argv: str,
        env: Mapping[str, str] | Literal["inherit"] | None = None,
        cwd: str | PathLike[str] | None = None,
        restart: bool = False,
    ) -> None: ...

class Transport(Protocol):
    """A transport of the user's own. `receive` returns None once the peer is gone."""

    async def receive(self) -> bytes | None: ...
    async def send(self, message: bytes, /) -> None: ...
    async def close(self) -> None: ...

Target: TypeAlias = Server[Any] | Transport | str | PathLike[str] | Sequence[str] | Command | Mapping[str, Any]

class ClientRequest:
    method: str
    params: Mapping[str, Any]
    def __init__(self, method: str, params: Mapping[str, Any]) -> None: ...

class Retry:
    def __init__(self, *, attempts: int = 5, deadline: float = 30, only_safe: bool = True) -> None: ...

class ClientOptions(TypedDict, total=False):
    """Options of clients: `timeout` (60) and `max_timeout` (None) in seconds, `max_message` in bytes (16 MiB),
    `max_rounds` (10), `allowed_url_schemes` (http, https), `retry` ("safe"), `validate` (False), `cache_results` (True).
    """

    revision: Literal["auto", "0.7", "bare"] | Revision | Sequence[Revision]
    validate: bool
    cache_results: bool
    middleware: Sequence[Callable[[ClientRequest, Any], Any]]
    retry: Literal["safe", "never"] | Retry
    timeout: float | None
    max_timeout: float | None
    connect_timeout: float | None
    headers: Mapping[str, str]
    ca: str | PathLike[str] | bytes
    certificate: tuple[str | PathLike[str] | bytes, str | PathLike[str] | bytes]
    auth: ClientAuth
    client_info: Implementation | Mapping[str, Any]
    extensions: Mapping[str, Mapping[str, Any]]
    experimental: Mapping[str, Mapping[str, Any]]
    roots: Sequence[str | PathLike[str] | Root] | Callable[[], Any]
    on_elicit: Callable[[ElicitRequest], Any]
    on_url_done: Callable[[str], Any]
    on_sample: Callable[[SampleRequest], Any]
    on_log: Callable[[LogMessage], Any]
    on_progress: Callable[[Progress], Any]
    on_list_changed: Callable[[ListChanged], Any]
    on_reconnect: Callable[[Reconnected], Any]
    max_rounds: int
    allowed_url_schemes: Sequence[str]
    max_message: int

class CallOptions(TypedDict, total=False):
    """Options of one call: `timeout` in seconds without an answer or progress (the client's), `raise_on_error` (True)."""

    timeout: float | None
    on_progress: Callable[[Progress], Any]
    raise_on_error: bool
    meta: Mapping[str, Any]

class _Peer:
    server: ServerInfo
    revision: Revision | Literal["0.7", "bare"]
    capabilities: Mapping[str, Any]
    instructions: str | None
    session_id: str | None

class Upstream:
    def __init__(self, target: Target | Mapping[str, Target], **options: Unpack[ClientOptions]) -> None: ...

class Client(_Peer):
    def __init__(self, target: Target, **options: Unpack[ClientOptions]) -> None: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(self, *exc: object) -> None: ...
    def __enter__(self) -> SyncClient: ...
    def __exit__(self, *exc: object) -> None: ...
    async def connect(self) -> Self: ...
    async def close(self) -> None: ...
    async def list_tools(self, *, timeout: float | None = ...) -> list[Tool]: ...
    async def list_tools_page(self, cursor: str | None = None, *, timeout: float | None = ...) -> Page[Tool]: ...
    async def list_resources(self, *, timeout: float | None = ...) -> list[Resource]: ...
    async def list_resources_page(
        self, cursor: str | None = None, *, timeout: float | None = ...
    ) -> Page[Resource]: ...
    async def list_resource_templates(self, *, timeout: float | None = ...) -> list[ResourceTemplate]: ...
    async def list_resource_templates_page(
        self, cursor: str | None = None, *, timeout: float | None = ...
    ) -> Page[ResourceTemplate]: ...
    async def list_prompts(self, *, timeout: float | None = ...) -> list[Prompt]: ...
    async def list_prompts_page(self, cursor: str | None = None, *, timeout: float | None = ...) -> Page[Prompt]: ...
    @overload
    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        returns: type[_T],
        **options: Unpack[CallOptions],
    ) -> ToolResult[_T]: ...
    @overload
    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        returns: TypeForm[_T],
        **options: Unpack[CallOptions],
    ) -> ToolResult[_T]: ...
    @overload
    async def call_tool(
        self, name: str, arguments: Mapping[str, Any] | None = None, **options: Unpack[CallOptions]
    ) -> ToolResult: ...
    async def call_tool_round(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        answers: Mapping[str, Any] | None = None,
        state: str | None = None,
        **options: Unpack[CallOptions],
    ) -> ToolResult | InputRequired: ...
    async def read_resource(
        self, uri: str, variables: Mapping[str, Any] | None = None, *, timeout: float | None = ...
    ) -> ResourceResult: ...
    async def get_prompt(
        self, name: str, arguments: Mapping[str, str] | None = None, *, timeout: float | None = ...
    ) -> PromptResult: ...
    async def complete(
        self,
        target: str,
        argument: str,
        value: str,
        *,
        arguments: Mapping[str, str] | None = None,
        timeout: float | None = ...,
    ) -> Completion: ...
    def subscribe(
        self, *uris: str, tools: bool = False, prompts: bool = False, resources: bool = False
    ) -> Subscription: ...
    async def set_log_level(self, level: LogLevel, *, timeout: float | None = ...) -> None: ...
    def set_roots(self, roots: Sequence[str | PathLike[str] | Root]) -> None: ...
    async def ping(self, *, timeout: float | None = ...) -> float: ...
    async def request(
        self, method: str, params: Mapping[str, Any] | None = None, *, timeout: float | None = ...
    ) -> Any: ...
    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None: ...

class Subscription(AbstractAsyncContextManager["Subscription"], AsyncIterator[Change]):
    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None, /
    ) -> None: ...
    async def __anext__(self) -> Change: ...

class SyncClient(_Peer):
    def __init__(self, target: Target, **options: Unpack[ClientOptions]) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: object) -> None: ...
    def connect(self) -> Self: ...
    def close(self) -> None: ...
    def list_tools(self, *, timeout: float | None = ...) -> list[Tool]: ...
    def list_tools_page(self, cursor: str | None = None, *, timeout: float | None = ...) -> Page[Tool]: ...
    def list_resources(self, *, timeout: float | None = ...) -> list[Resource]: ...
    def list_resources_page(self, cursor: str | None = None, *, timeout: float | None = ...) -> Page[Resource]: ...
    def list_resource_templates(self, *, timeout: float | None = ...) -> list[ResourceTemplate]: ...
    def list_resource_templates_page(
        self, cursor: str | None = None, *, timeout: float | None = ...
    ) -> Page[ResourceTemplate]: ...
    def list_prompts(self, *, timeout: float | None = ...) -> list[Prompt]: ...
    def list_prompts_page(self, cursor: str | None = None, *, timeout: float | None = ...) -> Page[Prompt]: ...
    @overload
    def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        returns: type[_T],
        **options: Unpack[CallOptions],
    ) -> ToolResult[_T]: ...
    @overload
    def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        returns: TypeForm[_T],
        **options: Unpack[CallOptions],
    ) -> ToolResult[_T]: ...
    @overload
    def call_tool(
        self, name: str, arguments: Mapping[str, Any] | None = None, **options: Unpack[CallOptions]
    ) -> ToolResult: ...
    def call_tool_round(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        answers: Mapping[str, Any] | None = None,
        state: str | None = None,
        **options: Unpack[CallOptions],
    ) -> ToolResult | InputRequired: ...
    def read_resource(
        self, uri: str, variables: Mapping[str, Any] | None = None, *, timeout: float | None = ...
    ) -> ResourceResult: ...
    def get_prompt(
        self, name: str, arguments: Mapping[str, str] | None = None, *, timeout: float | None = ...
    ) -> PromptResult: ...
    def complete(
        self,
        target: str,
        argument: str,
        value: str,
        *,
        arguments: Mapping[str, str] | None = None,
        timeout: float | None = ...,
    ) -> Completion: ...
    def subscribe(
        self, *uris: str, tools: bool = False, prompts: bool = False, resources: bool = False
    ) -> SyncSubscription: ...
    def set_log_level(self, level: LogLevel, *, timeout: float | None = ...) -> None: ...
    def set_roots(self, roots: Sequence[str | PathLike[str] | Root]) -> None: ...
    def ping(self, *, timeout: float | None = ...) -> float: ...
    def request(self, method: str, params: Mapping[str, Any] | None = None, *, timeout: float | None = ...) -> Any: ...
    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None: ...

class SyncSubscription(AbstractContextManager["SyncSubscription"], Iterator[Change]):
    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None, /
    ) -> None: ...
    def __next__(self) -> Change: ...

class ClientGroup:
    def __init__(
        self, targets: Mapping[str, Target] | str | PathLike[str], **options: Unpack[ClientOptions]
    ) -> None: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(self, *exc: object) -> None: ...
    clients: Mapping[str, Client]
    errors: Mapping[str, McpError]
    async def list_tools(self) -> list[Tool]: ...
    async def list_resources(self) -> list[Resource]: ...
    async def list_resource_templates(self) -> list[ResourceTemplate]: ...
    async def list_prompts(self) -> list[Prompt]: ...
    async def call_tool(
        self, name: str, arguments: Mapping[str, Any] | None = None, **options: Unpack[CallOptions]
    ) -> ToolResult: ...
    async def read_resource(self, uri: str, *, server: str | None = None) -> ResourceResult: ...
    async def get_prompt(self, name: str, arguments: Mapping[str, str] | None = None) -> PromptResult: ...
    def subscribe(
        self,
        *uris: str,
        tools: bool = False,
        prompts: bool = False,
        resources: bool = False,
        server: str | None = None,
    ) -> Subscription: ...

class SyncClientGroup:
    def __init__(
        self, targets: Mapping[str, Target] | str | PathLike[str], **options: Unpack[ClientOptions]
    ) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: object) -> None: ...
    clients: Mapping[str, SyncClient]
    errors: Mapping[str, McpError]
    def list_tools(self) -> list[Tool]: ...
    def list_resources(self) -> list[Resource]: ...
    def list_resource_templates(self) -> list[ResourceTemplate]: ...
    def list_prompts(self) -> list[Prompt]: ...
    def call_tool(
        self, name: str, arguments: Mapping[str, Any] | None = None, **options: Unpack[CallOptions]
    ) -> ToolResult: ...
    def read_resource(self, uri: str, *, server: str | None = None) -> ResourceResult: ...
    def get_prompt(self, name: str, arguments: Mapping[str, str] | None = None) -> PromptResult: ...
    def subscribe(
        self,
        *uris: str,
        tools: bool = False,
        prompts: bool = False,
        resources: bool = False,
        server: str | None = None,
    ) -> SyncSubscription: ...
