"""Runs the suite's client scenarios: a set at once, each against a new process of a fixture client."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import suite
from suite import LEGACY
from verdict import NOT_OFFERED, STAMP, Verdict

HERE = Path(__file__).resolve().parent
MILLISECONDS = 120_000  # for a scenario, with the time for those before it
# Scenarios of a revision that has no set.
OLDER = {
    "auth/2025-03-26-oauth-metadata-backcompat": "2025-03-26",
    "auth/2025-03-26-oauth-endpoint-fallback": "2025-03-26",
}
# Scenarios in which a client has to give up: it may exit with any status.
MAY_FAIL = {
    "auth/iss-normalized",
    "auth/iss-supported-missing",
    "auth/iss-unexpected",
    "auth/iss-wrong-issuer",
    "auth/metadata-issuer-mismatch",
    "auth/resource-mismatch",
    "auth/scope-retry-limit",
    "http-invalid-tool-headers",
}


def run(title: str, language: str, revision: str, expected: list[str]) -> Verdict:
    """Runs the scenarios of a set. A client must exit with status 0 too. A scenario that fails is run again, alone."""
    verdict = Verdict(title)
    try:
        _perform(verdict, language, "--requirements", revision)
    except suite.Broken as error:
        verdict.blame("(the set)", f"failed: {error}")
    for scenario in expected:
        if scenario not in verdict.seen:
            verdict.blame(scenario, "failed: it did not run")
    for scenario in list(verdict.bad):
        verdict.try_again(scenario, lambda again, scenario=scenario: _alone(again, language, revision, scenario))
    for scenario, older in OLDER.items() if revision == LEGACY else ():
        _alone(verdict, language, older, scenario)
    return verdict


def _alone(verdict: Verdict, language: str, revision: str, scenario: str) -> None:
    """Runs a scenario. Those of extensions belong to no revision."""
    try:
        _perform(verdict, language, "--force", "--scenario", scenario, "--spec-version", revision)
    except suite.Broken as error:
        verdict.blame(scenario, f"failed: {error}")
    if scenario not in verdict.seen:
        verdict.blame(scenario, "failed: it did not run")


def _perform(verdict: Verdict, language: str, *chosen: str) -> None:
    """Runs scenarios and reads their results."""
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder, tempfile.TemporaryDirectory() as slots:
        client = ["--command", f"{HERE / 'report'} {slots} {language}", "--timeout", str(MILLISECONDS)]
        suite.run("client", *client, *chosen, "-o", folder)
        for checks in Path(folder).rglob("checks.json"):
            scenario = STAMP.sub("", str(checks.parent.relative_to(folder)))
            if not scenario.startswith(NOT_OFFERED):
                verdict.read(scenario, checks)
                _read_status(verdict, scenario, checks.parent)


def _read_status(verdict: Verdict, scenario: str, results: Path) -> None:
    """Checks the status with which the client has exited."""
    found = re.findall(r"^status (\d+)$", (results / "stdout.txt").read_text(), re.M)
    if found != ["0"] and not (found and scenario in MAY_FAIL) and scenario not in verdict.bad:
        lines = (results / "stderr.txt").read_text().strip().splitlines()
        verdict.blame(scenario, f"failed: the client: {lines[-1] if lines else 'it said nothing'}")
