"""The browser of all tests; says why tests were skipped, in the words that `tests/run.py` looks for."""

from typing import Any

from browser import chromium_url  # noqa: F401, a fixture


def pytest_terminal_summary(terminalreporter: Any) -> None:
    for report in terminalreporter.stats.get("skipped", ()):
        _, _, reason = report.longrepr
        terminalreporter.write_line(reason.replace("Skipped: ", "skipped: ", 1))
