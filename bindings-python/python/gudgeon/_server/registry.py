"""`Registry`: the tools, resources, templates or prompts of a server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Generic, TypeVar

from .. import types
from .._model.json import encode
from .._model.value import camel
from .._native import change_problem, check_options
from .options import values

_T = TypeVar("_T")


class Registry(Generic[_T]):
    """The tools, resources, templates or prompts of a server, in order: `app.tools`, `.resources`, and so on.

    Keys are names, or URIs and templates. Every change notifies clients (list_changed). An unknown key raises
    ValueError, or KeyError for `registry[key]`.

    Spec: Server Features › Tools › List changed notification, and the same of resources and prompts.

    >>> from gudgeon import Server
    >>> app = Server("shelf")
    >>> _ = app.tool(lambda: "ok", name="tidy", tags=["chores"])
    >>> app.tools.update("tidy", title="Tidy up")
    >>> app.tools["tidy"].title
    'Tidy up'
    >>> app.tools.disable(tags=["chores"])
    """

    def __init__(self, server: Any, kind: str, type_name: str) -> None:
        self._server = server
        self._kind = kind
        self._type_name = type_name

    def __iter__(self) -> Iterator[_T]:
        for key in self._keys():
            if key in self:
                yield self[key]

    def __len__(self) -> int:
        return len(self._keys())

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._server._native.get(self._kind, name) is not None

    def __getitem__(self, name: str) -> _T:
        text = self._server._native.get(self._kind, name)
        if text is None:
            raise KeyError(f"{self._server.name!r} has no {self._kind[:-1]} {name!r}: {self._known()}")
        from msgspec.json import decode

        value: _T = getattr(types, self._type_name).from_dict(decode(text))
        return value

    def __repr__(self) -> str:
        return f"<Registry of {self._server.name!r}: {', '.join(self._keys()) or 'empty'}>"

    def remove(self, name: str) -> None:
        """Removes one."""

        def change(server: Any, prefix: str) -> None:
            server._native.remove(self._kind, prefix + name)
            server._published.pop((self._kind, prefix + name), None)
            if self._kind in ("prompts", "templates"):
                gone = [key for key in server._published if key[0] == "completions" and key[1][0] == prefix + name]
                for key in gone:
                    del server._published[key]

        self._change(change)

    def update(self, name: str, /, **changes: Any) -> None:
        """Changes what clients see of one.

        Args:
            name: Its name, or its URI or template.
            changes: title, description, icons, meta and what else its type in `gudgeon.types` has, but the name, the
                URI, schemas and arguments; None takes a member away.

        Raises:
            TypeError: There is no such member, or it can't be changed.
            ValueError: `name` is not registered.
        """
        where = f"{self._server.name!r}: update({name!r})"
        for member in changes:
            problem = change_problem(self._kind, member)
            if problem is not None:
                raise TypeError(f"{where}: {problem}")
        kind = _KINDS[self._kind]
        changes = values(kind, changes, where)
        check_options(kind, where, changes)
        encoded = encode({camel(member): value for member, value in changes.items()})
        self._change(lambda server, prefix: server._native.update(self._kind, prefix + name, encoded))

    def enable(self, *names: str, tags: Sequence[str] = ()) -> None:
        """Lists these again, and all that have one of the tags."""
        self._set_enabled(names, tags, True)

    def disable(self, *names: str, tags: Sequence[str] = ()) -> None:
        """Hides these, and all that have one of the tags, until they are enabled."""
        self._set_enabled(names, tags, False)

    def _set_enabled(self, names: Sequence[str], tags: Sequence[str], enabled: bool) -> None:
        if isinstance(tags, str):
            raise TypeError(f"tags= takes a list of tags: [{tags!r}]")
        # Outer servers have components of their own with the same tags, so they get names.
        chosen = [*names, *self._server._tagged(self._kind, tags)]

        def change(server: Any, prefix: str) -> None:
            server._native.set_enabled(self._kind, [prefix + name for name in chosen], [], enabled)

        self._change(change)

    def _change(self, change: Any) -> None:
        try:
            for server, prefix in self._server._everywhere(self._kind):
                change(server, prefix)
        except ValueError as error:
            known = f": {self._known()}" if "registered" in str(error) else ""
            raise ValueError(f"{error}{known}") from None

    def _keys(self) -> list[str]:
        keys: list[str] = self._server._native.keys(self._kind)
        return keys

    def _known(self) -> str:
        return f"it has {', '.join(map(repr, self._keys())) or 'none'}"


_KINDS = {"tools": "tool", "resources": "resource", "templates": "resource", "prompts": "prompt"}
