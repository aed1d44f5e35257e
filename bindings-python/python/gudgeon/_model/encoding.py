"""Converts values that JSON encoders do not know. Imports nothing that is slow, because value types need it."""

import sys
from os import PathLike

from .article import with_article

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


# What follows the kind of a value that has no JSON.
NO_JSON = (
    " can't be converted to JSON; return a dict, a dataclass, a TypedDict, a msgspec.Struct, a pydantic model, or "
    "content such as Text and Image"
)


class JsonValue:
    """The base of value types, which convert themselves to plain JSON values."""

    def to_dict(self) -> "dict[str, Any]":
        """Returns this value as a JSON object."""
        raise NotImplementedError


def is_pydantic(cls: "Any") -> bool:
    """Returns whether a class is a pydantic model or dataclass. Never imports pydantic."""
    return "pydantic" in sys.modules and isinstance(cls, type) and hasattr(cls, "__pydantic_core_schema__")


def is_path(cls: type) -> bool:
    """Returns whether a class is `os.PathLike` or one of pathlib's."""
    if not hasattr(cls, "__fspath__"):
        return False
    # Imported here because it takes a tenth of the time in which a server starts.
    from pathlib import PurePath

    return cls is PathLike or issubclass(cls, PurePath)


def configures_numbers(cls: "Any") -> bool:
    """Returns whether a pydantic class configures the JSON of NaN and infinity."""
    from .pydantic_json import config_of

    return config_of(cls).get("ser_json_inf_nan") in ("null", "strings")


def encode_hook(value: "Any") -> "Any":
    """Returns a value that msgspec can encode. Raises TypeError for one that has no JSON."""
    if isinstance(value, JsonValue):
        return value.to_dict()
    cls = type(value)
    if is_pydantic(cls):
        return _pydantic_value(value)
    from enum import Enum

    if isinstance(value, Enum):
        return value.value
    if isinstance(value, PathLike):
        return str(value)
    if isinstance(value, Exception):
        return f"{cls.__name__}: {value}"
    module = cls.__module__.partition(".")[0]
    if module in ("pydantic", "pydantic_core"):  # AnyUrl, SecretStr, …
        return str(value)
    raise TypeError(with_article(cls.__qualname__) + NO_JSON)


def _pydantic_value(value: "Any") -> "Any":
    from .pydantic_json import plain

    return plain(value, is_exact=not configures_numbers(type(value)))


def to_builtins(value: "Any") -> "Any":
    """Returns a value as `json.dumps` takes it."""
    from msgspec import to_builtins

    return to_builtins(value, enc_hook=encode_hook, str_keys=True)
