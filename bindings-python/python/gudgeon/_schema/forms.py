"""Forms for types and JSON Schemas, and reading of their answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Literal, get_args, get_origin

from .._model.article import with_article
from .._model.encoding import is_pydantic, to_builtins
from .._model.json import convert, encode
from .._native import form_problem, form_schema
from .json_schema import own_schema, schema_of
from .type_hints import SchemaError, union_members, unwrap, uses_pydantic

_NO_DEFAULT: Any = object()


class Form:
    """A form's schema, and the function that makes a value of the answer's content."""

    __slots__ = ("decode", "schema")

    def __init__(self, schema: dict[str, Any], decode: Callable[[Mapping[str, Any]], Any]) -> None:
        self.schema = schema
        self.decode = decode


def askable(name: str, wanted: Any, default: Any = _NO_DEFAULT) -> Form:
    """Returns the form for a type or JSON Schema. Raises TypeError, with this name, if no form can ask for it."""
    asked = form(wanted, default)
    problem = form_problem(name, encode(asked.schema).decode())
    if problem is not None:
        raise TypeError(problem)
    return asked


def form(wanted: Any, default: Any = _NO_DEFAULT) -> Form:
    """Returns the form unchecked; the core refuses what no form can ask for."""
    if isinstance(wanted, Mapping):
        return Form(_form(own_schema(wanted, "a form's schema", "portable"), "plain", None), dict)
    try:
        schema = schema_of(wanted, numbers=False)
    except SchemaError as error:
        raise TypeError(f"a form can't ask for {label(wanted)}: {error}") from None
    if schema.get("type") == "object" and "properties" in schema:
        return _class_form(wanted, schema, default)
    return _value_form(wanted, schema, default)


def label(wanted: Any) -> str:
    """Returns the name of a type."""
    name = getattr(wanted, "__name__", None) if get_origin(wanted) is None else None
    return name or str(wanted)


def _value_form(wanted: Any, schema: dict[str, Any], default: Any) -> Form:
    """Returns the form for a plain type, which asks for one value."""
    choices = _choices(wanted)
    titles = [item.title for item in getattr(wanted, "__metadata__", ()) if isinstance(getattr(item, "title", 0), str)]
    field = _shown({**schema, "title": titles[-1]} if titles else schema, choices)
    required = default is _NO_DEFAULT and not _may_be_missing(wanted)
    if default is not _NO_DEFAULT and default is not None:
        field["default"] = _default(default, choices)
    read = _reader(wanted)

    def decode(content: Mapping[str, Any]) -> Any:
        value = content.get("value")
        if value is None and default is not _NO_DEFAULT:
            return default
        return read(_chosen(value, choices))

    return Form(_form(field, "typed", required), decode)


def _may_be_missing(wanted: Any) -> bool:
    members = [unwrap(member) for member in union_members(wanted)]
    return any(
        member is type(None) or (get_origin(member) is Literal and None in get_args(member)) for member in members
    )


def _class_form(wanted: Any, schema: dict[str, Any], default: Any) -> Form:
    """Returns the form with the fields of a class."""
    hints = _hints(wanted)
    choices = {name: _choices(hint) for name, hint in hints.items()}
    properties = {name: _shown(part, choices.get(name)) for name, part in schema["properties"].items()}
    if default is not _NO_DEFAULT and default is not None:
        given = to_builtins(default)
        if not isinstance(given, Mapping):
            raise TypeError(
                f"default= of a form for {label(wanted)} must have its fields, "
                f"but is {with_article(type(default).__name__)}"
            )
        for name, value in given.items():
            if name in properties and value is not None:
                properties[name]["default"] = _default(value, choices.get(name))
    read = _reader(wanted)

    def decode(content: Mapping[str, Any]) -> Any:
        return read({name: _chosen(value, choices.get(name)) for name, value in content.items()})

    return Form(_form({**schema, "properties": properties}, "typed", None), decode)


def _reader(wanted: Any) -> Callable[[Any], Any]:
    if uses_pydantic(wanted):
        from pydantic import TypeAdapter

        validate: Callable[[Any], Any] = TypeAdapter(wanted).validate_python
        return validate

    def read(value: Any) -> Any:
        # Some clients send a number as 3.0 or as a string.
        try:
            return convert(value, wanted)
        except ValueError:
            whole = value
            if isinstance(value, float) and value.is_integer():
                whole = int(value)
            elif isinstance(value, dict):
                pairs = value.items()
                whole = {key: int(v) if isinstance(v, float) and v.is_integer() else v for key, v in pairs}
            return convert(whole, wanted, strict=False)

    return read


def _hints(wanted: Any) -> dict[str, Any]:
    import typing

    cls = unwrap(wanted)
    if is_pydantic(cls):
        fields = getattr(cls, "__pydantic_fields__", {})
        by_alias = {field.alias or name: field.annotation for name, field in fields.items()}
        return dict(by_alias)
    hints = typing.get_type_hints(cls, include_extras=True)
    import msgspec

    if isinstance(cls, type) and issubclass(cls, msgspec.Struct):
        return {field.encode_name: hints[field.name] for field in msgspec.structs.fields(cls)}
    return hints


def _choices(annotation: Any) -> dict[str, tuple[Any, str]] | None:
    """Returns the choices of an enum, a Literal, or a list of them: by shown string the value on the wire and title."""
    members = [member for member in union_members(annotation) if member is not type(None)]
    if len(members) != 1:
        return None
    inner = unwrap(members[0])
    if get_origin(inner) in (list, set, frozenset, tuple) and get_args(inner):
        inner = unwrap(get_args(inner)[0])
    if get_origin(inner) is Literal:
        return {str(value): (value, str(value)) for value in get_args(inner) if value is not None}
    if isinstance(inner, type) and issubclass(inner, Enum):
        return {str(item.value): (item.value, item.name.replace("_", " ").capitalize()) for item in inner}
    return None


def _chosen(value: Any, choices: dict[str, tuple[Any, str]] | None) -> Any:
    if choices is None:
        return value
    if isinstance(value, list):
        return [_chosen(item, choices) for item in value]
    return choices[value][0] if isinstance(value, str) and value in choices else value


def _default(value: Any, choices: Any) -> Any:
    plain = to_builtins(value)
    if choices is None:
        return plain
    return [str(item) for item in plain] if isinstance(plain, (list, tuple)) else str(plain)


def _shown(schema: Mapping[str, Any], choices: dict[str, tuple[Any, str]] | None) -> dict[str, Any]:
    """Returns the schema of a property with its choices as the strings that the user reads."""
    out = dict(schema)
    if choices is None:
        return out
    kinds = out.get("type")
    if kinds == "array" or (isinstance(kinds, list) and "array" in kinds):
        out["items"] = _options(choices)
    else:
        out = {key: value for key, value in out.items() if key not in ("anyOf", "enum", "type")} | _options(choices)
    if out.get("default") is not None:
        out["default"] = _default(out["default"], choices)
    return out


def _options(choices: dict[str, tuple[Any, str]]) -> dict[str, Any]:
    """Returns the choices, with titles where they differ from the values."""
    if all(_bare(shown) == _bare(title) for shown, (_, title) in choices.items()):
        return {"enum": list(choices)}
    return {"oneOf": [{"const": shown, "title": title} for shown, (_, title) in choices.items()]}


def _bare(text: str) -> str:
    return "".join(filter(str.isalnum, text)).lower()


def _form(schema: Mapping[str, Any], reading: str, value: bool | None) -> dict[str, Any]:
    """Returns the core's form for a schema; see `form_schema`."""
    from msgspec.json import decode

    written: dict[str, Any] = decode(form_schema(encode(schema), reading, value))
    return written
