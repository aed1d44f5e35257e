"""The encoder, decoders and hooks for all JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import isfinite
from os import PathLike
from typing import Any

import msgspec

from .._native import has_null
from .defaults import leaves_defaults_out, with_defaults
from .encoding import NO_JSON, encode_hook, is_path, is_pydantic, to_builtins
from .surrogates import without_surrogates
from .value import Value


def _decode_hook(cls: Any, value: Any) -> Any:
    if is_pydantic(cls):
        from .pydantic_json import from_json

        # As JSON, so that what a model reads does not depend on what is around it.
        return from_json(cls, encode_exact(value))
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
        TypeError: The value holds something else that has no JSON; the text names the place.
    """
    try:
        text = encode_exact(value)
    except UnicodeEncodeError:
        text = encode_exact(without_surrogates(to_builtins(value)))
    except TypeError as error:
        if not str(error).endswith(NO_JSON):
            raise
        problem = str(error) if place == "the result" else str(error).replace("; return ", "; give ")
        raise TypeError(f"{_place_of(value, place)}: {problem}") from None
    if has_null(text):  # as which the encoder writes them
        check_numbers(value, place)
    return text


def _place_of(value: Any, place: str) -> str:
    """Returns the place of the first part of a value that has no JSON."""
    for step, part in _parts(value):
        try:
            encode_exact(part)
        except (TypeError, ValueError) as error:
            if str(error).endswith(NO_JSON):
                return _place_of(part, place + step)
    return place


def _parts(value: Any) -> Iterable[tuple[str, Any]]:
    if isinstance(value, dict):
        return ((f".{key}" if str(key).isidentifier() else f"[{key!r}]", part) for key, part in value.items())
    if isinstance(value, (list, tuple, set, frozenset)):
        return ((f"[{at}]", part) for at, part in enumerate(value))
    return ()


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
    parts = _parts(value)
    return next((found for step, part in parts if (found := _not_finite(part, place + step)) is not None), None)


def decoder(type: Any, *, strict: bool = True) -> Callable[[Any], Any]:
    """Returns a function that reads JSON text as a type."""
    decode = msgspec.json.Decoder(type, strict=strict, dec_hook=_decode_hook).decode
    return (lambda text: with_defaults(decode(text))) if leaves_defaults_out(type) else decode


def convert(value: Any, type: Any, *, strict: bool = True) -> Any:
    """Returns a plain JSON value in a type."""
    read = msgspec.convert(value, type, strict=strict, dec_hook=_decode_hook)
    return with_defaults(read) if leaves_defaults_out(type) else read
