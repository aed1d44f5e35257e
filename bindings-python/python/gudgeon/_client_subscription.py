"""Changes that a server tells of, as something to iterate over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._client_core import Core, Steps
from .errors import NotSupported

_LISTS = ("tools", "resources", "prompts")


class Subscribing:
    """What both kinds of subscription share: what is wanted, and what has come but was not taken yet.

    A change that comes again before it was taken is one change: so what waits here is bounded by what was asked for.
    """

    def __init__(self, core: Core, uris: Sequence[str], lists: dict[str, bool]) -> None:
        for uri in uris:
            if not isinstance(uri, str):
                raise TypeError(f"subscribe takes URIs, not {uri!r}")
        if not uris and not any(lists.values()):
            raise ValueError("subscribe to something: URIs of resources, tools=True, prompts=True or resources=True")
        self._core = core
        self._uris = tuple(dict.fromkeys(uris))
        self._lists = tuple(name for name in _LISTS if lists[name])
        self._changes: dict[Any, Any] = {}
        self._over = False
        self._error: BaseException | None = None

    def open(self) -> Steps:
        """Asks the server for what is wanted."""
        core = self._core
        if core.said("revision") == "2026-07-28":
            raise NotSupported(
                "subscriptions/listen of 2026-07-28 is not part of this version",
                hint="a client with revision='2025-11-25' can subscribe, where the server speaks that, too",
                target=core.target_name(),
                phase="subscribe",
            )
        for name in self._lists:
            declared = core.said("capabilities").get(name)
            if not isinstance(declared, dict) or declared.get("listChanged") is not True:
                raise NotSupported(
                    f"the server does not tell when its {name} change: it did not declare {name}.listChanged",
                    target=core.target_name(),
                    phase="subscribe",
                )
        core.subscriptions.append(self)
        try:
            for uri in self._uris:
                yield from core.request("resources/subscribe", {"uri": uri}, ...)
        except BaseException:
            core.subscriptions.remove(self)
            raise

    def close(self) -> Steps:
        """Takes it back, but for what others still want."""
        core = self._core
        if self not in core.subscriptions:
            return
        core.subscriptions.remove(self)
        self._end(None)
        wanted = {uri for other in core.subscriptions for uri in other._uris}
        if core.is_open() and core.lost is None:
            for uri in self._uris:
                if uri not in wanted:
                    yield from core.request("resources/unsubscribe", {"uri": uri}, ...)

    def _put(self, change: Any) -> None:
        if change.uri in self._uris if change.kind == "updated" else change.kind in self._lists:
            self._changes[(change.kind, change.uri)] = change
            self._wake()

    def _end(self, error: BaseException | None) -> None:
        self._over = True
        self._error = error
        self._wake()

    def _wake(self) -> None:
        pass

    def _take(self) -> Any:
        """The oldest change; None where there is none yet. At the end it raises StopIteration, or why it ended."""
        if self._changes:
            return self._changes.pop(next(iter(self._changes)))
        if self._over:
            raise self._error or StopIteration
        return None


class Subscription(Subscribing):
    """`async with client.subscribe(…) as changes: async for change in changes: …`"""

    async def __aenter__(self) -> Subscription:
        import asyncio

        from ._client_loop import loop_post

        self._event = asyncio.Event()
        await loop_post().run(self._core, self.open())
        return self

    async def __aexit__(self, *exc: object) -> None:
        from ._client_loop import loop_post

        await loop_post().run(self._core, self.close())

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> Any:
        while True:
            self._event.clear()
            try:
                change = self._take()
            except StopIteration:
                raise StopAsyncIteration from None
            if change is not None:
                return change
            await self._event.wait()

    def _wake(self) -> None:
        event = getattr(self, "_event", None)
        if event is not None:
            event.set()


class SyncSubscription(Subscribing):
    """`with client.subscribe(…) as changes: for change in changes: …`"""

    def __init__(self, core: Core, uris: Sequence[str], lists: dict[str, bool], post: Any) -> None:
        super().__init__(core, uris, lists)
        self._post = post

    def __enter__(self) -> SyncSubscription:
        self._post.run(self.open())
        return self

    def __exit__(self, *exc: object) -> None:
        self._post.run(self.close())

    def __iter__(self) -> SyncSubscription:
        return self

    def __next__(self) -> Any:
        while (change := self._take()) is None:
            # Another thread that waits for the same client may take it for us.
            self._post.wait(0.1)
        return change
