"""The Model Context Protocol: servers and clients, every revision, on one Rust core."""

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping, MutableMapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from os import PathLike
from types import TracebackType
from typing import Any, Generic, Literal, Protocol, TypeAlias, overload

from typing_extensions import ParamSpec, Self, TypedDict, TypeForm, TypeVar, TypeVarTuple, Unpack

from . import ask as ask
from . import errors as errors
from . import testing as testing
from .ask import Question
from .auth import Auth, ClientAuth
from .errors import (
    Cancelled as Cancelled,
)
from .errors import (
    Declined as Declined,
)
from .errors import (
    McpError as McpError,
)
from .errors import (
    ProtocolError as ProtocolError,
)
from .errors import (
    ResourceNotFound as ResourceNotFound,
)
from .errors import (
    ToolError as ToolError,
)
from .errors import (
    UrlElicitationRequired as UrlElicitationRequired,
)
from .types import (
    Accepted as Accepted,
)
from .types import (
    Annotations as Annotations,
)
from .types import (
    Audio as Audio,
)
from .types import (
    Change as Change,
)
from .types import (
    ClientInfo as ClientInfo,
)
from .types import (
    Completion as Completion,
)
from .types import (
    Content as Content,
)
from .types import (
    ElicitRequest as ElicitRequest,
)
from .types import (
    EmbeddedResource as EmbeddedResource,
)
from .types import (
    File as File,
)
from .types import (
    Icon as Icon,
)
from .types import (
    Image as Image,
)
from .types import (
    Implementation as Implementation,
)
from .types import (
    InputRequired as InputRequired,
)
from .types import (
    ListChanged as ListChanged,
)
from .types import (
    LogMessage as LogMessage,
)
from .types import (
    Message as Message,
)
from .types import (
    Other as Other,
)
from .types import (
    Page as Page,
)
from .types import (
    Principal as Principal,
)
from .types import (
    Progress as Progress,
)
from .types import (
    Prompt as Prompt,
)
from .types import (
    PromptArgument as PromptArgument,
)
from .types import (
    PromptResult as PromptResult,
)
from .types import (
    Resource as Resource,
)
from .types import (
    ResourceContents as ResourceContents,
)
from .types import (
    ResourceLink as ResourceLink,
)
from .types import (
    ResourceResult as ResourceResult,
)
from .types import (
    ResourceTemplate as ResourceTemplate,
)
from .types import (
    Root as Root,
)
from .types import (
    RootsRequest as RootsRequest,
)
from .types import (
    SampleOptions as SampleOptions,
)
from .types import (
    SampleRequest as SampleRequest,
)
from .types import (
    SampleResult as SampleResult,
)
from .types import (
    Text as Text,
)
from .types import (
    Tool as Tool,
)
from .types import (
    ToolAnnotations as ToolAnnotations,
)
from .types import (
    ToolOutcome as ToolOutcome,
)
from .types import (
    ToolResult as ToolResult,
)
from .types import (
    ToolUse as ToolUse,
)
from .types import (
    assistant as assistant,
)
from .types import (
    user as user,
)

_T = TypeVar("_T")
_F = TypeVar("_F", bound=Callable[..., Any])
_M = TypeVar("_M", bound=Callable[[Request, Next], Awaitable[Any]])
_L = TypeVar("_L", default=Any)
_D = TypeVar("_D", default=Any)
_P = ParamSpec("_P")
_Ts = TypeVarTuple("_Ts")

Revision: TypeAlias = Literal["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]
LogLevel: TypeAlias = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]

# ── Server ────────────────────────────────────────────────────────────────────────────────────────────

class HttpOptions(TypedDict, total=False):
    """How an HTTP address is served: limits, timeouts in seconds, and who may call."""

    public_url: str
    allowed_origins: Sequence[str]
    allowed_hosts: Sequence[str]
    cors: bool | Sequence[str]
    legacy_sse: bool
    max_body: int
    max_sessions: int
    max_streams: int
    max_in_flight: int
    max_headers: int
    header_timeout: float
    idle_timeout: float
    session_idle: float
    keep_alive: float
    event_store: bool
    tls: tuple[PathLike[str] | str, PathLike[str] | str]
    shutdown_grace: float

class ToolOptions(TypedDict, total=False):
    title: str
    description: str
    annotations: ToolAnnotations
    icons: Sequence[Icon]
    meta: Mapping[str, Any]
    tags: Sequence[str]
    timeout: float
    concurrency: int
    thread: bool
    replay: Literal["allow", "forbid"]
    output: Any
    expose_errors: tuple[type[Exception], ...]
    scopes: Sequence[str]
    visible: Callable[[Principal | None], bool]
    enabled: bool

class ResourceOptions(TypedDict, total=False):
    name: str
    title: str
    description: str
    mime_type: str
    annotations: Annotations
    icons: Sequence[Icon]
    meta: Mapping[str, Any]
    tags: Sequence[str]
    size: int
    ttl: float
    cache_scope: Literal["public", "private"]
    cache: float
    timeout: float
    thread: bool
    scopes: Sequence[str]
    visible: Callable[[Principal | None], bool]
    enabled: bool

class PromptOptions(TypedDict, total=False):
    title: str
    description: str
    icons: Sequence[Icon]
    meta: Mapping[str, Any]
    tags: Sequence[str]
    timeout: float
    thread: bool
    scopes: Sequence[str]
    visible: Callable[[Principal | None], bool]
    enabled: bool

class Server(Generic[_L]):
    @overload
    def __init__(
        self: Server[Any],
        name: str,
        /,
        **options: Unpack[ServerOptions],
    ) -> None: ...
    @overload
    def __init__(
        self,
        name: str,
        /,
        *,
        lifespan: Callable[[Server[Any]], AbstractAsyncContextManager[_L]]
        | Callable[[Server[Any]], AbstractContextManager[_L]],
        **options: Unpack[ServerOptions],
    ) -> None: ...

    name: str

    @overload
    def tool(self, fn: _F, /, *, name: str = ..., **options: Unpack[ToolOptions]) -> _F: ...
    @overload
    def tool(self, name: str | None = None, /, **options: Unpack[ToolOptions]) -> Callable[[_F], _F]: ...
    @overload
    def tool(self, *, name: str, **options: Unpack[ToolOptions]) -> Callable[[_F], _F]: ...
    def resource(self, uri: str, /, **options: Unpack[ResourceOptions]) -> Callable[[_F], _F]: ...
    @overload
    def prompt(self, fn: _F, /, *, name: str = ..., **options: Unpack[PromptOptions]) -> _F: ...
    @overload
    def prompt(self, name: str | None = None, /, **options: Unpack[PromptOptions]) -> Callable[[_F], _F]: ...
    @overload
    def prompt(self, *, name: str, **options: Unpack[PromptOptions]) -> Callable[[_F], _F]: ...
    def complete(self, target: str, argument: str, /) -> Callable[[_F], _F]: ...
    def method(self, name: str, /) -> Callable[[_F], _F]: ...
    def notification(self, name: str, /) -> Callable[[_F], _F]: ...
    def on_roots_changed(self, fn: _F, /) -> _F: ...
    @overload
    def middleware(self, fn: _M, /, *, on: str | Sequence[str] = "*") -> _M: ...
    @overload
    def middleware(self, *, on: str | Sequence[str]) -> Callable[[_M], _M]: ...
    def override(self, dependency: Callable[..., _T], fake: Callable[..., _T], /) -> AbstractContextManager[None]: ...
    def mount(self, prefix: str, other: Server[Any], /) -> None: ...

    tools: Registry[Tool]
    resources: Registry[Resource]
    resource_templates: Registry[ResourceTemplate]
    prompts: Registry[Prompt]

    def notify_updated(self, uri: str, /) -> None: ...
    def notify_url_done(self, elicitation_id: str, /) -> None: ...
    def run(self, at: str = "stdio", /, *, workers: int = 1, **http: Unpack[HttpOptions]) -> None: ...
    async def serve(self, at: str | Transport = "stdio", /, **http: Unpack[HttpOptions]) -> None: ...
    def listen(self, at: str, /, **http: Unpack[HttpOptions]) -> AbstractAsyncContextManager[Listening]: ...
    async def aclose(self) -> None: ...
    def asgi(self, **http: Unpack[HttpOptions]) -> Callable[..., Coroutine[Any, Any, None]]: ...

class ServerOptions(TypedDict, total=False):
    version: str
    title: str
    instructions: str
    website_url: str
    icons: Sequence[Icon]
    auth: Auth | Sequence[Auth]
    page_size: int
    request_state_keys: Sequence[bytes | str]
    expose_errors: tuple[type[Exception], ...]
    debug: bool
    dialects: Sequence[Literal["0.7", "bare"]]
    revisions: Sequence[Revision]
    store: str
    schema_profile: Literal["portable", "full"]
    list_ttl: float
    max_message: int
    max_request_state: int
    park_limit: int
    park_threads: int
    park_ttl: float
    state_ttl: float
    io_threads: int
    threads: int

class Registry(Generic[_T]):
    """The tools, resources, templates or prompts of a server. Clients are told of every change."""

    def __iter__(self) -> Iterator[_T]: ...
    def __len__(self) -> int: ...
    def __contains__(self, name: str) -> bool: ...
    def __getitem__(self, name: str) -> _T: ...
    def remove(self, name: str, /) -> None: ...
    def update(self, name: str, /, **changes: Any) -> None: ...
    def enable(self, *names: str, tags: Sequence[str] = ()) -> None: ...
    def disable(self, *names: str, tags: Sequence[str] = ()) -> None: ...

class Listening:
    url: str
    async def close(self) -> None: ...

# ── Context ───────────────────────────────────────────────────────────────────────────────────────────

class _Facts(Generic[_L]):
    request_id: str | int
    session_id: str | None
    revision: Revision | Literal["0.7", "bare"]
    headers: Mapping[str, str]
    principal: Principal | None
    client: ClientInfo
    meta: Mapping[str, Any]
    server: Server[_L]
    lifespan: _L
    session: MutableMapping[str, Any]
    state: dict[str, Any]
    cancelled: bool
    def answer(self, question: Question[_T], /) -> _T | None: ...

class Context(_Facts[_L]):
    """What an `async def` handler knows of its call, tells while it runs, and asks the client."""

    def progress(
        self, progress: float, /, total: float | None = None, message: str | None = None
    ) -> Awaitable[None]: ...
    def log(self, level: LogLevel, data: Any, /, *, logger: str | None = None) -> Awaitable[None]: ...
    def debug(self, data: Any, /, **extra: Any) -> Awaitable[None]: ...
    def info(self, data: Any, /, **extra: Any) -> Awaitable[None]: ...
    def warning(self, data: Any, /, **extra: Any) -> Awaitable[None]: ...
    def error(self, data: Any, /, **extra: Any) -> Awaitable[None]: ...
    @overload
    async def elicit(self, message: str, type: type[_T], /, *, key: str | None = None, default: _T = ...) -> _T: ...
    @overload
    async def elicit(self, message: str, type: TypeForm[_T], /, *, key: str | None = None, default: _T = ...) -> _T: ...
    @overload
    async def elicit(self, message: str, schema: Any, /, *, key: str | None = None) -> Any: ...
    @overload
    async def try_elicit(
        self, message: str, type: type[_T], /, *, key: str | None = None, default: _T = ...
    ) -> Accepted[_T] | Declined | Cancelled: ...
    @overload
    async def try_elicit(
        self, message: str, type: TypeForm[_T], /, *, key: str | None = None, default: _T = ...
    ) -> Accepted[_T] | Declined | Cancelled: ...
    @overload
    async def try_elicit(
        self, message: str, schema: Any, /, *, key: str | None = None
    ) -> Accepted[Any] | Declined | Cancelled: ...
    async def elicit_url(self, message: str, url: str, /, *, key: str | None = None) -> str: ...
    async def sample(
        self, messages: str | Sequence[str | Message], /, *, key: str | None = None, **options: Unpack[SampleOptions]
    ) -> SampleResult: ...
    async def roots(self, *, key: str | None = None) -> list[Root]: ...
    @overload
    async def ask(self, q1: Question[_T], /) -> tuple[_T]: ...
    @overload
    async def ask(self, q1: Question[_A], q2: Question[_B], /) -> tuple[_A, _B]: ...
    @overload
    async def ask(self, q1: Question[_A], q2: Question[_B], q3: Question[_C], /) -> tuple[_A, _B, _C]: ...
    @overload
    async def ask(
        self, q1: Question[_A], q2: Question[_B], q3: Question[_C], q4: Question[_E], /
    ) -> tuple[_A, _B, _C, _E]: ...
    @overload
    async def ask(self, *questions: Question[Any]) -> tuple[Any, ...]: ...
    @overload
    async def step(
        self, key: str, fn: Callable[_P, Coroutine[Any, Any, _T]], /, *args: _P.args, **kwargs: _P.kwargs
    ) -> _T: ...
    @overload
    async def step(self, key: str, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> _T: ...
    async def read_resource(self, uri: str, /) -> ResourceResult: ...
    async def close_stream(self, *, retry: float | None = None) -> None: ...

_A = TypeVar("_A")
_B = TypeVar("_B")
_C = TypeVar("_C")
_E = TypeVar("_E")

class SyncContext(_Facts[_L]):
    """What a `def` handler knows, tells and asks; every method blocks until it is done."""

    def progress(self, progress: float, /, total: float | None = None, message: str | None = None) -> None: ...
    def log(self, level: LogLevel, data: Any, /, *, logger: str | None = None) -> None: ...
    def debug(self, data: Any, /, **extra: Any) -> None: ...
    def info(self, data: Any, /, **extra: Any) -> None: ...
    def warning(self, data: Any, /, **extra: Any) -> None: ...
    def error(self, data: Any, /, **extra: Any) -> None: ...
    @overload
    def elicit(self, message: str, type: type[_T], /, *, key: str | None = None, default: _T = ...) -> _T: ...
    @overload
    def elicit(self, message: str, type: TypeForm[_T], /, *, key: str | None = None, default: _T = ...) -> _T: ...
    @overload
    def elicit(self, message: str, schema: Any, /, *, key: str | None = None) -> Any: ...
    @overload
    def try_elicit(
        self, message: str, type: type[_T], /, *, key: str | None = None, default: _T = ...
    ) -> Accepted[_T] | Declined | Cancelled: ...
    @overload
    def try_elicit(
        self, message: str, type: TypeForm[_T], /, *, key: str | None = None, default: _T = ...
    ) -> Accepted[_T] | Declined | Cancelled: ...
    @overload
    def try_elicit(
        self, message: str, schema: Any, /, *, key: str | None = None
    ) -> Accepted[Any] | Declined | Cancelled: ...
    def elicit_url(self, message: str, url: str, /, *, key: str | None = None) -> str: ...
    def sample(
        self, messages: str | Sequence[str | Message], /, *, key: str | None = None, **options: Unpack[SampleOptions]
    ) -> SampleResult: ...
    def roots(self, *, key: str | None = None) -> list[Root]: ...
    @overload
    def ask(self, q1: Question[_T], /) -> tuple[_T]: ...
    @overload
    def ask(self, q1: Question[_A], q2: Question[_B], /) -> tuple[_A, _B]: ...
    @overload
    def ask(self, q1: Question[_A], q2: Question[_B], q3: Question[_C], /) -> tuple[_A, _B, _C]: ...
    @overload
    def ask(
        self, q1: Question[_A], q2: Question[_B], q3: Question[_C], q4: Question[_E], /
    ) -> tuple[_A, _B, _C, _E]: ...
    @overload
    def ask(self, *questions: Question[Any]) -> tuple[Any, ...]: ...
    def step(self, key: str, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> _T: ...
    def read_resource(self, uri: str, /) -> ResourceResult: ...
    def close_stream(self, *, retry: float | None = None) -> None: ...

def current_context() -> Context: ...
def current_sync_context() -> SyncContext: ...

class Request:
    """A request on its way to its handler, as middleware gets it."""

    method: str
    params: Mapping[str, Any]
    ctx: Context

Next: TypeAlias = Callable[[Request], Awaitable[Any]]

class Header:
    """Beside a type in `Annotated`: HTTP clients repeat the argument in the header `Mcp-Param-<name>`."""

    def __init__(self, name: str, /) -> None: ...

class Depends:
    def __init__(self, provider: Callable[..., Any], /, *, cached: bool = True) -> None: ...

# ── Client ────────────────────────────────────────────────────────────────────────────────────────────

class Command:
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
    def __init__(self, *, attempts: int = 5, deadline: float = 30, only_safe: bool = True) -> None: ...

class ClientOptions(TypedDict, total=False):
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
    timeout: float | None
    on_progress: Callable[[Progress], Any]
    raise_on_error: bool
    meta: Mapping[str, Any]

class _Peer:
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
    async def connect(self) -> Self: ...
    async def close(self) -> None: ...
    async def list_tools(self) -> list[Tool]: ...
    async def list_tools_page(self, cursor: str | None = None, /) -> Page[Tool]: ...
    async def list_resources(self) -> list[Resource]: ...
    async def list_resources_page(self, cursor: str | None = None, /) -> Page[Resource]: ...
    async def list_resource_templates(self) -> list[ResourceTemplate]: ...
    async def list_resource_templates_page(self, cursor: str | None = None, /) -> Page[ResourceTemplate]: ...
    async def list_prompts(self) -> list[Prompt]: ...
    async def list_prompts_page(self, cursor: str | None = None, /) -> Page[Prompt]: ...
    @overload
    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        /,
        *,
        returns: type[_T],
        **options: Unpack[CallOptions],
    ) -> ToolResult[_T]: ...
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
    ) -> ToolResult | InputRequired: ...
    async def read_resource(
        self, uri: str, variables: Mapping[str, Any] | None = None, /, *, timeout: float | None = ...
    ) -> ResourceResult: ...
    async def get_prompt(
        self, name: str, arguments: Mapping[str, str] | None = None, /, *, timeout: float | None = ...
    ) -> PromptResult: ...
    async def complete(
        self, target: str, argument: str, value: str, /, *, arguments: Mapping[str, str] | None = None
    ) -> Completion: ...
    def subscribe(
        self, *uris: str, tools: bool = False, prompts: bool = False, resources: bool = False
    ) -> Subscription: ...
    async def set_log_level(self, level: LogLevel, /) -> None: ...
    def set_roots(self, roots: Sequence[str | Root], /) -> None: ...
    async def ping(self) -> float: ...
    async def request(
        self, method: str, params: Mapping[str, Any] | None = None, /, *, timeout: float | None = ...
    ) -> Any: ...
    async def notify(self, method: str, params: Mapping[str, Any] | None = None, /) -> None: ...

class Subscription(AbstractAsyncContextManager["Subscription"], AsyncIterator[Change]):
    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None, /
    ) -> None: ...
    async def __anext__(self) -> Change: ...

class SyncClient(_Peer):
    """A connection to one server for programs without an event loop."""

    def __init__(self, target: Target, /, **options: Unpack[ClientOptions]) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: object) -> None: ...
    def connect(self) -> Self: ...
    def close(self) -> None: ...
    def list_tools(self) -> list[Tool]: ...
    def list_tools_page(self, cursor: str | None = None, /) -> Page[Tool]: ...
    def list_resources(self) -> list[Resource]: ...
    def list_resources_page(self, cursor: str | None = None, /) -> Page[Resource]: ...
    def list_resource_templates(self) -> list[ResourceTemplate]: ...
    def list_resource_templates_page(self, cursor: str | None = None, /) -> Page[ResourceTemplate]: ...
    def list_prompts(self) -> list[Prompt]: ...
    def list_prompts_page(self, cursor: str | None = None, /) -> Page[Prompt]: ...
    @overload
    def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        /,
        *,
        returns: type[_T],
        **options: Unpack[CallOptions],
    ) -> ToolResult[_T]: ...
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
    ) -> ToolResult | InputRequired: ...
    def read_resource(
        self, uri: str, variables: Mapping[str, Any] | None = None, /, *, timeout: float | None = ...
    ) -> ResourceResult: ...
    def get_prompt(
        self, name: str, arguments: Mapping[str, str] | None = None, /, *, timeout: float | None = ...
    ) -> PromptResult: ...
    def complete(
        self, target: str, argument: str, value: str, /, *, arguments: Mapping[str, str] | None = None
    ) -> Completion: ...
    def subscribe(
        self, *uris: str, tools: bool = False, prompts: bool = False, resources: bool = False
    ) -> SyncSubscription: ...
    def set_log_level(self, level: LogLevel, /) -> None: ...
    def set_roots(self, roots: Sequence[str | Root], /) -> None: ...
    def ping(self) -> float: ...
    def request(
        self, method: str, params: Mapping[str, Any] | None = None, /, *, timeout: float | None = ...
    ) -> Any: ...
    def notify(self, method: str, params: Mapping[str, Any] | None = None, /) -> None: ...

class SyncSubscription(AbstractContextManager["SyncSubscription"], Iterator[Change]):
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
    async def list_tools(self) -> list[Tool]: ...
    async def list_resources(self) -> list[Resource]: ...
    async def list_resource_templates(self) -> list[ResourceTemplate]: ...
    async def list_prompts(self) -> list[Prompt]: ...
    async def call_tool(
        self, name: str, arguments: Mapping[str, Any] | None = None, /, **options: Unpack[CallOptions]
    ) -> ToolResult: ...
    async def read_resource(self, uri: str, /, *, server: str | None = None) -> ResourceResult: ...
    async def get_prompt(self, name: str, arguments: Mapping[str, str] | None = None, /) -> PromptResult: ...

class SyncClientGroup:
    """A `ClientGroup` for programs without an event loop."""

    def __init__(self, targets: Mapping[str, Target], /, **options: Unpack[ClientOptions]) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: object) -> None: ...
    clients: Mapping[str, SyncClient]
    errors: Mapping[str, McpError]
    def list_tools(self) -> list[Tool]: ...
    def list_resources(self) -> list[Resource]: ...
    def list_resource_templates(self) -> list[ResourceTemplate]: ...
    def list_prompts(self) -> list[Prompt]: ...
    def call_tool(
        self, name: str, arguments: Mapping[str, Any] | None = None, /, **options: Unpack[CallOptions]
    ) -> ToolResult: ...
    def read_resource(self, uri: str, /, *, server: str | None = None) -> ResourceResult: ...
    def get_prompt(self, name: str, arguments: Mapping[str, str] | None = None, /) -> PromptResult: ...
