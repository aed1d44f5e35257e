"""Several servers as one client."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from os import PathLike, fspath
from typing import Any

from ..errors import McpError, NotSupported, ProtocolError, ResourceNotFound
from .aio import Client
from .blocks import Blocks
from .sync import SyncClient


class _Group:
    """The clients of several servers, and the lookup of names with a server's prefix."""

    def __init__(self, targets: Mapping[str, Any] | str | PathLike[str], **options: Any) -> None:
        self.clients: dict[str, Any] = {}
        self.errors: dict[str, McpError] = {}
        self._options = options
        self._blocks = Blocks()
        self._file: str | None = None
        if isinstance(targets, (str, PathLike)):
            self._file = _file(targets)
        else:
            self._name(targets)
        self._all = dict(self.clients)

    def _name(self, targets: Any) -> None:
        """Makes the clients, unconnected."""
        servers = targets.get("mcpServers", targets) if isinstance(targets, Mapping) else targets
        if not isinstance(servers, Mapping):
            where = f"{self._file}: " if self._file else ""
            raise TypeError(
                f'{where}a group takes a mapping of names to targets, {{"mcpServers": …}}, or the path of a JSON file '
                f"that holds one, not {servers!r}"
            )
        for name, target in servers.items():
            if not isinstance(name, str) or not name:
                raise TypeError(f"the name of a server in a group must be a string, not {name!r}")
            self.clients[name] = self._client(target, self._options)
            self.clients[name]._core.group_name = name

    def _client(self, target: Any, options: Mapping[str, Any]) -> Any:
        raise NotImplementedError

    def _begin(self) -> dict[str, Any]:
        if self._file is not None and not self._all:
            self._name(_read(self._file))
            self._all = dict(self.clients)
        self.errors = {}
        self.clients = dict(self._all)
        return self.clients

    def _failed(self, name: str, error: McpError) -> None:
        """Leaves the server out and records its error in `errors`."""
        self.errors[name] = error
        self.clients.pop(name, None)

    def _having(self, capability: str) -> Iterator[tuple[str, Any]]:
        """Returns the servers that declared this capability."""
        for name, client in list(self.clients.items()):
            if client._core.is_open() and capability in client.capabilities:
                yield name, client

    def _fitting(self, full_name: str) -> list[tuple[str, str]]:
        """Returns the servers whose prefix fits, the longest first, each with the rest of the name."""
        names = sorted((name for name in self._all if full_name.startswith(f"{name}_")), key=len, reverse=True)
        if not names:
            raise NotSupported(
                f"no server of this group has {full_name!r}", hint=f"names begin with one of {self._prefixes()}"
            )
        return [(name, full_name[len(name) + 1 :]) for name in names]

    def _one(self, name: str) -> Any:
        if name in self.errors:
            raise self.errors[name]
        if name not in self.clients:
            raise McpError(f"this group has no server {name!r}", hint=f"it has {', '.join(self._all)}")
        return self.clients[name]

    def _prefixes(self) -> str:
        return ", ".join(f"{name}_" for name in self._all)


def _file(path: str | PathLike[str]) -> str:
    """Returns a path as a string. Raises ValueError for a string that is the target of one client."""
    name = fspath(path)
    if "://" in name:
        raise ValueError(
            f"a group takes targets by name, or the path of a JSON file, not a URL; write Client({name!r}) for one "
            f"server, or ClientGroup({{'name': {name!r}}})"
        )
    return name


def _read(path: str) -> Any:
    """Reads the configuration in a JSON file."""
    from msgspec import DecodeError
    from msgspec.json import decode

    with open(path, "rb") as file:
        text = file.read()
    try:
        return decode(text)
    except DecodeError as error:
        raise ValueError(f"{path} is not valid JSON: {error}") from None


def _named(kind: str, lists: list[tuple[str, list[Any]]]) -> list[Any]:
    """Returns tools or prompts of several servers with their prefixes. Raises McpError if two get one name."""
    homes: dict[str, tuple[str, str]] = {}
    named = []
    for server, offers in lists:
        for component in offers:
            name = f"{server}_{component.name}"
            if name in homes:
                raise _ambiguous(kind, name, [homes[name], (server, component.name)])
            homes[name] = (server, component.name)
            named.append(type(component).from_dict({**component.to_dict(), "name": name}))
    return named


def _home(kind: str, name: str, fitting: list[tuple[str, str]], lists: list[tuple[str, list[Any]]]) -> tuple[str, str]:
    """Returns, of several servers whose prefix fits, the one that lists the rest, or else the longest."""
    listed = {(server, component.name) for server, offers in lists for component in offers}
    having = [home for home in fitting if home in listed]
    if len(having) > 1:
        raise _ambiguous(kind, name, having)
    return (having or fitting)[0]


def _ambiguous(kind: str, name: str, homes: list[tuple[str, str]]) -> McpError:
    owners = " and ".join(f"the {kind} {own!r} of server {server!r}" for server, own in homes)
    return McpError(f"ClientGroup: {name!r} is {owners}", hint="give one of the servers another name")


class ClientGroup(_Group):
    """Several servers as one client: names get the server's prefix, one that fails leaves the others working.

    `clients` has the clients that are connected, by name; `errors` has an McpError for each server that is not.

    Args:
        targets: Targets by name, a host's whole configuration (`{"mcpServers": …}`), or the path of a JSON file with
            such a configuration, a str or a Path, which is read when the group is entered.
        options: Those of `Client`, for each of them; requests of `on_elicit` and `on_sample` name the asking `server`.

    Raises:
        TypeError: It is neither a mapping of names to targets nor a path.
        ValueError: The path is a URL. On entering: the file is not valid JSON.
        OSError: On entering: the file can't be read.
    """

    def __init__(self, targets: Mapping[str, Any] | str | PathLike[str], **options: Any) -> None:
        super().__init__(targets, **options)

    def _client(self, target: Any, options: Mapping[str, Any]) -> Any:
        return Client(target, **options)

    async def __aenter__(self) -> ClientGroup:
        import asyncio

        async def connect(name: str, client: Any) -> None:
            try:
                await client.connect()
            except McpError as error:
                self._failed(name, error)

        if not self._blocks.enter():
            return self
        try:
            started = self._begin()
        except BaseException:
            self._blocks.leave()
            raise
        tasks = [asyncio.ensure_future(connect(*item)) for item in list(started.items())]
        try:
            await asyncio.gather(*tasks)
        except BaseException:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        if not self._blocks.leave():
            return
        import asyncio

        await asyncio.gather(*(client.close() for client in self._all.values()), return_exceptions=True)

    async def list_tools(self) -> list[Any]:
        """Lists all tools of all servers as `<server>_<tool>`. Raises McpError if two tools get one name."""
        return _named("tool", await self._tools())

    async def list_resources(self) -> list[Any]:
        """Lists all resources of all servers, under their own URIs."""
        return [resource for _, it in self._having("resources") for resource in await it.list_resources()]

    async def list_resource_templates(self) -> list[Any]:
        """Lists all templates of all servers."""
        return [template for _, it in self._having("resources") for template in await it.list_resource_templates()]

    async def list_prompts(self) -> list[Any]:
        """Lists all prompts of all servers as `<server>_<prompt>`. Raises McpError if two get one name."""
        return _named("prompt", await self._prompts())

    async def call_tool(self, name: str, arguments: Mapping[str, Any] | None = None, **options: Any) -> Any:
        """`Client.call_tool` with `<server>_<tool>` as name. Raises the server's error if it is not connected."""
        client, own_name = await self._find("tool", name, self._tools)
        return await client.call_tool(own_name, arguments, **options)

    async def read_resource(self, uri: str, *, server: str | None = None) -> Any:
        """Reads a resource from the named server, or else from the first one that has it.

        Raises ResourceNotFound, or the error of a server that refused it, if none has it.
        """
        if server is not None:
            return await self._one(server).read_resource(uri)
        refusal: ProtocolError | None = None
        for _, client in self._having("resources"):
            try:
                return await client.read_resource(uri)
            except ResourceNotFound:
                continue
            except ProtocolError as error:
                # Some servers answer an unknown URI with another error.
                refusal = refusal or error
        raise refusal or ResourceNotFound(uri)

    async def get_prompt(self, name: str, arguments: Mapping[str, str] | None = None) -> Any:
        """`Client.get_prompt` with `<server>_<prompt>` as name."""
        client, own_name = await self._find("prompt", name, self._prompts)
        return await client.get_prompt(own_name, arguments)

    async def _tools(self) -> list[tuple[str, list[Any]]]:
        return [(name, await it.list_tools()) for name, it in self._having("tools")]

    async def _prompts(self) -> list[tuple[str, list[Any]]]:
        return [(name, await it.list_prompts()) for name, it in self._having("prompts")]

    async def _find(self, kind: str, name: str, lists: Callable[[], Awaitable[Any]]) -> tuple[Any, str]:
        """Returns the client that has a tool or prompt, and its name there."""
        fitting = self._fitting(name)
        server, own_name = _home(kind, name, fitting, await lists()) if len(fitting) > 1 else fitting[0]
        return self._one(server), own_name


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
        super().__init__(targets, **options)

    def _client(self, target: Any, options: Mapping[str, Any]) -> Any:
        return SyncClient(target, **options)

    def __enter__(self) -> SyncClientGroup:
        if not self._blocks.enter():
            return self
        try:
            for name, client in list(self._begin().items()):
                try:
                    client.connect()
                except McpError as error:
                    self._failed(name, error)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        if self._blocks.leave():
            for client in self._all.values():
                client.close()

    def list_tools(self) -> list[Any]:
        """Lists all tools of all servers as `<server>_<tool>`. Raises McpError if two tools get one name."""
        return _named("tool", self._tools())

    def list_resources(self) -> list[Any]:
        """Lists all resources of all servers, under their own URIs."""
        return [resource for _, it in self._having("resources") for resource in it.list_resources()]

    def list_resource_templates(self) -> list[Any]:
        """Lists all templates of all servers."""
        return [template for _, it in self._having("resources") for template in it.list_resource_templates()]

    def list_prompts(self) -> list[Any]:
        """Lists all prompts of all servers as `<server>_<prompt>`. Raises McpError if two get one name."""
        return _named("prompt", self._prompts())

    def call_tool(self, name: str, arguments: Mapping[str, Any] | None = None, **options: Any) -> Any:
        """`SyncClient.call_tool` with `<server>_<tool>` as name. Raises the server's error if it is not connected."""
        client, own_name = self._find("tool", name, self._tools)
        return client.call_tool(own_name, arguments, **options)

    def read_resource(self, uri: str, *, server: str | None = None) -> Any:
        """Reads a resource from the named server, or else from the first one that has it.

        Raises ResourceNotFound, or the error of a server that refused it, if none has it.
        """
        if server is not None:
            return self._one(server).read_resource(uri)
        refusal: ProtocolError | None = None
        for _, client in self._having("resources"):
            try:
                return client.read_resource(uri)
            except ResourceNotFound:
                continue
            except ProtocolError as error:
                # Some servers answer an unknown URI with another error.
                refusal = refusal or error
        raise refusal or ResourceNotFound(uri)

    def get_prompt(self, name: str, arguments: Mapping[str, str] | None = None) -> Any:
        """`SyncClient.get_prompt` with `<server>_<prompt>` as name."""
        client, own_name = self._find("prompt", name, self._prompts)
        return client.get_prompt(own_name, arguments)

    def _tools(self) -> list[tuple[str, list[Any]]]:
        return [(name, it.list_tools()) for name, it in self._having("tools")]

    def _prompts(self) -> list[tuple[str, list[Any]]]:
        return [(name, it.list_prompts()) for name, it in self._having("prompts")]

    def _find(self, kind: str, name: str, lists: Callable[[], Any]) -> tuple[Any, str]:
        """Returns the client that has a tool or prompt, and its name there."""
        fitting = self._fitting(name)
        server, own_name = _home(kind, name, fitting, lists()) if len(fitting) > 1 else fitting[0]
        return self._one(server), own_name
