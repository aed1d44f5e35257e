"""The check of an argument that is a list of strings."""

from __future__ import annotations

from collections.abc import Iterable


def string_list(owner: str, name: str, values: Iterable[str]) -> list[str]:
    """Returns the strings as a list.

    Args:
        owner: The function or class, for the error.
        name: The argument.

    Raises:
        TypeError: It is one string, or a value is not a string.
    """
    if isinstance(values, str):
        raise TypeError(f"{owner}: {name} must be a list of strings, not {values!r}; write [{values!r}]")
    strings = list(values)
    for value in strings:
        if not isinstance(value, str):
            raise TypeError(
                f"{owner}: {name} must be a list of strings, and has a value of type {type(value).__name__}"
            )
    return strings
