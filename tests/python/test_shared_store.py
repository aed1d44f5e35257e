"""Processes that share a store of tokens of their own, which has a lock: one of them renews a token."""

import asyncio
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import folder_store
from eventually import eventually
from folder_store import FolderStore, TaskLockStore, ThreadLockStore
from gudgeon import Client, SyncClient
from gudgeon.auth import OAuth
from gudgeon.errors import AuthError
from gudgeon.testing.auth import AuthorizationServer
from token_server import shelf

pytestmark = pytest.mark.io

START = """
import asyncio, sys
from pathlib import Path
import folder_store
from gudgeon import Client, SyncClient
from gudgeon.auth import OAuth

def browser(url):
    raise RuntimeError("nobody is asked")

store = getattr(folder_store, sys.argv[2])(Path(sys.argv[3]))
auth = OAuth(store=store, on_redirect=browser)
"""
ASYNC = """
async def main():
    async with Client(sys.argv[1], auth=auth) as client:
        said = await asyncio.gather(*(client.call_tool("who") for _ in range(10)))
        assert {result.text for result in said} == {"user"}

asyncio.run(main())
"""
BLOCKING = """
with SyncClient(sys.argv[1], auth=auth) as client:
    assert client.call_tool("who").text == "user"
"""


def expire(folder: Path) -> None:
    """Has the access token end."""
    changed = 0
    for path in folder.glob("*.value"):
        record = json.loads(path.read_bytes())
        if "tokens" in record:
            record["tokens"].update(expires_at=1, renew_at=1)
            path.write_text(json.dumps(record))
            changed += 1
    assert changed == 1


def grants(provider: AuthorizationServer) -> list[str]:
    return [request.form["grant_type"] for request in provider.requests if request.path == "/token"]


@pytest.mark.parametrize(
    ("store", "calls"),
    [(TaskLockStore, ASYNC), (ThreadLockStore, ASYNC), (ThreadLockStore, BLOCKING)],
    ids=["async lock", "blocking lock", "SyncClient"],
)
async def test_processes_renew_a_token_once(store: type[FolderStore], calls: str, tmp_path: Path) -> None:
    """The provider gives a new refresh token each time; if one is used twice, it revokes all."""
    paths = [str(Path(folder_store.__file__).parent), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    async with AuthorizationServer() as provider, shelf(provider).listen("http://127.0.0.1:0/mcp") as here:
        auth = OAuth(store=store(tmp_path), on_redirect=provider.browse)
        async with Client(here.url, auth=auth) as client:
            assert (await client.call_tool("who")).text == "user"
        for times in (1, 2):
            expire(tmp_path)
            command = [sys.executable, "-c", START + calls, here.url, store.__name__, str(tmp_path)]
            processes = [
                subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) for _ in range(3)
            ]
            said = [(await asyncio.to_thread(process.communicate))[1] for process in processes]
            assert [process.returncode for process in processes] == [0] * 3, said
            assert grants(provider) == ["authorization_code"] + ["refresh_token"] * times


class Locked(FolderStore):
    """Its lock notes when it is taken and released, and that both are of one thread."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.noted: list[tuple[str, str]] = []
        self.threads: set[int] = set()
        self.fails_at = ""

    @contextmanager
    def lock(self, key: str) -> Iterator[None]:
        import threading

        self.threads.add(threading.get_ident())
        if self.fails_at == "start":
            raise OSError("the database is away")
        self.noted.append(("taken", key))
        yield
        self.threads.add(threading.get_ident())
        self.noted.append(("released", key))
        if self.fails_at == "end":
            raise OSError("the database has gone")


async def test_a_lock_is_released_before_the_call_goes_on(tmp_path: Path) -> None:
    async with AuthorizationServer() as provider, shelf(provider).listen("http://127.0.0.1:0/mcp") as here:
        store = Locked(tmp_path)
        auth = OAuth(store=store, on_redirect=provider.browse)
        async with Client(here.url, auth=auth) as client:
            assert (await client.call_tool("who")).text == "user"
        store.noted.clear()
        store.threads.clear()
        expire(tmp_path)

        def blocking() -> None:
            with SyncClient(here.url, auth=OAuth(store=store, on_redirect=provider.browse)) as client:
                assert client.call_tool("who").text == "user"
                assert [event for event, _ in store.noted] == ["taken", "released"]

        await asyncio.to_thread(blocking)
        assert len(store.threads) == 1
        keys = {key for _, key in store.noted}
        assert len(keys) == 1 and here.url in keys.pop()


async def test_a_lock_that_fails_fails_the_sign_in(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with AuthorizationServer() as provider, shelf(provider).listen("http://127.0.0.1:0/mcp") as here:
        store = Locked(tmp_path)
        async with Client(here.url, auth=OAuth(store=store, on_redirect=provider.browse)) as client:
            await client.call_tool("who")
        expire(tmp_path)
        store.fails_at = "start"
        with pytest.raises(AuthError, match="token store .* OSError"):
            async with Client(here.url, auth=OAuth(store=store, on_redirect=provider.browse)) as client:
                await client.call_tool("who")
        eventually(lambda: "the database is away" in caplog.text)
        assert grants(provider) == ["authorization_code"]
        # The tokens are renewed: a failure at the end is logged.
        store.fails_at = "end"
        caplog.set_level(logging.ERROR)
        async with Client(here.url, auth=OAuth(store=store, on_redirect=provider.browse)) as client:
            assert (await client.call_tool("who")).text == "user"
        eventually(lambda: "the database has gone" in caplog.text)


async def test_a_lock_that_is_no_context_manager_is_an_error(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Wrong(FolderStore):
        async def lock(self, key: str) -> None:
            raise AssertionError("not awaited")

    async with AuthorizationServer() as provider, shelf(provider).listen("http://127.0.0.1:0/mcp") as here:
        store = Wrong(tmp_path)
        async with Client(here.url, auth=OAuth(store=FolderStore(tmp_path), on_redirect=provider.browse)) as client:
            await client.call_tool("who")
        expire(tmp_path)
        with pytest.raises(AuthError, match="token store .* TypeError"):
            async with Client(here.url, auth=OAuth(store=store, on_redirect=provider.browse)) as client:
                await client.call_tool("who")
        eventually(
            lambda: (
                "lock() must return a context manager, async or not, such as that of @asynccontextmanager"
                in caplog.text
            )
        )
