"""Checks the options of servers, tools, resources and prompts, and writes them as JSON for the native half."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from sys import float_info
from typing import Any

from .. import types
from .._model.mappings import value_of
from .._model.other_sdks import OPTIONS
from .._model.unknown import unknown_name
from .._model.value import camel

_COMPONENT = {"title", "description", "icons", "meta", "tags", "timeout", "thread", "visible", "enabled"}
KNOWN = {
    "tool": _COMPONENT
    | {"annotations", "concurrency", "replay", "input", "output", "expose_errors", "unknown_arguments"},
    "resource": _COMPONENT | {"name", "mime_type", "annotations", "size", "ttl", "cache_scope", "cache"},
    "prompt": _COMPONENT,
    "server": {
        "debug", "dialects", "expose_errors", "icons", "instructions", "io_threads", "list_ttl", "max_message",
        "max_request_state", "page_size", "park_limit", "park_threads", "park_ttl", "request_state_keys", "revisions",
        "schema_profile", "state_ttl", "threads", "title", "version", "website_url",
    },
}  # fmt: skip
_PARAMETERS = {"server": {"name", "lifespan"}, "tool": {"name"}, "prompt": {"name"}}
# Options that the native half reads as they are.
_DECLARED = (
    "title",
    "description",
    "icons",
    "tags",
    "concurrency",
    "enabled",
    "mime_type",
    "size",
    "cache_scope",
    "annotations",
    "replay",
)
_CHOICES = {
    "replay": ("allow", "forbid"),
    "cache_scope": ("public", "private"),
    "schema_profile": ("portable", "full"),
    "unknown_arguments": ("refuse", "ignore"),
}


def checked(kind: str, options: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Returns the options with mappings made values.

    Raises:
        TypeError: An option is unknown, or has the wrong type.
        ValueError: An option is out of range.
    """
    known = KNOWN[kind]
    for name, value in options.items():
        if name not in known:
            raise unknown_name(place, "option", name, known | _PARAMETERS.get(kind, set()), OPTIONS[kind])
        choices = _CHOICES.get(name)
        if choices and value not in choices:
            raise ValueError(f"{place}: {name}= is one of {', '.join(map(repr, choices))}, not {value!r}")
    if isinstance(options.get("tags"), str):
        raise TypeError(f"{place}: tags= takes a list of strings: [{options['tags']!r}]")
    for name in ("timeout", "ttl", "cache", "list_ttl"):
        value = options.get(name)
        if value is not None and not (_is_number(value, (int, float)) and value >= 0):
            raise ValueError(f"{place}: {name}= is a number of seconds, not {value!r}")
    for name in ("park_ttl", "state_ttl"):
        value = options.get(name)
        if value is not None and not (_is_number(value, (int, float)) and 0 < value < float("inf")):
            raise ValueError(f"{place}: {name}= is a number of seconds above 0, not {value!r}")
    for name in ("concurrency", "page_size", "threads", "io_threads", "max_message", "max_request_state"):
        value = options.get(name)
        if value is not None and not (_is_number(value, int) and value > 0):
            raise ValueError(f"{place}: {name}= is a whole number above 0, not {value!r}")
    for name in ("park_limit", "park_threads"):
        value = options.get(name)
        if value is not None and not (_is_number(value, int) and value >= 0):
            raise ValueError(f"{place}: {name}= is a whole number, or 0 for none, not {value!r}")
    expose = options.get("expose_errors")
    if expose is not None and not (
        isinstance(expose, (tuple, list)) and all(isinstance(it, type) and issubclass(it, Exception) for it in expose)
    ):
        raise TypeError(
            f"{place}: expose_errors= takes a tuple of exception classes, such as (LookupError,), not {expose!r}"
        )
    for name in ("thread", "enabled", "debug"):
        value = options.get(name)
        if value is not None and not isinstance(value, bool):
            raise TypeError(f"{place}: {name}= is True or False, not {value!r}")
    visible = options.get("visible")
    if visible is not None and not callable(visible):
        raise TypeError(
            f"{place}: visible= must be a function of the principal (None for an unknown caller), not {visible!r}"
        )
    keys = options.get("request_state_keys")
    if keys is not None and not (
        isinstance(keys, (list, tuple)) and all(isinstance(key, (bytes, str)) for key in keys)
    ):
        raise TypeError(
            f"{place}: request_state_keys= takes a list of bytes or strings: the first encrypts, all of them decrypt"
        )
    return values(kind, options, place)


def values(kind: str, options: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Returns the options with `annotations` and `icons` made values of their types."""
    out = dict(options)
    if out.get("annotations") is not None:
        cls = types.ToolAnnotations if kind == "tool" else types.Annotations
        out["annotations"] = value_of(cls, out["annotations"], f"{place}: annotations=")
    if out.get("icons") is not None:
        icons = out["icons"]
        if isinstance(icons, (str, Mapping)) or not isinstance(icons, Sequence):
            raise TypeError(f'{place}: icons= takes a list: [Icon("https://…")], not {icons!r}')
        out["icons"] = [value_of(types.Icon, icon, f"{place}: icons=[{at}]") for at, icon in enumerate(icons)]
    return out


def _is_number(value: Any, kind: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _milliseconds(seconds: float) -> float:
    """Returns milliseconds, finite because JSON has no infinity; the core caps long times."""
    return min(seconds * 1000, float_info.max)


def spec(options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the options that all kinds of components share, as JSON values."""
    out = {camel(name): options[name] for name in _DECLARED if options.get(name) is not None}
    if options.get("meta"):
        out["_meta"] = options["meta"]
    for name in ("timeout", "ttl", "cache"):
        if options.get(name) is not None:
            out[f"{name}Ms"] = _milliseconds(options[name])
    return out


def server_declaration(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a server's declaration, as JSON values."""
    names = (
        "version",
        "title",
        "instructions",
        "website_url",
        "icons",
        "page_size",
        "debug",
        "revisions",
        "dialects",
        "max_message",
        "threads",
        "io_threads",
        "max_request_state",
        "park_limit",
        "park_threads",
    )
    out = {camel(key): options[key] for key in names if options.get(key) is not None}
    for key in ("list_ttl", "park_ttl", "state_ttl"):
        if options.get(key) is not None:
            out[f"{camel(key)}Ms"] = _milliseconds(options[key])
    if options.get("request_state_keys"):
        from base64 import b64encode

        keys = (key.encode() if isinstance(key, str) else key for key in options["request_state_keys"])
        out["requestStateKeys"] = [b64encode(key).decode() for key in keys]
    return {"name": name, "version": "", **out}
