"""Fixtures: a page of its own for each test, and the inspector of a server with something for each panel."""

import sys

import browser
import pytest
from browser import chromium_url  # noqa: F401, a fixture
from inspector import PROGRAM, SERVER, Inspector, Process


def pytest_terminal_summary(terminalreporter):
    """Says why tests were skipped, in the words that `tests/run.py` looks for."""
    for report in terminalreporter.stats.get("skipped", ()):
        _, _, reason = report.longrepr
        terminalreporter.write_line(reason.replace("Skipped: ", "skipped: ", 1))


@pytest.fixture
async def page(chromium_url):  # noqa: F811
    assert PROGRAM.is_file(), f"{PROGRAM} is missing; `make build` builds it"
    async with browser.page_of(chromium_url) as page:
        yield page


@pytest.fixture
async def started(tmp_path):
    """A function that starts the command; all are ended after the test, without a complaint."""
    processes = []

    def start(*words, **options):
        processes.append(Process(tmp_path, *words, **options))
        return processes[-1]

    yield start
    for process in processes:
        code, err = await process.end()
        assert code == 0
        # Servers write to the same standard error.
        assert process.err in err if process.err else err == ""


@pytest.fixture
def inspect(page, started):
    """A function that opens the page for a target, by default for the server of these tests."""

    async def open_page(*words):
        process = started(*(words or ["--", sys.executable, SERVER]))
        inspector = Inspector(page, process.url)
        inspector.process = process
        await inspector.open()
        return inspector

    return open_page


@pytest.fixture
async def inspector(inspect):
    """The page, connected to the server of these tests."""
    inspector = await inspect()
    await inspector.text("#status", "Connected to shelf")
    yield inspector
    assert not inspector.page.violations
    assert {
        origin for origin in inspector.page.origins if not origin.startswith(("http://127.0.0.1:", "blob:", "data:"))
    } == set()
