"""`Context` and `SyncContext`: a handler's access to its call, its server and its client."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any

from . import ask as _ask
from ._call.asking import Asking, ask_later, ask_now
from ._call.blocking import run_for_waiter
from ._call.entry import current
from ._call.facts import Facts
from ._plan.question_reply import QuestionReply
from .errors import Cancelled, Declined
from .types import Accepted, ResourceResult

__all__ = ["Context", "SyncContext", "current_context", "current_sync_context"]

_QUIET = 0.005  # seconds between two checks whether the stream has room


class Context(Facts):
    """The context of a call to an `async def` handler: its request, progress, logging, and questions to the client.

    It is passed to a parameter that is annotated with `Context`, under any name. When the client cancels the call, the
    handler's task is cancelled.

    >>> from gudgeon import Context, Server, SyncClient
    >>> app = Server("shelf")
    >>> @app.tool
    ... async def index(ctx: Context) -> str:
    ...     ctx.progress(1, total=2, message="half way")
    ...     return ctx.revision
    >>> with SyncClient(app) as client:
    ...     client.call_tool("index", on_progress=lambda progress: print(progress.message)).text
    half way
    '2026-07-28'
    """

    __slots__ = ()
    _is_async = True

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> Awaitable[None]:
        """Sends the progress of this call immediately; awaiting it waits until the stream has room.

        It is sent only when the client gave a progress token.

        Args:
            progress: What is done so far; it must grow with each report. A step back is dropped, the first of a call's
                with a line in the log.
            total: What there is to do, in the same unit, where it is known.
            message: What a person reads.

        Raises:
            ValueError: One of the numbers is NaN or infinite.

        Spec: Base Protocol › Utilities › Progress.
        """
        self._progress(progress, total, message)
        return _Sent(self._call)

    def log(self, level: Any, data: Any, *, logger: str | None = None) -> Awaitable[None]:
        """Sends a log message to the client immediately; awaiting it waits until the stream has room.

        A client gets 1,000 messages at once, and then 100 a second as long as it reads them. What is left out is
        counted, and the client gets their number.

        Args:
            level: "debug", "info", "notice", "warning", "error", "critical", "alert" or "emergency"; what is below
                the level that the client set is not sent.
            data: Anything that can be converted to JSON.
            logger: A name of the part that speaks.

        Raises:
            TypeError: The data can't be converted to JSON.

        Spec: Server Features › Utilities › Logging.
        """
        self._log(level, data, logger)
        return _Sent(self._call)

    def debug(self, data: Any, /, **extra: Any) -> Awaitable[None]:
        """Calls `log` at level "debug"; keyword arguments make the data `{"message": data, **extra}`."""
        self._log("debug", data, None, extra)
        return _Sent(self._call)

    def info(self, data: Any, /, **extra: Any) -> Awaitable[None]:
        """Calls `log` at level "info", with `extra` as in `debug`."""
        self._log("info", data, None, extra)
        return _Sent(self._call)

    def warning(self, data: Any, /, **extra: Any) -> Awaitable[None]:
        """Calls `log` at level "warning", with `extra` as in `debug`."""
        self._log("warning", data, None, extra)
        return _Sent(self._call)

    def error(self, data: Any, /, **extra: Any) -> Awaitable[None]:
        """Calls `log` at level "error", with `extra` as in `debug`."""
        self._log("error", data, None, extra)
        return _Sent(self._call)

    def elicit(self, message: str, type: Any = ..., *, key: str | None = None, **more: Any) -> Any:
        """Asks the user by a form and waits for the answer.

        Args:
            message: What the user reads.
            type: What is wanted: a plain type, a model, or a JSON Schema with flat properties.
            key: The question's name; default "elicit-<n>", in the order asked.
            default: What the form shows at first.
            schema: A JSON Schema, in place of `type`.

        Raises:
            Declined, Cancelled: The user declined, or closed the form.
            ProtocolError: Three answers did not fit; or the client answered with an error.
            NotSupported: The client did not declare elicitation, or its revision has no form for the type.
            TypeError: No revision has a form for the type.

        What does not fit the form, or is refused by the type itself (a validator of pydantic's, a `__post_init__` that
        raises ValueError), is asked for again, three times in all.

        From 2026-07-28 the question is the answer to the request, and the handler waits until the client's next
        request brings the answer. A handler that waits for too long, or whose server process has ended by then, runs
        again from the top with all answers so far: side effects that must not be repeated belong into a `step`.

        Spec: Client Features › Elicitation; Base Protocol › Utilities › Multi Round-Trip Requests.
        """
        return self._one("elicit", _ask.elicit(message, type, key=key, **more))

    def try_elicit(self, message: str, type: Any = ..., *, key: str | None = None, **more: Any) -> Any:
        """Asks like `elicit`, and returns `Accepted`, `Declined` or `Cancelled` instead of raising."""
        asked = ask_later([_ask.elicit(message, type, key=key, **more)], self._call)

        async def run() -> Any:
            try:
                return _accepted(*await asked())
            except (Declined, Cancelled) as refusal:
                return refusal

        return Asking("try_elicit", run)

    def elicit_url(self, message: str, url: str, *, key: str | None = None) -> Any:
        """Sends the user to a URL, and returns the elicitation's id. Errors are those of `elicit`."""
        return self._one("elicit_url", _ask.elicit_url(message, url, key=key))

    def sample(self, messages: Any, *, key: str | None = None, **options: Any) -> Any:
        """Asks the client's model, and returns a `SampleResult`.

        Args:
            messages: A string, `Message` values, or a list of them.
            key: As for `elicit`.
            max_tokens: Default 1024.
            system, temperature, stop, models, tools, tool_choice: Parameters for the model; `models` are hints, best
                first.
            cost_priority, speed_priority, intelligence_priority: From 0 to 1.

        Raises:
            NotSupported: The client did not declare sampling.
            Declined: The user does not allow it. From 2026-07-28 on, such a client sends no further request.

        Spec: Client Features › Sampling.
        """
        return self._one("sample", _ask.sample(messages, key=key, **options))

    def roots(self, *, key: str | None = None) -> Any:
        """Asks for the folders that the client lets a server work in, and returns a list of `Root`. Spec: Client ›
        Roots.
        """
        return self._one("roots", _ask.roots(key=key))

    def ask(self, *questions: Any) -> Any:
        """Asks several questions of `gudgeon.ask` at once, and returns their answers. Errors are those of `elicit`.

        Only questions with an invalid answer are asked again.
        """
        return Asking("ask", ask_later(questions, self._call))

    def step(self, key: str, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Calls a function, and records its result under this key, so that a later run of the handler does not call it
        again.

        It is called at least once, not exactly once: a crash in between can repeat it.

        Args:
            key: The name of the step within the call; a step that was done under this key is not done again.
            fn: A function, async or not. Its result is converted to JSON and back to the type of its return annotation.
                Questions that it asks are numbered under the key, as `<key>/elicit-1`.

        Raises:
            TypeError: The result can't be converted to JSON, or the key is not a string.

        A handler that no longer exists when the client's answers arrive runs again from the top with the results of its
        steps. Spec: Base Protocol › Utilities › Multi Round-Trip Requests.

        >>> from gudgeon import Context, Server, SyncClient
        >>> app = Server("shelf", suspended_limit=0)
        >>> async def number() -> int:
        ...     print("drawn")
        ...     return 7
        >>> @app.tool
        ... async def lend(ctx: Context) -> str:
        ...     drawn = await ctx.step("number", number)
        ...     name = await ctx.elicit("Who are you?", str)
        ...     return f"{name} has number {drawn}"
        >>> with SyncClient(app, on_elicit=lambda question: "Ada") as client:
        ...     client.call_tool("lend").text
        drawn
        'Ada has number 7'
        """

        async def run() -> Any:
            from ._call.steps import step_later

            return await step_later(key, fn, args, kwargs, self._call)

        return Asking("step", run)

    def read_resource(self, uri: str) -> Any:
        """Reads a resource of this server or of its upstream servers, and returns a `ResourceResult`.

        Raises ResourceNotFound.
        """

        async def run() -> Any:
            found = _find(self.server, uri)
            if found is None:
                from ._call.native_handlers import read_resource

                return await read_resource(uri, self._call)
            invoke, is_async, raw, read = found
            reply = invoke(raw, self._call)
            return _contents(read, await reply if is_async else reply)

        return Asking("read_resource", run)

    def close_stream(self, *, retry: float | None = None) -> Any:
        """Ends the stream of a legacy HTTP call; the client fetches the answer after `retry` seconds.

        Raises:
            NotSupported: The call did not arrive over legacy HTTP.

        Spec: Base Protocol › Transports › Streamable HTTP (2025-11-25), "Sending Messages to the Server".
        """

        async def run() -> Any:
            self._close_stream(retry)

        return Asking("close_stream", run)

    def _one(self, name: str, question: Any) -> Any:
        asked = ask_later([question], self._call)

        async def run() -> Any:
            return (await asked())[0]

        return Asking(name, run)


class SyncContext(Facts):
    """The context of a call to a `def` handler: `Context` with blocking methods.

    A thread can't be interrupted: a long-running handler checks `ctx.cancelled` between two steps.

    >>> from gudgeon import Server, SyncClient, SyncContext
    >>> app = Server("shelf")
    >>> @app.tool
    ... def whoami(ctx: SyncContext) -> str:
    ...     ctx.info("asked", by=ctx.client.name)
    ...     return str(ctx.cancelled)
    >>> with SyncClient(app, on_log=lambda message: print(message.level, message.data["message"])) as client:
    ...     client.set_log_level("info")
    ...     client.call_tool("whoami").text
    info asked
    'False'
    """

    __slots__ = ()
    _is_async = False

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Sends the progress of this call immediately; parameters as in `Context.progress`."""
        self._progress(progress, total, message)

    def log(self, level: Any, data: Any, *, logger: str | None = None) -> None:
        """Sends a log message to the client immediately; parameters and errors as in `Context.log`."""
        self._log(level, data, logger)

    def debug(self, data: Any, /, **extra: Any) -> None:
        """Calls `log` at level "debug"; parameters as in `Context.debug`."""
        self._log("debug", data, None, extra)

    def info(self, data: Any, /, **extra: Any) -> None:
        """Calls `log` at level "info"; parameters as in `Context.info`."""
        self._log("info", data, None, extra)

    def warning(self, data: Any, /, **extra: Any) -> None:
        """Calls `log` at level "warning"; parameters as in `Context.warning`."""
        self._log("warning", data, None, extra)

    def error(self, data: Any, /, **extra: Any) -> None:
        """Calls `log` at level "error"; parameters as in `Context.error`."""
        self._log("error", data, None, extra)

    def elicit(self, message: str, type: Any = ..., *, key: str | None = None, **more: Any) -> Any:
        """Asks the user by a form and waits for the answer; parameters and errors as in `Context.elicit`."""
        return self._one(_ask.elicit(message, type, key=key, **more))

    def try_elicit(self, message: str, type: Any = ..., *, key: str | None = None, **more: Any) -> Any:
        """Asks like `elicit`, and returns `Accepted`, `Declined` or `Cancelled` instead of raising."""
        try:
            return _accepted(self._one(_ask.elicit(message, type, key=key, **more)))
        except (Declined, Cancelled) as refusal:
            return refusal

    def elicit_url(self, message: str, url: str, *, key: str | None = None) -> Any:
        """Sends the user to a URL, and returns the elicitation's id. Errors are those of `Context.elicit`."""
        return self._one(_ask.elicit_url(message, url, key=key))

    def sample(self, messages: Any, *, key: str | None = None, **options: Any) -> Any:
        """Asks the client's model; parameters and errors as in `Context.sample`."""
        return self._one(_ask.sample(messages, key=key, **options))

    def roots(self, *, key: str | None = None) -> Any:
        """Asks for the folders that the client lets a server work in, and returns a list of `Root`."""
        return self._one(_ask.roots(key=key))

    def ask(self, *questions: Any) -> Any:
        """Asks several questions at once, and returns their answers; errors are those of `Context.elicit`."""
        return ask_now(questions, self._call)

    def step(self, key: str, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Calls a plain function, and records its result under this key; parameters and errors as in `Context.step`."""
        from ._call.steps import step_now

        return step_now(key, fn, args, kwargs, self._call)

    def read_resource(self, uri: str) -> Any:
        """Reads a resource as `Context.read_resource`.

        Raises ResourceNotFound, and TypeError for one that is an `async def`.
        """
        found = _find(self.server, uri)
        if found is None:
            from ._call.native_handlers import read_resource_now

            return read_resource_now(uri, self._call)
        invoke, is_async, raw, read = found
        if is_async and getattr(invoke, "around_def", False):
            return _contents(read, run_for_waiter(invoke, raw, self._call))
        if is_async:
            raise TypeError(f"the resource {uri} is an async def: read it in an async def handler")
        return _contents(read, invoke(raw, self._call))

    def close_stream(self, *, retry: float | None = None) -> None:
        """Ends the stream of a legacy HTTP call; parameters and errors as in `Context.close_stream`."""
        self._close_stream(retry)

    def _one(self, question: Any) -> Any:
        return ask_now([question], self._call)[0]


class _Sent(Awaitable[None]):
    """A message that was sent; awaiting it waits until the client has read enough."""

    __slots__ = ("_call",)

    def __init__(self, call: Any) -> None:
        self._call = call

    def __await__(self) -> Generator[Any, Any, None]:
        while not self._call.has_room:
            from asyncio import sleep

            yield from sleep(_QUIET).__await__()


def current_context() -> Context:
    """Returns the context of the running `async def` handler. Raises LookupError outside of one.

    >>> from gudgeon import Server, SyncClient, current_context
    >>> app = Server("shelf")
    >>> async def helper() -> str:
    ...     return current_context().revision
    >>> @app.tool
    ... async def show() -> str:
    ...     return await helper()
    >>> with SyncClient(app, revision="2025-11-25") as client:
    ...     client.call_tool("show").text
    '2025-11-25'
    """
    return Context(call := _current("current_context"), call.app)


def current_sync_context() -> SyncContext:
    """Returns the context of the running `def` handler. Raises LookupError outside of one."""
    return SyncContext(call := _current("current_sync_context"), call.app)


def _current(name: str) -> Any:
    call = current.get(None)
    if call is None:
        raise LookupError(f"{name}() works inside a handler only: no call is under way here")
    return call


def _find(app: Any, uri: str) -> tuple[Callable[..., Any], bool, bytes, Any] | None:
    found = app._native.find_resource(uri)
    if found is None:
        return None
    invoke, is_async, raw, read = found
    return invoke, is_async, raw.encode(), read


def _accepted(value: Any) -> Any:
    return Accepted(value)


def _contents(read: Any, reply: Any) -> Any:
    if isinstance(reply, QuestionReply):
        raise TypeError("the resource asks its client first: only a client can read it")
    from msgspec.json import decode

    return ResourceResult.from_dict({"contents": decode(read.contents(reply))})
