"""JSON Schema as hosts read it: no titles that repeat a name, `items` in every array."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_MAPS = ("properties", "patternProperties", "$defs", "dependentSchemas")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_ONES = ("items", "additionalProperties", "propertyNames", "not", "contains", "if", "then", "else")


def walk(schema: Mapping[str, Any], change: Any) -> dict[str, Any]:
    """Returns the schema with `change` applied to each schema directly inside, not to data (defaults, examples)."""
    out = dict(schema)
    for key, value in schema.items():
        if key in _MAPS and isinstance(value, Mapping):
            out[key] = {name: change(part) if isinstance(part, Mapping) else part for name, part in value.items()}
        elif key in _LISTS and isinstance(value, list):
            out[key] = [change(part) if isinstance(part, Mapping) else part for part in value]
        elif key in _ONES and isinstance(value, Mapping):
            out[key] = change(value)
    return out


def untitled(schema: Mapping[str, Any], name: str | None = None) -> dict[str, Any]:
    """Returns the schema without titles that repeat a name, and without `$schema`."""
    out = {key: value for key, value in schema.items() if key != "$schema"}
    title = out.get("title")
    if isinstance(title, str) and (name is None or _same(title, name)):
        del out["title"]
    for key, value in out.items():
        if key in _MAPS and isinstance(value, Mapping):
            out[key] = {inner: untitled(part, inner) for inner, part in value.items()}
    rest = {key: value for key, value in out.items() if key not in _MAPS}
    return {**out, **walk(rest, lambda part: untitled(part, name))}


def without_headers(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the schema without `x-mcp-header`: headers repeat arguments of tools only."""
    return walk({key: value for key, value in schema.items() if key != "x-mcp-header"}, without_headers)


def _same(title: str, name: str) -> bool:
    return "".join(filter(str.isalnum, title)).lower() == "".join(filter(str.isalnum, name)).lower()


def with_items(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the schema with `items` in every array: APIs of models refuse arrays without."""
    out = walk(schema, with_items)
    kinds = out.get("type")
    if "array" in (kinds if isinstance(kinds, list) else [kinds]):
        out.setdefault("items", {})
    return out
