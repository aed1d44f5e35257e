"""The base class of value types: frozen, equal by value, converted to and from JSON of the newest revision."""

from types import GenericAlias

from .encoding import JsonValue, to_builtins
from .mcp_error import McpError

REQUIRED = object()
_WIRE = {"meta": "_meta"}


def camel(name):
    """Converts `mime_type` to `mimeType`."""
    known = _WIRE.get(name)
    if known is None:
        first, *rest = name.split("_")
        known = _WIRE[name] = first + "".join(part.capitalize() for part in rest)
    return known


def snake(name):
    """Converts `mimeType` to `mime_type`."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def plain(value):
    """Converts a value to one that `json.dumps` takes."""
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    if isinstance(value, Value):
        return value.to_dict()
    if isinstance(value, (bytes, bytearray, memoryview)):
        from base64 import b64encode

        return b64encode(value).decode("ascii")
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted(plain(item) for item in value)
    return to_builtins(value)


def string(wire):
    """Reads a string."""
    if not isinstance(wire, str):
        raise TypeError(f"expected a string, got {type(wire).__name__}")
    return wire


def boolean(wire):
    """Reads true or false."""
    if not isinstance(wire, bool):
        raise TypeError(f"expected a boolean, got {type(wire).__name__}")
    return wire


def number(wire):
    """Reads a number."""
    if isinstance(wire, bool) or not isinstance(wire, (int, float)):
        raise TypeError(f"expected a number, got {type(wire).__name__}")
    return wire


def unbase64(text):
    """Reads bytes from base64, ignoring whitespace; also without padding, and of the URL alphabet. Raises ValueError
    for anything else.
    """
    from base64 import b64decode

    if isinstance(text, bytes):
        return text
    try:
        return b64decode(text, validate=True)
    except ValueError:
        text = "".join(text.split()).replace("-", "+").replace("_", "/")
        return b64decode(text + "=" * (-len(text) % 4), validate=True)


class Undecoded(JsonValue):
    """A string in place of bytes, which is not base64. It is written as it was received."""

    __slots__ = ("problem", "text")

    def __init__(self, text, problem):
        self.text = text
        self.problem = problem

    def to_dict(self):
        return self.text

    def __eq__(self, other):
        return type(other) is Undecoded and self.text == other.text

    def __hash__(self):
        return hash(self.text)

    def __repr__(self):
        return "<invalid base64>"


def received_bytes(text):
    """Reads bytes from base64. One that is invalid becomes `Undecoded`, so that what came with it can be used."""
    try:
        return unbase64(text)
    except ValueError as error:
        return Undecoded(text, str(error))


def bytes_property(name):
    """Returns a property for bytes that were read by `received_bytes`."""

    def read(self):
        """The bytes. Raises McpError if the base64 that was received is invalid."""
        value = self.__dict__[name]
        if type(value) is Undecoded:
            raise McpError(f"{type(self).__name__}.{name}: the base64 that was received is invalid: {value.problem}")
        return value

    return property(read)


def all_decoded(value):
    """Returns the value. Raises ValueError if its bytes could not be decoded."""
    for name, part in value.__dict__.items():
        if type(part) is Undecoded:
            raise ValueError(f"{type(value).__name__}.from_dict: {camel(name)!r} is invalid: {part.problem}")
    return value


class Value(JsonValue):
    """A frozen value, equal by its fields. `to_dict` and `from_dict` convert it to and from JSON of the newest
    revision.
    """

    # Field name → default; REQUIRED fields are always written, others only if they differ from the default.
    _fields = {}
    # Field name → the function that converts its JSON.
    _readers = {}
    # Fields whose JSON name ends in `Hint`.
    _hints = frozenset()
    # Names that users of other libraries try → ours.
    _known_as = {}

    def __init__(self, *given, **values):
        fields = self._fields
        if given:
            first = next(iter(fields), None)
            shown = f"{type(self).__name__}({'' if first is None else f'{first}=…'})"
            raise TypeError(f"{type(self).__name__} takes its fields by name, not {given[0]!r}: write {shown}")
        for name in values:
            if name not in fields:
                raise TypeError(f"{type(self).__name__} has no field {name!r}: it has {', '.join(fields)}")
        missing = [name for name, default in fields.items() if default is REQUIRED and name not in values]
        if missing:
            raise TypeError(f"{type(self).__name__} needs {', '.join(map(repr, missing))}")
        self._put(values)

    def _put(self, values):
        own = self.__dict__
        for name, default in self._fields.items():
            value = values.get(name, default)
            own[name] = tuple(value) if isinstance(value, list) and isinstance(default, tuple) else value

    def to_dict(self):
        """Returns this value as a JSON object: camelCase keys, bytes as base64."""
        out = {}
        for name, default in self._fields.items():
            value = self.__dict__[name]
            if default is REQUIRED or value != default:
                out[camel(name)] = plain(value)
        return out

    @classmethod
    def from_dict(cls, data):
        """Returns the value of a JSON object; unknown keys are ignored."""
        read_object(cls.__name__, data)
        new = cls.__new__(cls)
        own = new.__dict__
        for name, key, default, reader in cls.__dict__.get("_plan") or cls._make_plan():
            wire = data.get(key)
            if wire is None:
                if default is not REQUIRED:
                    # Two values never share a mutable default.
                    own[name] = default.copy() if type(default) is dict else default
                elif reader is not None or key not in data:
                    raise ValueError(f"{cls.__name__}.from_dict: {key!r} is missing")
                else:
                    own[name] = None
                continue
            if reader is not None:
                try:
                    wire = reader(wire)
                except (TypeError, AttributeError) as error:
                    raise ValueError(f"{cls.__name__}.from_dict: {key!r} is invalid: {error}") from None
            own[name] = tuple(wire) if type(wire) is list and type(default) is tuple else wire
        return new

    @classmethod
    def _make_plan(cls):
        """Returns name, name on the wire, default and reader of each field, looked up once."""
        readers = cls._readers
        cls._plan = tuple((name, camel(name), default, readers.get(name)) for name, default in cls._fields.items())
        return cls._plan

    def __getattr__(self, name):
        # Only for names that do not exist.
        message = f"{type(self).__name__!r} object has no attribute {name!r}"
        if not name.startswith("_"):
            known = self._known_as.get(name) or snake(name)
            if known != name and known in (*dir(type(self)), *self._fields):
                message += f": it is {known!r}"
        raise AttributeError(message, name=name, obj=self)

    def __setattr__(self, name, value):
        raise AttributeError(f"{type(self).__name__} is frozen: make a new one instead of setting {name!r}")

    def __delattr__(self, name):
        raise AttributeError(f"{type(self).__name__} is frozen: {name!r} can't be deleted")

    def __eq__(self, other):
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self):
        # Unhashable fields (mappings) are left out: equal values still have equal hashes.
        parts = [type(self)]
        for value in self.__dict__.values():
            try:
                hash(value)
            except TypeError:
                continue
            parts.append(value)
        return hash(tuple(parts))

    def __repr__(self):
        shown = []
        for name, default in self._fields.items():
            value = self.__dict__[name]
            if default is REQUIRED or value != default:
                shown.append(f"{name}={_short(value)}")
        return f"{type(self).__name__}({', '.join(shown)})"

    def __class_getitem__(cls, item):
        return GenericAlias(cls, item)


def _short(value):
    if isinstance(value, bytes) and len(value) > 32:
        return f"<{len(value)} bytes>"
    return repr(value)


def read_object(name, data):
    """Raises TypeError unless the value is a JSON object."""
    if isinstance(data, dict):
        return
    from collections.abc import Mapping

    if not isinstance(data, Mapping):
        raise TypeError(f"{name}.from_dict takes a JSON object, not {type(data).__name__}")


def each(read):
    """Returns a reader of a JSON array."""
    return lambda items: tuple(read(item) for item in items)
