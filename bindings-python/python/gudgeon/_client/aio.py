"""`Client`: the client for event loops."""

from __future__ import annotations

from typing import Any

from .exit import close_at_exit
from .peer import Peer
from .subscription import Subscription
from .sync import SyncClient
from .targets import InMemory, Wire


class Client(Peer):
    """A connection to one server, opened by `async with`, by `with` (then a `SyncClient`) or by `await connect()`.

    The constructor does no input or output. Every property raises McpError until the client is connected. Blocks may be
    nested: the outermost one closes the client.

    Args:
        target: A URL (http, https, ws, wss, tcp, unix, http+unix); a command as a list of words or a `Command`; the
            Path of a file to run; a `Server`, served in memory; an entry of a host's JSON configuration; or a
            `Transport`. For http, https, ws and wss, the environment may name a proxy when the client connects:
            HTTPS_PROXY for https and wss, HTTP_PROXY for http and ws, ALL_PROXY for both, as
            `http://user:password@host:port`. Loopback addresses and the hosts in NO_PROXY need none; `*` lists every
            host.
        revision: "auto" (default: the newest that both sides speak), one revision, or several.
        timeout: Seconds without an answer or progress; the pages of a list are one answer. Time in which a callback
            answers a question of the server does not count. Default 60; None for no limit.
        max_timeout: Seconds of a call in all, with its pages and rounds of questions, whatever the progress. Default
            None: no limit.
        connect_timeout: Seconds in which to connect: to reach the server and to agree on a revision. Default: the
            `timeout`.
        headers: Headers of every HTTP request, and of the first one of a WebSocket, such as
            {"Authorization": "Bearer …"}; sent to the URL's own origin only, and never logged.
        ca: The authorities whose certificates of servers are trusted for https and wss, in place of the system's and
            those of the environment (`SSL_CERT_FILE` and `SSL_CERT_DIR`, and `NODE_EXTRA_CA_CERTS` in addition): the
            path of a PEM file, or its bytes. Default: none.
        certificate: The certificate by which the server knows this client, with its chain, and its private key:
            (cert, key), each the path of a PEM file, or its bytes. The URL's own origin is shown it, and no other
            server or proxy. Default: none.
        auth: The credentials for a server over HTTP, in place of a header: "oauth" signs in with the user's browser, as
            `OAuth(…)` does with options; `ClientCredentials(…)`, `EnterpriseManaged(…)` and `WorkloadIdentity(…)` open
            no browser; any other string is an access token; a function, async or not, returns an access token and is
            called again once the server rejects it. Sent to the URL's own origin only, and never logged.
        validate: Whether arguments are checked against the tool's schema before they are sent. Default False.
        cache_results: Whether lists and resources are not requested again while the server's `ttlMs` says that they are
            fresh, unless it has notified of a change. Applies from 2026-07-28 on; calls with `meta` are always sent.
            Default True.
        middleware: Async functions (request, next) that run around the requests of the program, the first one
            outermost. `request` is a `ClientRequest`, which may be changed; `await next(request)` sends it, and returns
            the result as plain JSON values, a failed tool call as one with `isError`. What a function returns is the
            result. Not for subscriptions and notifications. In a `SyncClient` the functions are not async, and call
            `next(request)`.
        retry: What is repeated while the server can't be reached, after growing delays: "safe" (default), reads, lists
            and tools marked read-only or idempotent, in 5 attempts within 30 s; "never"; or a `Retry`.
        client_info: An `Implementation` that describes this program to the server.
        extensions: The extensions that this program implements, such as `{"com.example/search": {}}`, with their
            settings. Handlers see them in `ctx.client_capabilities`. Default none.
        experimental: Capabilities that no specification defines, with their settings. Default none.
        roots: file:// URIs, absolute paths or `Root` values that the server may ask for, or a function of them.
            Before 2026-07-28, `set_roots` works only if some are given here, if only an empty list.
        on_elicit, on_sample: Answer the server's questions, in every era; without them the capability is not declared.
            A form's answer is a mapping, an object of the type, `Declined()`, `Cancelled()`, or the bare value where
            the form has one property, and True or False where it has none; what it leaves open gets its default. A
            question to visit a URL is answered by True or False; None declines. With `on_sample` the model may be
            given tools.
        on_url_done: Called with the id of an `elicit_url` whose interaction is complete (2025-11-25).
        on_log, on_progress, on_list_changed: Called with each `LogMessage`, `Progress` and `ListChanged`.
        on_reconnect: Called with a `Reconnected` after state on the server was lost: a command with `restart=True` was
            started again, a lost connection to an address was opened again, or an HTTP session that the server had
            ended was replaced by a new one.
        allowed_url_schemes: Schemes of the URLs that the server may ask the user to visit. Questions with another URL
            are refused and logged. Default "http" and "https".
        max_rounds: Rounds of questions in one call. Default 10.
        max_message: Bytes of a message. Default 16 MiB. A result may have 10,000 objects, such as content blocks, and a
            list 25,000, their schemas, structured content and `_meta` not counted; with a larger limit proportionally
            more.

    Raises:
        TypeError, ValueError: The target or an option is not valid; the message says how to fix it.

    Spec: Base Protocol › Versioning; Transports.

    >>> import asyncio
    >>> from gudgeon import Client, Server
    >>> app = Server("shelf")
    >>> _ = app.tool(lambda: "ok", name="tidy")
    >>> async def main():
    ...     async with Client(app, timeout=5) as client:
    ...         return [tool.name for tool in await client.list_tools()]
    >>> asyncio.run(main())
    ['tidy']
    """

    _sync: SyncClient | None = None

    def __init__(self, target: Any, **options: Any) -> None:
        super().__init__(target, **options)

    async def __aenter__(self) -> Client:
        self._blocks.enter()
        try:
            return await self.connect()
        except BaseException:
            self._blocks.leave()
            raise

    async def __aexit__(self, *exc: object) -> None:
        if self._blocks.leave():
            await self.close()

    def __enter__(self) -> SyncClient:
        if self._sync is None:
            self._sync = SyncClient(self._target, **self._core.options.given)
        return self._sync.__enter__()

    def __exit__(self, *exc: object) -> None:
        if self._sync is not None:
            self._sync.__exit__(*exc)

    async def connect(self) -> Client:
        """Starts or reaches the server and agrees on a revision with it. Does nothing if connected; reconnects after a
        lost connection.

        Raises:
            ConnectFailed: The command can't be started, or ended before it answered; the message has the last lines of
                stderr.
            AuthError: The server requires credentials, or refused them.
            NotSupported: There is no common revision.
            CallTimeout: The server did not answer in time.

        Spec: Base Protocol › Versioning (server/discover, 2026-07-28); Lifecycle (initialize, before).
        """
        from .memory import OtherEnd

        core = self._core
        if core.is_open():
            if not core.is_lost():
                return self
            await self.close()
        close_at_exit()
        queue = self._loop_queue()
        queue.adopt(core)
        if not isinstance(core.place, (InMemory, Wire)):
            await queue.run(core, core.connect())
            return self
        end = OtherEnd(core.place)
        with await end.open() as stream:
            try:
                await queue.run(core, core.connect(stream.fileno()))
            except BaseException:
                stream.close()
                await end.close()
                raise
        self._other_end = end
        return self

    async def close(self) -> None:
        """Closes the connection, and ends the process that it started. Does nothing if closed.

        The process has 2 seconds to exit after the end of its input, then it gets SIGTERM, and after 2 seconds more
        SIGKILL. Spec: Base Protocol › Transports › stdio › Shutdown.
        """
        end, self._other_end = self._other_end, None
        await self._loop_queue().close(self._core, end)

    @staticmethod
    def _loop_queue() -> Any:
        """Returns the mailbox of the running loop. Its module imports asyncio, which blocking clients do not need."""
        from .loop import loop_queue

        # An import in each call would cost more than all other Python code of a call.
        Client._loop_queue = staticmethod(loop_queue)  # type: ignore[method-assign]
        return loop_queue()

    def _run(self, steps: Any) -> Any:
        return self._loop_queue().run(self._core, steps)

    async def list_tools(self, *, timeout: Any = ...) -> Any:
        """Returns all tools, from all pages. Spec: Server Features › Tools."""
        return await self._run(self._core.list_all("tools", timeout))

    async def list_tools_page(self, cursor: str | None = None, *, timeout: Any = ...) -> Any:
        """Returns one page of tools: a `Page` with `items` and the `next_cursor`. Without a cursor: the first page."""
        return await self._run(self._core.list_page("tools", cursor, timeout))

    async def list_resources(self, *, timeout: Any = ...) -> Any:
        """Returns all resources, from all pages. Spec: Server Features › Resources."""
        return await self._run(self._core.list_all("resources", timeout))

    async def list_resources_page(self, cursor: str | None = None, *, timeout: Any = ...) -> Any:
        """Returns one page of resources, like `list_tools_page`."""
        return await self._run(self._core.list_page("resources", cursor, timeout))

    async def list_resource_templates(self, *, timeout: Any = ...) -> Any:
        """Returns all resource templates, from all pages. Spec: Server Features › Resources › Templates."""
        return await self._run(self._core.list_all("resourceTemplates", timeout))

    async def list_resource_templates_page(self, cursor: str | None = None, *, timeout: Any = ...) -> Any:
        """Returns one page of resource templates, like `list_tools_page`."""
        return await self._run(self._core.list_page("resourceTemplates", cursor, timeout))

    async def list_prompts(self, *, timeout: Any = ...) -> Any:
        """Returns all prompts, from all pages. Spec: Server Features › Prompts."""
        return await self._run(self._core.list_all("prompts", timeout))

    async def list_prompts_page(self, cursor: str | None = None, *, timeout: Any = ...) -> Any:
        """Returns one page of prompts, like `list_tools_page`."""
        return await self._run(self._core.list_page("prompts", cursor, timeout))

    async def call_tool(self, name: str, arguments: Any = None, *, returns: Any = ..., **options: Any) -> Any:
        """Calls a tool and returns its `ToolResult`; its `data` is the structured content, else the text.

        Args:
            name: The tool's name.
            arguments: A mapping, or an object that can be converted to a JSON object.
            returns: The type of `data`, such as a model, a datetime or `dict[str, int]`. Without structured content it
                is read from the text itself, or else from the JSON in it. Default: JSON values, or the text.
            timeout: Seconds without an answer or progress; None for no limit. Default: the client's.
            on_progress: A function that is called with each `Progress` of this call.
            raise_on_error: Whether a result with `isError` raises ToolError, and one that does not fit the output
                schema of the tool ProtocolError (default True), or is returned.
            meta: The request's `_meta`.

        Raises:
            ToolError: The tool failed.
            ProtocolError: There is no such tool, or the arguments are wrong.
            CallTimeout, ConnectionLost: There was no answer in time, or the connection closed.
            NotSupported: The server has no tools.

        Spec: Server Features › Tools.
        """
        return await self._run(self._core.call_tool(name, arguments, returns, options))

    async def call_tool_round(
        self, name: str, arguments: Any = None, *, answers: Any = None, state: str | None = None, **options: Any
    ) -> Any:
        """Runs one round of a call: an `InputRequired` is returned as it is, to be answered later, if need be by
        another process.

        Args:
            name, arguments: As for `call_tool`, the same in every round.
            answers: Results as on the wire, by question key.
            state: The `state` of the previous `InputRequired`.

        Errors are those of `call_tool`.

        Spec: Base Protocol › Patterns › Multi round-trip requests (2026-07-28).
        """
        return await self._run(self._core.call_tool_round(name, arguments, answers, state, options))

    async def read_resource(self, uri: str, variables: Any = None, *, timeout: Any = ...) -> Any:
        """Reads a resource and returns its `ResourceResult`.

        Args:
            uri: The URI, or a template (RFC 6570).
            variables: The values of the template's variables.
            timeout: As for `call_tool`.

        Raises:
            ResourceNotFound: There is no such resource.

        Spec: Server Features › Resources.
        """
        return await self._run(self._core.read_resource(uri, variables, timeout))

    async def get_prompt(self, name: str, arguments: Any = None, *, timeout: Any = ...) -> Any:
        """Returns a prompt with its arguments filled in, a `PromptResult`.

        Args:
            arguments: Strings by name.
            timeout: As for `call_tool`.

        Raises:
            ProtocolError: There is no such prompt, or an argument is missing.

        Spec: Server Features › Prompts.
        """
        return await self._run(self._core.get_prompt(name, arguments, timeout))

    async def complete(
        self, target: str, argument: str, value: str, *, arguments: Any = None, timeout: Any = ...
    ) -> Any:
        """Returns suggestions for an argument of a prompt, or for a variable of a resource template: a `Completion`.

        Args:
            target: The prompt's name, or the URI template.
            argument: The argument's or variable's name.
            value: The text typed so far.
            arguments: The values of the other arguments.
            timeout: As for `call_tool`.

        Spec: Server Features › Utilities › Completion.
        """
        return await self._run(self._core.complete(target, argument, value, arguments, timeout))

    def subscribe(self, *uris: str, tools: bool = False, prompts: bool = False, resources: bool = False) -> Any:
        """Subscribes to changes of these resources and lists, when it is entered with `with`.

        Equal changes that were not taken yet are one change. A subscription that breaks is renewed where possible
        (2026-07-28; a `Command` with `restart=True`); everything then counts as changed, because changes may have been
        missed. The iteration ends when the server ends the subscription in good order, or the client is closed.

        Args:
            uris: The URIs of the resources.
            tools, prompts, resources: Whether to subscribe to changes of these lists. Default False.

        Raises:
            ValueError: Neither a resource nor a list is named.
            NotSupported: On entering: the server does not report all of these changes.
            CallTimeout: On entering: the server does not answer within the client's `timeout`.
            Cancelled: While iterating: the server cancelled the subscription; the message says why.
            ConnectionLost: While iterating: the connection closed, and could not be renewed.

        Spec: Base Protocol › Patterns › Subscriptions (2026-07-28); Server Features › Resources › Subscriptions
        (before).

        >>> import asyncio
        >>> from gudgeon import Client, Server
        >>> app = Server("shelf")
        >>> _ = app.resource("shelf://about", name="about")(lambda: "two books")
        >>> async def main():
        ...     async with Client(app) as client, client.subscribe("shelf://about") as changes:
        ...         app.notify_updated("shelf://about")
        ...         async for change in changes:
        ...             return change.kind, change.uri
        >>> asyncio.run(main())
        ('updated', 'shelf://about')
        """
        return Subscription(self._core, self._run, *self._subscription(uris, tools, prompts, resources))

    async def set_log_level(self, level: Any, *, timeout: Any = ...) -> None:
        """Sets the level from which on the server sends log messages. Spec: Server Features › Utilities › Logging."""
        await self._run(self._core.set_log_level(level, timeout))

    async def ping(self, *, timeout: Any = ...) -> Any:
        """Returns the seconds that the server takes to answer. Spec: Base Protocol › Utilities › Ping."""
        return await self._run(self._core.ping(timeout))

    async def request(self, method: str, params: Any = None, *, timeout: Any = ...) -> Any:
        """Sends any request, such as a vendor's own, and returns its result as a JSON value.

        Raises:
            ProtocolError: The server refuses it.
        """
        return await self._run(self._core.request(method, params, timeout))

    async def notify(self, method: str, params: Any = None) -> None:
        """Sends any notification; one of the specification that the revision lacks is not sent."""
        self._core.notify(method, params)
