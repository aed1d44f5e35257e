"""Writes JSON Schema from msgspec's description of a type, with descriptions and in the order written."""

from __future__ import annotations

import typing
from collections.abc import Callable
from typing import Any

from msgspec import NODEFAULT, inspect as mi

from .._model.encoding import to_builtins
from .type_hints import SchemaError, class_texts, description_of, header_of, literals

Hook = Callable[[Any], dict[str, Any] | None]
Literals = dict[frozenset[Any], tuple[Any, ...]]

_PLAIN: dict[type, dict[str, Any]] = {
    mi.AnyType: {},
    mi.RawType: {},
    mi.NoneType: {"type": "null"},
    mi.BoolType: {"type": "boolean"},
    mi.IntType: {"type": "integer"},
    mi.FloatType: {"type": "number"},
    mi.StrType: {"type": "string"},
    mi.BytesType: {"type": "string", "contentEncoding": "base64"},
    mi.ByteArrayType: {"type": "string", "contentEncoding": "base64"},
    mi.MemoryViewType: {"type": "string", "contentEncoding": "base64"},
    mi.DateTimeType: {"type": "string", "format": "date-time"},
    mi.TimeType: {"type": "string", "format": "time"},
    mi.DateType: {"type": "string", "format": "date"},
    mi.TimeDeltaType: {"type": "string", "format": "duration"},
    mi.UUIDType: {"type": "string", "format": "uuid"},
    mi.DecimalType: {"type": "string", "format": "decimal"},
}
# A JSON number is read exactly as it is written.
_DECIMAL: dict[str, Any] = {"anyOf": [{"type": "number"}, {"type": "string", "format": "decimal"}]}
_BOUNDS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
    "pattern": "pattern",
}
_LENGTHS = {
    "string": ("minLength", "maxLength"),
    "array": ("minItems", "maxItems"),
    "object": ("minProperties", "maxProperties"),
}


def render(
    info: mi.Type,
    defs: dict[str, Any],
    hook: Hook,
    literals: Literals,
    *,
    headers: bool = False,
    numbers: bool = False,
) -> dict[str, Any]:
    """Returns the schema; classes go into `defs` once each and are referred to.

    Args:
        headers: Whether it says what HTTP headers repeat.
        numbers: Whether a Decimal is a number or a string; else it is a string.
    """
    return _Renderer(defs, hook, literals, headers, numbers).render(info)


class _Renderer:
    def __init__(self, defs: dict[str, Any], hook: Hook, literals: Literals, headers: bool, numbers: bool) -> None:
        self.headers = headers
        self.numbers = numbers
        self.defs = defs
        self.hook = hook
        self.literals = literals
        self.names: dict[int, str] = {}

    def render(self, info: mi.Type) -> dict[str, Any]:
        if isinstance(info, mi.Metadata):
            return {**self.render(info.type), **(info.extra_json_schema or {})}
        if self.numbers and isinstance(info, mi.DecimalType):
            return dict(_DECIMAL)
        plain = _PLAIN.get(type(info))
        if plain is not None:
            return self.bounded(dict(plain), info)
        if isinstance(info, (mi.StructType, mi.DataclassType, mi.TypedDictType, mi.NamedTupleType)):
            return self.named(info)
        if isinstance(info, mi.EnumType):
            return _choice([member.value for member in info.cls])
        if isinstance(info, mi.LiteralType):
            key = frozenset((type(value), value) for value in info.values)
            return _choice(list(self.literals.get(key, info.values)))
        if isinstance(info, mi.UnionType):
            return self.union(info)
        if isinstance(info, mi.CustomType):
            schema = self.hook(info.cls)
            if schema is None:
                raise SchemaError(
                    f"{getattr(info.cls, '__qualname__', info.cls)} has no JSON Schema: use a dataclass, a TypedDict, "
                    "a msgspec.Struct or a pydantic model"
                )
            return schema
        return self.bounded(self.collection(info), info)

    def bounded(self, schema: dict[str, Any], info: Any) -> dict[str, Any]:
        for name, key in _BOUNDS.items():
            if getattr(info, name, None) is not None:
                schema[key] = getattr(info, name)
        lengths = _LENGTHS.get(schema.get("type", ""))
        if lengths and not isinstance(info, mi.TupleType):
            for name, key in zip(("min_length", "max_length"), lengths, strict=True):
                length = getattr(info, name, None)
                if length is not None:
                    schema[key] = 4 * ((length + 2) // 3) if "contentEncoding" in schema else length
        return schema

    def collection(self, info: Any) -> dict[str, Any]:
        if isinstance(info, mi.TupleType):
            count = len(info.item_types)
            schema: dict[str, Any] = {"type": "array", "minItems": count, "maxItems": count}
            if count:
                schema["prefixItems"] = [self.render(item) for item in info.item_types]
            return schema
        if hasattr(info, "value_type"):
            schema = {"type": "object"}
            value = self.render(info.value_type)
            if value:
                schema["additionalProperties"] = value
            keys = {key: part for key, part in self.render(info.key_type).items() if key != "type"}
            if keys and isinstance(info.key_type, (mi.StrType, mi.Metadata, mi.EnumType, mi.LiteralType)):
                schema["propertyNames"] = keys
            return schema
        schema = {"type": "array"}
        item = self.render(info.item_type)
        if item:
            schema["items"] = item
        if isinstance(info, (mi.SetType, mi.FrozenSetType)):
            schema["uniqueItems"] = True
        return schema

    def union(self, info: mi.UnionType) -> dict[str, Any]:
        members = sorted(info.types, key=lambda member: isinstance(member, mi.NoneType))
        rendered = [self.render(member) for member in members]
        flat = [part for schema in rendered for part in (schema["anyOf"] if schema.keys() == {"anyOf"} else [schema])]
        schema: dict[str, Any] = {"anyOf": flat}
        tags = [member.tag_field for member in members if isinstance(member, mi.StructType) and member.tag_field]
        if len(tags) > 1:
            schema["discriminator"] = {"propertyName": tags[0]}
        return schema

    def named(self, info: Any) -> dict[str, Any]:
        key = id(info)  # msgspec describes a type once, also where it is generic or refers to itself
        name = self.names.get(key)
        if name is None:
            base = getattr(info.cls, "__name__", None) or "Type"
            name, count = base, 2
            while name in self.defs:
                name, count = f"{base}{count}", count + 1
            self.names[key] = name
            self.defs[name] = {}
            self.defs[name] = self.fields(info)
        return {"$ref": f"#/$defs/{name}"}

    def fields(self, info: Any) -> dict[str, Any]:
        cls = typing.get_origin(info.cls) or info.cls
        text, texts = class_texts(cls)
        try:
            hints = typing.get_type_hints(cls, include_extras=True)
        except Exception:  # msgspec has read the types; only the texts beside them are lost
            hints = {}
        for hint in hints.values():
            self.literals.update(literals(hint))
        properties: dict[str, Any] = {}
        required: list[str] = []
        tag = getattr(info, "tag_field", None)
        if tag is not None:
            properties[tag] = {"const": info.tag}
            required.append(tag)
        for field in info.fields:
            hint = _unrequired(hints.get(field.name))
            header = header_of(hint) if self.headers else None
            # Headers repeat values of one simple type only.
            numbers, self.numbers = self.numbers, self.numbers and header is None
            schema = self.render(field.type)
            self.numbers = numbers
            description = description_of(hint) or schema.get("description") or texts.get(field.name)
            if description:
                schema = {"description": description, **schema}
            if header is not None:
                schema["x-mcp-header"] = header
            if field.required:
                required.append(field.encode_name)
            elif field.default is not NODEFAULT:
                schema.update(default_of(field.default))
            elif field.default_factory in (list, dict, set):
                schema["default"] = to_builtins(field.default_factory())
            properties[field.encode_name] = schema
        about = {"description": text} if text else {}
        if isinstance(info, mi.NamedTupleType) or getattr(info, "array_like", False):
            most = (
                {}
                if isinstance(info, mi.StructType) and not info.forbid_unknown_fields
                else {"maxItems": len(properties)}
            )
            return {
                **about,
                "type": "array",
                "prefixItems": list(properties.values()),
                "minItems": len(required),
                **most,
            }
        out: dict[str, Any] = {**about, "type": "object", "properties": properties}
        if required:
            out["required"] = required
        if getattr(info, "forbid_unknown_fields", False):
            out["additionalProperties"] = False
        return out


def default_of(value: Any) -> dict[str, Any]:
    """Returns `{"default": …}`, or an empty dict if JSON can't represent the value."""
    try:
        return {"default": to_builtins(value)}
    except Exception:  # the default stays what it is, only the schema can't show it
        return {}


def _unrequired(hint: Any) -> Any:
    """Returns the type inside `Required[…]`, `NotRequired[…]` or `ReadOnly[…]`."""
    while getattr(typing.get_origin(hint), "_name", None) in ("Required", "NotRequired", "ReadOnly"):
        hint = typing.get_args(hint)[0]
    return hint


def _choice(values: list[Any]) -> dict[str, Any]:
    kinds = {bool: "boolean", int: "integer", str: "string", type(None): "null"}
    named = list(dict.fromkeys(kinds.get(type(value), "") for value in values))
    schema: dict[str, Any] = {} if "" in named else {"type": named[0] if len(named) == 1 else named}
    return {**schema, "enum": values}
