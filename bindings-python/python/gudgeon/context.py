"""What a handler knows of its call, and what it can tell and ask while it runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping, MutableMapping
from types import GenericAlias
from typing import Any

from . import ask as _ask
from ._asking import Asking, cannot_ask
from ._calls import current
from ._json import encode
from .errors import NotSupported, ResourceNotFound

_QUIET = 0.005  # seconds between two looks whether there is room


class _Facts:
    """What both contexts know."""

    __slots__ = ("_cache", "_call", "server")

    def __init__(self, call: Any, app: Any) -> None:
        self._call = call
        self.server = app
        self._cache: dict[str, Any] = {}

    def __class_getitem__(cls, item: Any) -> GenericAlias:
        return GenericAlias(cls, item)

    def __getattr__(self, name: str) -> Any:
        from ._foreign import foreign_attribute

        raise foreign_attribute("context", type(self).__name__, name)

    def _once(self, name: str, make: Callable[[], Any]) -> Any:
        if name not in self._cache:
            self._cache[name] = make()
        return self._cache[name]

    @property
    def request_id(self) -> Any:
        return self._call.request_id

    @property
    def session_id(self) -> None:
        return None

    @property
    def revision(self) -> Any:
        return self._call.revision

    @property
    def headers(self) -> Mapping[str, str]:
        return {}

    @property
    def principal(self) -> None:
        return None

    @property
    def client(self) -> Any:
        return self._once("client", self._read_client)

    @property
    def meta(self) -> Any:
        return self._once("meta", lambda: _decode(self._call.meta))

    @property
    def lifespan(self) -> Any:
        return self.server._lifespan.value

    @property
    def session(self) -> MutableMapping[str, Any]:
        if self._call.revision >= "2026-07-28":
            raise NotSupported(
                "the modern era has no sessions, so there is no ctx.session",
                hint="hand the client a handle to give back as an argument, or keep a store of your own by principal",
            )
        kept: MutableMapping[str, Any] = self._call.session
        return kept

    @property
    def state(self) -> dict[str, Any]:
        kept: dict[str, Any] = self._call.state
        return kept

    @property
    def cancelled(self) -> bool:
        return bool(self._call.cancelled)

    def answer(self, question: Any, /) -> Any:
        """The answer to a question that was returned before; None until it was answered."""
        if not isinstance(question, _ask.Question):
            raise TypeError(f"answer takes a question of gudgeon.ask, not {type(question).__name__}")
        return None

    def _read_client(self) -> Any:
        from .types import ClientInfo

        info = {"name": "", "version": "", **_decode(self._call.client_info)}
        return ClientInfo.from_dict({**info, "capabilities": _decode(self._call.client_capabilities)})

    def _progress(self, progress: float, total: float | None, message: str | None) -> None:
        self._call.progress(float(progress), None if total is None else float(total), message)

    def _log(self, level: str, data: Any, logger: str | None, extra: Mapping[str, Any] | None = None) -> None:
        if extra:
            data = {"message": data, **extra}
        self._call.log(level, logger, encode(data))

    def _refusal(self, question: Any) -> NotSupported:
        if not isinstance(question, _ask.Question):
            raise TypeError(f"ask takes questions of gudgeon.ask, not {type(question).__name__}")
        return cannot_ask(question, self._call)

    def _no_stream(self) -> NotSupported:
        return NotSupported("close_stream is for legacy HTTP: this connection has no stream to close")


class Context(_Facts):
    """For `async def` handlers."""

    __slots__ = ()

    def progress(self, progress: float, /, total: float | None = None, message: str | None = None) -> Awaitable[None]:
        """Tells how far this got, at once; awaiting it waits for room in the stream."""
        self._progress(progress, total, message)
        return _Sent(self._call)

    def log(self, level: Any, data: Any, /, *, logger: str | None = None) -> Awaitable[None]:
        """Tells the client's log, at once; awaiting it waits for room in the stream."""
        self._log(level, data, logger)
        return _Sent(self._call)

    def debug(self, data: Any, /, **extra: Any) -> Awaitable[None]:
        self._log("debug", data, None, extra)
        return _Sent(self._call)

    def info(self, data: Any, /, **extra: Any) -> Awaitable[None]:
        self._log("info", data, None, extra)
        return _Sent(self._call)

    def warning(self, data: Any, /, **extra: Any) -> Awaitable[None]:
        self._log("warning", data, None, extra)
        return _Sent(self._call)

    def error(self, data: Any, /, **extra: Any) -> Awaitable[None]:
        self._log("error", data, None, extra)
        return _Sent(self._call)

    def elicit(self, message: str, type: Any, /, *, key: str | None = None, **default: Any) -> Any:
        """Asks the user by a form and waits for the answer."""
        return self._asking("elicit", _ask.elicit(message, type, key=key, **default))

    def try_elicit(self, message: str, type: Any, /, *, key: str | None = None, **default: Any) -> Any:
        """`elicit` that gives `Accepted`, `Declined` or `Cancelled` back instead of raising."""
        return self._asking("try_elicit", _ask.elicit(message, type, key=key, **default))

    def elicit_url(self, message: str, url: str, /, *, key: str | None = None) -> Any:
        """Sends the user to a URL."""
        return self._asking("elicit_url", _ask.elicit_url(message, url, key=key))

    def sample(self, messages: Any, /, *, key: str | None = None, **options: Any) -> Any:
        """Asks the client's model."""
        return self._asking("sample", _ask.sample(messages, key=key, **options))

    def roots(self, *, key: str | None = None) -> Any:
        """Asks for the places that the client lets a server work in."""
        return self._asking("roots", _ask.roots(key=key))

    def ask(self, *questions: Any) -> Any:
        """Asks several questions at once."""
        return self._asking("ask", *questions)

    def step(self, key: str, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Does something once, and remembers under this key that it is done."""

        async def run() -> Any:
            from ._steps import recorded

            value = fn(*args, **kwargs)
            return recorded(key, fn, await value if hasattr(value, "__await__") else value)

        return Asking("step", run)

    def read_resource(self, uri: str, /) -> Any:
        """Reads a resource of this server."""

        async def run() -> Any:
            invoke, is_async, raw, read = _find(self.server, uri)
            reply = invoke(raw, self._call)
            return _contents(read, await reply if is_async else reply)

        return Asking("read_resource", run)

    def close_stream(self, *, retry: float | None = None) -> Any:
        """Legacy HTTP: lets the client poll; the answer waits in the event store."""

        async def run() -> Any:
            raise self._no_stream()

        return Asking("close_stream", run)

    def _asking(self, name: str, *questions: Any) -> Any:
        if not questions:
            raise TypeError("ask takes at least one question of gudgeon.ask")
        refusal = self._refusal(questions[0])

        async def run() -> Any:
            raise refusal

        return Asking(name, run)


class SyncContext(_Facts):
    """For `def` handlers: the same names, nothing to await."""

    __slots__ = ()

    def progress(self, progress: float, /, total: float | None = None, message: str | None = None) -> None:
        """Tells how far this got, at once."""
        self._progress(progress, total, message)

    def log(self, level: Any, data: Any, /, *, logger: str | None = None) -> None:
        """Tells the client's log, at once."""
        self._log(level, data, logger)

    def debug(self, data: Any, /, **extra: Any) -> None:
        self._log("debug", data, None, extra)

    def info(self, data: Any, /, **extra: Any) -> None:
        self._log("info", data, None, extra)

    def warning(self, data: Any, /, **extra: Any) -> None:
        self._log("warning", data, None, extra)

    def error(self, data: Any, /, **extra: Any) -> None:
        self._log("error", data, None, extra)

    def elicit(self, message: str, type: Any, /, *, key: str | None = None, **default: Any) -> Any:
        """Asks the user by a form and waits for the answer."""
        raise self._refusal(_ask.elicit(message, type, key=key, **default))

    def try_elicit(self, message: str, type: Any, /, *, key: str | None = None, **default: Any) -> Any:
        """`elicit` that gives `Accepted`, `Declined` or `Cancelled` back instead of raising."""
        raise self._refusal(_ask.elicit(message, type, key=key, **default))

    def elicit_url(self, message: str, url: str, /, *, key: str | None = None) -> Any:
        """Sends the user to a URL."""
        raise self._refusal(_ask.elicit_url(message, url, key=key))

    def sample(self, messages: Any, /, *, key: str | None = None, **options: Any) -> Any:
        """Asks the client's model."""
        raise self._refusal(_ask.sample(messages, key=key, **options))

    def roots(self, *, key: str | None = None) -> Any:
        """Asks for the places that the client lets a server work in."""
        raise self._refusal(_ask.roots(key=key))

    def ask(self, *questions: Any) -> Any:
        """Asks several questions at once."""
        if not questions:
            raise TypeError("ask takes at least one question of gudgeon.ask")
        raise self._refusal(questions[0])

    def step(self, key: str, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Does something once, and remembers under this key that it is done."""
        from ._steps import recorded

        return recorded(key, fn, fn(*args, **kwargs))

    def read_resource(self, uri: str, /) -> Any:
        """Reads a resource of this server."""
        invoke, is_async, raw, read = _find(self.server, uri)
        if is_async:
            raise TypeError(f"the resource {uri} is an async def: read it in an async def handler")
        return _contents(read, invoke(raw, self._call))

    def close_stream(self, *, retry: float | None = None) -> None:
        """Legacy HTTP: lets the client poll; the answer waits in the event store."""
        raise self._no_stream()


class _Sent(Awaitable[None]):
    """Something that is on its way already; awaiting it waits until the client has read enough."""

    __slots__ = ("_call",)

    def __init__(self, call: Any) -> None:
        self._call = call

    def __await__(self) -> Generator[Any, Any, None]:
        while not self._call.has_room:
            from asyncio import sleep

            yield from sleep(_QUIET).__await__()


def make_context(call: Any, app: Any) -> Context:
    """The context of a call to an `async def` handler."""
    return Context(call, app)


def make_sync_context(call: Any, app: Any) -> SyncContext:
    """The context of a call to a `def` handler."""
    return SyncContext(call, app)


def current_context() -> Context:
    """The context of the `async def` handler that runs here."""
    return Context(call := _current("current_context"), call.app)


def current_sync_context() -> SyncContext:
    """The context of the `def` handler that runs here."""
    return SyncContext(call := _current("current_sync_context"), call.app)


def _current(name: str) -> Any:
    call = current.get(None)
    if call is None:
        raise LookupError(f"{name}() works inside a handler only: no call is under way here")
    return call


def _find(app: Any, uri: str) -> tuple[Callable[..., Any], bool, bytes, Any]:
    found = app._native.find_resource(uri)
    if found is None:
        raise ResourceNotFound(uri)
    invoke, is_async, raw, read = found
    return invoke, is_async, raw.encode(), read


def _contents(read: Any, reply: Any) -> Any:
    from msgspec.json import decode

    from .types import ResourceResult

    return ResourceResult.from_dict({"contents": decode(read.contents(reply))})


def _decode(text: str | None) -> dict[str, Any]:
    if not text:
        return {}
    from msgspec.json import decode

    value = decode(text)
    return value if isinstance(value, dict) else {}
