"""The locks of a store that processes share: its method `lock(key)` returns a context manager, async or not."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from .keyring_store import BlockingCall

if TYPE_CHECKING:
    from concurrent.futures import Future
    from threading import Event


class StoreLocks:
    """The locks of a store that are held, by number."""

    def __init__(self, lock: Callable[[str], Any]) -> None:
        self._lock = lock
        self._exits: dict[int, Callable[[], Any]] = {}
        self._last = 0

    def enter(self, key: str) -> Any:
        """Waits for the lock of a key: returns an awaitable or a `BlockingCall` of its number."""
        lock = self._lock(key)
        if hasattr(lock, "__aenter__"):
            return self._enter_async(lock)
        if hasattr(lock, "__enter__"):
            return BlockingCall(lambda: self._keep(_enter_in_thread(lock)))
        if hasattr(lock, "close"):
            lock.close()
        raise TypeError(
            f"the store's lock() must return a context manager, async or not, such as that of @asynccontextmanager, "
            f"not {type(lock).__name__}"
        )

    def exit(self, number: int) -> Any:
        """Releases a lock: returns an awaitable, or None."""
        return self._exits.pop(number)()

    async def _enter_async(self, lock: Any) -> int:
        await lock.__aenter__()
        return self._keep(partial(lock.__aexit__, None, None, None))

    def _keep(self, exit: Callable[[], Any]) -> int:
        self._last += 1
        self._exits[self._last] = exit
        return self._last


def _enter_in_thread(lock: Any) -> Callable[[], None]:
    """Waits for a lock in a thread of its own, which also leaves it, because many locks belong to a thread. Returns a
    function that releases it."""
    from concurrent.futures import Future
    from threading import Event, Thread

    entered: Future[None] = Future()
    left: Future[None] = Future()
    leave = Event()
    Thread(target=_hold, args=(lock, entered, leave, left), name="gudgeon-lock", daemon=True).start()
    entered.result()

    def exit() -> None:
        leave.set()
        left.result()

    return exit


def _hold(lock: Any, entered: Future[None], leave: Event, left: Future[None]) -> None:
    try:
        with lock:
            entered.set_result(None)
            leave.wait()
    except BaseException as error:
        (left if entered.done() else entered).set_exception(error)
    else:
        left.set_result(None)
