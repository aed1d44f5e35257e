"""Evaluation of the official suite's results; warnings and missing scenarios count as failures."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

# The end of the name of a scenario's folder.
STAMP = re.compile(r"-\d{4}-\d\d-\d\dT[\d-]+Z$")
FOLDER = re.compile(rf"(?:authorization-)?server-(?P<scenario>.+){STAMP.pattern}")
BAD = {"FAILURE": "failed", "WARNING": "warned"}
# Scenarios of extensions that the fixtures do not support.
NOT_OFFERED = "tasks-"


@dataclass
class Verdict:
    """The results of a server or client in a set of scenarios."""

    title: str
    passed: int = 0
    bad: dict[str, list[str]] = field(default_factory=dict)  # problems by scenario
    seen: dict[str, int] = field(default_factory=dict)  # passed checks by scenario
    flaky: dict[str, list[str]] = field(default_factory=dict)  # problems of scenarios that passed when they ran again

    @property
    def failed(self) -> int:
        return sum(map(len, self.bad.values()))

    def blame(self, scenario: str, why: str) -> None:
        self.bad.setdefault(scenario, []).append(why)

    def read(self, scenario: str, file: Path) -> None:
        """Adds the checks of a scenario, from the file that the suite wrote."""
        checks = json.loads(file.read_text()) if file.is_file() else []
        passed = sum(check["status"] == "SUCCESS" for check in checks)
        self.seen[scenario] = passed
        self.passed += passed
        for check in checks:
            if check["status"] in BAD:
                why = check.get("errorMessage") or check.get("description") or "no reason given"
                self.blame(scenario, f"{BAD[check['status']]}: {check['id']}: {' '.join(why.split())}")
        if not passed and scenario not in self.bad:
            self.blame(scenario, "failed: nothing was checked")

    def add(self, other: Verdict) -> None:
        """Adds the results of other scenarios."""
        self.passed += other.passed
        self.bad |= other.bad
        self.seen |= other.seen

    def try_again(self, scenario: str, run: Callable[[Verdict], None]) -> None:
        """Runs a scenario that failed again, alone; if it passes, its problems are those of a flaky test."""
        again = Verdict(self.title)
        run(again)
        if not again.bad:
            self.flaky[scenario] = self.bad.pop(scenario)
            self.passed += again.passed - self.seen.get(scenario, 0)
            self.seen |= again.seen

    def cell(self, scenario: str) -> str:
        wrong = self.bad.get(scenario, [])
        if not wrong:
            return "ok" if scenario in self.seen else ""
        counts = {word: sum(line.startswith(word) for line in wrong) for word in BAD.values()}
        return ", ".join(f"{count} {word}" for word, count in counts.items() if count)


def scenarios(listing: str, role: str) -> list[str]:
    """Returns a set's scenarios for "server" or "client", from the output of the suite's `list --requirements`."""
    scored = re.search(rf"^{role.title()} scenarios.*?:\n((?:  - \S+\n)+)", listing, re.M)
    names = re.findall(r"  - (\S+)", scored[1]) if scored else []
    names += re.findall(rf"^ +- (\S+) \[{role}\]$", listing, re.M)
    return [name for name in names if not name.startswith(NOT_OFFERED)]


def evaluate(title: str, folder: Path, expected: list[str]) -> Verdict:
    """Evaluates all `checks.json` files of a server below the folder."""
    verdict = Verdict(title)
    for each in sorted(folder.iterdir()):
        found = FOLDER.fullmatch(each.name)
        if found and not found["scenario"].startswith(NOT_OFFERED):
            verdict.read(found["scenario"], each / "checks.json")
    for scenario in expected:
        if scenario not in verdict.seen:
            verdict.blame(scenario, "failed: it did not run")
    return verdict


def table(verdicts: list[Verdict], order: list[str]) -> str:
    """Returns a table with a row per scenario and a column per server or client, and a line for each failure."""
    known = set().union(*(verdict.seen.keys() | verdict.bad.keys() for verdict in verdicts))
    rows = [name for name in order if name in known] + sorted(known - set(order))
    lines = [["scenario", *(verdict.title for verdict in verdicts)]]
    lines += [[row, *(verdict.cell(row) for verdict in verdicts)] for row in rows]
    widths = [max(len(line[at]) for line in lines) for at in range(len(lines[0]))]
    out = ["  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    out.append("")
    out += [
        f"{verdict.title}: {scenario}: {why}"
        for verdict in verdicts
        for scenario, reasons in verdict.bad.items()
        for why in reasons
    ]
    return "\n".join(out)


def totals(verdicts: list[Verdict]) -> str:
    lines = [
        f"flaky: {verdict.title}: {scenario}: {'; '.join(reasons)}"
        for verdict in verdicts
        for scenario, reasons in verdict.flaky.items()
    ]
    passed = sum(verdict.passed for verdict in verdicts)
    lines.append(f"conformance: {passed} passed, {sum(verdict.failed for verdict in verdicts)} failed")
    return "\n".join(lines)
