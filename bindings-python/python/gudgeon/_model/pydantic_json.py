"""JSON of pydantic's models: as they are configured, except that `bytes` are base64 unless a model says otherwise.

Pydantic writes bytes as UTF-8 by default, which fails for most of them, while arguments and results of the type `bytes`
are base64.
"""

from __future__ import annotations

import base64
import re
from typing import Any

from .. import _native

# By class, because building them takes long.
_validators: dict[Any, Any] = {}
_serializers: dict[Any, Any] = {}
_IN, _OUT = "val_json_bytes", "ser_json_bytes"
# The nodes of a core schema whose configuration applies to what is inside them.
_CONFIGURED = ("dataclass", "model", "typed-dict")


def from_json(cls: Any, text: bytes | str) -> Any:
    """Returns the value of a pydantic class that a JSON text holds."""
    found = _validators.get(cls)
    if found is None:
        found = _validators[cls] = _validator(cls.__pydantic_core_schema__, cls.__pydantic_validator__)
    return found.validate_json(text)


def to_json(value: Any) -> bytes:
    """Returns a value of a pydantic class as JSON."""
    cls = type(value)
    encoded: bytes = _serializer_of(cls).to_json(value, by_alias=uses_aliases(cls, output=True))
    return encoded


def plain(value: Any, *, is_exact: bool) -> Any:
    """Returns a value of a pydantic class as a plain JSON value. `is_exact`: NaN and infinity stay what they are."""
    if not is_exact:
        from msgspec.json import decode

        return decode(to_json(value))
    cls = type(value)
    return _serializer_of(cls).to_python(value, mode="json", by_alias=uses_aliases(cls, output=True))


def adapter(annotation: Any) -> Any:
    """Returns a validator for a type that pydantic has to read."""
    from pydantic import TypeAdapter

    adapted: Any = TypeAdapter(annotation)
    return _validator(adapted.core_schema, adapted.validator)


def json_schema(annotation: Any, *, output: bool) -> dict[str, Any]:
    """Returns the JSON Schema of what is read, or with `output` of what is written."""
    from pydantic import TypeAdapter
    from pydantic.json_schema import GenerateJsonSchema

    class Writer(GenerateJsonSchema):
        def str_schema(self, schema: Any) -> dict[str, Any]:
            made = super().str_schema(schema)
            pattern = schema.get("pattern")
            return made if pattern is None or isinstance(pattern, str) else _with_flags(made, pattern)

        def bytes_schema(self, schema: Any) -> dict[str, Any]:
            made = super().bytes_schema(schema)
            if (_OUT if output else _IN) not in self._config.config_dict:
                made.pop("format", None)
                made["contentEncoding"] = "base64"
            return made

    made: dict[str, Any] = TypeAdapter(annotation).json_schema(
        by_alias=uses_aliases(annotation, output=output),
        mode="serialization" if output else "validation",
        schema_generator=Writer,
    )
    return made


def _with_flags(schema: dict[str, Any], pattern: re.Pattern[str]) -> dict[str, Any]:
    """Makes the flags of a pattern part of its text, or leaves it out: pydantic checks the value in any case."""
    written = None
    if not pattern.flags & re.VERBOSE:
        letters = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL}
        flags = "".join(letter for letter, flag in letters.items() if pattern.flags & flag)
        written = _native.without_flags(pattern.pattern, flags)
    if written is None:
        del schema["pattern"]
    else:
        schema["pattern"] = written
    return schema


def uses_aliases(cls: Any, *, output: bool) -> bool:
    """Returns whether the JSON of a class has its fields' aliases: yes, unless its configuration says otherwise."""
    return config_of(cls).get("serialize_by_alias" if output else "validate_by_alias") is not False


def config_of(cls: Any) -> dict[str, Any]:
    """Returns the configuration of a pydantic class; empty for other types."""
    found: dict[str, Any] = getattr(cls, "model_config", None) or getattr(cls, "__pydantic_config__", None) or {}
    return found


def _validator(schema: Any, own: Any) -> Any:
    """Returns `own`, or a validator that reads bytes as base64 if the schema has any."""
    if not _has_bytes(schema):
        return own
    from pydantic_core import SchemaValidator

    return SchemaValidator(_with_base64(schema, is_own=False), {"val_json_bytes": "base64"}, _use_prebuilt=False)


def _serializer_of(cls: Any) -> Any:
    found = _serializers.get(cls)
    if found is None:
        found = cls.__pydantic_serializer__
        if _has_bytes(cls.__pydantic_core_schema__):
            from pydantic_core import SchemaSerializer

            schema = _with_base64(cls.__pydantic_core_schema__, is_own=False)
            found = SchemaSerializer(schema, _use_prebuilt=False)
        _serializers[cls] = found
    return found


def _has_bytes(schema: Any) -> bool:
    if isinstance(schema, dict):
        return schema.get("type") == "bytes" or any(map(_has_bytes, schema.values()))
    return isinstance(schema, (list, tuple)) and any(map(_has_bytes, schema))


def _with_base64(schema: Any, *, is_own: bool) -> Any:
    """Returns a core schema whose bytes are base64 in JSON. `is_own`: the model around writes them in its own way."""
    if isinstance(schema, (list, tuple)):
        return type(schema)(_with_base64(part, is_own=is_own) for part in schema)
    if not isinstance(schema, dict):
        return schema
    kind = schema.get("type")
    config = schema.get("config") or {}
    if kind in _CONFIGURED:
        is_own = config.get(_OUT) is not None
    made = {key: part if key == "config" else _with_base64(part, is_own=is_own) for key, part in schema.items()}
    if kind in _CONFIGURED:
        made["config"] = {_IN: "base64", **config}
    if kind == "bytes" and not is_own and "serialization" not in schema:
        written = {"type": "function-plain", "function": _base64, "when_used": "json", "return_schema": {"type": "str"}}
        made["serialization"] = written
    return made


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()
