"""Tokens in the system's keyring, by the package `keyring`.

A value is kept as base64 in one or more pieces, each in an entry of its own, because Windows limits the length of
entries. The entry with the key's name has the format `1.<number of pieces>.<id>.<first piece>`; the others are named
`<key> <id>.<number>`. The id is new with each write. Other processes find the former pieces until the first entry is
replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from typing import Any

from .mcp_error import AuthError

#: The number of characters of a piece. Windows stores 2,560 bytes, which are UTF-16, with an entry.
_PIECE = 1200
_MAX_PIECES = 1000
#: The number of times that a value is read if other processes replace it meanwhile.
_ATTEMPTS = 5


class BlockingCall:
    """A call that may block: awaited, it runs in a thread; `run()` makes it in place, where no event loop waits."""

    def __init__(self, run: Callable[[], Any]) -> None:
        self.run = run

    def then(self, change: Callable[[Any], Any]) -> BlockingCall:
        """Returns a call whose result is changed."""
        return BlockingCall(lambda: change(self.run()))

    def __await__(self) -> Generator[Any, None, Any]:
        from asyncio import to_thread

        return to_thread(self.run).__await__()


class KeyringStore:
    """Keeps tokens and registrations in the system's keyring: the Keychain of macOS, the Credential Manager of Windows,
    or a Secret Service such as GNOME Keyring or KWallet.

    Needs the package `keyring`: `pip install 'gudgeon[keyring]'`. It is imported when the store is used first. If it is
    missing, or the system has no keyring, an `AuthError` says so. Of the user's processes that share the store, one at
    a time renews tokens.

    Args:
        service: The name under which the keyring lists the entries.

    >>> KeyringStore("shelf")
    KeyringStore('shelf')
    """

    def __init__(self, service: str = "gudgeon") -> None:
        if not isinstance(service, str) or not service:
            raise TypeError("KeyringStore: service must be a string that is not empty")
        self.service = service
        self._calls = BlockingStore(_Entries(service))

    def __repr__(self) -> str:
        return f"KeyringStore({self.service!r})"

    async def get(self, key: str, /) -> bytes | None:
        """Returns the value that was stored last under the key, or None."""
        value: bytes | None = await self._calls.get(key)
        return value

    async def set(self, key: str, value: bytes, /) -> None:
        """Stores a value under a key."""
        await self._calls.set(key, value)

    async def delete(self, key: str, /) -> None:
        """Removes the value of a key, if the store has one."""
        await self._calls.delete(key)


class BlockingStore:
    """The calls of a `KeyringStore`, which clients make with an event loop or without one."""

    def __init__(self, entries: _Entries) -> None:
        self._entries = entries

    def get(self, key: str) -> BlockingCall:
        return BlockingCall(partial(self._entries.get, key))

    def set(self, key: str, value: bytes) -> BlockingCall:
        return BlockingCall(partial(self._entries.set, key, value))

    def delete(self, key: str) -> BlockingCall:
        return BlockingCall(partial(self._entries.delete, key))


class _Entries:
    """The entries of a service. The methods block."""

    def __init__(self, service: str) -> None:
        from threading import Lock

        self._service = service
        self._writing = Lock()

    def get(self, key: str) -> bytes | None:
        import base64
        import binascii

        for _ in range(_ATTEMPTS):
            text = self._read(key)
            if text is None:
                return None
            found = _parsed(text)
            if found is None:
                break
            count, id, first = found
            pieces = [first, *(self._read(name) for name in _names(key, id, count))]
            if None in pieces:
                # Another process has replaced the value.
                continue
            try:
                return base64.b64decode("".join(pieces), validate=True)
            except binascii.Error:
                break
        raise AuthError(f"KeyringStore: the entry {key!r} is not valid; delete it, then sign in again")

    def set(self, key: str, value: bytes) -> None:
        import base64
        import os

        encoded = base64.b64encode(value).decode()
        first, *others = [encoded[at : at + _PIECE] for at in range(0, len(encoded), _PIECE)] or [""]
        count = 1 + len(others)
        if count > _MAX_PIECES:
            raise AuthError(f"KeyringStore: the value of {key!r} is too long for a keyring; use FileStore")
        id = os.urandom(4).hex()
        with self._writing:
            before = self._read(key)
            for name, piece in zip(_names(key, id, count), others, strict=True):
                self._write(name, piece)
            self._write(key, f"1.{count}.{id}.{first}")
            self._remove_pieces(key, before)

    def delete(self, key: str) -> None:
        with self._writing:
            before = self._read(key)
            self._remove(key)
            self._remove_pieces(key, before)

    def _remove_pieces(self, key: str, text: str | None) -> None:
        """Removes the pieces that belong to a former first entry."""
        count, id, _ = (text and _parsed(text)) or (1, "", "")
        for name in _names(key, id, count):
            self._remove(name)

    def _read(self, name: str) -> Any:
        return _ask("read", lambda keyring: keyring.get_password(self._service, name))

    def _write(self, name: str, text: str) -> None:
        _ask("written", lambda keyring: keyring.set_password(self._service, name, text))

    def _remove(self, name: str) -> None:
        # To delete a missing entry is an error, which does not differ from others.
        if self._read(name) is not None:
            _ask("written", lambda keyring: keyring.delete_password(self._service, name))


def _parsed(text: str) -> tuple[int, str, str] | None:
    """Returns the number of pieces, the id, and the first piece."""
    import re

    found = re.fullmatch(r"1\.([1-9]\d{0,3})\.(\w+)\.([^.]*)", text, re.ASCII)
    if found is None or int(found[1]) > _MAX_PIECES:
        return None
    return int(found[1]), found[2], found[3]


def _names(key: str, id: str, count: int) -> list[str]:
    """Returns the names of the entries of a value, without the first one."""
    return [f"{key} {id}.{number}" for number in range(2, count + 1)]


def _ask(done: str, call: Callable[[Any], Any]) -> Any:
    """Calls the package `keyring`. Raises `AuthError` if that or the system's keyring is missing, or the call fails."""
    try:
        import keyring
        from keyring.errors import KeyringError, NoKeyringError
    except ImportError as error:
        raise AuthError(
            f"KeyringStore: the package keyring can't be imported ({error}); run pip install 'gudgeon[keyring]', "
            "or use FileStore"
        ) from error
    try:
        return call(keyring)
    except NoKeyringError as error:
        raise AuthError(
            "KeyringStore: the system has no keyring that can be used; on Linux, start a Secret Service such as GNOME "
            "Keyring or KWallet, or use FileStore"
        ) from error
    except Exception as error:
        # The text of another exception may hold a secret.
        problem = f"{type(error).__name__}: {error}" if isinstance(error, KeyringError) else type(error).__name__
        raise AuthError(
            f"KeyringStore: the system's keyring can't be {done} ({problem}); unlock it, or use FileStore"
        ) from error
