"""Checks the options of servers, tools, resources and prompts, and writes them as JSON for the native half."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike, fsdecode
from typing import Any

from .. import types
from .._model.mappings import value_of
from .._native import check_options, declared_options


def checked(kind: str, options: dict[str, Any], place: str) -> dict[str, Any]:
    """Returns the options with mappings made values.

    Raises:
        TypeError: An option is unknown, or has the wrong type.
        ValueError: An option is out of range.
    """
    check_options(kind, place, options)
    expose = options.get("expose_errors")
    if expose is not None and not (
        isinstance(expose, (tuple, list))
        and all(isinstance(error, type) and issubclass(error, Exception) for error in expose)
    ):
        raise TypeError(
            f"{place}: expose_errors= takes a tuple of exception classes, such as (LookupError,), not {expose!r}"
        )
    keys = options.get("request_state_keys")
    if keys is not None and not (
        isinstance(keys, (list, tuple)) and all(isinstance(key, (bytes, str)) for key in keys)
    ):
        raise TypeError(
            f"{place}: request_state_keys= takes a list of bytes or strings: the first encrypts, all of them decrypt"
        )
    file = options.get("request_state_keys_file")
    if file is not None and not isinstance(file, (str, PathLike)):
        raise TypeError(f"{place}: request_state_keys_file= takes the path of a file of keys, one a line")
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


def server_declaration(name: str, options: dict[str, Any]) -> dict[str, Any]:
    """Returns a server's declaration, as JSON values."""
    out = declared_options("server", options)
    if options.get("request_state_keys"):
        from base64 import b64encode

        keys = (key.encode() if isinstance(key, str) else key for key in options["request_state_keys"])
        out["requestStateKeys"] = [b64encode(key).decode() for key in keys]
    if options.get("request_state_keys_file") is not None:
        out["requestStateKeysFile"] = fsdecode(options["request_state_keys_file"])
    if options.get("scope_implies") is not None:
        out["scopeImplies"] = hierarchy(options["scope_implies"], f"Server {name!r}")
    return {"name": name, "version": "", **out}


def hierarchy(implied: Any, place: str) -> dict[str, list[str]]:
    """Returns the scopes that scopes include. Raises TypeError for anything but a mapping to lists."""
    if not isinstance(implied, Mapping) or any(isinstance(scopes, str) for scopes in implied.values()):
        raise TypeError(
            f"{place}: scope_implies= takes a mapping of a scope to the scopes that it includes, such as "
            f'{{"books:write": ["books:read"]}}, not {implied!r}'
        )
    return {str(scope): [str(included) for included in scopes] for scope, scopes in implied.items()}
