"""axe-core on each panel, light and dark, wide and narrow, and pictures of them for a look."""

import os
from pathlib import Path

import pytest
from inspector import ROOT

AXE = ROOT / "node_modules/axe-core/axe.min.js"
SCREENSHOTS = os.environ.get("GUDGEON_SCREENSHOTS")
RUN = """axe.run(document, { resultTypes: ["violations"] }).then(it => it.violations
    .filter(one => ["serious", "critical"].includes(one.impact))
    .map(one => [one.id, ...one.nodes.slice(0, 3).map(node => node.html)]))"""


async def connection(inspector):
    await inspector.tab("Connection")
    await inspector.click("Add to Roots")
    # Not the paths of this machine, because the picture is published.
    await inspector.do("set", "Program and arguments", "python\nserver.py")


async def tools(inspector):
    await inspector.call("store", title="Emma")
    await inspector.click("Add an item")
    await inspector.fill(name="Jane Austen")
    await inspector.click("Edit as JSON")
    await inspector.click("Edit as JSON")
    await inspector.fill(pages="474")
    await inspector.click("Call")
    await inspector.text("[aria-label='Structured content']", "Paper")


async def results(inspector):
    await inspector.call("review")
    await inspector.until("document.querySelector('.result table td')")


async def media(inspector):
    await inspector.call("cover")
    await inspector.until("document.querySelector('.result audio')?.duration > 0")


async def error(inspector):
    await inspector.call("fail")
    await inspector.text(".result.problem", "locked")


async def resources(inspector):
    await inspector.tab("Resources")
    await inspector.do("choose", "book")
    await inspector.fill(title="Ubik")
    await inspector.click("Read")
    await inspector.text(".detail .result", "Ubik")


async def prompts(inspector):
    await inspector.tab("Prompts")
    await inspector.do("choose", "recommend")
    await inspector.fill(topic="whales", tone="plain")
    await inspector.click("Get")
    await inspector.text(".message", "whales")


async def subscriptions(inspector):
    await inspector.tab("Resources")
    await inspector.do("choose", "about")
    await inspector.click("Subscribe")
    await inspector.text(".detail", "Subscribed")
    await inspector.call("shelve", name="dust")
    await inspector.tab("Subscriptions")
    await inspector.text(".card", "1 update")


async def notifications(inspector):
    await inspector.call("scan", seconds="0.1")
    await inspector.text(".result", "done")
    await inspector.tab("Notifications")
    await inspector.text(".log", "board 4")


async def question(inspector):
    await inspector.call("order")
    await inspector.text("#questions", "Which book")


async def sampling(inspector):
    await inspector.call("summarize")
    await inspector.text("#questions", "Summarize")


async def timeline(inspector):
    await inspector.call("add", a="1", b="2")
    await inspector.text(".result", "3")
    await inspector.until("user.all('.frame').length > 3")
    await inspector.page.evaluate("user.all('.frame').at(-1).querySelector('summary').click()")
    await inspector.until("document.querySelector('.frame .tree')")


PANELS = [
    connection, tools, results, media, error, resources, prompts, subscriptions, notifications, question, sampling,
    timeline,
]  # fmt: skip


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.__name__)
async def test_axe_finds_nothing_serious(inspector, panel):
    await panel(inspector)
    await inspector.page.evaluate(AXE.read_text(encoding="utf-8") + ";true")
    found = {}
    # Contrast is a matter of the scheme, everything else one of the size.
    for size, scheme in (("desktop", "light"), ("narrow", "dark")):
        await inspector.page.resize(size, scheme)
        found[size, scheme] = await inspector.page.evaluate(RUN)
        if size == "narrow":
            assert await inspector.page.evaluate("document.documentElement.scrollWidth") <= 400
    assert found == {key: [] for key in found}
    await inspector.page.resize("desktop", "light")
    if SCREENSHOTS:
        folder = Path(SCREENSHOTS)
        folder.mkdir(parents=True, exist_ok=True)
        for size, scheme in (("desktop", "light"), ("desktop", "dark"), ("narrow", "light")):
            (folder / f"{panel.__name__}-{size}-{scheme}.png").write_bytes(await inspector.picture(size, scheme))
