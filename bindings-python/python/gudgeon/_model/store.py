"""`Store`: the methods of a store that servers share."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Literal, Protocol, TypeAlias

_Found: TypeAlias = tuple[bytes, int] | None
_Stored: TypeAlias = int | Literal["conflict"]
_Taken: TypeAlias = bytes | None


class Store(Protocol):
    """A store that servers share, for `Server(store=…)`, such as a database.

    `docs/store.md` says what is in it. The methods may be async, and run on the server's
    event loop then; others run on threads. If one raises, or returns nothing within 15 s, the requests that need it are
    answered with 503. `gudgeon.testing.check_store` checks a store.

    Keys are visible ASCII. A version is an integer, from 0 on, that is greater than each that a value of the key had
    before, also one that was taken or has ended.

    What servers need beside these three methods is made of them, unless the store has methods that do better. They are
    optional, and those of a line belong together:

    - `delete(key)` removes a value.
    - `append(log, event, *, max_events, max_bytes, ttl)` adds an event at the end of a log, and returns its number,
      an integer from 1 that is greater than each earlier one of the log. The oldest events are removed while there
      are more than `max_events` of them, or than `max_bytes` bytes; an event that is longer is an error. The log
      ends when nothing was added for `ttl` seconds. `read(log, after)` returns pairs of number and event, those
      above the number `after` (0: all) in their order, or "gone" if one of them was removed, or if no event has or
      had this number.
    - `lease(key, owner, *, ttl)` takes a lease for `ttl` seconds, and returns its token, an integer that is greater
      than each earlier one of the key, or "held" if another owner has the lease; an owner who has it gets a new
      token. `renew(key, owner, *, ttl)` lets it last for `ttl` seconds from now, and returns its token, or "held"
      if the owner does not have it any more. `release(key, owner)` ends it, if the owner has it.
    - `async def publish(topic, message)` sends bytes to all who have subscribed to a topic, in all processes; it is
      called for one message after another. `async def subscribe(topics)` is an async generator, or returns an async
      iterator. It yields None once it is connected, and again if it was connected anew and messages may be lost,
      and a pair of topic and bytes for each message of the topics, those of a topic in their order. It is cancelled
      at the end; if it ends or raises before, it is called again after a pause. Without these two, what needs
      messages stays within a process.
    """

    def get(self, key: str, /) -> _Found | Awaitable[_Found]:
        """Returns a value and its version, or None."""
        ...

    def put(
        self, key: str, value: bytes, /, *, ttl: float, expect: int | Literal["any", "absent"]
    ) -> _Stored | Awaitable[_Stored]:
        """Stores a value for `ttl` seconds if the key is as expected; at most one of several concurrent calls that
        expect the same succeeds.

        Args:
            ttl: Seconds after which the value ends.
            expect: "absent" if the key must have no value, the version that its value must have, or "any".

        Returns:
            The version of the value, or "conflict" if the key is not as expected.
        """
        ...

    def take(self, key: str, /) -> _Taken | Awaitable[_Taken]:
        """Removes a value and returns it, or None; at most one of several concurrent calls gets it."""
        ...
