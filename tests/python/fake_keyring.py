"""A keyring in memory, in place of the system's."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import keyring
from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked, PasswordDeleteError, PasswordSetError


class FakeKeyring(KeyringBackend):
    """Stores as many characters for an entry as Windows does: 2,560 bytes, UTF-16."""

    priority = 1

    def __init__(self) -> None:
        super().__init__()
        self.entries: dict[tuple[str, str], str] = {}
        self.threads: set[int] = set()
        self.is_locked = False

    def get_password(self, service: str, username: str) -> str | None:
        self._used()
        return self.entries.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self._used()
        if len(password) > 1280:
            raise PasswordSetError("too long")
        self.entries[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        self._used()
        if self.entries.pop((service, username), None) is None:
            raise PasswordDeleteError("not found")

    def _used(self) -> None:
        self.threads.add(threading.get_ident())
        if self.is_locked:
            raise KeyringLocked("locked")


@contextmanager
def used() -> Iterator[FakeKeyring]:
    """Replaces the keyring of this process meanwhile."""
    before, fake = keyring.get_keyring(), FakeKeyring()
    keyring.set_keyring(fake)
    try:
        yield fake
    finally:
        keyring.set_keyring(before)
