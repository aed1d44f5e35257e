"""Converts a type to JSON Schema (2020-12), by msgspec, or by pydantic where the user's annotations use it."""

from __future__ import annotations

import typing
from collections.abc import Mapping
from enum import Enum
from typing import Any, Literal

import msgspec

from .._model.encoding import is_path, is_pydantic, to_builtins
from .._model.value import Value
from .portable import untitled, walk, with_items, without_headers
from .render import render
from .type_hints import UNIONS, SchemaError, description_of, literals, unaliased, union_members, unwrap, uses_pydantic

Profile = Literal["portable", "full"]


class Alternatives:
    """A placeholder for a union that msgspec can write but not read."""

    members: tuple[Any, ...] = ()


def schema_of(
    annotation: Any,
    *,
    profile: Profile = "portable",
    output: bool = False,
    headers: bool = False,
    numbers: bool = True,
    defs: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Returns the schema of a type. With the "full" profile, named types go into `defs` and are referred to.

    Args:
        output: Whether values are written, not read.
        headers: Whether it says which fields HTTP headers repeat.
        numbers: Whether a Decimal that is read may be a JSON number as well as a string.
    """
    try:
        annotation = unaliased(annotation)
    except RecursionError:
        raise SchemaError("the type alias refers to itself: give its inner part as Any") from None
    text = description_of(annotation)
    own: dict[str, Any] = {}
    if uses_pydantic(annotation):
        schema = _pydantic_schema(annotation, output, headers, own)
    else:
        schema = _msgspec_schema(annotation, output, headers, numbers and not output, own)
    schema, own = untitled(schema), {name: untitled(part, name) for name, part in own.items()}
    if profile == "portable":
        schema = with_items(_inlined(schema, own))
    elif defs is not None:
        schema = _merge(schema, own, defs)
    elif own:
        schema = _rooted(schema, own)
    if text is not None:
        schema = {"description": text, **{key: value for key, value in schema.items() if key != "description"}}
    return schema


def own_schema(schema: Mapping[str, Any], place: str, profile: Profile) -> dict[str, Any]:
    """Returns a schema that the user wrote, in the form of the profile."""
    if profile == "full":
        return dict(schema)
    from .._native import portable

    try:
        written: dict[str, Any] = msgspec.json.decode(portable(msgspec.json.encode(schema)))
    except ValueError as error:
        raise TypeError(
            f"{place}: {error}. Hosts read no such schemas: bound the depth, leave the inner type open, or make the "
            'server with schema_profile="full"'
        ) from None
    return written


def _inlined(schema: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Returns the schema with references replaced by their definitions."""
    from .._native import portable

    try:
        written = portable(msgspec.json.encode({**schema, "$defs": own} if own else schema))
    except ValueError as error:
        raise SchemaError(
            f"{error}: many hosts can't read such a type: give its inner part as dict[str, Any], or write "
            'Server(…, schema_profile="full")'
        ) from None
    inlined: dict[str, Any] = msgspec.json.decode(written)
    return inlined


def _rooted(schema: dict[str, Any], defs: dict[str, Any]) -> dict[str, Any]:
    """Returns the schema with its definitions. A root that is a reference is inlined: some revisions read its type."""
    ref = schema.get("$ref")
    if isinstance(ref, str):
        name = ref.rpartition("/")[2]
        schema = {**defs[name], **{key: value for key, value in schema.items() if key != "$ref"}}
        if repr(ref) not in repr(defs):
            defs = {key: part for key, part in defs.items() if key != name}
    return {**schema, "$defs": defs} if defs else schema


def _merge(schema: dict[str, Any], own: dict[str, Any], defs: dict[str, Any]) -> dict[str, Any]:
    """Moves `own` into `defs`; a name that is taken by another type gets a number."""
    names: dict[str, str] = {}
    for name, part in own.items():
        free, count = name, 2
        while free in defs and defs[free] != part:
            free, count = f"{name}{count}", count + 1
        names[name] = free
    for name, part in own.items():
        defs[names[name]] = _renamed(part, names)
    return _renamed(schema, names)


def _renamed(schema: Any, names: dict[str, str]) -> dict[str, Any]:
    out = walk(schema, lambda part: _renamed(part, names))
    if "$ref" in out:
        name = out["$ref"].rpartition("/")[2]
        out["$ref"] = f"#/$defs/{names.get(name, name)}"
    return out


def _pydantic_schema(annotation: Any, output: bool, headers: bool, defs: dict[str, Any]) -> dict[str, Any]:
    from pydantic.errors import PydanticUserError

    from .._model.pydantic_json import json_schema

    try:
        schema = json_schema(annotation, output=output)
    except (PydanticUserError, NameError) as error:
        raise SchemaError(" ".join(str(error).split("\n")[0].split())) from None
    if not headers and "x-mcp-header" in repr(schema):
        schema = without_headers(schema)
    defs.update(schema.pop("$defs", {}))
    return schema


def _hook(cls: Any, output: bool, headers: bool, numbers: bool, defs: dict[str, Any]) -> dict[str, Any] | None:
    """Returns the schema of a class that msgspec does not support."""
    if cls is object:
        return {}
    if not isinstance(cls, type):
        return None
    if issubclass(cls, Alternatives):
        return {"anyOf": [_msgspec_schema(member, output, headers, numbers, defs) for member in cls.members]}
    if is_pydantic(cls):
        return _pydantic_schema(cls, output, headers, defs)
    if is_path(cls):
        return {"type": "string", "format": "path"}
    if issubclass(cls, Enum):
        values = [to_builtins(item.value) for item in cls]
        return {"enum": values}
    if issubclass(cls, Value):
        return {"type": "object"}
    return None


def _msgspec_schema(
    annotation: Any, output: bool, headers: bool, numbers: bool, defs: dict[str, Any]
) -> dict[str, Any]:
    try:
        info = msgspec.inspect.type_info(_readable(annotation) if output else annotation)
    except (TypeError, NameError, RecursionError) as error:
        raise SchemaError(_with_fix(error, annotation)) from None

    def hook(cls: Any) -> dict[str, Any] | None:
        return _hook(cls, output, headers, numbers, defs)

    return render(info, defs, hook, literals(annotation), headers=headers, numbers=numbers)


def _with_fix(error: Exception, annotation: Any) -> str:
    message = " ".join(str(error).split())
    if "may not contain more than one" in message:
        return f"{message}: make them msgspec.Struct with tag=True, or pydantic models with a discriminator"
    if isinstance(error, NameError):
        return f"{message}: what a class's fields name must be importable at run time, not only under TYPE_CHECKING"
    return message


def _readable(annotation: Any) -> Any:
    """Returns the annotation with unions of several object types replaced, which msgspec writes but can't describe."""
    inner = unwrap(annotation)
    origin, args = typing.get_origin(inner), typing.get_args(inner)
    if origin in UNIONS:
        members = tuple(_readable(member) for member in union_members(inner))
        try:
            msgspec.inspect.type_info(typing.Union[members])  # noqa: UP007
        except TypeError:
            return type("Alternatives", (Alternatives,), {"members": members})
        return typing.Union[members]  # noqa: UP007
    if origin in (list, set, frozenset, dict, tuple) and args and Ellipsis not in args:
        generic: Any = origin
        return generic[tuple(_readable(part) for part in args)]
    return annotation
