"""Values for the strings in a tool's data, by the formats that its output schema names."""

from __future__ import annotations

import datetime
import decimal
import uuid
from functools import lru_cache
from typing import Any

from msgspec import convert
from msgspec.json import decode

# Types by format; the native half names them.
_TYPES: dict[str, type] = {
    "date-time": datetime.datetime,
    "date": datetime.date,
    "time": datetime.time,
    "duration": datetime.timedelta,
    "uuid": uuid.UUID,
    "decimal": decimal.Decimal,
    "base64": bytes,
}


class _Node:
    """The types of a string, and the nodes of an object's members and an array's elements."""

    __slots__ = ("first", "members", "others", "rest", "types")

    def __init__(self, wire: dict[str, Any]) -> None:
        self.types = tuple(_TYPES[format] for format in wire.get("formats", ()))
        self.members: dict[str, _Node] = {}
        self.others: _Node | None = None
        self.first: tuple[_Node | None, ...] = ()
        self.rest: _Node | None = None

    def connect(self, wire: dict[str, Any], nodes: list[_Node]) -> None:
        def node(at: int | None) -> _Node | None:
            return None if at is None else nodes[at]

        self.members = {name: nodes[at] for name, at in wire.get("members", {}).items()}
        self.first = tuple(map(node, wire.get("first", ())))
        self.others, self.rest = node(wire.get("others")), node(wire.get("rest"))

    def inside(self, value: Any) -> list[tuple[Any, Any, _Node | None]]:
        """Returns the keys, values and nodes of what a dict or a list holds, where there may be a format."""
        members, others, first, rest = self.members, self.others, self.first, self.rest
        if type(value) is dict:
            if others is None:
                return [(key, value[key], inner) for key, inner in members.items() if key in value]
            return [(key, item, members.get(key, others)) for key, item in value.items()]
        if not first:
            return [] if rest is None else [(at, item, rest) for at, item in enumerate(value)]
        count = len(first)
        return [(at, item, first[at] if at < count else rest) for at, item in enumerate(value)]


# Programs call few of the tools that a server may list.
@lru_cache(64)
def _root(nodes: str) -> _Node:
    wires = decode(nodes)
    made = [_Node(wire) for wire in wires]
    for node, wire in zip(made, wires, strict=True):
        node.connect(wire, made)
    return made[0]


def with_formats(value: Any, nodes: str) -> Any:
    """Returns decoded JSON with values for strings that have a format, and changes it in place. A string that is not
    valid in its format stays as it is.
    """
    if type(value) is str:
        return _of_string(value, _root(nodes))
    waiting = [(value, _root(nodes))] if type(value) in (dict, list) else []
    while waiting:
        container, node = waiting.pop()
        for key, item, inner in node.inside(container):
            if inner is None:
                continue
            if type(item) is str:
                if inner.types:
                    container[key] = _of_string(item, inner)
            elif type(item) in (dict, list):
                waiting.append((item, inner))
    return value


def _of_string(text: str, node: _Node) -> Any:
    for wanted in node.types:
        try:
            return convert(text, wanted)
        except ValueError:
            pass
    return text
