"""Says why tests were skipped, in the words that `tests/run.py` looks for."""

from typing import Any


def pytest_terminal_summary(terminalreporter: Any) -> None:
    for report in terminalreporter.stats.get("skipped", ()):
        _, _, reason = report.longrepr
        terminalreporter.write_line(reason.replace("Skipped: ", "skipped: ", 1))
