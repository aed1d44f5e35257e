"""Halves of surrogate pairs in strings, as in names of files that are not UTF-8: JSON in UTF-8 can't represent them."""

from __future__ import annotations

from typing import Any


def without_surrogates(value: Any) -> Any:
    """Returns a plain value with U+FFFD in their place; two halves that belong together become their character."""
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, dict):
        return {without_surrogates(key): without_surrogates(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_surrogates(part) for part in value]
    return value
