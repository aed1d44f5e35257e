"""The options of HTTP servers, and their checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from typing import Any

from .._model.json import encode
from .._model.other_sdks import OPTIONS
from .._model.unknown import unknown_name

_COUNTS = ("max_body", "max_sessions", "max_streams", "max_in_flight", "max_headers")
_SECONDS = ("header_timeout", "idle_timeout", "session_idle", "keep_alive", "shutdown_grace")
_FLAGS = ("legacy_sse", "event_store")
_TEXTS = ("allowed_origins", "allowed_hosts")
KNOWN = {*_COUNTS, *_SECONDS, *_FLAGS, *_TEXTS, "public_url", "cors", "tls"}
# Options of connections, which the host's server owns.
OF_CONNECTIONS = {"max_headers", "header_timeout", "idle_timeout", "tls"}
SHUTDOWN_GRACE = 10.0  # seconds for calls in flight when the server is to stop


def checked(options: Mapping[str, Any], place: str) -> bytes:
    """Returns the options as JSON for the native half. Raises TypeError or ValueError with the option and the fix."""
    given: dict[str, Any] = {}
    for name, value in options.items():
        if name not in KNOWN:
            raise unknown_name(place, "option", name, KNOWN, OPTIONS["http"])
        if value is not None:
            given[name] = _check(name, value, place)
    return encode(given)


def _check(name: str, value: Any, place: str) -> Any:
    if name in _COUNTS and not (isinstance(value, int) and not isinstance(value, bool) and value > 0):
        raise ValueError(f"{place}: {name}= is a whole number above 0, not {value!r}")
    if name in _SECONDS:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value or value < 0:
            raise ValueError(f"{place}: {name}= is a number of seconds, not {value!r}")
        if value == 0 and name != "shutdown_grace":
            raise ValueError(f"{place}: {name}= is a number of seconds above 0: leave it out for the default")
    if name in _FLAGS and not isinstance(value, bool):
        raise TypeError(f"{place}: {name}= is True or False, not {value!r}")
    if name in _TEXTS or (name == "cors" and not isinstance(value, bool)):
        return _texts(name, value, place)
    if name == "public_url" and not (isinstance(value, str) and value.startswith(("http://", "https://"))):
        raise ValueError(f"{place}: public_url= is a URL such as 'https://example.org/mcp', not {value!r}")
    if name == "tls":
        if (
            not isinstance(value, (tuple, list))
            or len(value) != 2
            or not all(isinstance(it, (str, PathLike)) for it in value)
        ):
            raise TypeError(f"{place}: tls= takes two files: tls=('certificate.pem', 'key.pem'), not {value!r}")
        return [fspath(it) for it in value]
    return value


def _texts(name: str, value: Any, place: str) -> list[str]:
    if isinstance(value, str):
        raise TypeError(f"{place}: {name}= takes a list of strings: [{value!r}]")
    if not isinstance(value, Sequence) or not all(isinstance(it, str) for it in value):
        raise TypeError(f"{place}: {name}= takes a list of strings, not {value!r}")
    return list(value)
