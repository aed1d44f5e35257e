"""A headless Chromium and its pages, steered over the DevTools protocol with the events of a mouse and a keyboard."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import chromium
import pytest
from websockets.asyncio.client import ClientConnection, connect

SCREENSHOTS = os.environ.get("GUDGEON_SCREENSHOTS")
# Limits in seconds that end what hangs.
START_TIME = 60.0
PAGE_TIME = 90.0
SIZES = {"desktop": (1280, 800), "narrow": (400, 800), "phone": (360, 740)}
OPTIONS = [
    "--headless=new",
    # It does not work for root, nor in many containers; the only pages are those of the test.
    "--no-sandbox",
    "--remote-debugging-port=0",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-proxy-server",
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-component-update",
    "--disable-crash-reporter",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-gpu",
    "--disable-sync",
    "--mute-audio",
]
BUTTON = """(name => {
    const button = [...document.querySelectorAll("button")].find(it => it.innerText.trim() === name);
    if (!button) return null;
    const {x, y, width, height} = button.getBoundingClientRect();
    return [x + width / 2, y + height / 2];
})"""


@pytest.fixture(scope="session")
def chromium_url() -> Iterator[str]:
    """The DevTools of a browser for all tests of a process; without one, they are skipped."""
    try:
        program = chromium.find()
    except chromium.Missing as reason:
        pytest.skip(str(reason))
    with started(program) as url:
        yield url


@contextlib.contextmanager
def started(program: chromium.Chromium) -> Iterator[str]:
    """Starts Chromium with an empty profile, and ends all of its processes. Returns the URL of its DevTools."""
    # Its processes may still write while the folder is removed.
    with tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [program.program, *OPTIONS, f"--user-data-dir={profile}", "about:blank"],
            env={**os.environ, **program.environment, "HOME": profile},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            yield _when_listening(process, Path(profile))
        finally:
            # All of its processes are in a group of their own.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextlib.asynccontextmanager
async def page_of(browser: str) -> AsyncIterator[Page]:
    """Opens a page in a browser, with cookies and a storage of its own, and closes it at the end."""
    async with connect(browser, proxy=None, max_size=64 << 20) as connection:
        page = Page(connection)
        reader = asyncio.create_task(page.read())
        try:
            await page.attach()
            yield page
        finally:
            reader.cancel()


def _when_listening(process: subprocess.Popen[bytes], profile: Path) -> str:
    """Returns the URL of the DevTools, which Chromium writes to its profile."""
    end = time.monotonic() + START_TIME
    while time.monotonic() < end:
        with contextlib.suppress(FileNotFoundError, ValueError):
            port, path = (profile / "DevToolsActivePort").read_text().splitlines()
            return f"ws://127.0.0.1:{port}{path}"
        if process.poll() is not None:
            raise RuntimeError(f"Chromium ended at its start, with status {process.returncode}")
        time.sleep(0.02)
    raise TimeoutError(f"Chromium did not start within {START_TIME:g} s")


class Page:
    """A page that the browser shows.

    Attributes:
        origins: The origins that the page and what it loaded are from.
        violations: What the browser reported about security, such as violations of a Content-Security-Policy.
    """

    def __init__(self, connection: ClientConnection) -> None:
        self.origins: set[str] = set()
        self.violations: list[str] = []
        self._connection = connection
        self._ids = itertools.count(1)
        self._replies: dict[int, asyncio.Future[Any]] = {}
        self._session: str | None = None
        self._frame = ""
        self._document = ""  # the last one that was loaded
        self._loaded = asyncio.Event()

    async def attach(self) -> None:
        """Opens the page."""
        # It is closed with the connection.
        context = (await self.call("Target.createBrowserContext", disposeOnDetach=True))["browserContextId"]
        page = (await self.call("Target.createTarget", url="about:blank", browserContextId=context))["targetId"]
        self._session = (await self.call("Target.attachToTarget", targetId=page, flatten=True))["sessionId"]
        for domain in ("Page", "Network", "Log"):
            await self.call(f"{domain}.enable")
        self._frame = (await self.call("Page.getFrameTree"))["frameTree"]["frame"]["id"]
        await self.call("Page.setLifecycleEventsEnabled", enabled=True)
        # Pages of other tests may be in front.
        await self.call("Emulation.setFocusEmulationEnabled", enabled=True)
        await self.resize("desktop", "light")

    async def open(self, url: str) -> None:
        """Opens a URL, and waits until the page is loaded."""
        async with self._another_document():
            await self.call("Page.navigate", url=url)

    async def click(self, button: str) -> None:
        """Clicks a button with the mouse, and waits until the next page is loaded."""
        place = await self.evaluate(f"{BUTTON}({json.dumps(button)})")
        assert place, f"there is no button {button!r} in: {await self.text()}"
        x, y = place
        async with self._another_document():
            await self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
            for kind in ("mousePressed", "mouseReleased"):
                await self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    async def press(self, button: str) -> None:
        """Moves the focus to a button with the Tab key, presses Enter, and waits until the next page is loaded."""
        for _ in range(20):
            await self.key("Tab", 9)
            if await self.evaluate("document.activeElement.innerText.trim()") == button:
                break
        else:
            raise AssertionError(f"the Tab key reaches no button {button!r} in: {await self.text()}")
        async with self._another_document():
            await self.key("Enter", 13, text="\r")

    async def has_button(self, name: str) -> bool:
        return await self.evaluate(f"{BUTTON}({json.dumps(name)})") is not None

    async def heading(self) -> str:
        return str(await self.evaluate("document.querySelector('h1')?.innerText ?? ''"))

    async def text(self) -> str:
        return str(await self.evaluate("document.body.innerText"))

    async def url(self) -> str:
        return str(await self.evaluate("location.href"))

    async def is_too_wide(self) -> bool:
        """Returns whether a phone's screen shows a part of the page only."""
        await self.resize("phone", "light")
        width = await self.evaluate("document.documentElement.scrollWidth")
        await self.resize("desktop", "light")
        return bool(width > SIZES["phone"][0])

    async def take_screenshots(self, name: str) -> None:
        """Writes pictures of the page to the folder `GUDGEON_SCREENSHOTS`, if there is one."""
        if not SCREENSHOTS:
            return
        folder = Path(SCREENSHOTS)
        folder.mkdir(parents=True, exist_ok=True)
        for size, scheme in itertools.product(("desktop", "phone"), ("light", "dark")):
            await self.resize(size, scheme)
            picture = await self.call("Page.captureScreenshot", format="png")
            (folder / f"{name}-{size}-{scheme}.png").write_bytes(base64.b64decode(picture["data"]))
        await self.resize("desktop", "light")

    async def read(self) -> None:
        """Takes the messages of the browser, until it is cancelled."""
        async for text in self._connection:
            message = json.loads(text)
            if "id" not in message:
                self._take_event(message["method"], message["params"])
            elif reply := self._replies.pop(message["id"], None):
                if "error" in message:
                    reply.set_exception(RuntimeError(message["error"]["message"]))
                else:
                    reply.set_result(message["result"])

    def _take_event(self, method: str, params: dict[str, Any]) -> None:
        if method == "Page.lifecycleEvent":
            if params["name"] == "load" and params["frameId"] == self._frame:
                self._document = params["loaderId"]
                self._loaded.set()
        elif method == "Network.requestWillBeSent":
            url = urlsplit(params["request"]["url"])
            self.origins.add(f"{url.scheme}://{url.netloc}")
        elif method == "Log.entryAdded" and params["entry"]["source"] == "security":
            self.violations.append(params["entry"]["text"])

    async def resize(self, size: str, scheme: str) -> None:
        """Shows the page in a size of `SIZES` and a colour scheme."""
        width, height = SIZES[size]
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=size != "desktop",
        )
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        await self.call("Emulation.setEmulatedMedia", features=features)
        # The next places and pictures must be those of the new size.
        await self.evaluate("new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))")

    async def key(self, key: str, code: int, **more: str) -> None:
        """Presses a key."""
        for kind in ("keyDown", "keyUp"):
            await self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **more)

    async def evaluate(self, expression: str) -> Any:
        """Returns the value of a JavaScript expression, once a promise is fulfilled."""
        answer = await self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    @contextlib.asynccontextmanager
    async def _another_document(self) -> AsyncIterator[None]:
        """Waits for the next document, after the block that makes the browser load it.

        The document before may be loaded only now, such as the empty one at the start of a busy machine.
        """
        former = (await self.call("Page.getFrameTree"))["frameTree"]["frame"]["loaderId"]
        yield
        async with asyncio.timeout(PAGE_TIME):
            while self._document in ("", former):
                self._loaded.clear()
                await self._loaded.wait()

    async def call(self, method: str, **params: Any) -> Any:
        """Calls a method of the DevTools protocol."""
        number = next(self._ids)
        reply = self._replies[number] = asyncio.get_running_loop().create_future()
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        await self._connection.send(json.dumps(message))
        return await asyncio.wait_for(reply, PAGE_TIME)
