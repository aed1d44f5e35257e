"""The operations of `Client` and `SyncClient`, written once as generators; each client drives them in its own way."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any

from .._model.encoding import to_builtins
from .._model.json import encode
from .._native import Place
from ..errors import ConnectFailed, ConnectionLost, McpError, ProtocolError
from ..types import Completion, InputRequired, ListChanged, LogMessage, Page, Progress, Reconnected
from .errors import UnreadableQuestion, read_error, refusal_of
from .options import Options, encode_call_options
from .read import (
    LARGE,
    read_entries,
    read_json,
    read_large_prompt,
    read_large_resource,
    read_large_tool,
    read_list,
    read_prompt,
    read_resource,
    read_result,
    read_tool,
    typed,
)
from .targets import InMemory, Wire, place_of

Steps = Generator["Ask", Any, Any]


class Ask:
    """One request to the native half: `start(mailbox)` returns its ticket."""

    __slots__ = ("has_middleware", "on_progress", "start")

    def __init__(
        self,
        start: Callable[[Any], int],
        on_progress: Callable[..., Any] | None = None,
        has_middleware: bool = False,
    ) -> None:
        self.start = start
        self.on_progress = on_progress
        self.has_middleware = has_middleware


def _no_request(mailbox: Any) -> int:
    raise AssertionError("a pause is not a request")


# In place of a request: other tasks of an event loop run before the next step.
PAUSE = Ask(_no_request)


class Notify:
    """A callback to call."""

    __slots__ = ("callback", "value")

    def __init__(self, callback: Callable[..., Any], value: Any) -> None:
        self.callback = callback
        self.value = value


class Core:
    """The state and operations of a client, without a way to wait."""

    def __init__(self, target: Any, options: Options) -> None:
        from .._native import Client

        self.options = options
        self.group_name: str | None = None
        self.place = place_of(target, options.given.get("headers"))
        self.native = Client(options.to_json())
        self.number: int = self.native.number
        self._process = os.getpid()
        self.identity: dict[str, Any] | None = None
        self.lost: str | None = None
        self.stranded: str | None = None
        self._warned: set[str] = set()

    # ── the connection ──────────────────────────────────────────────────────────────────────────────

    def target_name(self) -> str:
        place = self.place
        if isinstance(place, Place):
            return place.name
        if isinstance(place, InMemory):
            return f"Server({place.server.name!r})"
        # The wire of a test is named after the server behind it.
        return getattr(place.transport, "stands_for", None) or type(place.transport).__name__

    def connect(self, stream: int | None = None) -> Steps:
        """Connects; `stream` is this side's end of a socket pair whose other end is served already."""
        native, place = self.native, self.place
        if isinstance(place, Place):
            event = yield Ask(lambda mailbox: native.connect(mailbox, place, self.group_name))
        else:
            name, end = self.target_name(), stream if stream is not None else -1
            event = yield Ask(lambda mailbox: native.connect_stream(mailbox, name, end, self.group_name))
        try:
            self.identity = self._described(event[2])
        except ProtocolError as error:
            yield Ask(native.close)
            if self.group_name is not None:
                # Another attempt would find the same description.
                native.fail(self.group_name, error.message)
            raise ConnectFailed(error.message, target=error.target, phase="connect") from error.__cause__
        self.lost = self.stranded = None
        self._warned.clear()

    def close(self) -> Steps:
        if self.is_forked():
            self.identity = None
        elif self.identity is not None or self.group_name is not None:
            self.identity = None
            yield Ask(self.native.close)

    def is_forked(self) -> bool:
        """Returns whether this is a client's copy in a forked process; the connection belongs to the parent."""
        return self._process != os.getpid()

    def is_open(self) -> bool:
        return self.identity is not None

    def refresh(self) -> None:
        """Looks whether a server that was not reached at first is connected by now."""
        if self.identity is None and not self.is_forked():
            identity = self.native.identity()
            if identity is not None:
                try:
                    self.identity = self._described(identity)
                except ProtocolError as error:
                    self._warn("the server can't be used", error)

    def _described(self, identity: bytes) -> dict[str, Any]:
        """Returns the server's description of itself."""
        described: dict[str, Any] = read_json(self, "the server's description", identity)
        return described

    def is_lost(self) -> bool:
        """Returns whether the connection is lost and is not made anew automatically."""
        return self.lost is not None

    def declared(self, name: str) -> Any:
        """Returns a member of what the server declared. Raises McpError before the client is connected."""
        if self.identity is None:
            raise _not_connected(self.target_name())
        return self.identity[name]

    def check_open(self) -> None:
        if self.identity is None:
            raise _not_connected(self.target_name())
        if self.stranded is not None:
            raise ConnectionLost(
                f"this client was connected in an event loop that is closed now, and {self.stranded} ended with it",
                hint="open the client in the loop that uses it, for example inside one asyncio.run()",
                target=self.target_name(),
            )

    def leave_loop(self) -> None:
        """Records that the loop that this client was connected in is closed: what that loop itself ran has ended."""
        self.stranded = self.serving_here()
        self.lost = self.lost or self.stranded

    def serving_here(self) -> str | None:
        """Returns the name of what serves this client in the event loop in which it was connected."""
        if isinstance(self.place, InMemory):
            return "the server in memory"
        return "its transport" if isinstance(self.place, Wire) else None

    # ── operations ──────────────────────────────────────────────────────────────────────────────────

    def list_all(self, kind: str, timeout: Any) -> Steps:
        event = yield from self._start(_list(kind), {}, _limit(timeout))
        return (yield from gathered(read_list(self, kind, event[2])))

    def list_page(self, kind: str, cursor: str | None, timeout: Any) -> Steps:
        event = yield from self._start(f"{_list(kind)}Page", {"cursor": cursor}, _limit(timeout))
        page: dict[str, Any] = read_result(self, kind, event[2])
        entries = yield from gathered(read_entries(self, kind, page["items"]))
        return Page(entries, next_cursor=page.get("nextCursor"))

    def call_tool(self, name: str, arguments: Mapping[str, Any] | None, returns: Any, options: dict[str, Any]) -> Steps:
        params = {"name": name, "arguments": _object("arguments", arguments)}
        event = yield from self._start("callTool", params, options)
        if len(event[2]) > LARGE:
            result = yield from paused(read_large_tool(self, name, event))
        else:
            result = read_tool(self, name, event)
        return result if returns is ... or result.is_error else typed(self, name, event, result, returns)

    def call_tool_round(
        self,
        name: str,
        arguments: Mapping[str, Any] | None,
        answers: Mapping[str, Any] | None,
        state: str | None,
        options: dict[str, Any],
    ) -> Steps:
        params = {
            "name": name,
            "arguments": _object("arguments", arguments),
            "answers": _object("answers", answers),
            "state": state,
        }
        event = yield from self._start("callToolRound", params, options)
        if not event[4]:
            return read_tool(self, name, event)
        return read_result(self, "tools", event[2], InputRequired.from_dict)

    def read_resource(self, uri: str, variables: Mapping[str, Any] | None, timeout: Any) -> Steps:
        params = {"uri": uri, "variables": _object("variables", variables)}
        event = yield from self._start("readResource", params, _limit(timeout))
        if len(event[2]) > LARGE:
            return (yield from paused(read_large_resource(self, event)))
        return read_resource(self, event)

    def get_prompt(self, name: str, arguments: Mapping[str, str] | None, timeout: Any) -> Steps:
        params = {"name": name, "arguments": _object("arguments", arguments)}
        event = yield from self._start("getPrompt", params, _limit(timeout))
        if len(event[2]) > LARGE:
            return (yield from paused(read_large_prompt(self, event)))
        return read_prompt(self, event)

    def complete(
        self, target: str, argument: str, value: str, arguments: Mapping[str, str] | None, timeout: Any
    ) -> Steps:
        params = {
            "target": target,
            "argument": argument,
            "value": value,
            "arguments": _object("arguments", arguments),
        }
        event = yield from self._start("complete", params, _limit(timeout))
        return read_result(self, "completion", event[2], Completion.from_dict)

    def set_log_level(self, level: str, timeout: Any) -> Steps:
        yield from self._start("setLogLevel", {"level": level}, _limit(timeout))

    def set_roots(self, roots: Sequence[Any]) -> None:
        self.check_open()
        refused = self.native.set_roots(encode(roots, "the roots"))
        if refused is not None:
            raise read_error(refused)

    def ping(self, timeout: Any) -> Steps:
        start = time.perf_counter()
        yield from self._start("ping", {}, _limit(timeout))
        return time.perf_counter() - start

    def request(self, method: str, params: Mapping[str, Any] | None, timeout: Any) -> Steps:
        order = {"method": method, "params": _object("params", params)}
        event = yield from self._start("request", order, _limit(timeout))
        return read_result(self, method, event[2])

    def notify(self, method: str, params: Mapping[str, Any] | None) -> None:
        self.check_open()
        self.native.notify(method, encode(_object("params", params) or {}, "the params"))

    def subscribe(self, filter: Mapping[str, Any]) -> Steps:
        """Subscribes; returns the number of the new subscription."""
        self.check_open()
        text = encode(filter, "the subscription")
        event = yield Ask(lambda mailbox: self.native.subscribe(mailbox, text))
        return event[1]

    def _start(self, operation: str, params: Mapping[str, Any], options: dict[str, Any] | None = None) -> Steps:
        self.check_open()
        call_options = encode_call_options(options or {})
        on_progress = (options or {}).get("on_progress") or self.options.callbacks.get("on_progress")
        text = encode(params, "the request")
        return (
            yield Ask(
                lambda mailbox: self.native.call(mailbox, operation, text, call_options, on_progress is not None),
                on_progress,
                bool(self.options.middleware),
            )
        )

    # ── notifications of the server ───────────────────────────────────────────────────────────────

    def notified(self, event: tuple[Any, ...]) -> Notify | None:
        """Returns the callback for a notification of the server, or None without one."""
        if self.group_name is not None:
            self.refresh()
        what, callbacks = event[0], self.options.callbacks
        if what == "lost":
            self.lost = event[2]
        elif what == "changed":
            return Notify(callbacks["on_list_changed"], ListChanged(kind=event[2], server=self.group_name))
        elif what == "log":
            try:
                message = read_json(self, "the message", event[2], self._log_message)
            except ProtocolError as error:
                self._warn("a log message is dropped", error)
                return None
            return Notify(callbacks["on_log"], message)
        elif what == "url_done" and "on_url_done" in callbacks:
            return Notify(callbacks["on_url_done"], event[2])
        elif what == "reconnected" and self.is_open():
            if event[2] is not None:
                try:
                    self.identity = self._described(event[2])
                except ProtocolError as error:
                    self._warn("the server was connected again, and its former description is kept", error)
            if "on_reconnect" in callbacks:
                reason = read_error(event[4])
                made = Reconnected(attempt=event[3], reason=reason, server=self.group_name)
                return Notify(callbacks["on_reconnect"], made)
        return None

    def _log_message(self, wire: dict[str, Any]) -> LogMessage:
        return LogMessage.from_dict({**wire, "server": self.group_name})

    def refuse(self, number: int, error: Exception, callback: Callable[..., Any]) -> None:
        """Refuses a question of the server because of an exception."""
        if isinstance(error, UnreadableQuestion):
            self._warn("a question is refused", error)
        self.native.refuse(number, encode(refusal_of(error, callback)))

    def _warn(self, effect: str, error: McpError) -> None:
        """Logs that a message can't be read: once for each effect and connection, because a server may send many."""
        if effect not in self._warned:
            import logging

            self._warned.add(effect)
            logging.getLogger("gudgeon").warning("%s: %s: %s", self.target_name(), effect, error.message)


def gathered(parts: Iterable[list[Any]]) -> Steps:
    """Returns the entries of all parts, with pauses between them, because a server may send many."""
    entries: list[Any] = []
    for part in parts:
        if entries:
            yield PAUSE
        entries += part
    return entries


def paused(reading: Generator[None, None, Any]) -> Steps:
    """Returns what a generator returns, with a pause where it yields."""
    try:
        while True:
            next(reading)
            yield PAUSE
    except StopIteration as end:
        return end.value


def answer_of(event: tuple[Any, ...]) -> tuple[Any, ...]:
    """Returns the event that ends a request. Raises the error of a failed one."""
    if event[0] == "done":
        return event
    # The exception of middleware is raised as it is.
    raise event[2] if event[0] == "raised" else read_error(event[2])


def progress_of(event: tuple[Any, ...]) -> Any:
    return Progress(progress=event[2], total=event[3], message=event[4])


def _not_connected(target: str) -> McpError:
    return McpError(
        "this client is not connected", hint="use it inside `with` or `async with`, or call connect()", target=target
    )


def _list(kind: str) -> str:
    """Returns the name of the operation that lists `kind`: "listTools"."""
    return f"list{kind[0].upper()}{kind[1:]}"


def _limit(timeout: Any) -> dict[str, Any]:
    return {} if timeout is ... else {"timeout": timeout}


def _object(what: str, value: Mapping[str, Any] | None) -> Any:
    if value is None or isinstance(value, Mapping):
        return value
    plain = to_builtins(value)
    if not isinstance(plain, dict):
        raise TypeError(f"{what} is a mapping, not {value!r}")
    return plain
