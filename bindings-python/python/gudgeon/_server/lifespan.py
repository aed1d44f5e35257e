"""`lifespan=`: entered when the first stream is served, left when the last one ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._model.article import with_article


class Lifespan:
    """The context manager of a server's lifespan, and those of the servers mounted into it."""

    def __init__(self, server: Any, make: Callable[[Any], Any] | None) -> None:
        self._server = server
        self._make = make
        self._manager: Any = None
        self._users = 0
        self.value: Any = None

    @property
    def is_async(self) -> bool:
        """Returns whether an event loop is needed to enter it."""
        return hasattr(self._prepared(), "__aenter__") or any(mounted.is_async for mounted in self._mounted())

    @property
    def is_used(self) -> bool:
        return self._users > 0

    def first(self) -> str | None:
        """Returns the name of the first server with a lifespan, of this one and those mounted into it."""
        if self._make is not None:
            return str(self._server.name)
        return next((found for mounted in self._mounted() if (found := mounted.first())), None)

    def enter(self) -> None:
        self._users += 1
        if self._users > 1:
            return
        try:
            manager = self._prepared()
            if manager is not None:
                self.value = manager.__enter__()
        except BaseException:
            self.forget()
            raise
        entered: list[Lifespan] = []
        try:
            for mounted in self._mounted():
                mounted.enter()
                entered.append(mounted)
        except BaseException:
            self._left()
            self._leave(entered)
            raise

    def exit(self) -> None:
        if self._left():
            self._leave(self._mounted())

    def _leave(self, mounted: list[Lifespan]) -> None:
        """Leaves these and then itself, also if they fail."""
        try:
            for one in reversed(mounted):
                one.exit()
        finally:
            manager, self._manager, self.value = self._manager, None, None
            if manager is not None:
                manager.__exit__(None, None, None)

    async def aenter(self) -> None:
        self._users += 1
        if self._users > 1:
            return
        try:
            manager = self._prepared()
            if hasattr(manager, "__aenter__"):
                self.value = await manager.__aenter__()
            elif manager is not None:
                self.value = manager.__enter__()
        except BaseException:
            self.forget()
            raise
        entered: list[Lifespan] = []
        try:
            for mounted in self._mounted():
                await mounted.aenter()
                entered.append(mounted)
        except BaseException:
            self._left()
            await self._aleave(entered)
            raise

    async def aexit(self) -> None:
        if self._left():
            await self._aleave(self._mounted())

    async def _aleave(self, mounted: list[Lifespan]) -> None:
        try:
            for one in reversed(mounted):
                await one.aexit()
        finally:
            manager, self._manager, self.value = self._manager, None, None
            if hasattr(manager, "__aexit__"):
                await manager.__aexit__(None, None, None)
            elif manager is not None:
                manager.__exit__(None, None, None)

    async def aclose(self) -> None:
        if self._users:
            self._users = 1
            await self.aexit()

    def forget(self) -> None:
        """Counts one user less without leaving the lifespan, whose event loop is closed."""
        if self._left():
            self._manager = self.value = None

    def _left(self) -> bool:
        self._users = max(0, self._users - 1)
        return self._users == 0

    def _mounted(self) -> list[Lifespan]:
        return [server._lifespan for _, server in self._server._mounted]

    def _prepared(self) -> Any:
        if self._manager is None and self._make is not None:
            self._manager = self._make(self._server)
            if not hasattr(self._manager, "__enter__") and not hasattr(self._manager, "__aenter__"):
                raise TypeError(
                    f"lifespan= of {self._server.name!r} returned {with_article(type(self._manager).__name__)}, "
                    "not a context manager; "
                    "decorate the function with @contextlib.asynccontextmanager or @contextlib.contextmanager"
                )
        return self._manager
