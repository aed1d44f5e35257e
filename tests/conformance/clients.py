"""Runs the suite's client scenarios, each against a new process of a fixture client."""

from __future__ import annotations

import tempfile
from pathlib import Path

import suite
from suite import LEGACY
from verdict import Verdict

DRIVE = Path(__file__).resolve().parent / "drive"
MILLISECONDS = 30_000  # for a scenario
# Scenarios of a revision that has no set.
OLDER = {
    "auth/2025-03-26-oauth-metadata-backcompat": "2025-03-26",
    "auth/2025-03-26-oauth-endpoint-fallback": "2025-03-26",
}


def run(title: str, language: str, revision: str, expected: list[str]) -> Verdict:
    """Runs the scenarios of a set. A client must exit with status 0 too."""
    verdict = Verdict(title)
    scenarios = [*expected, *(OLDER if revision == LEGACY else ())]
    for scenario in scenarios:
        with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
            try:
                _run(verdict, language, revision, scenario, Path(folder))
            except suite.Broken as error:
                verdict.blame(scenario, f"failed: {error}")
    return verdict


def _run(verdict: Verdict, language: str, revision: str, scenario: str, folder: Path) -> None:
    options = {
        "--command": f"{DRIVE} {language}",
        "--scenario": scenario,
        "--spec-version": OLDER.get(scenario, revision),
        "--timeout": str(MILLISECONDS),
        "-o": str(folder),
    }
    # Scenarios of extensions belong to no revision.
    done = suite.run("client", "--force", *(word for option in options.items() for word in option))
    results = [checks.parent for checks in folder.rglob("checks.json")]
    if len(results) != 1:
        verdict.blame(scenario, f"failed: it did not run: {done.stderr.strip()[-400:]}")
        return
    verdict.read(scenario, results[0] / "checks.json")
    if done.returncode != 0 and scenario not in verdict.bad:
        lines = (results[0] / "stderr.txt").read_text().strip().splitlines()
        verdict.blame(scenario, f"failed: the client: {lines[-1] if lines else 'it said nothing'}")
