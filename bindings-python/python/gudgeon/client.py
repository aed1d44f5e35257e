"""Clients: `Client` for event loops and `SyncClient` without, two faces of one implementation."""

from ._client_core import Core
from ._client_exit import close_at_exit
from ._client_group import ClientGroup, SyncClientGroup
from ._client_options import Options, Retry
from ._client_subscription import Subscription, SyncSubscription
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


class _Peer:
    """What the server said of itself; known once the client is connected."""

    def __init__(self, target, /, **options):
        self._target = target
        self._core = Core(target, Options(options))
        self._other_end = None

    def __repr__(self):
        state = "connected" if self._core.is_open() else "not connected"
        return f"{type(self).__name__}({self._core.target_name()!r}, {state})"

    @property
    def server(self):
        from .types import Implementation

        return Implementation.from_dict({"version": "", **self._core.said("info")})

    @property
    def revision(self):
        return self._core.said("revision")

    @property
    def capabilities(self):
        return self._core.said("capabilities")

    @property
    def instructions(self):
        return self._core.said("instructions")

    @property
    def session_id(self):
        self._core.said("info")
        return None  # only HTTP has sessions with ids

    def set_roots(self, roots, /):
        """Changes the roots; a legacy server is told so, and must have been told of some at the start."""
        self._core.set_roots(roots)

    def _subscription(self, uris, tools, prompts, resources):
        return uris, {"tools": tools, "prompts": prompts, "resources": resources}


class Client(_Peer):
    """The constructor does no input or output: `async with`, `with`, or `await connect()` does."""

    _sync = None

    async def __aenter__(self):
        return await self.connect()

    async def __aexit__(self, *exc):
        await self.close()

    def __enter__(self):
        self._sync = SyncClient(self._target, **self._core.options.given)
        return self._sync.__enter__()

    def __exit__(self, *exc):
        sync, self._sync = self._sync, None
        if sync is not None:
            sync.close()

    async def connect(self):
        """Starts or reaches the server and agrees on a revision with it. Connected already, it does nothing."""
        from ._client_loop import loop_post
        from ._client_memory import OtherEnd

        core = self._core
        if core.is_open():
            return self
        close_at_exit()
        post = loop_post()
        post.adopt(core)
        if not isinstance(core.place, (InMemory, Wire)):
            await post.run(core, core.connect())
            return self
        end = OtherEnd(core.place)
        with await end.open() as stream:
            try:
                await post.run(core, core.connect(stream.fileno()))
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

    async def _run(self, steps):
        from ._client_loop import loop_post

        return await loop_post().run(self._core, steps)

    async def list_tools(self):
        return await self._run(self._core.list_all("tools"))

    async def list_tools_page(self, cursor=None, /):
        return await self._run(self._core.list_page("tools", cursor))

    async def list_resources(self):
        return await self._run(self._core.list_all("resources"))

    async def list_resources_page(self, cursor=None, /):
        return await self._run(self._core.list_page("resources", cursor))

    async def list_resource_templates(self):
        return await self._run(self._core.list_all("resourceTemplates"))

    async def list_resource_templates_page(self, cursor=None, /):
        return await self._run(self._core.list_page("resourceTemplates", cursor))

    async def list_prompts(self):
        return await self._run(self._core.list_all("prompts"))

    async def list_prompts_page(self, cursor=None, /):
        return await self._run(self._core.list_page("prompts", cursor))

    async def call_tool(self, name, arguments=None, /, *, returns=..., **options):
        """Calls a tool; one that fails raises ToolError, unless raise_on_error=False."""
        return await self._run(self._core.call_tool(name, arguments, returns, options))

    async def call_tool_round(self, name, arguments=None, /, *, answers=None, state=None, **options):
        """One round by hand: answers, by question key and as on the wire, may come from another process, days later."""
        return await self._run(self._core.call_tool_round(name, arguments, answers, state, options))

    async def read_resource(self, uri, variables=None, /, *, timeout=...):
        """Reads a resource; variables expand a template."""
        return await self._run(self._core.read_resource(uri, variables, timeout))

    async def get_prompt(self, name, arguments=None, /, *, timeout=...):
        return await self._run(self._core.get_prompt(name, arguments, timeout))

    async def complete(self, target, argument, value, /, *, arguments=None):
        """Suggestions for an argument of a prompt, or for a variable of a resource template."""
        return await self._run(self._core.complete(target, argument, value, arguments))

    def subscribe(self, *uris, tools=False, prompts=False, resources=False):
        """Changes of resources and of lists."""
        return Subscription(self._core, *self._subscription(uris, tools, prompts, resources))

    async def set_log_level(self, level, /):
        await self._run(self._core.set_log_level(level))

    async def ping(self):
        """How many seconds the server takes to answer."""
        return await self._run(self._core.ping())

    async def request(self, method, params=None, /, *, timeout=...):
        """Sends any request, a vendor's own for one."""
        return await self._run(self._core.request(method, params, timeout))

    async def notify(self, method, params=None, /):
        self._core.notify(method, params)


class SyncClient(_Peer):
    """`Client` without an event loop: the same names, blocking."""

    def __init__(self, target, /, **options):
        from ._client_thread import ThreadPost

        super().__init__(target, **options)
        self._post = ThreadPost(self._core)
        self._run = self._post.run

    def __enter__(self):
        return self.connect()

    def __exit__(self, *exc):
        self.close()

    def connect(self):
        """Starts or reaches the server and agrees on a revision with it. Connected already, it does nothing."""
        core = self._core
        if core.is_open():
            return self
        close_at_exit()
        if not isinstance(core.place, (InMemory, Wire)):
            self._run(core.connect())
            return self
        from ._client_memory import OtherEnd

        end = OtherEnd(core.place)
        with end.open_blocking() as stream:
            try:
                self._run(core.connect(stream.fileno()))
            except BaseException:
                stream.close()
                end.close_blocking()
                raise
        self._other_end = end
        return self

    def close(self):
        """Ends the connection, and the server's process with it. Closed already, it does nothing."""
        end, self._other_end = self._other_end, None
        try:
            self._run(self._core.close())
        finally:
            if end is not None and not self._core.is_forked():
                end.close_blocking()

    def list_tools(self):
        return self._run(self._core.list_all("tools"))

    def list_tools_page(self, cursor=None, /):
        return self._run(self._core.list_page("tools", cursor))

    def list_resources(self):
        return self._run(self._core.list_all("resources"))

    def list_resources_page(self, cursor=None, /):
        return self._run(self._core.list_page("resources", cursor))

    def list_resource_templates(self):
        return self._run(self._core.list_all("resourceTemplates"))

    def list_resource_templates_page(self, cursor=None, /):
        return self._run(self._core.list_page("resourceTemplates", cursor))

    def list_prompts(self):
        return self._run(self._core.list_all("prompts"))

    def list_prompts_page(self, cursor=None, /):
        return self._run(self._core.list_page("prompts", cursor))

    def call_tool(self, name, arguments=None, /, *, returns=..., **options):
        """Calls a tool; one that fails raises ToolError, unless raise_on_error=False."""
        return self._run(self._core.call_tool(name, arguments, returns, options))

    def call_tool_round(self, name, arguments=None, /, *, answers=None, state=None, **options):
        """One round by hand: answers, by question key and as on the wire, may come from another process, days later."""
        return self._run(self._core.call_tool_round(name, arguments, answers, state, options))

    def read_resource(self, uri, variables=None, /, *, timeout=...):
        """Reads a resource; variables expand a template."""
        return self._run(self._core.read_resource(uri, variables, timeout))

    def get_prompt(self, name, arguments=None, /, *, timeout=...):
        return self._run(self._core.get_prompt(name, arguments, timeout))

    def complete(self, target, argument, value, /, *, arguments=None):
        """Suggestions for an argument of a prompt, or for a variable of a resource template."""
        return self._run(self._core.complete(target, argument, value, arguments))

    def subscribe(self, *uris, tools=False, prompts=False, resources=False):
        """Changes of resources and of lists."""
        return SyncSubscription(self._core, *self._subscription(uris, tools, prompts, resources), self._post)

    def set_log_level(self, level, /):
        self._run(self._core.set_log_level(level))

    def ping(self):
        """How many seconds the server takes to answer."""
        return self._run(self._core.ping())

    def request(self, method, params=None, /, *, timeout=...):
        """Sends any request, a vendor's own for one."""
        return self._run(self._core.request(method, params, timeout))

    def notify(self, method, params=None, /):
        self._core.notify(method, params)
