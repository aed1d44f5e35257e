"""Signing in with a real browser, at a server that is killed and restarted and a provider that changes its keys."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import browser
import chromium
import pytest

from gudgeon import Client
from gudgeon.auth import OAuth
from gudgeon.errors import AuthError
from gudgeon.testing.auth import AuthorizationServer

SERVER = Path(__file__).with_name("protected_server.py")
START_TIME = 20.0
RENEWAL_TIME = 20.0
TEST_TIME = 60.0
LIFE = 2  # seconds of access tokens
CONSENT = "Allow access?"


class SignIn(NamedTuple):
    """A way in which users sign in."""

    name: str
    """As in `protected_server.py`."""
    asks: list[str]
    """The headings of the pages that ask the user, in order."""


SIGN_INS = [SignIn("direct", [CONSENT])]


class Store:
    """A token store that counts how often tokens were saved."""

    def __init__(self) -> None:
        self.records: dict[str, bytes] = {}
        self.saved = 0

    async def get(self, key: str) -> bytes | None:
        return self.records.get(key)

    async def set(self, key: str, value: bytes) -> None:
        self.records[key] = value
        self.saved += b"refresh" in value

    async def delete(self, key: str) -> None:
        self.records.pop(key, None)


class User:
    """A user who decides on every page that asks.

    Attributes:
        decide: Presses the button of the decision on a page.
        asked: The headings of the pages that asked.
        sign_ins: How often the browser was opened.
    """

    def __init__(self, page: browser.Page) -> None:
        self.page = page
        self.asked: list[str] = []
        self.sign_ins = 0
        self.allow()
        self._task: asyncio.Task[None] | None = None

    def allow(self) -> None:
        self._decide, self._button = self.page.click, "Allow"

    def deny(self) -> None:
        self._decide, self._button = self.page.press, "Deny"

    def open(self, url: str) -> None:
        """Is the client's `open_url`, which does not wait for the user."""
        self.sign_ins += 1
        self._task = asyncio.create_task(self._go(url))

    async def shown(self) -> str:
        """Returns the heading of the page with which the sign-in ended."""
        assert self._task is not None
        await self._task
        assert not await self.page.is_too_wide()
        return await self.page.heading()

    async def end(self) -> None:
        """Raises the error for which the user could not decide, if there was one."""
        if self._task is not None:
            if not self._task.done():
                self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _go(self, url: str) -> None:
        await self.page.open(url)
        while await self.page.has_button(self._button):
            self.asked.append(await self.page.heading())
            assert not await self.page.is_too_wide()
            await self.page.take_screenshots(f"consent-{len(self.asked)}")
            await self._decide(self._button)


class Process:
    """The protected server, at an address that it has again after a restart."""

    def __init__(self, sign_in: SignIn, issuer: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.origin = f"http://127.0.0.1:{self.port}"
        self.url = f"{self.origin}/mcp"
        self._command = [sys.executable, SERVER, sign_in.name, issuer, self.url]
        self._start()

    def restart(self) -> None:
        self.kill()
        self._start()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def _start(self) -> None:
        self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL)
        end = time.monotonic() + START_TIME
        while time.monotonic() < end and self._process.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
            time.sleep(0.02)
        self.kill()
        raise AssertionError(f"the server did not listen within {START_TIME} s")


class World(NamedTuple):
    """The parties of a sign-in."""

    sign_in: SignIn
    provider: AuthorizationServer
    server: Process
    user: User
    store: Store

    def client(self) -> Client:
        auth = OAuth(open_url=self.user.open, store=self.store)
        return Client(self.server.url, auth=auth)

    def fetches(self, path: str) -> int:
        return sum(request.path.endswith(path) for request in self.provider.requests)


@pytest.fixture(params=SIGN_INS, ids=lambda it: it.name)
def sign_in(request: pytest.FixtureRequest) -> SignIn:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def server(sign_in: SignIn, provider: AuthorizationServer) -> Iterator[Process]:
    process = Process(sign_in, provider.issuer)
    yield process
    process.kill()


@pytest.fixture
def provider() -> Iterator[AuthorizationServer]:
    with AuthorizationServer(subject="ada", consent="page", expires_in=LIFE) as provider:
        yield provider


@pytest.fixture
async def world(sign_in: SignIn, provider: AuthorizationServer, server: Process) -> AsyncIterator[World]:
    try:
        program = chromium.find()
    except chromium.Missing as reason:
        pytest.skip(str(reason))
    async with browser.browser(program) as page:
        user = User(page)
        yield World(sign_in, provider, server, user, Store())
        await user.end()
        # The pages need nothing from elsewhere, and violate no policy of their own.
        loaded = {origin for origin in page.origins if not origin.startswith("http://127.0.0.1:")}
        assert not loaded
        assert not page.violations


def bounded(test: Callable[[World], Awaitable[None]]) -> Callable[[World], Awaitable[None]]:
    """Ends a test after `TEST_TIME`, because clients wait longer for users who do not come."""

    @functools.wraps(test)
    async def run(world: World) -> None:
        await asyncio.wait_for(test(world), TEST_TIME)

    return run


async def called(client: Client, tool: str, **arguments: Any) -> str:
    return (await client.call_tool(tool, arguments)).text


async def called_until(client: Client, condition: Callable[[], bool]) -> None:
    """Calls a tool, which must succeed each time, until a condition holds."""

    async def call() -> None:
        while not condition():
            assert await called(client, "who") == "ada"
            await asyncio.sleep(0.05)

    await asyncio.wait_for(call(), RENEWAL_TIME)


@bounded
async def test_a_sign_in_lasts(world: World) -> None:
    user, store = world.user, world.store
    async with world.client() as client:
        assert await called(client, "who") == "ada"
        assert await user.shown() == "You are signed in"
        assert user.asked == world.sign_in.asks
        await user.page.take_screenshots("done")

        # The access token expires, and is renewed.
        first = store.saved
        await called_until(client, lambda: store.saved > first)

        # The provider signs with another key, which the server has not fetched yet.
        world.provider.rotate_keys()
        before, fetched = store.saved, world.fetches("/jwks")
        await called_until(client, lambda: store.saved > before)
        assert await called(client, "who") == "ada"
        if world.sign_in.name == "direct":
            assert world.fetches("/jwks") == fetched + 1

        world.server.restart()
        assert await called(client, "who") == "ada"
        # While the server does not run, the provider replaces the key of the client's token.
        world.server.kill()
        world.provider.rotate_keys(keep_former=False)
        world.server.restart()
        assert await called(client, "who") == "ada"

    # Another client with the same tokens needs no user either.
    async with world.client() as client:
        assert await called(client, "who") == "ada"
    assert user.sign_ins == 1


@bounded
async def test_a_tool_needs_more_scopes(world: World) -> None:
    user = world.user
    async with world.client() as client:
        assert await called(client, "who") == "ada"
        assert await user.shown() == "You are signed in"
        user.deny()
        with pytest.raises(AuthError, match="the sign-in was declined"):
            await called(client, "add", title="Emma")
        assert await user.shown() == "The sign-in failed"
        # The former tokens are as good as before.
        assert await called(client, "who") == "ada"
        user.allow()
        assert await called(client, "add", title="Emma") == "added Emma"
        assert await user.shown() == "You are signed in"
        assert await called(client, "who") == "ada books:write"
    assert user.sign_ins == 3


@bounded
async def test_a_user_declines(world: World) -> None:
    user = world.user
    user.deny()
    with pytest.raises(AuthError, match="the sign-in was declined"):
        async with world.client() as client:
            await called(client, "who")
    assert await user.shown() == "The sign-in failed"
    assert "declined" in await user.page.text()
    await user.page.take_screenshots("denied")
    # The user changes their mind.
    user.allow()
    async with world.client() as client:
        assert await called(client, "who") == "ada"
    assert await user.shown() == "You are signed in"
    assert user.sign_ins == 2
