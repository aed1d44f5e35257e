"""`Store`: the methods of a store that servers share."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Literal, Protocol, TypeAlias

_Found: TypeAlias = tuple[bytes, int] | None
_Stored: TypeAlias = int | Literal["conflict"]
_Taken: TypeAlias = bytes | None


class Store(Protocol):
    """A store that servers share, for `Server(store=…)`, such as a database.

    Servers with the same store remember used DPoP proofs together. The methods may be async, and run on the server's
    event loop then; others run on threads. If one raises, or returns nothing within 15 s, the requests that need it are
    answered with 503. `gudgeon.testing.check_store` checks a store.

    Keys are visible ASCII. A version is an integer, from 0 on, that no other value of the key has.
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
