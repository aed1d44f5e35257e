"""Several servers as one client."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from os import PathLike
from typing import Any

from msgspec.json import decode

from .._model.frames import from_here
from .._model.json import encode
from .._native import Group, group_file, group_targets
from ..errors import McpError
from .aio import Client
from .blocks import Blocks
from .core import Ask, gathered
from .errors import read_error
from .exit import log_unstarted
from .read import read_list, read_resource, read_result
from .subscription import Subscription, SyncSubscription
from .sync import SyncClient
from .targets import InMemory

Steps = Generator[Ask, Any, Any]


class _Group:
    """The clients of several servers. The native half knows which server a request goes to."""

    def __init__(self, targets: Mapping[str, Any] | str | PathLike[str], **options: Any) -> None:
        self._options = options
        self._blocks = Blocks()
        self._file: str | None = None
        self._all: dict[str, Any] = {}
        self._last: dict[str, Any] = {}  # the clients that were reached before the group was closed
        self._is_open = False
        self._native: Any = None
        given, read = group_targets(targets)
        if read is None:
            self._file = given
        else:
            self._name({**given, **decode(read)})

    @property
    def clients(self) -> dict[str, Any]:
        """The clients of the servers that were reached, by name. The connection of one may be lost meanwhile."""
        if self._is_open:
            for client in self._all.values():
                client._core.refresh()
            self._last = {name: client for name, client in self._all.items() if client._core.is_open()}
        return dict(self._last)

    @property
    def errors(self) -> dict[str, Exception]:
        """The McpErrors of the servers that can't be reached, or whose last list failed, by name."""
        if self._native is None:
            return {}
        return {name: read_error(error) for name, error in self._native.errors()}

    def _name(self, targets: Mapping[str, Any]) -> None:
        """Makes the clients, unconnected."""
        for name, target in targets.items():
            self._all[name] = self._client(target, self._options)
            self._all[name]._core.group_name = name

    def _client(self, target: Any, options: Mapping[str, Any]) -> Any:
        raise NotImplementedError

    def _begin(self) -> None:
        if self._file is not None and not self._all:
            with open(self._file, "rb") as file:
                self._name(decode(group_file(self._file, file.read())))

    def _connected(self) -> None:
        self._native = Group([client._core.native for client in self._all.values()])
        self._is_open = True

    def _close(self) -> list[Any]:
        """Returns the clients to close."""
        self._last, self._is_open = self.clients, False
        return list(self._all.values())

    def _unstarted(self, client: Any, error: Exception) -> None:
        """Records that a server in memory can't be started; another error is raised."""
        if not isinstance(client._core.place, InMemory):
            raise error
        log_unstarted(client._core.target_name(), error)
        client._core.native.fail(client._core.group_name, repr(error))

    def target_name(self) -> str:
        """The name in the errors of results that can't be read."""
        return f"{type(self).__name__}({', '.join(self._all)})"

    # The methods below are generators, written once: each yields requests and receives their outcomes.

    def _connected_native(self) -> Any:
        if self._native is None:
            raise McpError("this group is not connected", hint="use it inside `with` or `async with`")
        return self._native

    def _start(self, operation: str, **params: Any) -> Steps:
        native, text = self._connected_native(), encode(params)
        middleware = bool(self._options.get("middleware"))
        return (yield Ask(lambda mailbox: native.call(mailbox, operation, text), has_middleware=middleware))

    def _list(self, kind: str) -> Steps:
        event = yield from self._start(f"list{kind[0].upper()}{kind[1:]}")
        return (yield from gathered(read_list(self, kind, event[2])))

    def _find(self, kind: str, name: str) -> Steps:
        """Returns the client that has a tool or prompt, and its name there."""
        found = None if self._native is None else self._native.find_now(name)
        if found is None:
            event = yield from self._start(f"find{kind}", name=name)
            found = read_result(self, name, event[2]).values()
        server, own_name = found
        client = self._all[server]
        client._core.refresh()
        return client, own_name

    def _read(self, uri: str, server: str | None) -> Steps:
        event = yield from self._start("readResource", uri=uri, server=server)
        return read_resource(self, event)


class _Changes:
    """Returns the parts of a subscription of the group, or of one server if it is named."""

    def __init__(self, group: _Group, server: str | None) -> None:
        self._group = group
        self._server = server

    @property
    def native(self) -> Any:
        return self._group._native

    def subscribe(self, filter: Mapping[str, Any]) -> Steps:
        native = self._group._connected_native()
        params = encode({"filter": filter, "server": self._server}, "the subscription")
        event = yield Ask(lambda mailbox: native.subscribe(mailbox, params))
        return event[1]


class ClientGroup(_Group):
    """Several servers as one client: names get the server's prefix, one that fails leaves the others working.

    `clients` has the clients of the servers that were reached, by name; `errors` has an McpError for each server that
    can't be reached, or whose last list failed. Servers that can't be reached are tried again in the background, after
    1 s at first and after growing delays of up to 60 s, unless credentials or a common revision are missing; a call to
    one tries at once. `on_reconnect` is called when one is reached. Commands that end are started again before the next
    request.

    Args:
        targets: Targets by name, a host's whole configuration (`{"mcpServers": …}` or `{"servers": …}`), or the path of
            a JSON file with either, a str or a Path, which is read when the group is entered. Comments and commas after
            the last element are allowed. In a configuration and in a file, `${NAME}` and `${env:NAME}` stand for
            environment variables of this program, and `${NAME:-default}` has a default, which may hold references; a
            value is used as it is. Targets that the program names itself are used as they are.
        options: Those of `Client`, for each of them; requests of `on_elicit` and `on_sample`, log messages and changed
            lists name their `server`.

    Raises:
        TypeError: It is neither a mapping of names to targets nor a path.
        ValueError: The path is a URL; a variable of the configuration is not set and has no default, or a reference is
            not closed. On entering: the file is not valid JSON. Errors name the file, the server and the member.
        OSError: On entering: the file can't be read.
    """

    def __init__(self, targets: Mapping[str, Any] | str | PathLike[str], **options: Any) -> None:
        super().__init__(targets, **options)

    def _client(self, target: Any, options: Mapping[str, Any]) -> Any:
        return Client(target, **options)

    async def __aenter__(self) -> ClientGroup:
        import asyncio

        if not self._blocks.enter():
            return self
        tasks: list[asyncio.Task[None]] = []
        try:
            self._begin()
            tasks += [asyncio.ensure_future(self._connect(client)) for client in self._all.values()]
            await asyncio.gather(*tasks)
            self._connected()
        except BaseException:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self.__aexit__()
            raise
        return self

    async def _connect(self, client: Client) -> None:
        try:
            await client.connect()
        except McpError:
            pass  # the native half knows it, and tries again
        except Exception as error:
            self._unstarted(client, error)

    async def __aexit__(self, *exc: object) -> None:
        if not self._blocks.leave():
            return
        import asyncio

        await asyncio.gather(*(client.close() for client in self._close()), return_exceptions=True)

    async def list_tools(self) -> list[Any]:
        """Lists all tools of all servers as `<server>_<tool>`; those of servers that fail are left out.

        Raises McpError if two tools would have the same name.
        """
        tools: list[Any] = await self._run(self._list("tools"))
        return tools

    async def list_resources(self) -> list[Any]:
        """Lists all resources of all servers, under their own URIs."""
        resources: list[Any] = await self._run(self._list("resources"))
        return resources

    async def list_resource_templates(self) -> list[Any]:
        """Lists all templates of all servers."""
        templates: list[Any] = await self._run(self._list("resourceTemplates"))
        return templates

    async def list_prompts(self) -> list[Any]:
        """Lists all prompts of all servers as `<server>_<prompt>`; those of servers that fail are left out.

        Raises McpError if two prompts would have the same name.
        """
        prompts: list[Any] = await self._run(self._list("prompts"))
        return prompts

    async def call_tool(self, name: str, arguments: Mapping[str, Any] | None = None, **options: Any) -> Any:
        """`Client.call_tool` with `<server>_<tool>` as name.

        Raises the server's error if it can't be reached.
        """
        client, own_name = await self._run(self._find("Tool", name))
        return await client.call_tool(own_name, arguments, **options)

    async def read_resource(self, uri: str, *, server: str | None = None) -> Any:
        """Reads a resource from the named server; by default from the first that lists the URI. If none does, servers
        with a template that matches are tried first, then the others.

        Raises the first error of a server that was tried, other than that it does not have the resource;
        ResourceNotFound without one.
        """
        return await self._run(self._read(uri, server))

    async def get_prompt(self, name: str, arguments: Mapping[str, str] | None = None) -> Any:
        """`Client.get_prompt` with `<server>_<prompt>` as name."""
        client, own_name = await self._run(self._find("Prompt", name))
        return await client.get_prompt(own_name, arguments)

    def subscribe(
        self,
        *uris: str,
        tools: bool = False,
        prompts: bool = False,
        resources: bool = False,
        server: str | None = None,
    ) -> Any:
        """Subscribes to changes of these resources, and of these lists of all servers, when it is entered with `with`.
        Each change names its `server`.

        Equal changes that were not taken yet are one change. A server that can't be reached is subscribed to once it is
        reached. After an interruption everything that a server was subscribed to counts as changed, because changes may
        have been missed. The iteration ends when the group is closed, or when no server is left whose subscription
        continues; `errors` has the reasons.

        Args:
            uris: The URIs of the resources, each of the server that `read_resource` would read it from first.
            tools, prompts, resources: Whether to subscribe to changes of these lists. Default False.
            server: The only server to subscribe to. Default: all.

        Raises:
            ValueError: Neither a resource nor a list is named.
            NotSupported: On entering: all servers are connected and none reports any of these changes, or no connected
                server reports updates of a resource.
            McpError: On entering: the group has no server of this name.

        Spec: Base Protocol › Patterns › Subscriptions (2026-07-28); Server Features › Resources › Subscriptions
        (before).

        >>> import asyncio
        >>> from gudgeon import ClientGroup, Server
        >>> shelf = Server("shelf")
        >>> _ = shelf.tool(lambda: "ok", name="tidy")
        >>> async def main():
        ...     async with ClientGroup({"books": shelf}) as group, group.subscribe(tools=True) as changes:
        ...         shelf.tools.disable("tidy")
        ...         async for change in changes:
        ...             return change.server, change.kind
        >>> asyncio.run(main())
        ('books', 'tools')
        """
        lists = {"tools": tools, "prompts": prompts, "resources": resources}
        return Subscription(_Changes(self, server), self._run, uris, lists)

    async def _run(self, steps: Steps) -> Any:
        queue = Client._loop_queue()
        cores = [client._core for client in self._all.values()]
        guests = [core for core in cores if not queue.attend(core)]
        try:
            ask = next(steps)
            while True:
                ask = steps.send(await queue.ask(self._native, ask, guests))
        except StopIteration as end:
            return end.value
        except Exception as error:
            raise from_here(error)  # noqa: B904


class SyncClientGroup(_Group):
    """`ClientGroup`, blocking.

    >>> from gudgeon import Server, SyncClientGroup
    >>> shelf = Server("shelf")
    >>> @shelf.tool
    ... def count() -> int:
    ...     return 2
    >>> with SyncClientGroup({"shelf": shelf, "gone": ["no-such-program"]}) as group:
    ...     group.call_tool("shelf_count").data, list(group.errors)
    (2, ['gone'])
    """

    def __init__(self, targets: Mapping[str, Any] | str | PathLike[str], **options: Any) -> None:
        from .thread import ThreadQueue

        self._queue = ThreadQueue()
        super().__init__(targets, **options)

    def _client(self, target: Any, options: Mapping[str, Any]) -> Any:
        client = SyncClient(target, **options)
        client._share(self._queue)
        return client

    def __enter__(self) -> SyncClientGroup:
        if not self._blocks.enter():
            return self
        try:
            self._begin()
            connecting = [SyncClient._start(client) for client in self._all.values()]
            for client, finish in zip(self._all.values(), connecting, strict=True):
                try:
                    finish()
                except McpError:
                    pass  # the native half knows it, and tries again
                except Exception as error:
                    self._unstarted(client, error)
            self._connected()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        if self._blocks.leave():
            closing = [client._stop() for client in self._close()]
            for finish in closing:
                finish()

    def list_tools(self) -> list[Any]:
        """Lists all tools of all servers as `<server>_<tool>`; those of servers that fail are left out.

        Raises McpError if two tools would have the same name.
        """
        tools: list[Any] = self._run(self._list("tools"))
        return tools

    def list_resources(self) -> list[Any]:
        """Lists all resources of all servers, under their own URIs."""
        resources: list[Any] = self._run(self._list("resources"))
        return resources

    def list_resource_templates(self) -> list[Any]:
        """Lists all templates of all servers."""
        templates: list[Any] = self._run(self._list("resourceTemplates"))
        return templates

    def list_prompts(self) -> list[Any]:
        """Lists all prompts of all servers as `<server>_<prompt>`; those of servers that fail are left out.

        Raises McpError if two prompts would have the same name.
        """
        prompts: list[Any] = self._run(self._list("prompts"))
        return prompts

    def call_tool(self, name: str, arguments: Mapping[str, Any] | None = None, **options: Any) -> Any:
        """`SyncClient.call_tool` with `<server>_<tool>` as name.

        Raises the server's error if it can't be reached.
        """
        client, own_name = self._run(self._find("Tool", name))
        return client.call_tool(own_name, arguments, **options)

    def read_resource(self, uri: str, *, server: str | None = None) -> Any:
        """Reads a resource from the named server; by default from the first that lists the URI. If none does, servers
        with a template that matches are tried first, then the others.

        Raises the first error of a server that was tried, other than that it does not have the resource;
        ResourceNotFound without one.
        """
        return self._run(self._read(uri, server))

    def get_prompt(self, name: str, arguments: Mapping[str, str] | None = None) -> Any:
        """`SyncClient.get_prompt` with `<server>_<prompt>` as name."""
        client, own_name = self._run(self._find("Prompt", name))
        return client.get_prompt(own_name, arguments)

    def subscribe(
        self,
        *uris: str,
        tools: bool = False,
        prompts: bool = False,
        resources: bool = False,
        server: str | None = None,
    ) -> Any:
        """Subscribes to changes; the subscription is entered with `with`.

        Parameters and errors: `ClientGroup.subscribe`.
        """
        lists = {"tools": tools, "prompts": prompts, "resources": resources}
        return SyncSubscription(_Changes(self, server), self._run, uris, lists)

    def _run(self, steps: Steps) -> Any:
        try:
            ask = next(steps)
            while True:
                ask = steps.send(self._queue.ask(self._native, ask))
        except StopIteration as end:
            return end.value
        except Exception as error:
            raise from_here(error)  # noqa: B904
