"""Clients: `Client` for event loops and `SyncClient` without, two faces of one implementation."""

from ._client_exit import close_at_exit
from ._client_group import ClientGroup, SyncClientGroup
from ._client_options import Retry
from ._client_peer import Peer
from ._client_subscription import Subscription, SyncSubscription
from ._client_sync import SyncClient
from ._client_targets import Command, InMemory, Wire

__all__ = [
    "Client",
    "ClientGroup",
    "Command",
    "Retry",
    "Subscription",
    "SyncClient",
    "SyncClientGroup",
    "SyncSubscription",
]


class Client(Peer):
    """A connection to one server, opened by `async with`, by `with` (then a `SyncClient`) or by `await connect()`.

    The constructor does no input or output. Every property raises McpError until the client is connected.

    Args:
        target: A URL (http, https, ws, wss, tcp, unix); a command as a list of words or a `Command`; the Path of a
            file to run; a `Server`, served in memory; an entry of a host's JSON configuration; or a `Transport`.
        revision: "auto" (default: the newest that both sides speak), one revision, or several.
        timeout: Seconds without an answer or progress, while nothing that the server asks is with a callback; and the
            seconds that connecting may take as a whole. Default 60; None for no limit.
        max_timeout: Seconds in all, however much progress is told. Default None.
        headers: Sent with every HTTP request and with a WebSocket's first, such as {"Authorization": "Bearer …"};
            to the URL's own origin only, and never logged.
        validate: Whether arguments are checked against the tool's schema before they are sent. Default False.
        retry: "safe" (default) repeats reads, lists and repeatable tools when a `Command` with `restart=True` ended;
            "never", or a `Retry`.
        client_info: What the server is told of this program, an `Implementation`.
        roots: URIs or `Root` values that the server may ask for, or a function that gives them. Before 2026-07-28 a
            client that gives none here has none for good.
        on_elicit, on_sample: Answer the server's questions, in every era; without them the capability is not declared.
            A form's answer is a mapping, an object of the type, `Declined()`, `Cancelled()`, or the bare value where
            the form has one property, and True or False where it has none; what it leaves open gets its default. With
            `on_sample` the model may be given tools.
        on_url_done: Is told the id of an `elicit_url` whose page is done (2025-11-25).
        on_log, on_progress, on_list_changed: Are told what their name says.
        on_reconnect: Is given what the server says of itself when what it kept for this client is gone: a command with
            `restart=True` was started again, or a session over HTTP that it had forgotten was begun anew.
        max_rounds: How often one call may come back with questions. Default 10.
        max_message: Bytes a message may have. Default 16 MiB.

    Raises:
        TypeError, ValueError: The target or an option can't be meant; the text says the mend.

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

    _sync = None

    def __init__(self, target, **options):
        super().__init__(target, **options)

    async def __aenter__(self):
        self._blocks.enter()
        try:
            return await self.connect()
        except BaseException:
            self._blocks.leave()
            raise

    async def __aexit__(self, *exc):
        if self._blocks.leave():
            await self.close()

    def __enter__(self):
        if self._sync is None:
            self._sync = SyncClient(self._target, **self._core.options.given)
        return self._sync.__enter__()

    def __exit__(self, *exc):
        if self._sync is not None:
            self._sync.__exit__(*exc)

    async def connect(self):
        """Starts or reaches the server and agrees on a revision with it. Connected already, it does
        nothing; a lost connection is made anew.

        Raises:
            ConnectFailed: The command can't be started, or ended before it answered; stderr's last lines are told.
            AuthError: The server wants credentials, or others.
            NotSupported: No revision in common.
            CallTimeout: It never answered.

        Spec: Base Protocol › Versioning (server/discover, 2026-07-28); Lifecycle (initialize, before).
        """
        from ._client_memory import OtherEnd

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

    async def close(self):
        """Ends the connection, and the server's process with it. Closed already, it does nothing."""
        end, self._other_end = self._other_end, None
        try:
            await self._run(self._core.close())
        finally:
            if end is not None and not self._core.is_forked():
                await end.close()

    @staticmethod
    def _loop_queue():
        """The mailbox of the running loop. Its module brings asyncio, which blocking clients do without."""
        from ._client_loop import loop_queue

        # An import in each call would cost more than anything else that is done in Python there.
        Client._loop_queue = staticmethod(loop_queue)
        return loop_queue()

    def _run(self, steps):
        return self._loop_queue().run(self._core, steps)

    async def list_tools(self):
        """All tools, all pages. Spec: Server Features › Tools."""
        return await self._run(self._core.list_all("tools"))

    async def list_tools_page(self, cursor=None):
        """One page of tools: a `Page` with `items` and `next_cursor`, which asks for the next. None: the first."""
        return await self._run(self._core.list_page("tools", cursor))

    async def list_resources(self):
        """All resources, all pages. Spec: Server Features › Resources."""
        return await self._run(self._core.list_all("resources"))

    async def list_resources_page(self, cursor=None):
        """One page of resources, as `list_tools_page`."""
        return await self._run(self._core.list_page("resources", cursor))

    async def list_resource_templates(self):
        """All templates of resources, all pages. Spec: Server Features › Resources › Templates."""
        return await self._run(self._core.list_all("resourceTemplates"))

    async def list_resource_templates_page(self, cursor=None):
        """One page of templates, as `list_tools_page`."""
        return await self._run(self._core.list_page("resourceTemplates", cursor))

    async def list_prompts(self):
        """All prompts, all pages. Spec: Server Features › Prompts."""
        return await self._run(self._core.list_all("prompts"))

    async def list_prompts_page(self, cursor=None):
        """One page of prompts, as `list_tools_page`."""
        return await self._run(self._core.list_page("prompts", cursor))

    async def call_tool(self, name, arguments=None, *, returns=..., **options):
        """Calls a tool and gives its `ToolResult`; its `data` is the structured content, else the text.

        Args:
            name: The tool's name.
            arguments: A mapping, or an object of a type that JSON can say.
            returns: The type that `data` shall have.
            timeout: Seconds without an answer or progress; None for no limit. Default: the client's.
            on_progress: Gets each `Progress` of this call.
            raise_on_error: Whether a result with `isError` raises (default True) or is given back.
            meta: The request's `_meta`.

        Raises:
            ToolError: The tool failed.
            ProtocolError: There is no such tool, or the arguments are wrong.
            CallTimeout, ConnectionLost: No answer in time, or none any more.
            NotSupported: The server has no tools.

        Spec: Server Features › Tools.
        """
        return await self._run(self._core.call_tool(name, arguments, returns, options))

    async def call_tool_round(self, name, arguments=None, *, answers=None, state=None, **options):
        """One round by hand: an `InputRequired` comes back as it is, to be answered later, by another process if need
        be.

        Args:
            name, arguments: As for `call_tool`, the same in every round.
            answers: Results as on the wire, by question key.
            state: What the `InputRequired` before gave.

        Raises:
            What `call_tool` does.

        Spec: Base Protocol › Patterns › Multi round-trip requests (2026-07-28).
        """
        return await self._run(self._core.call_tool_round(name, arguments, answers, state, options))

    async def read_resource(self, uri, variables=None, *, timeout=...):
        """Reads a resource and gives its `ResourceResult`.

        Args:
            uri: The URI, or a template (RFC 6570).
            variables: What the template is expanded with.
            timeout: As for `call_tool`.

        Raises:
            ResourceNotFound: There is no such resource.

        Spec: Server Features › Resources.
        """
        return await self._run(self._core.read_resource(uri, variables, timeout))

    async def get_prompt(self, name, arguments=None, *, timeout=...):
        """A prompt with its arguments filled in, a `PromptResult`.

        Args:
            arguments: Texts by name.
            timeout: As for `call_tool`.

        Raises:
            ProtocolError: There is no such prompt, or an argument is missing.

        Spec: Server Features › Prompts.
        """
        return await self._run(self._core.get_prompt(name, arguments, timeout))

    async def complete(self, target, argument, value, *, arguments=None):
        """Suggestions for an argument of a prompt, or for a variable of a resource template: a `Completion`.

        Args:
            target: The prompt's name, or the URI template.
            argument: The argument's or variable's name.
            value: What is typed so far.
            arguments: What was chosen for the others.

        Spec: Server Features › Utilities › Completion.
        """
        return await self._run(self._core.complete(target, argument, value, arguments))

    def subscribe(self, *uris, tools=False, prompts=False, resources=False):
        """Changes of these resources, and of the lists that are asked for; the subscription is entered with `with`.

        A change that comes again before it was taken is one change. A subscription that breaks is taken up again where
        that can be (2026-07-28; a `Command` with `restart=True`): then everything counts as changed, for it may have
        been missed. The iteration ends when the server ends the subscription well, or the client is closed.

        Args:
            uris: The resources to hear of.
            tools, prompts, resources: Whether to hear of changes of these lists. Default False.

        Raises:
            ValueError: Nothing is asked for.
            NotSupported: On entering: the server does not tell of all these changes.
            CallTimeout: On entering: the server does not answer within the client's `timeout`.
            Cancelled: While iterating: the server tore the subscription down; the text says why.
            ConnectionLost: While iterating: the connection is gone, or was not to be taken up again.

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
        return Subscription(self._core, *self._subscription(uris, tools, prompts, resources))

    async def set_log_level(self, level):
        """From which level on the server's log is sent. Spec: Server Features › Utilities › Logging."""
        await self._run(self._core.set_log_level(level))

    async def ping(self):
        """How many seconds the server takes to answer. Spec: Base Protocol › Utilities › Ping."""
        return await self._run(self._core.ping())

    async def request(self, method, params=None, *, timeout=...):
        """Sends any request, a vendor's own for one, and gives its result as JSON says it.

        Raises:
            ProtocolError: The server refuses it.
        """
        return await self._run(self._core.request(method, params, timeout))

    async def notify(self, method, params=None):
        """Sends any notification; one of the specification's that the revision lacks is not sent."""
        self._core.notify(method, params)
