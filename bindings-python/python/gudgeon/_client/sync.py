"""`SyncClient`: the client for programs without an event loop."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from .exit import close_at_exit
from .peer import Peer
from .subscription import SyncSubscription
from .targets import InMemory, Wire

if TYPE_CHECKING:
    from .thread import ThreadQueue


class SyncClient(Peer):
    """`Client` without an event loop: the same options, names, results and errors, blocking.

    Threads may share one client. Callbacks run on a thread that waits for the server, which continues when they
    return; between calls no callback runs, and no question of the server is answered. A result that has waited 0.2 s
    for callbacks of messages before it is returned first; those messages are delivered during the next call.

    >>> from gudgeon import Server, SyncClient
    >>> app = Server("shelf", version="2")
    >>> with SyncClient(app, revision="2025-11-25") as client:
    ...     client.server.version, client.revision, client.ping() < 10
    ('2', '2025-11-25', True)
    """

    def __init__(self, target: Any, **options: Any) -> None:
        from .thread import ThreadQueue

        super().__init__(target, **options)
        self._share(ThreadQueue())

    def _share(self, queue: ThreadQueue) -> None:
        """Waits on this queue, which the clients of a group share."""
        queue.adopt(self._core)
        self._queue = queue
        self._run = partial(queue.run, self._core)

    def __enter__(self) -> SyncClient:
        self._blocks.enter()
        try:
            return self.connect()
        except BaseException:
            self._blocks.leave()
            raise

    def __exit__(self, *exc: object) -> None:
        if self._blocks.leave():
            self.close()

    def connect(self) -> SyncClient:
        """Starts or reaches the server and negotiates a revision. Connected already, it does
        nothing; a lost connection is made anew.

        Parameters and errors: `Client.connect`.
        """
        self._start()()
        return self

    def _start(self) -> Callable[[], None]:
        """Begins to connect; the function that is returned waits for it."""
        core, queue = self._core, self._queue
        if core.is_open():
            if not core.is_lost():
                return lambda: None
            self.close()
        close_at_exit()
        if isinstance(core.place, (InMemory, Wire)):
            return partial(self._connect_in_memory, core.place)
        return queue.start(core, core.connect())

    def _connect_in_memory(self, place: InMemory | Wire) -> None:
        from .memory import OtherEnd

        core, end = self._core, OtherEnd(place)
        with end.open_blocking() as stream:
            try:
                self._run(core.connect(stream.fileno()))
            except BaseException:
                stream.close()
                end.close_blocking()
                raise
        self._other_end = end

    def close(self) -> None:
        """Ends the connection, and the server's process with it. Closed already, it does nothing. Details:
        `Client.close`.
        """
        self._stop()()

    def _stop(self) -> Callable[[], None]:
        """Begins to close; the function that is returned waits for the end."""
        end, self._other_end = self._other_end, None
        wait = self._queue.start(self._core, self._core.close())

        def finish() -> None:
            try:
                wait()
            finally:
                if end is not None and not self._core.is_forked():
                    end.close_blocking()

        return finish

    def list_tools(self, *, timeout: Any = ...) -> Any:
        """Lists all tools, over all pages. Spec: Server Features › Tools."""
        return self._run(self._core.list_all("tools", timeout))

    def list_tools_page(self, cursor: str | None = None, *, timeout: Any = ...) -> Any:
        """Returns one page of tools: a `Page` with `items` and the `next_cursor`. None asks for the first page."""
        return self._run(self._core.list_page("tools", cursor, timeout))

    def list_resources(self, *, timeout: Any = ...) -> Any:
        """Lists all resources, over all pages. Spec: Server Features › Resources."""
        return self._run(self._core.list_all("resources", timeout))

    def list_resources_page(self, cursor: str | None = None, *, timeout: Any = ...) -> Any:
        """Returns one page of resources, as `list_tools_page`."""
        return self._run(self._core.list_page("resources", cursor, timeout))

    def list_resource_templates(self, *, timeout: Any = ...) -> Any:
        """Lists all templates of resources, over all pages. Spec: Server Features › Resources › Templates."""
        return self._run(self._core.list_all("resourceTemplates", timeout))

    def list_resource_templates_page(self, cursor: str | None = None, *, timeout: Any = ...) -> Any:
        """Returns one page of templates, as `list_tools_page`."""
        return self._run(self._core.list_page("resourceTemplates", cursor, timeout))

    def list_prompts(self, *, timeout: Any = ...) -> Any:
        """Lists all prompts, over all pages. Spec: Server Features › Prompts."""
        return self._run(self._core.list_all("prompts", timeout))

    def list_prompts_page(self, cursor: str | None = None, *, timeout: Any = ...) -> Any:
        """Returns one page of prompts, as `list_tools_page`."""
        return self._run(self._core.list_page("prompts", cursor, timeout))

    def call_tool(self, name: str, arguments: Any = None, *, returns: Any = ..., **options: Any) -> Any:
        """Calls a tool and returns its `ToolResult`; `data` is the structured content, or else read from the text.

        Parameters and errors: `Client.call_tool`.

        >>> from gudgeon import Server, SyncClient
        >>> app = Server("calculator")
        >>> @app.tool
        ... def add(a: int, b: int) -> int:
        ...     return a + b
        >>> with SyncClient(app) as client:
        ...     client.call_tool("add", {"a": 1, "b": 2}, returns=float, timeout=5).data
        3.0
        """
        return self._run(self._core.call_tool(name, arguments, returns, options))

    def call_tool_round(
        self, name: str, arguments: Any = None, *, answers: Any = None, state: str | None = None, **options: Any
    ) -> Any:
        """One round by hand: an `InputRequired` comes back as it is, to be answered later, by another process if need
        be.

        Parameters and errors: `Client.call_tool_round`.
        """
        return self._run(self._core.call_tool_round(name, arguments, answers, state, options))

    def read_resource(self, uri: str, variables: Any = None, *, timeout: Any = ...) -> Any:
        """Reads a resource; returns its `ResourceResult`.

        Parameters and errors: `Client.read_resource`.

        >>> from gudgeon import Server, SyncClient
        >>> app = Server("shelf")
        >>> @app.resource("shelf://books/{id}")
        ... def book(id: str) -> str:
        ...     return f"book {id}"
        >>> with SyncClient(app) as client:
        ...     client.read_resource("shelf://books/{id}", {"id": "a b"}).text
        'book a b'
        """
        return self._run(self._core.read_resource(uri, variables, timeout))

    def get_prompt(self, name: str, arguments: Any = None, *, timeout: Any = ...) -> Any:
        """Returns a prompt with its arguments filled in, a `PromptResult`.

        Parameters and errors: `Client.get_prompt`.
        """
        return self._run(self._core.get_prompt(name, arguments, timeout))

    def complete(self, target: str, argument: str, value: str, *, arguments: Any = None, timeout: Any = ...) -> Any:
        """Returns suggestions for an argument of a prompt or a variable of a resource template, a `Completion`.

        Parameters and errors: `Client.complete`.
        """
        return self._run(self._core.complete(target, argument, value, arguments, timeout))

    def subscribe(self, *uris: str, tools: bool = False, prompts: bool = False, resources: bool = False) -> Any:
        """Subscribes to changes of these resources and lists; the subscription is entered with `with`.

        Parameters and errors: `Client.subscribe`.

        >>> from gudgeon import Server, SyncClient
        >>> app = Server("shelf")
        >>> _ = app.tool(lambda: "ok", name="tidy")
        >>> with SyncClient(app) as client, client.subscribe(tools=True) as changes:
        ...     before = client.list_tools()
        ...     app.tools.disable("tidy")
        ...     next(changes).kind
        'tools'
        """
        return SyncSubscription(self._core, self._run, *self._subscription(uris, tools, prompts, resources))

    def set_log_level(self, level: Any, *, timeout: Any = ...) -> None:
        """Sets the lowest level of log messages that the server sends. Spec: Server Features › Utilities › Logging."""
        self._run(self._core.set_log_level(level, timeout))

    def ping(self, *, timeout: Any = ...) -> Any:
        """Returns the seconds that the server takes to answer. Spec: Base Protocol › Utilities › Ping."""
        return self._run(self._core.ping(timeout))

    def request(self, method: str, params: Any = None, *, timeout: Any = ...) -> Any:
        """Sends any request, such as a vendor's own; returns its result as plain JSON values.

        Parameters and errors: `Client.request`.
        """
        return self._run(self._core.request(method, params, timeout))

    def notify(self, method: str, params: Any = None) -> None:
        """Sends any notification; one that the specification has only in other revisions is not sent."""
        self._core.notify(method, params)
