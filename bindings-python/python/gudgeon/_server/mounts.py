"""Mounting a server into another: the names of its components there."""

from __future__ import annotations

from typing import Any, TypeVar

from .templates import is_template

_S = TypeVar("_S", bound=Any)


def prefixed(kind: str, prefix: str, key: Any) -> Any:
    """Returns the key of a component in the server that its server is mounted into."""
    if kind in ("tools", "prompts"):
        return f"{prefix}_{key}"
    if kind == "completions" and not is_template(key[0]):
        return f"{prefix}_{key[0]}", key[1]
    return key


def check_prefix(prefix: Any) -> None:
    """Raises TypeError or ValueError for a prefix that no name can begin with."""
    if not isinstance(prefix, str):
        raise TypeError(f"mount(): prefix= is a string, not {prefix!r}")
    if not prefix or not all(it.isascii() and (it.isalnum() or it in "_-.") for it in prefix):
        raise ValueError(f"mount({prefix!r}): a prefix is one or more letters, digits, '_', '-' or '.'")


def mount_arguments(given: tuple[Any, ...], prefix: Any, other: Any, server: type[_S]) -> tuple[str, _S]:
    """Returns the prefix and the server, in whatever order they were given."""
    for value in given:
        if isinstance(value, server) and other is None:
            other = value
        elif prefix is None:
            prefix = value
        else:
            raise TypeError(f"mount() takes a prefix and a Server, and got {value!r} as well")
    if not isinstance(other, server):
        shown = "no server" if other is None else repr(other)
        raise TypeError(f"mount() takes a prefix and a Server, and got {shown}: write app.mount('shelf', shelf)")
    if prefix is None:
        raise TypeError(f"mount() needs a prefix for the names of {other.name!r}: write app.mount({other.name!r}, …)")
    return prefix, other
