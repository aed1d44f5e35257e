"""Several servers as one client."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from functools import partial
from os import PathLike
from typing import Any

from msgspec.json import decode

from .._model.json import encode
from .._native import answer_of_group, group_file, group_targets
from ..errors import McpError, ProtocolError, ResourceNotFound
from .aio import Client
from .blocks import Blocks
from .errors import error_of
from .sync import SyncClient

Steps = Generator[list[Callable[[], Any]], list[Any], Any]


class _Group:
    """The clients of several servers, and what both kinds of group do with them."""

    def __init__(self, targets: Mapping[str, Any] | str | PathLike[str], **options: Any) -> None:
        self.clients: dict[str, Any] = {}
        self.errors: dict[str, McpError] = {}
        self._options = options
        self._blocks = Blocks()
        self._file: str | None = None
        given = group_targets(targets)
        if isinstance(given, str):
            self._file = given
        else:
            self._name(given)
        self._all = dict(self.clients)

    def _name(self, targets: Mapping[str, Any]) -> None:
        """Makes the clients, unconnected."""
        for name, target in targets.items():
            self.clients[name] = self._client(target, self._options)
            self.clients[name]._core.group_name = name

    def _client(self, target: Any, options: Mapping[str, Any]) -> Any:
        raise NotImplementedError

    def _begin(self) -> dict[str, Any]:
        if self._file is not None and not self._all:
            with open(self._file, "rb") as file:
                self._name(decode(group_file(self._file, file.read())))
            self._all = dict(self.clients)
        self.errors = {}
        self.clients = dict(self._all)
        return self.clients

    def _failed(self, name: str, error: McpError) -> None:
        """Leaves the server out and records its error in `errors`."""
        self.errors[name] = error
        self.clients.pop(name, None)

    def _having(self, kind: str) -> list[str]:
        """Returns the connected servers that declared tools, prompts or resources."""
        return [
            name
            for name, client in self.clients.items()
            if client._core.is_open() and f"{kind.removesuffix('Template')}s" in client.capabilities
        ]

    def _one(self, name: str) -> Any:
        if name in self.errors:
            raise self.errors[name]
        if name not in self.clients:
            _answer(what="unknown", server=name, group=self._known())
        return self.clients[name]

    def _known(self, connected: Iterable[str] | None = None) -> dict[str, Any]:
        return {"connected": list(self.clients if connected is None else connected), "missing": list(self.errors)}

    # What follows is written once as generators: each yields calls, and receives their results and errors.

    def _lists(self, kind: str) -> Steps:
        """Returns what each server lists, one after the other. `kind` is "tool", "prompt" or "resource"."""
        found = yield from self._listed(kind, self._having(kind))
        for _, items in found:
            if isinstance(items, McpError):
                raise items
        return found

    def _listed(self, kind: str, servers: list[str]) -> Steps:
        method = f"list_{'resource_template' if kind == 'resourceTemplate' else kind}s"
        found = yield [getattr(self.clients[server], method) for server in servers]
        return list(zip(servers, found, strict=True))

    def _items(self, kind: str) -> Steps:
        return [item for _, items in (yield from self._lists(kind)) for item in items]

    def _renamed(self, kind: str) -> Steps:
        """Returns tools or prompts with their prefixes."""
        lists = yield from self._lists(kind)
        names = _answer(what="names", kind=kind, lists=_names("name", lists))["names"]
        return [
            type(item).from_dict({**item.to_dict(), "name": name})
            for (_, items), full in zip(lists, names, strict=True)
            for item, name in zip(items, full, strict=True)
        ]

    def _find(self, kind: str, name: str) -> Steps:
        """Returns the client that has a tool or prompt, and its name there."""
        question = {"what": "find", "kind": kind, "name": name, "group": self._known()}
        home = _answer(**question)
        if "list" in home:
            having = self._having(kind)
            lists = yield from self._listed(kind, [server for server in home["of"] if server in having])
            home = _answer(**question, lists=_names("name", lists))
        return self._one(home["server"]), home["name"]

    def _read(self, uri: str, server: str | None) -> Steps:
        if server is not None:
            return _result((yield [partial(self._one(server).read_resource, uri)])[0])
        lists: dict[str, Any] = {}
        errors: list[McpError] = []
        while True:
            group = self._known(self._having("resource"))
            failures = [_kind(error) for error in errors]
            step = _answer(what="resource", uri=uri, group=group, failures=failures, **lists)
            if "list" in step:
                key = "uri" if step["list"] == "resource" else "uri_template"
                lists[f"{step['list']}s"] = _names(key, (yield from self._listed(step["list"], step["of"])))
            elif "raise" in step:
                raise errors[step["raise"]]
            else:
                (outcome,) = yield [partial(self.clients[step["read"]].read_resource, uri)]
                if not isinstance(outcome, McpError):
                    return outcome
                errors.append(outcome)


def _answer(**question: Any) -> dict[str, Any]:
    """Asks the native half about the group. Raises the error that it answers."""
    answer: dict[str, Any] = decode(answer_of_group(encode(question)))
    if "error" in answer:
        raise error_of(answer["error"])
    return answer


def _names(key: str, lists: list[tuple[str, Any]]) -> list[tuple[str, list[str]]]:
    """Returns the names or URIs in lists; a server that fails to list has none."""
    return [
        (server, [] if isinstance(items, McpError) else [getattr(it, key) for it in items]) for server, items in lists
    ]


def _kind(error: McpError) -> str:
    if isinstance(error, ResourceNotFound):
        return "notFound"
    return "protocol" if isinstance(error, ProtocolError) else "other"


def _result(outcome: Any) -> Any:
    if isinstance(outcome, McpError):
        raise outcome
    return outcome


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
        tools: list[Any] = await self._run(self._renamed("tool"))
        return tools

    async def list_resources(self) -> list[Any]:
        """Lists all resources of all servers, under their own URIs."""
        resources: list[Any] = await self._run(self._items("resource"))
        return resources

    async def list_resource_templates(self) -> list[Any]:
        """Lists all templates of all servers."""
        templates: list[Any] = await self._run(self._items("resourceTemplate"))
        return templates

    async def list_prompts(self) -> list[Any]:
        """Lists all prompts of all servers as `<server>_<prompt>`. Raises McpError if two get one name."""
        prompts: list[Any] = await self._run(self._renamed("prompt"))
        return prompts

    async def call_tool(self, name: str, arguments: Mapping[str, Any] | None = None, **options: Any) -> Any:
        """`Client.call_tool` with `<server>_<tool>` as name. Raises the server's error if it is not connected."""
        client, own_name = await self._run(self._find("tool", name))
        return await client.call_tool(own_name, arguments, **options)

    async def read_resource(self, uri: str, *, server: str | None = None) -> Any:
        """Reads a resource from the named server; by default from the first that lists the URI. If none does, servers
        with a template that matches are tried first, then the others.

        Raises ResourceNotFound if no server has it; else the first other error of a server that was tried.
        """
        return await self._run(self._read(uri, server))

    async def get_prompt(self, name: str, arguments: Mapping[str, str] | None = None) -> Any:
        """`Client.get_prompt` with `<server>_<prompt>` as name."""
        client, own_name = await self._run(self._find("prompt", name))
        return await client.get_prompt(own_name, arguments)

    async def _run(self, steps: Steps) -> Any:
        import asyncio

        try:
            calls = next(steps)
            while True:
                outcomes = await asyncio.gather(*(call() for call in calls), return_exceptions=True)
                for outcome in outcomes:
                    if isinstance(outcome, BaseException) and not isinstance(outcome, McpError):
                        raise outcome
                calls = steps.send(outcomes)
        except StopIteration as end:
            return end.value


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
        tools: list[Any] = self._run(self._renamed("tool"))
        return tools

    def list_resources(self) -> list[Any]:
        """Lists all resources of all servers, under their own URIs."""
        resources: list[Any] = self._run(self._items("resource"))
        return resources

    def list_resource_templates(self) -> list[Any]:
        """Lists all templates of all servers."""
        templates: list[Any] = self._run(self._items("resourceTemplate"))
        return templates

    def list_prompts(self) -> list[Any]:
        """Lists all prompts of all servers as `<server>_<prompt>`. Raises McpError if two get one name."""
        prompts: list[Any] = self._run(self._renamed("prompt"))
        return prompts

    def call_tool(self, name: str, arguments: Mapping[str, Any] | None = None, **options: Any) -> Any:
        """`SyncClient.call_tool` with `<server>_<tool>` as name. Raises the server's error if it is not connected."""
        client, own_name = self._run(self._find("tool", name))
        return client.call_tool(own_name, arguments, **options)

    def read_resource(self, uri: str, *, server: str | None = None) -> Any:
        """Reads a resource from the named server; by default from the first that lists the URI. If none does, servers
        with a template that matches are tried first, then the others.

        Raises ResourceNotFound if no server has it; else the first other error of a server that was tried.
        """
        return self._run(self._read(uri, server))

    def get_prompt(self, name: str, arguments: Mapping[str, str] | None = None) -> Any:
        """`SyncClient.get_prompt` with `<server>_<prompt>` as name."""
        client, own_name = self._run(self._find("prompt", name))
        return client.get_prompt(own_name, arguments)

    def _run(self, steps: Steps) -> Any:
        try:
            calls = next(steps)
            while True:
                calls = steps.send([_outcome(call) for call in calls])
        except StopIteration as end:
            return end.value


def _outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except McpError as error:
        return error
