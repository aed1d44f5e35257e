"""Defaults of dataclasses: msgspec leaves those that it did not read on the class, and then out of what it writes."""

from __future__ import annotations

import typing
from typing import Any

import msgspec

_SIMPLE = (str, int, float, bool, bytes, type(None))
_names: dict[type, tuple[str, ...]] = {}


def leaves_defaults_out(annotation: Any) -> bool:
    """Returns whether a type holds a dataclass whose fields have defaults, at any depth."""
    return _holds(annotation, set())


def _holds(annotation: Any, seen: set[int]) -> bool:
    if annotation in _SIMPLE or id(annotation) in seen:
        return False
    seen.add(id(annotation))
    inner = getattr(annotation, "__supertype__", None) or getattr(annotation, "__value__", None)
    if inner is not None and not isinstance(annotation, type):
        return _holds(inner, seen)
    if any(_holds(part, seen) for part in typing.get_args(annotation)):
        return True
    cls = typing.get_origin(annotation) or annotation
    if not isinstance(cls, type) or "__annotations__" not in cls.__dict__:
        return False
    if _defaults_of(cls):
        return True
    try:
        hints = typing.get_type_hints(cls)
    except Exception:  # the code that decodes the type reports what is wrong with it
        return True
    return any(_holds(hint, seen) for hint in hints.values())


def _defaults_of(cls: type) -> tuple[str, ...]:
    """Returns the fields that have their default on the class."""
    names = _names.get(cls)
    if names is None:
        names = ()
        if hasattr(cls, "__dataclass_fields__") and "__slots__" not in cls.__dict__:
            from dataclasses import MISSING, fields

            names = tuple(field.name for field in fields(cls) if field.default is not MISSING)
        _names[cls] = names
    return names


def with_defaults(value: Any) -> Any:
    """Returns the value with the defaults of its dataclasses set on the objects."""
    _complete(value, set())
    return value


def _complete(value: Any, seen: set[int]) -> None:
    # A default of the user may contain itself.
    if isinstance(value, _SIMPLE) or id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, dict):
        inside = list(value.values())
    elif isinstance(value, (list, tuple, set, frozenset)):
        inside = list(value)
    elif isinstance(value, msgspec.Struct):
        inside = [getattr(value, name) for name in value.__struct_fields__]
    elif hasattr(value, "__dataclass_fields__"):
        own = getattr(value, "__dict__", {})
        for name in _defaults_of(type(value)):
            if name not in own:
                object.__setattr__(value, name, getattr(value, name))
        inside = [getattr(value, name, None) for name in value.__dataclass_fields__]
    else:
        return
    for part in inside:
        _complete(part, seen)
