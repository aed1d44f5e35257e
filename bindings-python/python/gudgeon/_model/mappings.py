"""Value types given as mappings: both spellings of each key, and an error for every other key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .article import with_article
from .unknown import unknown_name
from .value import camel


def value_of(cls: Any, given: Any, where: str) -> Any:
    """Returns the value of `cls` that a mapping describes; a value of the type is returned as it is.

    The keys are the type's parameters, such as `read_only`, or the specification's names, such as `readOnlyHint`.

    Args:
        cls: A value type, such as `ToolAnnotations`.
        given: A value of that type, or a mapping.
        where: The place for errors, such as "tool 'add': annotations=".

    Raises:
        TypeError: `given` is neither, or a key is unknown or missing.
    """
    if isinstance(given, cls):
        return given
    if not isinstance(given, Mapping):
        raise TypeError(f"{where} takes {with_article(cls.__name__)} or a mapping of its fields, not {given!r}")
    names = {spelling: field for field in cls._fields for spelling in _spellings(cls, field)}
    fields: dict[str, Any] = {}
    for key, value in given.items():
        if key not in names:
            raise unknown_name(where, "key", str(key), cls._fields)
        fields[names[key]] = value
    try:
        return cls(**fields)
    except TypeError as error:
        raise TypeError(f"{where}: {error}") from None


def _spellings(cls: Any, field: str) -> tuple[str, ...]:
    """Returns what a key may be called: `read_only`, `readOnly`, and for a hint of a tool `readOnlyHint`."""
    wire = camel(field)
    return (field, wire, f"{wire}Hint") if field in cls._hints else (field, wire)
