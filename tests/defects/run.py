"""Says which stage of the tests finds each seeded defect.

    python3 tests/defects/run.py --check
    python3 tests/defects/run.py --one "a page has one entry too many"
    python3 tests/defects/run.py --tree FOLDER --commit COMMIT [--minutes N] [NAME or AREA…]
    python3 tests/defects/run.py --compare BEFORE AFTER

`--check` says which entries do not fit this checkout. `--one` puts one defect into this checkout, as an edit. `--tree`
makes a copy with all of them, runs its tests for each, and writes `target/defects.json` and `target/defects.md` there;
what is known already is not run again. `--compare` prints the tables of two such copies as one.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from pathlib import Path
from typing import Any

import stages
from defects import Defect, problems, read_all
from tree import ROOT, Tree


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--one", metavar="NAME")
    parser.add_argument("--tree", type=Path, metavar="FOLDER", help="the copy; it is made where there is none")
    parser.add_argument("--commit", default="HEAD", help="what to make the copy of")
    parser.add_argument("--minutes", type=float, help="stop after this time; run it again to continue")
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("BEFORE", "AFTER"))
    parser.add_argument("chosen", nargs="*", metavar="NAME or AREA")
    options = parser.parse_args()
    # A shell ignores Ctrl-C for what it starts in the background, and programs inherit that: tests send this signal.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    defects = read_all()
    if options.compare:
        print(_comparison(*(_read(Tree(path)) for path in options.compare)))
        return 0
    if options.one:
        return _put_in(options.one, defects)
    if options.tree:
        return Run(Tree(options.tree), defects, options.minutes).run(options.commit, set(options.chosen))
    wrong = problems(ROOT, defects)
    print("\n".join([*wrong, f"{len(defects)} defects, {len(wrong)} do not fit"]))
    return 1 if wrong else 0


def _put_in(name: str, defects: list[Defect]) -> int:
    defect = next((defect for defect in defects if defect.name == name), None)
    if defect is None:
        sys.exit(f"there is no defect {name!r}")
    path = ROOT / defect.file
    path.write_text(defect.edited(path.read_text()))
    print(f"git checkout {defect.file}  # takes it out again")
    return 0


class Run:
    """The search for the stages that find the defects of a copy."""

    def __init__(self, tree: Tree, defects: list[Defect], minutes: float | None) -> None:
        self.tree = tree
        self.defects = defects
        self.end = None if minutes is None else time.monotonic() + 60 * minutes
        self.known: dict[str, Any] = {"stages": {}, "defects": {}}

    def run(self, commit: str, chosen: set[str]) -> int:
        self.tree.make(commit, self.defects)
        self.known = _read(self.tree) or self.known
        self.stages = stages.read(self.tree)
        wanted = [defect for defect in self.defects if not chosen or chosen & {defect.name, defect.area}]
        # All stages for one defect take long, so they come last.
        for names in (self._likely, self._in_order):
            for defect in wanted:
                self._search(defect, names(defect))
        left = [defect.name for defect in self.defects if not self._is_done(defect)]
        print(f"{len(self.defects) - len(left)} of {len(self.defects)} defects were looked for")
        return 0

    def _search(self, defect: Defect, names: list[str]) -> None:
        """Runs stages until one finds the defect. Stages that passed are kept, for a search that is broken off."""
        entry = self.known["defects"].setdefault(defect.name, {})
        if entry.get("defect") != _text(defect):
            entry.clear()
            entry |= {"defect": _text(defect), "area": defect.area, "passed": [], "seconds": 0.0, "found_by": None}
        for name in names:
            if entry["found_by"] is not None or self._is_over():
                return
            if name in entry["passed"] or not self._works(name):
                continue
            outcome = self._active(defect, name)
            entry["seconds"] += outcome.seconds
            if outcome.failed is None:
                entry["passed"].append(name)
            else:
                entry |= {"found_by": name, "check": outcome.failed[:200]}
            self._write()
            print(f"{outcome.seconds:5.0f} s  {name:14} {defect.area}: {defect.name}: {outcome.failed}", flush=True)

    def _likely(self, defect: Defect) -> list[str]:
        """Returns the stages that probably find a defect. A stage may have its tests without IO apart."""
        names = [part for name in defect.stages for part in (f"{name} sans-io", name)]
        return [name for name in dict.fromkeys(names) if name in self.stages]

    def _in_order(self, defect: Defect) -> list[str]:
        """Returns all stages, those first that probably find a defect."""
        return list(dict.fromkeys([*self._likely(defect), *self.stages]))

    def _works(self, name: str) -> bool:
        """Returns whether a stage passes without a defect; it has two tries."""
        known = self.known["stages"]
        if name not in known:
            outcome = self.stages[name].run(self.tree)
            if outcome.failed is not None:
                print(f"{outcome.seconds:5.0f} s  {name:14} without a defect: {outcome.failed}", flush=True)
                outcome = self.stages[name].run(self.tree)
            known[name] = {"seconds": outcome.seconds, "failed": outcome.failed}
            self._write()
            print(f"{outcome.seconds:5.0f} s  {name:14} without a defect: {outcome.failed or 'passed'}", flush=True)
        return known[name]["failed"] is None

    def _active(self, defect: Defect, name: str) -> stages.Outcome:
        limit = stages.FACTOR * self.known["stages"][name]["seconds"] + stages.SECONDS
        self.tree.activate(defect)
        try:
            return self.stages[name].run(self.tree, limit)
        finally:
            self.tree.activate(None)

    def _is_done(self, defect: Defect) -> bool:
        entry = self.known["defects"].get(defect.name)
        if entry is None or entry["defect"] != _text(defect):
            return False
        works = [name for name, stage in self.known["stages"].items() if stage["failed"] is None]
        return entry["found_by"] is not None or set(works) == set(entry["passed"])

    def _is_over(self) -> bool:
        return self.end is not None and time.monotonic() > self.end

    def _write(self) -> None:
        (self.tree.target / "defects.json").write_text(json.dumps(self.known, indent=1))
        (self.tree.target / "defects.md").write_text(_table(self.known) + "\n")


def _text(defect: Defect) -> list[str | None]:
    return [defect.file, defect.after, defect.old, defect.new]


def _read(tree: Tree) -> dict[str, Any]:
    path = tree.target / "defects.json"
    return json.loads(path.read_text()) if path.exists() else {}


def _table(known: dict[str, Any]) -> str:
    lines = ["| defect | area | found by | seconds |", "|---|---|---|---|"]
    for name, entry in known["defects"].items():
        lines.append(f"| {name} | {entry['area']} | {_found(entry)} | {entry['seconds']:.0f} |")
    unused = [f"{name} ({stage['failed']})" for name, stage in known["stages"].items() if stage["failed"]]
    if unused:
        lines += ["", f"Not used, because they fail without a defect: {', '.join(unused)}."]
    return "\n".join(lines)


def _comparison(before: dict[str, Any], after: dict[str, Any]) -> str:
    lines = ["| defect | area | found by, before | found by, after |", "|---|---|---|---|"]
    entries = [known.get("defects", {}) for known in (before, after)]
    for name in dict.fromkeys([*entries[0], *entries[1]]):
        area = (entries[0].get(name) or entries[1][name])["area"]
        lines.append(f"| {name} | {area} | {' | '.join(_found(known.get(name)) for known in entries)} |")
    return "\n".join(lines)


def _found(entry: dict[str, Any] | None) -> str:
    if entry is None:
        return "not looked for"
    if entry["found_by"] is None:
        return f"**no stage** of {', '.join(entry['passed']) or 'none'}"
    return f"{entry['found_by']} (too long)" if entry["check"] == stages.TOO_LONG else entry["found_by"]


if __name__ == "__main__":
    sys.exit(main())
