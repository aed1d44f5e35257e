"""The operations of `Server(store=…)`, which the native half asks for."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable
from typing import Any

import msgspec

from .._call.log import report
from .._model.article import with_article
from .awaiting import Awaiting


class StoreCalls:
    """Carries out operations on a program's store. The native half calls it on threads of its own."""

    def __init__(self, store: Any, awaiting: Awaiting) -> None:
        self._store = store
        self._awaiting = awaiting

    def __call__(self, operation: bytes) -> bytes:
        """Carries out an operation and returns the reply of the store, both as JSON."""
        given = msgspec.json.decode(operation)
        name = given["operation"]
        method: Callable[..., Any] = getattr(self._store, name)
        try:
            if name == "put":
                value = b64decode(given["value"])
                returned = method(given["key"], value, ttl=given["ttl"] / 1000, expect=given["expect"])
            else:
                returned = method(given["key"])
            return msgspec.json.encode(self._awaiting.result(returned), enc_hook=_refused)
        except Exception as error:
            report(f"store: {name}() failed", error)
            # The text of an exception may hold a secret, and was logged.
            return msgspec.json.encode({"failed": f"{name}() raised {type(error).__name__}"})


def _refused(value: Any) -> Any:
    raise TypeError(f"{with_article(type(value).__name__)} is not the reply of a store")
