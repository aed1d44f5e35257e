"""The texts of arguments that can't be decoded: place, what was expected, and the value that came."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from .._native import invalid_arguments

_SHOWN = 100  # characters of a string that is repeated
_SHOWN_INSIDE = 60  # characters of an array or object that is repeated
_KINDS = {
    "int": "an integer",
    "float": "a number",
    "decimal": "a number",
    "str": "a string",
    "bool": "a boolean",
    "array": "an array",
    "object": "an object",
    "bytes": "a base64 string",
    "datetime": 'a string of the format "date-time"',
    "date": 'a string of the format "date"',
    "time": 'a string of the format "time"',
    "duration": 'a string of the format "duration"',
    "uuid": 'a string of the format "uuid"',
    "null": "null",
}
_FORMATS = {
    "Invalid RFC3339 encoded datetime": _KINDS["datetime"],
    "Invalid RFC3339 encoded date": _KINDS["date"],
    "Invalid RFC3339 encoded time": _KINDS["time"],
    "Invalid ISO8601 duration": _KINDS["duration"],
    "Invalid UUID": _KINDS["uuid"],
    "Invalid decimal string": "a decimal number",
    "Invalid base64 encoded string": _KINDS["bytes"],
}
_NOT_LISTED = ("Invalid enum value", "Invalid value")
_LIMITS = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than", "": "exactly"}
_UNITS = {"str": "character", "bytes": "byte", "array": "item", "object": "property"}
_STEP = r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]"
_TYPES: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (float,),
    "str": (str,),
    "array": (list,),
    "object": (dict,),
    "bool": (bool,),
    "null": (type(None),),
}

Path = list[str | int]


class InvalidArguments(Exception):
    """Arguments that fit the schema but fail the type's own validation."""


def invalid_text(error: Exception, raw: Any, schema: bytes, wire: str | None = None) -> str:
    """Returns what msgspec refused: `argument 'order.lines[0].sku': expected a string, got 5`.

    Args:
        error: msgspec's error.
        raw: The JSON text that was decoded.
        schema: The JSON Schema of all arguments.
        wire: The argument's name, where `raw` is its value alone.
    """
    message, _, at = str(error).partition(" - at `")
    is_key = at.startswith("key` in `")
    steps = re.findall(_STEP, at.removeprefix("key` in `").rstrip("`"))
    value = _decoded(raw, inside=bool(steps))
    path: Path = [] if wire is None else [wire]
    if message.startswith(_NOT_LISTED):
        text = _unlisted_text(schema, value if wire is None else {wire: value}, wire or steps[0][0])
        if text is not None:
            return text
    for name, index in steps:
        value, step = _enter(value, name, index, message)
        if step is None:
            break
        path.append(step)
    field = re.match(r"Object (missing required|contains unknown) field `(.*)`", message)
    if field is not None:
        problem = "missing" if field[1].startswith("missing") else "unknown"
        return f"{problem} argument '{_dotted([*path, field[2]])}'"
    text = _expected(message)
    if text is None:
        problem = _uncapitalized(message) if value is ... or _is_malformed(error) else message
    else:
        problem = f"expected {'each key to be ' if is_key else ''}{text}"
        if value is not ... and not is_key:
            problem += f", got {shown(value)}"
    return f"argument '{_dotted(path)}': {problem}" if path else f"arguments: {problem}"


def _unlisted_text(schema: bytes, arguments: Any, name: str) -> str | None:
    """Returns the core's text for an argument with a value that its schema does not list, which names those it does;
    None where the schema allows it.
    """
    whole = msgspec.json.decode(schema)
    if name not in whole.get("properties", {}) or not isinstance(arguments, dict) or arguments.get(name, ...) is ...:
        return None
    alone = {**whole, "properties": {name: whole["properties"][name]}, "required": [name]}
    return invalid_arguments(msgspec.json.encode(alone).decode(), msgspec.json.encode({name: arguments[name]}))


def pydantic_text(error: Any, raw: Any, wire: str) -> str:
    """Returns what pydantic refused, in its words or those of the model's own validators.

    Args:
        error: pydantic's ValidationError.
        raw: The argument's value as JSON.
        wire: The argument's name.
    """
    texts = []
    for item in error.errors(include_url=False, include_input=False):
        value = _decoded(raw, inside=bool(item["loc"]))
        kind, message = item["type"], str(item["msg"])
        path, found = _pydantic_path(item["loc"], value, is_absent=kind == "missing")
        place = f"'{_dotted([wire, *path])}'"
        if kind in ("missing", "extra_forbidden"):
            texts.append(f"{'missing' if kind == 'missing' else 'unknown'} argument {place}")
        elif kind in ("value_error", "assertion_error"):
            own = (item.get("ctx") or {}).get("error")
            texts.append(f"argument {place}: {message if own is None else own}")
        else:
            texts.append(f"argument {place}: {message}" + ("" if found is ... else f", got {shown(found)}"))
    return "; ".join(texts)


def _decoded(raw: Any, *, inside: bool) -> Any:
    """Returns the value, or `...` where it is not JSON; `inside` a string, the JSON that the string holds."""
    try:
        value = msgspec.json.decode(raw)
        return msgspec.json.decode(value) if inside and isinstance(value, str) else value
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return ...


def shown(value: Any) -> str:
    """Returns a value as JSON, or its kind and size where it is long."""
    if isinstance(value, str) and len(value) > _SHOWN:
        return f"a string of {len(value)} characters"
    try:
        text = msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError):
        text = repr(value)
    if isinstance(value, list) and len(text) > _SHOWN_INSIDE:
        return f"an array of {_counted(len(value), 'item')}"
    if isinstance(value, dict) and len(text) > _SHOWN_INSIDE:
        return f"an object of {_counted(len(value), 'member')}"
    return text


def _enter(value: Any, name: str, index: str, message: str) -> tuple[Any, str | int | None]:
    """Returns the member that a step of msgspec's path leads to, and its name; None where that is unknown."""
    if name:
        return (value.get(name, ...) if isinstance(value, dict) else ...), name
    if index != "...":
        number = int(index)
        known = isinstance(value, list) and number < len(value)
        return (value[number] if known else ...), number
    # msgspec does not report which member of a mapping it is: the first of the type that it complains of.
    got = re.search(r"got `(\w+)`", message)
    types = _TYPES.get(got[1]) if got is not None else None
    if types is not None and isinstance(value, dict):
        for key, member in value.items():
            if type(member) in types:
                return member, key
    return ..., None


def _expected(message: str) -> str | None:
    """Returns msgspec's complaint in the words of JSON Schema; None for a message of another origin."""
    for start, expected in _FORMATS.items():
        if message.startswith(start):
            return expected
    match = re.match(r"Expected `([^`]+)`(.*)", message)
    if match is None:
        return None
    kinds = [_KINDS.get(kind, kind) for kind in match[1].split(" | ")]
    rest = match[2].partition(", got ")[0].strip()
    length = re.match(r"of length (>=|<=|>|<)? ?(\d+)", rest)
    limit = re.match(r"(>=|<=|>|<) (\S+)", rest)
    if length is not None:
        return f"{_LIMITS[length[1] or '']} {_counted(int(length[2]), _UNITS.get(match[1], 'item'))}"
    if limit is not None:
        return f"{_LIMITS[limit[1]]} {limit[2].removesuffix('.0')}"
    if rest.startswith("that's a multiple of"):
        return rest.removeprefix("that's ")
    if rest.startswith("matching regex"):
        return f"a string that matches {rest.removeprefix('matching regex ')}"
    return kinds[0] if len(kinds) == 1 else f"{', '.join(kinds[:-1])} or {kinds[-1]}"


def _is_malformed(error: Exception) -> bool:
    return isinstance(error, msgspec.DecodeError) and not isinstance(error, msgspec.ValidationError)


def _pydantic_path(loc: tuple[Any, ...], value: Any, *, is_absent: bool) -> tuple[Path, Any]:
    """Returns the place in the value, without the names of a union's alternatives, and what is there."""
    path: Path = []
    for at, step in enumerate(loc):
        is_last = at + 1 == len(loc)
        if (isinstance(step, str) and isinstance(value, dict) and step in value) or (
            isinstance(step, int) and isinstance(value, list) and step < len(value)
        ):
            value = value[step]  # type: ignore[index]
            path.append(step)
        elif is_last and is_absent:
            path.append(step)
            value = ...
    return path, value


def _dotted(path: Path) -> str:
    out = ""
    for step in path:
        if isinstance(step, int):
            out += f"[{step}]"
        elif re.search(r"[.\[\]'\"\s]", step) or not step:
            out += f"[{msgspec.json.encode(step).decode()}]"
        else:
            out += f".{step}" if out else step
    return out


def _counted(count: int, unit: str) -> str:
    if count == 1:
        return f"1 {unit}"
    return f"{count} {'properties' if unit == 'property' else unit + 's'}"


def _uncapitalized(message: str) -> str:
    """Returns a sentence as a part of another one; an abbreviation at its start stays as it is."""
    return message if message[1:2].isupper() else message[:1].lower() + message[1:]
