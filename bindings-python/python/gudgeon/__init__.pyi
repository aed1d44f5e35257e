from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, MutableMapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from os import PathLike
from pathlib import Path
from typing import Any, Generic, Literal, TypeAlias, overload

from typing_extensions import ParamSpec, TypedDict, TypeForm, TypeVar, TypeVarTuple, Unpack

from . import ask as ask, errors as errors, testing as testing
from .ask import Question
from .auth import Auth, RequestInfo
from .client import (
    CallOptions as CallOptions,
    Client as Client,
    ClientGroup as ClientGroup,
    ClientOptions as ClientOptions,
    ClientRequest as ClientRequest,
    Command as Command,
    Retry as Retry,
    Subscription as Subscription,
    SyncClient as SyncClient,
    SyncClientGroup as SyncClientGroup,
    SyncSubscription as SyncSubscription,
    Target as Target,
    Transport as Transport,
    Upstream as Upstream,
)
from .errors import (
    AuthError as AuthError,
    CallTimeout as CallTimeout,
    Cancelled as Cancelled,
    Declined as Declined,
    McpError as McpError,
    ProtocolError as ProtocolError,
    ResourceNotFound as ResourceNotFound,
    ToolError as ToolError,
    UrlElicitationRequired as UrlElicitationRequired,
)
from .types import (
    Accepted as Accepted,
    Annotations as Annotations,
    Audio as Audio,
    Change as Change,
    ClientInfo as ClientInfo,
    Completion as Completion,
    Content as Content,
    ElicitRequest as ElicitRequest,
    EmbeddedResource as EmbeddedResource,
    File as File,
    HttpRequest as HttpRequest,
    HttpResponse as HttpResponse,
    Icon as Icon,
    Image as Image,
    Implementation as Implementation,
    InputRequired as InputRequired,
    ListChanged as ListChanged,
    LogMessage as LogMessage,
    Message as Message,
    Other as Other,
    Page as Page,
    Principal as Principal,
    Progress as Progress,
    Prompt as Prompt,
    PromptArgument as PromptArgument,
    PromptResult as PromptResult,
    Reconnected as Reconnected,
    Resource as Resource,
    ResourceContents as ResourceContents,
    ResourceLink as ResourceLink,
    ResourceResult as ResourceResult,
    ResourceTemplate as ResourceTemplate,
    Root as Root,
    RootsRequest as RootsRequest,
    SampleOptions as SampleOptions,
    SampleRequest as SampleRequest,
    SampleResult as SampleResult,
    ServerInfo as ServerInfo,
    Store as Store,
    Text as Text,
    Tool as Tool,
    ToolAnnotations as ToolAnnotations,
    ToolOutcome as ToolOutcome,
    ToolResult as ToolResult,
    ToolUse as ToolUse,
    assistant as assistant,
    content_from_dict as content_from_dict,
    user as user,
)

__version__: str

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
    """Options of serving an HTTP address: limits, timeouts in seconds, and the callers that are allowed."""

    public_url: str
    allowed_origins: Sequence[str]
    allowed_hosts: Sequence[str]
    cors: bool | Sequence[str]
    legacy_sse: bool
    health: str
    ready: str
    metrics: str
    max_body: int
    sessions: Literal["sealed", "none"]
    max_sessions: int
    max_streams: int
    max_in_flight: int
    max_headers: int
    header_timeout: float
    idle_timeout: float
    body_timeout: float
    session_idle: float
    keep_alive: float
    event_store: bool
    tls: tuple[PathLike[str] | str, PathLike[str] | str]
    trusted_proxies: Sequence[str]
    proxy_protocol: bool
    shutdown_grace: float
    drain_delay: float

class ToolOptions(TypedDict, total=False):
    """Options of `Server.tool`; `timeout` in seconds (default: none), `concurrency` in calls at once (default: no
    limit); neither counts while a handler waits for its client's answer.
    """

    title: str
    description: str
    annotations: ToolAnnotations | Mapping[str, Any]
    icons: Sequence[Icon | Mapping[str, Any]]
    meta: Mapping[str, Any]
    tags: Sequence[str]
    timeout: float
    concurrency: int
    thread: bool
    replay: Literal["allow", "forbid"]
    input: Mapping[str, Any]
    output: Any
    expose_errors: tuple[type[Exception], ...]
    unknown_arguments: Literal["refuse", "ignore"]
    convert_arguments: bool
    schema_profile: Literal["portable", "full"]
    scopes: Sequence[str]
    visible: Callable[[Principal | None], bool]
    enabled: bool

class ResourceOptions(TypedDict, total=False):
    """Options of `Server.resource`; `timeout`, `ttl` and `cache` in seconds, `size` in bytes (default: none of them)."""

    name: str
    title: str
    description: str
    mime_type: str
    annotations: Annotations | Mapping[str, Any]
    icons: Sequence[Icon | Mapping[str, Any]]
    meta: Mapping[str, Any]
    tags: Sequence[str]
    size: int
    ttl: float
    cache_scope: Literal["public", "private"]
    cache: float
    paths: Sequence[str]
    unchecked_paths: Sequence[str]
    timeout: float
    thread: bool
    scopes: Sequence[str]
    visible: Callable[[Principal | None], bool]
    enabled: bool

class PromptOptions(TypedDict, total=False):
    """Options of `Server.prompt`; `timeout` in seconds (default: none)."""

    title: str
    description: str
    icons: Sequence[Icon | Mapping[str, Any]]
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
        **options: Unpack[ServerOptions],
    ) -> None: ...
    @overload
    def __init__(
        self,
        name: str,
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
    def resource(self, uri: str, **options: Unpack[ResourceOptions]) -> Callable[[_F], _F]: ...
    @overload
    def prompt(self, fn: _F, /, *, name: str = ..., **options: Unpack[PromptOptions]) -> _F: ...
    @overload
    def prompt(self, name: str | None = None, /, **options: Unpack[PromptOptions]) -> Callable[[_F], _F]: ...
    @overload
    def prompt(self, *, name: str, **options: Unpack[PromptOptions]) -> Callable[[_F], _F]: ...
    def complete(self, target: str, argument: str) -> Callable[[_F], _F]: ...
    def method(self, name: str) -> Callable[[_F], _F]: ...
    def notification(self, name: str) -> Callable[[_F], _F]: ...
    def on_roots_changed(self, fn: _F) -> _F: ...
    def route(
        self, path: str, *, methods: Sequence[str] = ("GET",), auth: bool = False, thread: bool | None = None
    ) -> Callable[[_F], _F]: ...
    @overload
    def middleware(self, fn: _M, /, *, on: str | Sequence[str] = "*") -> _M: ...
    @overload
    def middleware(self, *, on: str | Sequence[str]) -> Callable[[_M], _M]: ...
    def override(self, dependency: Callable[..., _T], fake: Callable[..., _T]) -> AbstractContextManager[None]: ...
    @overload
    def mount(self, prefix: str, other: Server[Any] | Upstream) -> None: ...
    @overload
    def mount(self, other: Server[Any] | Upstream, prefix: str) -> None: ...

    tools: Registry[Tool]
    resources: Registry[Resource]
    resource_templates: Registry[ResourceTemplate]
    prompts: Registry[Prompt]

    def notify_updated(self, uri: str) -> None: ...
    def notify_url_done(self, elicitation_id: str) -> None: ...
    def run(
        self,
        at: str = "stdio",
        *,
        transport: Literal["stdio"] | None = None,
        workers: int = 1,
        **http: Unpack[HttpOptions],
    ) -> None: ...
    async def serve(
        self,
        at: str | Transport = "stdio",
        *,
        transport: Literal["stdio"] | None = None,
        **http: Unpack[HttpOptions],
    ) -> None: ...
    def listen(self, at: str, **http: Unpack[HttpOptions]) -> AbstractAsyncContextManager[Listening]: ...
    async def aclose(self) -> None: ...
    def asgi(
        self,
        *,
        principal: Callable[[RequestInfo], Principal | Awaitable[Principal | None] | None] | None = None,
        **http: Unpack[HttpOptions],
    ) -> Callable[..., Coroutine[Any, Any, None]]: ...

class ServerOptions(TypedDict, total=False):
    """Options of `Server`: `page_size` in entries (100), `list_ttl` in seconds, `max_message` in bytes (16 MiB),
    `debug` (False), `revisions` (all), `schema_profile` ("portable"), `suspended_limit` in handlers (1,000), `suspended_threads`
    (32), `suspended_ttl` (300) and `state_ttl` (900) in seconds, `max_request_state` in bytes (256 KiB).
    """

    version: str
    title: str
    instructions: str
    auth: Auth | Sequence[Auth]
    store: str | Store
    scope_implies: Mapping[str, Sequence[str]]
    hide_unauthorized: bool
    website_url: str
    icons: Sequence[Icon | Mapping[str, Any]]
    extensions: Mapping[str, Mapping[str, Any]]
    experimental: Mapping[str, Mapping[str, Any]]
    page_size: int
    request_state_keys: Sequence[bytes | str]
    request_state_keys_file: str | PathLike[str]
    expose_errors: tuple[type[Exception], ...]
    debug: bool
    dialects: Sequence[Literal["0.7", "bare"]]
    revisions: Sequence[Revision]
    schema_profile: Literal["portable", "full"]
    convert_arguments: bool
    list_ttl: float
    max_message: int
    max_request_state: int
    suspended_limit: int
    suspended_threads: int
    suspended_ttl: float
    state_ttl: float
    io_threads: int
    threads: int

class Registry(Generic[_T]):
    def __iter__(self) -> Iterator[_T]: ...
    def __len__(self) -> int: ...
    def __contains__(self, name: str) -> bool: ...
    def __getitem__(self, name: str) -> _T: ...
    def remove(self, name: str) -> None: ...
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
    client_capabilities: Mapping[str, Any]
    meta: Mapping[str, Any]
    server: Server[_L]
    lifespan: _L
    session: MutableMapping[str, Any]
    state: dict[str, Any]
    cancelled: bool
    def answer(self, question: Question[_T]) -> _T | None: ...

class Context(_Facts[_L]):
    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> Awaitable[None]: ...
    def log(self, level: LogLevel, data: Any, *, logger: str | None = None) -> Awaitable[None]: ...
    def debug(self, data: Any, /, **extra: Any) -> Awaitable[None]: ...
    def info(self, data: Any, /, **extra: Any) -> Awaitable[None]: ...
    def warning(self, data: Any, /, **extra: Any) -> Awaitable[None]: ...
    def error(self, data: Any, /, **extra: Any) -> Awaitable[None]: ...
    @overload
    async def elicit(self, message: str, type: type[_T], *, key: str | None = None, default: _T = ...) -> _T: ...
    @overload
    async def elicit(self, message: str, type: TypeForm[_T], *, key: str | None = None, default: _T = ...) -> _T: ...
    @overload
    async def elicit(self, message: str, schema: Any, *, key: str | None = None) -> Any: ...
    @overload
    async def try_elicit(
        self, message: str, type: type[_T], *, key: str | None = None, default: _T = ...
    ) -> Accepted[_T] | Declined | Cancelled: ...
    @overload
    async def try_elicit(
        self, message: str, type: TypeForm[_T], *, key: str | None = None, default: _T = ...
    ) -> Accepted[_T] | Declined | Cancelled: ...
    @overload
    async def try_elicit(
        self, message: str, schema: Any, *, key: str | None = None
    ) -> Accepted[Any] | Declined | Cancelled: ...
    async def elicit_url(self, message: str, url: str, *, key: str | None = None) -> str: ...
    async def sample(
        self, messages: str | Sequence[str | Message], *, key: str | None = None, **options: Unpack[SampleOptions]
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
    async def read_resource(self, uri: str) -> ResourceResult: ...
    async def close_stream(self, *, retry: float | None = None) -> None: ...

_A = TypeVar("_A")
_B = TypeVar("_B")
_C = TypeVar("_C")
_E = TypeVar("_E")

class SyncContext(_Facts[_L]):
    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None: ...
    def log(self, level: LogLevel, data: Any, *, logger: str | None = None) -> None: ...
    def debug(self, data: Any, /, **extra: Any) -> None: ...
    def info(self, data: Any, /, **extra: Any) -> None: ...
    def warning(self, data: Any, /, **extra: Any) -> None: ...
    def error(self, data: Any, /, **extra: Any) -> None: ...
    @overload
    def elicit(self, message: str, type: type[_T], *, key: str | None = None, default: _T = ...) -> _T: ...
    @overload
    def elicit(self, message: str, type: TypeForm[_T], *, key: str | None = None, default: _T = ...) -> _T: ...
    @overload
    def elicit(self, message: str, schema: Any, *, key: str | None = None) -> Any: ...
    @overload
    def try_elicit(
        self, message: str, type: type[_T], *, key: str | None = None, default: _T = ...
    ) -> Accepted[_T] | Declined | Cancelled: ...
    @overload
    def try_elicit(
        self, message: str, type: TypeForm[_T], *, key: str | None = None, default: _T = ...
    ) -> Accepted[_T] | Declined | Cancelled: ...
    @overload
    def try_elicit(
        self, message: str, schema: Any, *, key: str | None = None
    ) -> Accepted[Any] | Declined | Cancelled: ...
    def elicit_url(self, message: str, url: str, *, key: str | None = None) -> str: ...
    def sample(
        self, messages: str | Sequence[str | Message], *, key: str | None = None, **options: Unpack[SampleOptions]
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
    def read_resource(self, uri: str) -> ResourceResult: ...
    def close_stream(self, *, retry: float | None = None) -> None: ...

def current_context() -> Context: ...
def current_sync_context() -> SyncContext: ...
def resolve_inside(root: str | PathLike[str], path: str) -> Path: ...

class Request:
    method: str
    params: Mapping[str, Any]
    ctx: Context

Next: TypeAlias = Callable[[Request], Awaitable[Any]]

class Header:
    def __init__(self, name: str) -> None: ...

class Depends:
    def __init__(self, provider: Callable[..., Any], *, cached: bool = True) -> None: ...
