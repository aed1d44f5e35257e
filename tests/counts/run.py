"""Compares the instructions that a call costs the servers with the committed counts, in counts.json.

python3 tests/counts/run.py [--update | --packages | WORD…]

Words select cells by parts of their names; `--packages` selects small calls to the servers of the packages.
"""

import argparse
import http.client
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import metrics
import valgrind
from cells import CELLS, RUST_SERVER, Cell, measure
from client import Wrong
from versions import differences, versions

COUNTS = Path(__file__).with_name("counts.json")
TOLERANCE = 0.03
# An update keeps counts that changed by less, so that its diff shows changes and no noise.
NOISE = 0.01
# A server waits most of the time, for the program that reads its counters.
AT_ONCE = 4
# Other programs on the machine add instructions, because compilers of Node and timers run at other times. The smallest
# of these measurements of a cell counts.
ATTEMPTS = 3
UPDATE = "run make update-counts and commit its diff"


class Measured(NamedTuple):
    cell: Cell
    instructions: int | None
    # The reason for which the number is missing.
    failure: str


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--update", action="store_true", help="write the counts")
    parser.add_argument("--packages", action="store_true", help="only small calls to the servers of the packages")
    parser.add_argument("words", nargs="*", metavar="WORD")
    options = parser.parse_args()
    if options.update and options.words:
        parser.error("--update writes all counts; leave out the words")
    chosen = [cell for cell in CELLS if all(word in str(cell).split() for word in options.words)]
    if options.packages:
        chosen = [cell for cell in chosen if cell.language != "rust" and cell.size == "16 B"]
    if not chosen:
        parser.error(f"no cell has all of these words; there are: {', '.join(map(str, CELLS))}")
    if any(cell.language == "rust" for cell in chosen) and not RUST_SERVER.is_file():
        sys.exit(f"counts: {RUST_SERVER} is missing; run make build-counts")
    try:
        valgrind.find()
    except valgrind.Missing as reason:
        if options.update:
            sys.exit(f"counts: {reason}")
        print(f"skipped: {reason}")
        return 0
    return update() if options.update else compare(chosen)


def measure_all(cells: list[Cell], committed: dict[str, int]) -> Iterator[Measured]:
    most = [committed.get(str(cell), 0) * (1 + TOLERANCE) for cell in cells]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield from pool.map(_measure, cells, most)


def _measure(cell: Cell, most: float = 0) -> Measured:
    """Measures until a count is at most `most`, or often enough."""
    try:
        counts: list[int] = []
        while not counts or (min(counts) > most > 0 and len(counts) < ATTEMPTS):
            counts.append(measure(cell))
        return Measured(cell, min(counts), "")
    except (Wrong, OSError, http.client.HTTPException, subprocess.SubprocessError) as error:
        return Measured(cell, None, str(error))


def compare(cells: list[Cell]) -> int:
    """Prints a row for each cell, then the totals; returns the exit status."""
    committed = json.loads(COUNTS.read_text()) if COUNTS.is_file() else {"counts": {}, "versions": {}}
    here = versions()
    passed = failed = skipped = 0
    start = time.monotonic()
    print(f"{'instructions a call':28}{'committed':>12}{'measured':>12}")
    for cell, count, failure in measure_all(cells, committed["counts"]):
        expected = committed["counts"].get(str(cell))
        if count is None or expected is None:
            failed += 1
            print(f"FAILED {cell}: {failure or f'{count:,} instructions a call, and no committed count; {UPDATE}'}")
            continue
        change = count / expected - 1
        print(f"{cell!s:28}{expected:12,}{count:12,}{change:+9.1%}", flush=True)
        if abs(change) <= TOLERANCE:
            passed += 1
        elif other := differences(cell, committed["versions"], here):
            skipped += 1
            amounts = f"{count:,} instructions a call, committed are {expected:,}"
            print(f"skipped: other versions: {cell}: {amounts}, with {other}")
        else:
            failed += 1
            print(f"FAILED {cell}: {verdict(count, expected)}", flush=True)
    more = metrics.compare(cells)
    passed, failed, skipped = passed + more[0], failed + more[1], skipped + more[2]
    skips = f", {skipped} skipped" if skipped else ""
    print(f"counts: {passed} passed, {failed} failed{skips} ({time.monotonic() - start:.0f} s)")
    return 1 if failed else 0


def verdict(count: int, expected: int) -> str:
    change = count / expected - 1
    amounts = f"{count:,} instructions a call, {abs(change):.1%}"
    if change > 0:
        return (
            f"{amounts} more than the committed {expected:,}, and {TOLERANCE:.0%} are tolerated; find the cause in a "
            f"profile, or if the cost is meant, {UPDATE}"
        )
    return f"{amounts} fewer than the committed {expected:,}; {UPDATE}, so that the gain is not lost unnoticed"


def update() -> int:
    """Writes the counts and prints those that changed; returns the exit status."""
    here = versions()
    committed = json.loads(COUNTS.read_text()) if COUNTS.is_file() else {"counts": {}}
    counts = {}
    for cell, count, failure in measure_all(CELLS, {}):
        if count is None:
            sys.exit(f"counts: {cell}: {failure}")
        before = committed["counts"].get(str(cell))
        if before and abs(count / before - 1) < NOISE:
            count = before
        elif before:
            print(f"{cell!s:28}{before:12,}{count:12,}{count / before - 1:+9.1%}", flush=True)
        counts[str(cell)] = count
    COUNTS.write_text(json.dumps({"counts": counts, "versions": here}, indent=2, sort_keys=True) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
