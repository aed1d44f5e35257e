"""Mounting a server into another: the names of its components there."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any, TypeVar

from .._native import check_prefix, mounted_key

_S = TypeVar("_S", bound=Any)


def prefixed(kind: str, prefix: str, key: Any) -> Any:
    """Returns the key of a component in the server that its server is mounted into."""
    if kind == "completions":
        return mounted_key(kind, prefix, key[0]), key[1]
    return mounted_key(kind, prefix, key)


def is_upstream(value: Any) -> bool:
    """Returns whether a value is an `Upstream`. Its module is not imported here, because most servers have none."""
    return callable(getattr(type(value), "_mount_into", None))


def mount_arguments(given: tuple[Any, ...], prefix: Any, other: Any, server: type[_S]) -> tuple[str, _S]:
    """Returns the prefix and the server, in whatever order they were given."""
    for value in given:
        if (isinstance(value, server) or is_upstream(value)) and other is None:
            other = value
        elif prefix is None:
            prefix = value
        else:
            raise TypeError(f"mount() takes a prefix and a Server, and got {value!r} as well{_upstream_hint(value)}")
    if not isinstance(other, server) and not is_upstream(other):
        shown = "no server" if other is None else repr(other)
        hint = _upstream_hint(other) or ": write app.mount('shelf', shelf)"
        raise TypeError(f"mount() takes a prefix and a Server, and got {shown}{hint}")
    if prefix is None:
        if is_upstream(other):
            raise TypeError(f"mount() needs a prefix for the names of {other!r}: write app.mount('shelf', Upstream(…))")
        raise TypeError(f"mount() needs a prefix for the names of {other.name!r}: write app.mount({other.name!r}, …)")
    if not isinstance(prefix, str):
        raise TypeError(f"mount(): prefix= is a string, not {prefix!r}")
    check_prefix(prefix)
    return prefix, other


def _upstream_hint(value: Any) -> str:
    """Returns the advice for a target of a client, which was given in place of a server."""
    is_target = isinstance(value, (str, list, tuple, Mapping, PathLike))
    return ": a server that a client reaches is mounted as Upstream(target)" if is_target else ""
