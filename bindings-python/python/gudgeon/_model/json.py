"""The encoder, decoders and hooks for all JSON."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from os import PathLike
from typing import Any

import msgspec

from .._native import has_null
from .defaults import leaves_defaults_out, with_defaults
from .encoding import encode_hook, is_path, is_pydantic, to_builtins
from .value import Value


def _decode_hook(cls: Any, value: Any) -> Any:
    if is_pydantic(cls):
        return cls.__pydantic_validator__.validate_python(value)
    if cls is object:
        return value
    if isinstance(cls, type):
        if is_path(cls) and isinstance(value, str):
            from pathlib import Path

            return Path(value) if cls is PathLike else cls(value)
        if issubclass(cls, Value):
            return cls.from_dict(value)
    raise NotImplementedError(f"{cls!r} can't be read from JSON")


encode_exact = msgspec.json.Encoder(enc_hook=encode_hook).encode  # for what holds no float


def encode(value: Any, place: str = "the value") -> bytes:
    """Returns a value as JSON text.

    Raises:
        ValueError: The value holds NaN or infinity, which JSON can't represent; the text names the place.
    """
    text = encode_exact(value)
    if has_null(text):  # as which the encoder writes them
        check_numbers(value, place)
    return text


def check_numbers(value: Any, place: str) -> None:
    """Raises ValueError if a value holds NaN or infinity."""
    import re

    try:
        # MessagePack represents them, and is fast to write: most nulls are real nulls.
        if re.search(rb"\xcb[\x7f\xff][\xf0-\xff]", msgspec.msgpack.encode(value, enc_hook=encode_hook)) is None:
            return
    except (OverflowError, ValueError):
        pass  # an integer that only JSON can represent
    found = _not_finite(to_builtins(value), place)
    if found is not None:
        raise ValueError(f"{found}, which JSON can't represent; write None or a string")


def _not_finite(value: Any, place: str) -> str | None:
    if isinstance(value, float):
        return None if isfinite(value) else f"{place} is {value}"
    if isinstance(value, dict):
        parts = ((f".{key}" if str(key).isidentifier() else f"[{key!r}]", part) for key, part in value.items())
    elif isinstance(value, (list, tuple, set, frozenset)):
        parts = ((f"[{at}]", part) for at, part in enumerate(value))
    else:
        return None
    return next((found for step, part in parts if (found := _not_finite(part, place + step)) is not None), None)


def decoder(type: Any, *, strict: bool = True) -> Callable[[Any], Any]:
    """Returns a function that reads JSON text as a type."""
    decode = msgspec.json.Decoder(type, strict=strict, dec_hook=_decode_hook).decode
    return (lambda text: with_defaults(decode(text))) if leaves_defaults_out(type) else decode


def convert(value: Any, type: Any, *, strict: bool = True) -> Any:
    """Returns a plain JSON value in a type."""
    read = msgspec.convert(value, type, strict=strict, dec_hook=_decode_hook)
    return with_defaults(read) if leaves_defaults_out(type) else read
