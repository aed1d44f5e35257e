"""The operations of `Server(store=…)`, which the native half asks for."""

from __future__ import annotations

from _thread import allocate_lock
from base64 import b64decode
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec

from .._call.log import report
from .._model.article import with_article
from .._native import StoreFeed
from .awaiting import Awaiting

# The methods of a store; the last ones are optional.
_METHODS = (
    *("get", "put", "take", "delete", "append", "read"),
    *("publish", "subscribe", "lease", "renew", "release"),
)


def methods_of(store: Any) -> dict[str, Callable[..., Any]]:
    """Returns the methods of a store that is an object of the program, by name; none of another."""
    if store is None or isinstance(store, str):
        return {}
    methods = {name: getattr(store, name, None) for name in _METHODS}
    return {name: method for name, method in methods.items() if callable(method)}


def set_store(native: Any, store: Any, awaiting: Awaiting, place: str) -> None:
    """Gives the native half the store of a server.

    Raises:
        ValueError: There is no store at the address; the text says why, without it.
    """
    if isinstance(store, str):
        if store == "memory":
            return
        try:
            native.set_store_address(store)
        except ValueError as error:
            raise ValueError(f"{place}: store=: {error}") from None
    elif store is not None:
        native.set_store(StoreCalls(store, awaiting), list(methods_of(store)))


class StoreCalls:
    """Carries out operations on a program's store. The native half calls it on threads of its own."""

    def __init__(self, store: Any, awaiting: Awaiting) -> None:
        self._store = store
        self._awaiting = awaiting
        self._lock = allocate_lock()
        # What cancels each subscription; None if it was to end before it began.
        self._subscriptions: dict[int, Callable[[], object] | None] = {}

    def __call__(self, operation: bytes) -> bytes:
        """Carries out an operation and returns the reply of the store, both as JSON."""
        given: dict[str, Any] = msgspec.json.decode(operation)
        name = given.pop("operation")
        method: Callable[..., Any] = getattr(self._store, name)
        try:
            positional = [_decoded(member, given.pop(member)) for member in _POSITIONAL if member in given]
            named = {_NAMES.get(member, member): value for member, value in given.items()}
            if "ttl" in named:
                named["ttl"] /= 1000
            returned = self._awaiting.result(method(*positional, **named))
            if name == "read" and not isinstance(returned, str):
                returned = list(returned)
            return msgspec.json.encode(returned, enc_hook=_refused)
        except Exception as error:
            report(f"store: {name}() failed", error)
            # The text of an exception may hold a secret, and was logged.
            return msgspec.json.encode({"failed": f"{name}() raised {type(error).__name__}"})

    def subscribe(self, number: int, topics: list[str], feed: StoreFeed) -> None:
        """Begins to give `feed` what the store's `subscribe` yields, until that ends or `unsubscribe` is called."""
        try:
            cancel = self._awaiting.begin(self._receive(topics, feed))
        except RuntimeError as error:
            if feed.close():
                report("store: its messages can't be received", error)
            return
        with self._lock:
            is_over = number in self._subscriptions
            if not is_over:
                self._subscriptions[number] = cancel
            else:
                del self._subscriptions[number]
        if is_over:
            cancel()

    def unsubscribe(self, number: int) -> None:
        """Ends a subscription, which may have ended, or not have begun."""
        with self._lock:
            cancel = self._subscriptions.pop(number, None)
            if cancel is None:
                self._subscriptions[number] = None
        if cancel is not None:
            cancel()

    async def _receive(self, topics: list[str], feed: StoreFeed) -> None:
        text = "store: subscribe() ended"
        error: Exception | None = None
        items: Any = None
        try:
            items = self._store.subscribe(topics)
            if hasattr(items, "__await__"):
                items = await items
            async for item in items:
                if item is None:
                    feed.connected()
                    continue
                topic, message = item
                feed.message(topic, bytes(message))
        except Exception as failure:
            text, error = "store: subscribe() failed", failure
        finally:
            is_first = feed.close()
            if hasattr(items, "aclose"):
                # It may wait behind an item that is none.
                with suppress(Exception):
                    await items.aclose()
        if is_first:
            report(f"{text}; it is called again until it works, and messages of other servers get lost", error)


# The members of an operation that are passed by position, in their order.
_POSITIONAL = ("key", "log", "topic", "value", "event", "message", "after", "owner")
_BYTES = frozenset(("value", "event", "message"))
_NAMES = {"maxEvents": "max_events", "maxBytes": "max_bytes"}


def _decoded(member: str, value: Any) -> Any:
    return b64decode(value) if member in _BYTES else value


def _refused(value: Any) -> Any:
    raise TypeError(f"{with_article(type(value).__name__)} is not the reply of a store")
