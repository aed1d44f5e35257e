"""Processes that share tokens in the system's keyring: one of them renews a token."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import keyring
import pytest

import file_keyring
from gudgeon import Client
from gudgeon.auth import KeyringStore, OAuth
from gudgeon.testing.auth import AuthorizationServer
from token_server import shelf

pytestmark = pytest.mark.io

CALLS = """
import asyncio, sys
from gudgeon import Client
from gudgeon.auth import KeyringStore, OAuth

def browser(url):
    raise RuntimeError("nobody is asked")

async def main():
    auth = OAuth(store=KeyringStore("shelf"), on_redirect=browser)
    async with Client(sys.argv[1], auth=auth) as client:
        said = await asyncio.gather(*(client.call_tool("who") for _ in range(10)))
        assert {result.text for result in said} == {"user"}

asyncio.run(main())
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A keyring in files, and folders for the locks, of this process and of those that it starts."""
    monkeypatch.setenv(file_keyring.FOLDER, str(tmp_path))
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "file_keyring.FileKeyring")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    before = keyring.get_keyring()
    keyring.set_keyring(file_keyring.FileKeyring())
    yield tmp_path
    keyring.set_keyring(before)


async def signed_in(provider: AuthorizationServer, url: str) -> None:
    """Signs in, and has the access token end."""
    store = KeyringStore("shelf")
    async with Client(url, auth=OAuth(store=store, on_redirect=provider.browse)) as client:
        assert (await client.call_tool("who")).text == "user"
    for _, name in file_keyring.FileKeyring.entries():
        # The further pieces of a value have entries without a dot.
        is_first = "." in (keyring.get_password("shelf", name) or "")
        record = json.loads((await store.get(name) if is_first else None) or b"{}")
        if "tokens" in record:
            record["tokens"].update(expires_at=1, renew_at=1)
            await store.set(name, json.dumps(record).encode())


async def finished(url: str, count: int) -> list[str]:
    """Runs processes that call the server. Returns what they write to standard error."""
    command = [sys.executable, "-c", CALLS, url]
    processes = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(count)]
    said = [(await asyncio.to_thread(process.communicate))[1] for process in processes]
    for process, text in zip(processes, said, strict=True):
        assert process.returncode == 0, text
    return said


async def test_processes_renew_a_token_once(folder: Path) -> None:
    """The provider gives a new refresh token each time; if one is used twice, it revokes all."""
    async with AuthorizationServer() as provider, shelf(provider).listen("http://127.0.0.1:0/mcp") as here:
        await signed_in(provider, here.url)
        await finished(here.url, 3)
        grants = [request.form["grant_type"] for request in provider.requests if request.path == "/token"]
        assert grants == ["authorization_code", "refresh_token"]
    locks = folder / "state" / "gudgeon" / "locks"
    (lock,) = locks.iterdir()
    assert locks.stat().st_mode & 0o777 == 0o700 and lock.stat().st_mode & 0o777 == 0o600
    assert "127.0.0.1" not in lock.name


async def test_where_no_lock_can_be_made_the_process_warns_and_renews(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_folder = folder / "file"
    no_folder.write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(no_folder))
    async with AuthorizationServer() as provider, shelf(provider).listen("http://127.0.0.1:0/mcp") as here:
        await signed_in(provider, here.url)
        (said,) = await finished(here.url, 1)
        grants = [request.form["grant_type"] for request in provider.requests if request.path == "/token"]
        assert grants == ["authorization_code", "refresh_token"]
    assert said.count("processes that share the keyring may renew the same tokens") == 1
    assert "can't be locked" in said and "make the folder writable" in said
