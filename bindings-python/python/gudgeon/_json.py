"""One encoder and one set of hooks for everything that leaves or enters as JSON."""

from __future__ import annotations

import sys
from enum import Enum
from os import PathLike
from pathlib import Path, PurePath
from typing import Any

import msgspec

from .types import _Value


def is_pydantic(cls: Any) -> bool:
    """Is this a pydantic model or pydantic dataclass? Never imports pydantic."""
    return "pydantic" in sys.modules and isinstance(cls, type) and hasattr(cls, "__pydantic_core_schema__")


def _enc_hook(value: Any) -> Any:
    if isinstance(value, _Value):
        return value.to_dict()
    cls = type(value)
    if is_pydantic(cls):
        return cls.__pydantic_serializer__.to_python(value, mode="json", by_alias=True)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, PathLike):
        return str(value)
    if isinstance(value, Exception):
        return f"{cls.__name__}: {value}"
    module = cls.__module__.partition(".")[0]
    if module in ("pydantic", "pydantic_core"):  # AnyUrl, SecretStr, …
        return str(value)
    raise TypeError(
        f"a {cls.__qualname__} can't be said in JSON: return a dict, a dataclass, a TypedDict, a msgspec.Struct, "
        "a pydantic model, or content such as Text and Image"
    )


def _dec_hook(cls: Any, value: Any) -> Any:
    if is_pydantic(cls):
        return cls.__pydantic_validator__.validate_python(value)
    if cls is object:
        return value
    if isinstance(cls, type):
        if cls is PathLike and isinstance(value, str):
            return Path(value)
        if issubclass(cls, PurePath) and isinstance(value, str):
            return cls(value)
        if issubclass(cls, _Value):
            return cls.from_dict(value)
    raise NotImplementedError(f"{cls!r} can't be read from JSON")


_encoder = msgspec.json.Encoder(enc_hook=_enc_hook)
encode = _encoder.encode


def to_builtins(value: Any) -> Any:
    """A value as `json.dumps` takes it."""
    return msgspec.to_builtins(value, enc_hook=_enc_hook, str_keys=True)


def decoder(type: Any, *, strict: bool = True) -> msgspec.json.Decoder[Any]:
    """A decoder that is made once and used often."""
    return msgspec.json.Decoder(type, strict=strict, dec_hook=_dec_hook)


def convert(value: Any, type: Any, *, strict: bool = True) -> Any:
    """A plain JSON value in the type asked for."""
    return msgspec.convert(value, type, strict=strict, dec_hook=_dec_hook)
