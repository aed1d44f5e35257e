"""A keyring whose entries are files, so that processes share it: PYTHON_KEYRING_BACKEND=file_keyring.FileKeyring."""

import json
import os
from pathlib import Path

from keyring.backend import KeyringBackend
from keyring.errors import PasswordDeleteError

FOLDER = "FILE_KEYRING"


class FileKeyring(KeyringBackend):
    """Its folder is named by an environment variable."""

    priority = 1

    def get_password(self, service: str, username: str) -> str | None:
        try:
            return self._path(service, username).read_text()
        except FileNotFoundError:
            return None

    def set_password(self, service: str, username: str, password: str) -> None:
        path = self._path(service, username)
        new = path.with_suffix(f".{os.getpid()}.new")
        new.write_text(password)
        new.replace(path)

    def delete_password(self, service: str, username: str) -> None:
        try:
            self._path(service, username).unlink()
        except FileNotFoundError as error:
            raise PasswordDeleteError("not found") from error

    @staticmethod
    def entries() -> list[tuple[str, str]]:
        """Returns the services and names of all entries."""
        return [tuple(json.loads(bytes.fromhex(path.stem))) for path in Path(os.environ[FOLDER]).glob("*.entry")]

    @staticmethod
    def _path(service: str, username: str) -> Path:
        return Path(os.environ[FOLDER], f"{json.dumps([service, username]).encode().hex()}.entry")
