"""The inspector page in a browser: a user who finds things by the names that they see."""

import asyncio
import base64
import json
import os
import re
import subprocess
from pathlib import Path

from browser import Page

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("GUDGEON_COMMAND", ROOT / "target/release/gudgeon"))
SERVER = Path(__file__).parent / "inspected_server.py"
URL = re.compile(r"http://127\.0\.0\.1:\d+/[0-9a-f]{64}/\?token=[0-9a-f]{64}")
# Seconds; less than the browser has for an answer, so that the page says what did not come.
TIME = 60
# Visible elements by their texts and labels. `until` waits for a condition.
HELPERS = """
window.user = (() => {
    const visible = it => it.checkVisibility();
    const all = (selector, place = document) => [...place.querySelectorAll(selector)].filter(visible);
    const name = it => it.getAttribute("aria-label") ?? it.textContent.trim();
    const until = async (condition, what) => {
        const end = performance.now() + TIME;
        for (;;) {
            const found = await condition();
            if (found) return found;
            if (performance.now() > end) {
                throw new Error(`${what} did not come: ${document.body.innerText.slice(0, 3000)}`);
            }
            await new Promise(done => setTimeout(done, 15));
        }
    };
    const control = label => {
        const labels = all("label").filter(it => it.firstChild?.textContent.trim() === label);
        const inputs = labels.map(it => it.control).filter(it => it && visible(it));
        return inputs.at(-1) ?? all("input, select, textarea").filter(it => it.ariaLabel === label).at(-1);
    };
    return {
        all, until,
        click: (text, place = "body") => until(() => {
            const inside = all("button, a, summary", document.querySelector(place) ?? undefined);
            const found = inside.filter(it => name(it) === text && !it.disabled).at(-1);
            found?.click();
            return found && true;
        }, `button ${text}`),
        choose: text => until(() => {
            const found = all(".choose").find(it => name(it.querySelector(".name")).replace(/ \\(.*\\)$/, "") === text);
            found?.click();
            return found && true;
        }, `entry ${text}`),
        set: (label, value) => until(() => {
            const input = control(label);
            if (!input) return false;
            if (input.type === "checkbox") {
                if (input.checked !== value) input.click();
            } else {
                const option = input.tagName === "SELECT" && [...input.options].find(it => it.text === value);
                input.value = option ? option.value : value;
            }
            input.dispatchEvent(new Event("input", { bubbles: true }));
            input.dispatchEvent(new Event("change", { bubbles: true }));
            return true;
        }, `field ${label}`),
        value: label => control(label)?.value,
        text: (selector, wanted) => until(
            () => all(selector).map(it => it.innerText).find(it => it.includes(wanted)), `${wanted} in ${selector}`),
    };
})()
""".replace("TIME", str(TIME * 1000))


class Inspector:
    """A running `gudgeon inspect`, with its page."""

    def __init__(self, page: Page, url: str):
        self.page = page
        self.url = url

    async def open(self):
        await self.page.open(self.url)
        await self.page.evaluate(HELPERS + ", true")

    async def do(self, method, *arguments):
        return await self.page.evaluate(f"user.{method}({', '.join(json.dumps(argument) for argument in arguments)})")

    async def tab(self, name):
        await self.do("click", name, "#tabs")

    async def click(self, name, place="main"):
        await self.do("click", name, place)

    async def fill(self, **fields):
        for label, value in fields.items():
            await self.do("set", label, value)

    async def text(self, selector, wanted):
        return await self.do("text", selector, wanted)

    async def until(self, condition):
        return await self.page.evaluate(f"user.until(() => {condition}, {json.dumps(condition)})")

    async def call(self, tool, **arguments):
        """Calls a tool of the server by its form."""
        await self.tab("Tools")
        await self.do("choose", tool)
        await self.fill(**arguments)
        await self.click("Call")

    async def picture(self, size="desktop", scheme="light"):
        await self.page.resize(size, scheme)
        picture = await self.page.call("Page.captureScreenshot", format="png")
        await self.page.resize("desktop", "light")
        return base64.b64decode(picture["data"])


class Process:
    """The command `gudgeon inspect`.

    Attributes:
        err: What standard error must have at the end; empty if it must be empty.
    """

    err = ""

    def __init__(self, home, *words, browser=None):
        opens = ["--no-open"] if browser is None else []
        self._process = subprocess.Popen(
            [str(PROGRAM), "inspect", *opens, *map(str, words)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "HOME": str(home), "BROWSER": str(browser)},
        )
        line = self._process.stdout.readline()
        assert URL.fullmatch(line.strip()), line + self._process.stderr.read()
        self.url = line.strip()

    @property
    def origin(self):
        return "/".join(self.url.split("/")[:3])

    async def end(self):
        """Interrupts the command; returns its exit code and what it wrote to standard error."""
        self._process.terminate()
        _, err = await asyncio.to_thread(self._process.communicate, timeout=60)
        return self._process.returncode, err
