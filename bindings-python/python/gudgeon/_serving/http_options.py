"""The options of HTTP servers."""

from __future__ import annotations

from typing import Any

from .._model.json import encode
from .._native import check_http, check_options, declared_options

# Options of connections, which the host's server owns.
OF_CONNECTIONS = {"max_headers", "header_timeout", "idle_timeout", "tls", "proxy_protocol", "drain_delay"}
SHUTDOWN_GRACE = 10.0  # seconds for calls in flight when the server is to stop


def checked(options: dict[str, Any], place: str) -> bytes:
    """Returns the options as JSON for the native half. Raises TypeError or ValueError with the option and the fix."""
    check_options("http", place, options)
    encoded = encode(declared_options("http", options))
    check_http(encoded)
    return encoded
