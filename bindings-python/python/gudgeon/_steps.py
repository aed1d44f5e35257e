"""`ctx.step`: what it gives has gone through JSON, on the first run as on any later one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._annotations import raw_annotations, resolve
from ._json import decoder, encode


def recorded(key: str, fn: Callable[..., Any], value: Any) -> Any:
    """What a step gave, rebuilt by its function's return annotation."""
    if not isinstance(key, str) or not key:
        raise TypeError(f"a step begins with its key, a text that names it, not {key!r}")
    try:
        text = encode(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"step {key!r} can't be remembered: {error}") from None
    annotation = raw_annotations(fn).get("return", Any)
    wanted = Any if annotation is Any else resolve(annotation, fn)
    return decoder(wanted).decode(text)
