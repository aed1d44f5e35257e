"""Checks what a `Transport` of the user gives."""

from __future__ import annotations

from typing import Any


def message_bytes(message: Any) -> bytes:
    """Returns a message of a transport as bytes. Raises TypeError for anything else."""
    if isinstance(message, bytes):
        return message
    if isinstance(message, (bytearray, memoryview)):
        return bytes(message)
    raise TypeError(f"receive() of a Transport must return bytes, or None at the end, not {type(message).__name__}")
