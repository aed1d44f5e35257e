"""Subscriptions to changes of resources and lists, as iterators."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from msgspec.json import decode

from .._model.json import encode
from .._native import check_options
from ..types import Change
from .core import Ask, Core, Steps
from .errors import error_of

_LISTS = ("tools", "prompts", "resources")


class Subscribing:
    """The common part of both kinds of subscription; the native half queues the changes."""

    def __init__(self, core: Core, uris: Sequence[str], lists: dict[str, bool]) -> None:
        check_options("subscribe", "subscribe()", {"uris": uris, **lists})
        if not uris and not any(lists.values()):
            raise ValueError(
                "the subscription is empty; name URIs of resources, tools=True, prompts=True or resources=True"
            )
        filter: dict[str, Any] = {f"{name}ListChanged": True for name in _LISTS if lists[name]}
        if uris:
            filter["resourceSubscriptions"] = list(uris)
        self._filter = encode(filter)
        self._core = core
        self._number: int | None = None

    def _open(self) -> Steps:
        self._number = yield from self._core.subscribe(self._filter)

    def _close(self) -> None:
        if self._number is not None:
            self._core.native.unsubscribe(self._number)

    def _await(self, number: int, mailbox: Any) -> int:
        return self._core.native.await_change(mailbox, number)

    def _next(self) -> Steps:
        """Returns the oldest change; None at the end."""
        core = self._core
        while True:
            number = self._number
            if number is None:
                raise RuntimeError("a subscription is entered first: with client.subscribe(…) as changes")
            taken = core.native.take_change(number)
            if taken is None:
                yield Ask(partial(self._await, number))
                continue
            kind, value = taken
            if kind == "end":
                return None
            if kind == "failed":
                raise error_of(decode(value))
            return Change(kind=kind, uri=value)


class Subscription(Subscribing):
    """`async with client.subscribe(…) as changes: async for change in changes: …`"""

    async def __aenter__(self) -> Subscription:
        from .loop import loop_queue

        await loop_queue().run(self._core, self._open())
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._close()

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> Any:
        from .loop import loop_queue

        change = await loop_queue().run(self._core, self._next())
        if change is None:
            raise StopAsyncIteration
        return change


class SyncSubscription(Subscribing):
    """`with client.subscribe(…) as changes: for change in changes: …`"""

    def __init__(self, core: Core, uris: Sequence[str], lists: dict[str, bool], queue: Any) -> None:
        super().__init__(core, uris, lists)
        self._queue = queue

    def __enter__(self) -> SyncSubscription:
        self._queue.run(self._core, self._open())
        return self

    def __exit__(self, *exc: object) -> None:
        self._close()

    def __iter__(self) -> SyncSubscription:
        return self

    def __next__(self) -> Any:
        change = self._queue.run(self._core, self._next())
        if change is None:
            raise StopIteration
        return change
