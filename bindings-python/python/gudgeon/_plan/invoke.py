"""Compiles the code that runs for every call of a function: decode, call, encode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from .._model.json import decoder, encode_exact
from .._schema.type_hints import uses_pydantic
from .depends import Overrides, Provider, Scope
from .invalid_arguments import InvalidArguments, invalid_text, pydantic_text
from .parameter import Parameter
from .signature import Signature

# Reads fields that arrive as raw JSON without msgspec.
Reader = Callable[[Any], Any]
_ABSENT: Any = object()


class Argument:
    """A parameter that the caller passes, with its name on the wire, its reader, and the schema of all arguments."""

    __slots__ = ("parameter", "reader", "schema", "wire")

    def __init__(self, parameter: Parameter, wire: str, schema: bytes, *, lax: bool, as_json: bool) -> None:
        self.parameter = parameter
        self.wire = wire
        self.schema = schema
        self.reader: Reader | None = None
        if uses_pydantic(parameter.annotation):
            self.reader = _pydantic_reader(parameter, lax, as_json)
        elif as_json:
            read = decoder(parameter.annotation, strict=False)
            self.reader = lambda raw: read(msgspec.json.decode(raw, type=str))

    def field(self, name: str) -> tuple[Any, ...]:
        """Returns the field as `msgspec.defstruct` takes it."""
        parameter = self.parameter
        kind = parameter.annotation if self.reader is None else msgspec.Raw
        if parameter.required:
            return name, kind
        if self.reader is not None:
            return name, kind, msgspec.field(default_factory=lambda: _ABSENT)
        if parameter.factory is not None:
            return name, kind, msgspec.field(default_factory=parameter.factory)
        default = parameter.default
        if default is None or type(default) in (str, int, float, bool):
            return name, kind, default
        return name, kind, msgspec.field(default_factory=lambda: default)

    def read(self, raw: Any) -> Any:
        """Returns the value of a raw field."""
        if raw is _ABSENT:
            return self.parameter.default if self.parameter.factory is None else self.parameter.factory()
        assert self.reader is not None
        try:
            return self.reader(raw)
        except (msgspec.ValidationError, msgspec.DecodeError) as error:
            raise InvalidArguments(invalid_text(error, raw, self.schema, self.wire)) from None
        except Exception as error:
            if type(error).__name__ != "ValidationError" or not hasattr(error, "errors"):
                raise
            raise InvalidArguments(pydantic_text(error, raw, self.wire)) from None


def _pydantic_reader(parameter: Parameter, lax: bool, as_json: bool) -> Reader:
    from .._model.pydantic_json import adapter

    validator = adapter(parameter.annotation)
    if not lax:
        return lambda raw: validator.validate_json(bytes(raw))
    if as_json:
        return lambda raw: validator.validate_json(msgspec.json.decode(raw, type=str))
    return lambda raw: validator.validate_python(msgspec.json.decode(raw))


def build(
    signature: Signature,
    arguments: list[Argument],
    reply: Callable[[Any], Any],
    *,
    app: Any,
    overrides: Overrides,
    lax: bool,
    text: bool,
) -> Callable[[Any, Any], Any]:
    """Returns `invoke(raw, call)`. With `text`, a str is a reply without conversion."""
    providers = {
        parameter.name: Provider(parameter.depends)
        for parameter in signature.parameters
        if parameter.depends is not None
    }
    names: dict[str, Any] = {"fn": signature.fn, "reply": reply, "app": app}
    by_name = {argument.parameter.name: (at, argument) for at, argument in enumerate(arguments)}
    wait = "await " if signature.is_async else ""
    given = []
    for at, parameter in enumerate(signature.parameters):
        if parameter.name in providers:
            provider = providers[parameter.name]
            _check_async(signature, parameter, provider)
            names[f"provider{at}"] = provider
            value = f"{wait}scope.{'aget' if wait else 'get'}(provider{at})"
        elif parameter.context is not None:
            names["Context"] = parameter.context
            value = "scope.context(Context)" if providers else "Context(call, app)"
        else:
            number, argument = by_name[parameter.name]
            value = f"args.a{number}"
            if argument.reader is not None:
                names[f"read{number}"] = argument.read
                value = f"read{number}({value})"
        given.append(f"{parameter.name}={value}" if parameter.keyword_only else value)
    lines = [f"{'async ' if wait else ''}def invoke(raw, call):"]
    if arguments:
        names.update(_decoders(arguments, lax))
        lines += [
            "    try:",
            "        args = decode(raw)",
            "    except DecodeError as error:",
            "        args = again(raw, error)",
        ]
    if providers:
        names.update(Scope=Scope, overrides=overrides)
        close = f"{wait}scope.{'aclose' if wait else 'close'}"
        lines += [
            "    scope = Scope(call, app, overrides)",
            "    try:",
            f"        result = reply({wait}fn({', '.join(given)}))",
            "    except BaseException as error:",
            f"        {close}(error)",
            "        raise",
            f"    {close}(None)",
            "    return result",
        ]
    else:
        lines.append(f"    result = {wait}fn({', '.join(given)})")
        if text:
            lines += ["    if result.__class__ is str:", "        return result"]
        lines.append("    return reply(result)")
    exec(compile("\n".join(lines), f"<gudgeon {signature.place}>", "exec"), names)
    invoke: Callable[[Any, Any], Any] = names["invoke"]
    return invoke


def _check_async(signature: Signature, parameter: Parameter, provider: Provider) -> None:
    if provider.is_async and not signature.is_async:
        raise TypeError(
            f"parameter {parameter.name!r} of {signature.place} depends on {provider.place}, which is async: "
            f"write async def {getattr(signature.fn, '__name__', 'handler')}"
        )


def _decoders(arguments: list[Argument], lax: bool) -> dict[str, Any]:
    fields = [argument.field(f"a{at}") for at, argument in enumerate(arguments)]
    rename = {f"a{at}": argument.wire for at, argument in enumerate(arguments)}
    struct = msgspec.defstruct("Arguments", fields, kw_only=True, gc=False, rename=rename)
    decode = decoder(struct, strict=not lax)
    return {"decode": decode, "again": _second_try(decode, arguments[0].schema), "DecodeError": msgspec.DecodeError}


def _second_try(decode: Callable[[Any], Any], schema: bytes) -> Callable[[Any, Exception], Any]:
    read = msgspec.json.Decoder(float_hook=_whole).decode

    def again(raw: Any, error: Exception) -> Any:
        """Converts whole floats to integers and decodes once more: 1.0 is an integer in JSON Schema, not in msgspec."""
        try:
            return decode(encode_exact(read(raw)))
        except (msgspec.MsgspecError, ValueError, RecursionError):
            raise InvalidArguments(invalid_text(error, raw, schema)) from None

    return again


def _whole(text: str) -> int | msgspec.Raw:
    """Returns a whole number as an integer; any other stays as it is written, for a Decimal."""
    value = float(text)
    return int(value) if value.is_integer() and abs(value) < 2**53 else msgspec.Raw(text.encode())
