"""Subscriptions to changes of resources and lists, as iterators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from .._native import check_options
from ..types import Change
from .core import Ask, Steps
from .errors import read_error

_LISTS = ("tools", "prompts", "resources")


class Source(Protocol):
    """A client or a group whose native half makes subscriptions and queues their changes."""

    @property
    def native(self) -> Any: ...

    def subscribe(self, filter: Mapping[str, Any], /) -> Steps:
        """Subscribes; returns the number of the new subscription."""
        ...


class Subscribing:
    """The common part of both kinds of subscription. `run` runs steps, on an event loop or blocking."""

    def __init__(
        self, source: Source, run: Callable[[Steps], Any], uris: Sequence[str], lists: dict[str, bool]
    ) -> None:
        check_options("subscribe", "subscribe()", {"uris": uris, **lists})
        if not uris and not any(lists.values()):
            raise ValueError(
                "the subscription is empty; name URIs of resources, tools=True, prompts=True or resources=True"
            )
        filter: dict[str, Any] = {f"{name}ListChanged": True for name in _LISTS if lists[name]}
        if uris:
            filter["resourceSubscriptions"] = list(uris)
        self._filter = filter
        self._source = source
        self._run = run
        self._number: int | None = None

    def _open(self) -> Steps:
        self._number = yield from self._source.subscribe(self._filter)

    def _close(self) -> None:
        if self._number is not None:
            self._source.native.unsubscribe(self._number)

    def _await(self, number: int, mailbox: Any) -> int:
        ticket: int = self._source.native.await_change(mailbox, number)
        return ticket

    def _next(self) -> Steps:
        """Returns the oldest change; None at the end."""
        while True:
            number = self._number
            if number is None:
                raise RuntimeError("a subscription is entered first: with client.subscribe(…) as changes")
            taken = self._source.native.take_change(number)
            if taken is None:
                yield Ask(partial(self._await, number))
                continue
            kind, value, server = taken
            if kind == "end":
                return None
            if kind == "failed":
                raise read_error(value)
            return Change(kind=kind, uri=value, server=server)


class Subscription(Subscribing):
    """`async with client.subscribe(…) as changes: async for change in changes: …`"""

    async def __aenter__(self) -> Subscription:
        await self._run(self._open())
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._close()

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> Any:
        change = await self._run(self._next())
        if change is None:
            raise StopAsyncIteration
        return change


class SyncSubscription(Subscribing):
    """`with client.subscribe(…) as changes: for change in changes: …`"""

    def __enter__(self) -> SyncSubscription:
        self._run(self._open())
        return self

    def __exit__(self, *exc: object) -> None:
        self._close()

    def __iter__(self) -> SyncSubscription:
        return self

    def __next__(self) -> Any:
        change = self._run(self._next())
        if change is None:
            raise StopIteration
        return change
