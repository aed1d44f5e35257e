"""Signing in with a real browser, at a server that is killed and restarted and a provider that changes its keys."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import browser
import pytest
from ports import reserve_port
from protected_server import PROXY

from gudgeon import Client
from gudgeon.auth import OAuth
from gudgeon.errors import AuthError
from gudgeon.testing.auth import AuthorizationServer

SERVER = Path(__file__).with_name("protected_server.py")
START_TIME = 60.0
RENEWAL_TIME = 60.0
TEST_TIME = 300.0
# Seconds of access tokens: for a test that waits for their end, and for the others.
SHORT_LIFE, LONG_LIFE = 2, 3_600
CONSENT = "Allow access?"


class SignIn(NamedTuple):
    """A way in which users sign in."""

    name: str
    """As in `protected_server.py`."""
    asks: list[str]
    """The headings of the pages that ask the user, in order."""


# The proxy asks before it sends the user to the provider, which asks too.
SIGN_INS = [SignIn("direct", [CONSENT]), SignIn("proxied", [CONSENT, CONSENT])]


class Store:
    """A token store in memory."""

    def __init__(self) -> None:
        self.records: dict[str, bytes] = {}

    async def get(self, key: str) -> bytes | None:
        return self.records.get(key)

    async def set(self, key: str, value: bytes) -> None:
        self.records[key] = value

    async def delete(self, key: str) -> None:
        self.records.pop(key, None)

    def expire(self) -> None:
        """Lets the clients that read the store take their access token for one that has expired."""
        for key, value in self.records.items():
            record = json.loads(value)
            if "tokens" in record:
                record["tokens"].update(expires_at=1, renew_at=1)
                self.records[key] = json.dumps(record).encode()


class User:
    """A user who decides on every page that asks.

    Attributes:
        name: The beginning of the names of screenshots.
        asked: The headings of the pages that asked.
        sign_ins: How often the browser was opened.
        failed: Has the exception of the first sign-in that the user could not end.
    """

    def __init__(self, page: browser.Page, name: str) -> None:
        self.page = page
        self.name = name
        self.asked: list[str] = []
        self.sign_ins = 0
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
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
        self._task.add_done_callback(self._ended)

    async def shown(self) -> str:
        """Returns the heading of the page with which the sign-in ended."""
        assert self._task is not None
        await self._task
        assert not await self.page.is_too_wide()
        return await self.page.heading()

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) and not self.failed.done():
            self.failed.set_exception(error)

    async def _go(self, url: str) -> None:
        await self.page.open(url)
        while await self.page.has_button(self._button):
            self.asked.append(await self.page.heading())
            assert not await self.page.is_too_wide()
            await self.page.take_screenshots(f"{self.name}-consent-{len(self.asked)}")
            await self._decide(self._button)
        url = await self.page.url()
        assert urlsplit(url).path == "/callback", f"the browser did not return to the client: {await self.page.text()}"


class Process:
    """The protected server, at an address that it has again after a restart."""

    def __init__(self, sign_in: SignIn, issuer: str) -> None:
        self.port = reserve_port()
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

    @property
    def refreshes(self) -> int:
        """The number of refresh tokens that the provider took."""
        taken = [request for request in self.provider.requests if request.status == 200]
        return sum(request.form.get("grant_type") == "refresh_token" for request in taken)

    @property
    def key_fetches(self) -> int:
        return sum(request.path == "/jwks" for request in self.provider.requests)


@pytest.fixture(params=SIGN_INS, ids=lambda way: way.name)
def sign_in(request: pytest.FixtureRequest) -> SignIn:
    chosen: SignIn = request.param
    return chosen


@pytest.fixture
def server(sign_in: SignIn, provider: AuthorizationServer) -> Iterator[Process]:
    process = Process(sign_in, provider.issuer)
    yield process
    process.kill()


@pytest.fixture
def life() -> int:
    return LONG_LIFE


@pytest.fixture
def provider(life: int) -> Iterator[AuthorizationServer]:
    proxy = {**PROXY, "redirect_uris": ["http://127.0.0.1/mcp/oauth/callback"]}
    with AuthorizationServer(subject="ada", consent="page", expires_in=life, clients=[proxy]) as provider:
        yield provider


@pytest.fixture
async def world(
    sign_in: SignIn, provider: AuthorizationServer, server: Process, chromium_url: str
) -> AsyncIterator[World]:
    async with browser.page_of(chromium_url) as page:
        yield World(sign_in, provider, server, User(page, sign_in.name), Store())
        # The pages need nothing from elsewhere, and violate no policy of their own.
        loaded = {origin for origin in page.origins if not origin.startswith("http://127.0.0.1:")}
        assert not loaded
        assert not page.violations


def bounded(test: Callable[[World], Coroutine[Any, Any, None]]) -> Callable[[World], Coroutine[Any, Any, None]]:
    """Ends a test when its user fails, and after `TEST_TIME`, because clients wait longer for users who do not come."""

    @functools.wraps(test)
    async def run(world: World) -> None:
        task = asyncio.create_task(test(world))
        try:
            ended: set[asyncio.Future[None]] = {task, world.user.failed}
            done, _ = await asyncio.wait(ended, timeout=TEST_TIME, return_when=asyncio.FIRST_COMPLETED)
            assert done, f"the test did not end within {TEST_TIME} s"
            for future in done:
                future.result()
        finally:
            task.cancel()

    return run


async def called(client: Client, tool: str, **arguments: Any) -> str:
    return (await client.call_tool(tool, arguments)).text


async def renewed(world: World) -> None:
    """Calls a tool, which must succeed each time, until the access token has expired and was renewed."""
    before = world.refreshes
    if world.sign_in.name == "proxied":
        # Its tokens are valid for a minute at least.
        world.store.expire()

    async def call(client: Client) -> None:
        while world.refreshes == before:
            assert await called(client, "who") == "ada"
            await asyncio.sleep(0.05)
        assert await called(client, "who") == "ada"

    async with world.client() as client:
        await asyncio.wait_for(call(client), RENEWAL_TIME)


@pytest.mark.parametrize("life", [pytest.param(SHORT_LIFE, id="short life")])
@bounded
async def test_a_sign_in_lasts(world: World) -> None:
    user = world.user
    async with world.client() as client:
        assert await called(client, "who") == "ada"
        assert await user.shown() == "You are signed in"
        assert user.asked == world.sign_in.asks
        await user.page.take_screenshots(f"{world.sign_in.name}-done")
    await renewed(world)

    # The provider signs with another key, which the server has not fetched yet.
    world.provider.rotate_keys()
    fetched = world.key_fetches
    await renewed(world)
    if world.sign_in.name == "direct":
        assert world.key_fetches == fetched + 1

    async with world.client() as client:
        assert await called(client, "who") == "ada"
        world.server.restart()
        assert await called(client, "who") == "ada"
        # While the server does not run, the provider withdraws the key of the client's token.
        world.server.kill()
        world.provider.rotate_keys(keep_former=False)
        world.server.restart()
        assert await called(client, "who") == "ada"
    await renewed(world)
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
        assert "books:write" not in await called(client, "scopes")
        user.allow()
        assert await called(client, "add", title="Emma") == "added Emma"
        assert await user.shown() == "You are signed in"
        assert "books:write" in await called(client, "scopes")
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
    await user.page.take_screenshots(f"{world.sign_in.name}-denied")
    # The user changes their mind.
    user.allow()
    async with world.client() as client:
        assert await called(client, "who") == "ada"
    assert await user.shown() == "You are signed in"
    assert user.sign_ins == 2
