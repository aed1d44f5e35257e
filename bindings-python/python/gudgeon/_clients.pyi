"""The clients' part of the package's signatures."""

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
    Resource,
    ResourceResult,
    ResourceTemplate,
    Root,
    SampleRequest,
    Tool,
    ToolResult,
)

_T = TypeVar("_T")

class Command:
    """A program to start as a server, with its environment and folder."""

    def __init__(
        self,
        *argv: str,
        env: Mapping[str, str] | None = None,
        cwd: str | PathLike[str] | None = None,
        restart: bool = False,
    ) -> None: ...

class Transport(Protocol):
    """How messages travel, where none of the built-in ways fits. `receive` gives None when the peer is gone."""

    async def receive(self) -> bytes | None: ...
    async def send(self, message: bytes, /) -> None: ...
    async def close(self) -> None: ...

Target: TypeAlias = Server[Any] | Transport | str | PathLike[str] | Sequence[str] | Command | Mapping[str, Any]

class Retry:
    """How often, and for how long, what was lost is tried again; for `retry=` of a client."""

    def __init__(self, *, attempts: int = 5, deadline: float = 30, only_safe: bool = True) -> None: ...

class ClientOptions(TypedDict, total=False):
    """Options of clients: `timeout` (60) and `max_timeout` (None) in seconds, `max_message` in bytes (16 MiB),
    `max_rounds` (10), `retry` ("safe"), `validate` (False). This version has no `auth`, and refuses it.
    """

    revision: Literal["auto", "0.7", "bare"] | Revision | Sequence[Revision]
    validate: bool
    retry: Literal["safe", "never"] | Retry
    timeout: float | None
    max_timeout: float | None
    headers: Mapping[str, str]
    auth: ClientAuth
    client_info: Implementation
    roots: Sequence[str | Root] | Callable[[], Any]
    on_elicit: Callable[[ElicitRequest], Any]
    on_url_done: Callable[[str], Any]
    on_sample: Callable[[SampleRequest], Any]
    on_log: Callable[[LogMessage], Any]
    on_progress: Callable[[Progress], Any]
    on_list_changed: Callable[[ListChanged], Any]
    on_reconnect: Callable[[Any], Any]
    max_rounds: int
    max_message: int

class CallOptions(TypedDict, total=False):
    """Options of one call: `timeout` in seconds without an answer or progress (the client's), `raise_on_error` (True)."""

    timeout: float | None
    on_progress: Callable[[Progress], Any]
    raise_on_error: bool
    meta: Mapping[str, Any]

class _Peer:
    """What the server said of itself; known once the client is connected."""

    server: Implementation
    revision: Revision | Literal["0.7", "bare"]
    capabilities: Mapping[str, Any]
    instructions: str | None
    session_id: str | None

class Client(_Peer):
    """A connection to one server, opened by `async with`, by `with` (blocking) or by `await connect()`."""

    def __init__(self, target: Target, /, **options: Unpack[ClientOptions]) -> None: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(self, *exc: object) -> None: ...
    def __enter__(self) -> SyncClient: ...
    def __exit__(self, *exc: object) -> None: ...
    async def connect(self) -> Self:
        """Starts or reaches the server and agrees on a revision with it. Connected already, it does nothing; a lost
        connection is made anew.
        """
    async def close(self) -> None:
        """Ends the connection, and the server's process with it. Closed already, it does nothing."""
    async def list_tools(self) -> list[Tool]:
        """All tools, all pages. Spec: Server Features › Tools."""
    async def list_tools_page(self, cursor: str | None = None, /) -> Page[Tool]:
        """One page of tools: a `Page` with `items` and `next_cursor`, which asks for the next. None: the first."""
    async def list_resources(self) -> list[Resource]:
        """All resources, all pages. Spec: Server Features › Resources."""
    async def list_resources_page(self, cursor: str | None = None, /) -> Page[Resource]:
        """One page of resources, as `list_tools_page`."""
    async def list_resource_templates(self) -> list[ResourceTemplate]:
        """All templates of resources, all pages. Spec: Server Features › Resources › Templates."""
    async def list_resource_templates_page(self, cursor: str | None = None, /) -> Page[ResourceTemplate]:
        """One page of templates, as `list_tools_page`."""
    async def list_prompts(self) -> list[Prompt]:
        """All prompts, all pages. Spec: Server Features › Prompts."""
    async def list_prompts_page(self, cursor: str | None = None, /) -> Page[Prompt]:
        """One page of prompts, as `list_tools_page`."""
    @overload
    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        /,
        *,
        returns: type[_T],
        **options: Unpack[CallOptions],
    ) -> ToolResult[_T]:
        """Calls a tool and gives its `ToolResult`; its `data` is the structured content, else the text."""
    @overload
    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        /,
        *,
        returns: TypeForm[_T],
        **options: Unpack[CallOptions],
    ) -> ToolResult[_T]: ...
    @overload
    async def call_tool(
        self, name: str, arguments: Mapping[str, Any] | None = None, /, **options: Unpack[CallOptions]
    ) -> ToolResult: ...
    async def call_tool_round(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        /,
        *,
        answers: Mapping[str, Any] | None = None,
        state: str | None = None,
        **options: Unpack[CallOptions],
    ) -> ToolResult | InputRequired:
        """One round by hand: an `InputRequired` comes back as it is, to be answered later, by another process if need
        be.
        """
    async def read_resource(
        self, uri: str, variables: Mapping[str, Any] | None = None, /, *, timeout: float | None = ...
    ) -> ResourceResult:
        """Reads a resource and gives its `ResourceResult`."""
    async def get_prompt(
        self, name: str, arguments: Mapping[str, str] | None = None, /, *, timeout: float | None = ...
    ) -> PromptResult:
        """A prompt with its arguments filled in, a `PromptResult`."""
    async def complete(
        self, target: str, argument: str, value: str, /, *, arguments: Mapping[str, str] | None = None
    ) -> Completion:
        """Suggestions for an argument of a prompt, or for a variable of a resource template: a `Completion`."""
    def subscribe(
        self, *uris: str, tools: bool = False, prompts: bool = False, resources: bool = False
    ) -> Subscription:
        """Changes of these resources, and of the lists that are asked for; the subscription is entered with `with`."""
    async def set_log_level(self, level: LogLevel, /) -> None:
        """From which level on the server's log is sent. Spec: Server Features › Utilities › Logging."""
    def set_roots(self, roots: Sequence[str | Root], /) -> None: ...
    async def ping(self) -> float:
        """How many seconds the server takes to answer. Spec: Base Protocol › Utilities › Ping."""
    async def request(
        self, method: str, params: Mapping[str, Any] | None = None, /, *, timeout: float | None = ...
    ) -> Any:
        """Sends any request, a vendor's own for one, and gives its result as JSON says it."""
    async def notify(self, method: str, params: Mapping[str, Any] | None = None, /) -> None:
        """Sends any notification; one of the specification's that the revision lacks is not sent."""

class Subscription(AbstractAsyncContextManager["Subscription"], AsyncIterator[Change]):
    """`async with client.subscribe(…) as changes: async for change in changes: …`"""

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None, /
    ) -> None: ...
    async def __anext__(self) -> Change: ...

class SyncClient(_Peer):
    """A connection to one server for programs without an event loop."""

    def __init__(self, target: Target, /, **options: Unpack[ClientOptions]) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: object) -> None: ...
    def connect(self) -> Self:
        """Starts or reaches the server and agrees on a revision with it. Connected already, it does nothing; a lost
        connection is made anew.
        """
    def close(self) -> None:
        """Ends the connection, and the server's process with it. Closed already, it does nothing."""
    def list_tools(self) -> list[Tool]:
        """All tools, all pages. Spec: Server Features › Tools."""
    def list_tools_page(self, cursor: str | None = None, /) -> Page[Tool]:
        """One page of tools: a `Page` with `items` and `next_cursor`, which asks for the next. None: the first."""
    def list_resources(self) -> list[Resource]:
        """All resources, all pages. Spec: Server Features › Resources."""
    def list_resources_page(self, cursor: str | None = None, /) -> Page[Resource]:
        """One page of resources, as `list_tools_page`."""
    def list_resource_templates(self) -> list[ResourceTemplate]:
        """All templates of resources, all pages. Spec: Server Features › Resources › Templates."""
    def list_resource_templates_page(self, cursor: str | None = None, /) -> Page[ResourceTemplate]:
        """One page of templates, as `list_tools_page`."""
    def list_prompts(self) -> list[Prompt]:
        """All prompts, all pages. Spec: Server Features › Prompts."""
    def list_prompts_page(self, cursor: str | None = None, /) -> Page[Prompt]:
        """One page of prompts, as `list_tools_page`."""
    @overload
    def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        /,
        *,
        returns: type[_T],
        **options: Unpack[CallOptions],
    ) -> ToolResult[_T]:
        """Calls a tool and gives its `ToolResult`; its `data` is the structured content, else the text."""
    @overload
    def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        /,
        *,
        returns: TypeForm[_T],
        **options: Unpack[CallOptions],
    ) -> ToolResult[_T]: ...
    @overload
    def call_tool(
        self, name: str, arguments: Mapping[str, Any] | None = None, /, **options: Unpack[CallOptions]
    ) -> ToolResult: ...
    def call_tool_round(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        /,
        *,
        answers: Mapping[str, Any] | None = None,
        state: str | None = None,
        **options: Unpack[CallOptions],
    ) -> ToolResult | InputRequired:
        """One round by hand: an `InputRequired` comes back as it is, to be answered later, by another process if need
        be.
        """
    def read_resource(
        self, uri: str, variables: Mapping[str, Any] | None = None, /, *, timeout: float | None = ...
    ) -> ResourceResult:
        """Reads a resource and gives its `ResourceResult`."""
    def get_prompt(
        self, name: str, arguments: Mapping[str, str] | None = None, /, *, timeout: float | None = ...
    ) -> PromptResult:
        """A prompt with its arguments filled in, a `PromptResult`."""
    def complete(
        self, target: str, argument: str, value: str, /, *, arguments: Mapping[str, str] | None = None
    ) -> Completion:
        """Suggestions for an argument of a prompt, or for a variable of a resource template: a `Completion`."""
    def subscribe(
        self, *uris: str, tools: bool = False, prompts: bool = False, resources: bool = False
    ) -> SyncSubscription:
        """Changes of these resources, and of the lists that are asked for; the subscription is entered with `with`."""
    def set_log_level(self, level: LogLevel, /) -> None:
        """From which level on the server's log is sent. Spec: Server Features › Utilities › Logging."""
    def set_roots(self, roots: Sequence[str | Root], /) -> None: ...
    def ping(self) -> float:
        """How many seconds the server takes to answer. Spec: Base Protocol › Utilities › Ping."""
    def request(self, method: str, params: Mapping[str, Any] | None = None, /, *, timeout: float | None = ...) -> Any:
        """Sends any request, a vendor's own for one, and gives its result as JSON says it."""
    def notify(self, method: str, params: Mapping[str, Any] | None = None, /) -> None:
        """Sends any notification; one of the specification's that the revision lacks is not sent."""

class SyncSubscription(AbstractContextManager["SyncSubscription"], Iterator[Change]):
    """`with client.subscribe(…) as changes: for change in changes: …`"""

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None, /
    ) -> None: ...
    def __next__(self) -> Change: ...

class ClientGroup:
    """Many servers behind one client. Tools and prompts carry their server's name in front; a server that is down is in `errors`."""

    def __init__(self, targets: Mapping[str, Target], /, **options: Unpack[ClientOptions]) -> None: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(self, *exc: object) -> None: ...
    clients: Mapping[str, Client]
    errors: Mapping[str, McpError]
    async def list_tools(self) -> list[Tool]:
        """All tools of all servers; each is called `<server>_<tool>`."""
    async def list_resources(self) -> list[Resource]:
        """All resources of all servers, under their own URIs."""
    async def list_resource_templates(self) -> list[ResourceTemplate]:
        """All templates of all servers."""
    async def list_prompts(self) -> list[Prompt]:
        """All prompts of all servers; each is called `<server>_<prompt>`."""
    async def call_tool(
        self, name: str, arguments: Mapping[str, Any] | None = None, /, **options: Unpack[CallOptions]
    ) -> ToolResult:
        """`Client.call_tool` with `<server>_<tool>` as name. A server that was not reached raises what it failed of."""
    async def read_resource(self, uri: str, /, *, server: str | None = None) -> ResourceResult:
        """From the server that is named, else from the first one that has it. None has it: ResourceNotFound."""
    async def get_prompt(self, name: str, arguments: Mapping[str, str] | None = None, /) -> PromptResult:
        """`Client.get_prompt` with `<server>_<prompt>` as name."""

class SyncClientGroup:
    """A `ClientGroup` for programs without an event loop."""

    def __init__(self, targets: Mapping[str, Target], /, **options: Unpack[ClientOptions]) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: object) -> None: ...
    clients: Mapping[str, SyncClient]
    errors: Mapping[str, McpError]
    def list_tools(self) -> list[Tool]:
        """All tools of all servers; each is called `<server>_<tool>`."""
    def list_resources(self) -> list[Resource]:
        """All resources of all servers, under their own URIs."""
    def list_resource_templates(self) -> list[ResourceTemplate]:
        """All templates of all servers."""
    def list_prompts(self) -> list[Prompt]:
        """All prompts of all servers; each is called `<server>_<prompt>`."""
    def call_tool(
        self, name: str, arguments: Mapping[str, Any] | None = None, /, **options: Unpack[CallOptions]
    ) -> ToolResult:
        """`SyncClient.call_tool` with `<server>_<tool>` as name. A server that was not reached raises what it failed
        of.
        """
    def read_resource(self, uri: str, /, *, server: str | None = None) -> ResourceResult:
        """From the server that is named, else from the first one that has it. None has it: ResourceNotFound."""
    def get_prompt(self, name: str, arguments: Mapping[str, str] | None = None, /) -> PromptResult:
        """`SyncClient.get_prompt` with `<server>_<prompt>` as name."""
