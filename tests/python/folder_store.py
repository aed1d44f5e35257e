"""A store of tokens in a folder, which processes share, with locks of two kinds."""

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from hashlib import sha256
from pathlib import Path


class FolderStore:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, key: str) -> bytes | None:
        path = self._path(key)
        return path.read_bytes() if path.exists() else None

    def set(self, key: str, value: bytes) -> None:
        path = self._path(key)
        new = path.with_suffix(f".{os.getpid()}.new")
        new.write_bytes(value)
        new.replace(path)

    def delete(self, key: str) -> None:
        self._path(key).unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        return self.folder / f"{sha256(key.encode()).hexdigest()}.value"


class ThreadLockStore(FolderStore):
    """Its lock blocks a thread."""

    @contextmanager
    def lock(self, key: str) -> Iterator[None]:
        with (self.folder / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


class TaskLockStore(FolderStore):
    """Its lock blocks a task."""

    @asynccontextmanager
    async def lock(self, key: str) -> AsyncIterator[None]:
        with (self.folder / "lock").open("w") as file:
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    await asyncio.sleep(0.01)
            yield
