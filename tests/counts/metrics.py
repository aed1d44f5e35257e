"""Compares the instructions of a call over HTTP without metrics, with them, and as committed.

python3 tests/counts/metrics.py [WORD…]

Without metrics a call may cost 1 % more than the committed count, and with them a microsecond more than without.
tests/counts/run.py runs this, too; the Rust server takes part if it was built (make build-counts). Node's does not:
metrics are the core's and counts of interpreted JavaScript differ by more than 1 %.
"""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cells import CELLS, RUST_SERVER, Cell, measure
from versions import differences, versions

COUNTS = Path(__file__).with_name("counts.json")
#: A microsecond is about as many instructions on a machine that executes one or two in a nanosecond.
LIMIT = 1_500
TOLERANCE = 0.01
OPTIONS = '{"metrics": "/metrics"}'
AT_ONCE = 4
#: Other programs on the machine add instructions. The smallest of these counts is the cell's.
ATTEMPTS = 3


def compare(cells: list[Cell]) -> tuple[int, int, int]:
    """Prints a row for each small cell over HTTP; returns the numbers of those that passed, failed and were skipped."""
    committed = json.loads(COUNTS.read_text())
    here = versions()
    passed = failed = skipped = 0
    cells = [cell for cell in cells if cell.transport == "http" and cell.size == "16 B" and cell.language != "node"]
    print(f"{'instructions a call':28}{'committed':>12}{'no metrics':>12}{'metrics':>12}")
    with ThreadPoolExecutor(AT_ONCE) as pool:
        measured = pool.map(lambda cell: _both(cell, committed["counts"][str(cell)]), cells)
        for cell, (without, with_metrics) in zip(cells, measured, strict=True):
            expected = committed["counts"][str(cell)]
            change, more = without / expected - 1, with_metrics - without
            print(f"{cell!s:28}{expected:12,}{without:12,}{change:+9.1%}{with_metrics:12,}{more:+9,}", flush=True)
            if more > LIMIT:
                failed += 1
                print(f"FAILED {cell}: metrics add {more:,} instructions to a call, and {LIMIT:,} are tolerated")
            elif change <= TOLERANCE:
                passed += 1
            elif other := differences(cell, committed["versions"], here):
                skipped += 1
                print(f"skipped: other versions: {cell} without metrics: {change:+.1%}, with {other}")
            else:
                failed += 1
                print(
                    f"FAILED {cell}: without metrics a call costs {change:+.1%}, and {TOLERANCE:.0%} is tolerated; "
                    "find the cause in a profile, or if the cost is meant, run make update-counts and commit its diff"
                )
    return passed, failed, skipped


def _both(cell: Cell, expected: int) -> tuple[int, int]:
    """Measures a cell without metrics and with them, again where a count is too high."""
    without, with_metrics = measure(cell), measure(cell, RUST_SERVER, OPTIONS)
    for _ in range(ATTEMPTS - 1):
        if without > expected * (1 + TOLERANCE):
            without = min(without, measure(cell))
        if with_metrics > without + LIMIT:
            with_metrics = min(with_metrics, measure(cell, RUST_SERVER, OPTIONS))
    return without, with_metrics


def main() -> int:
    chosen = [cell for cell in CELLS if all(word in str(cell).split() for word in sys.argv[1:])]
    _, failed, _ = compare([cell for cell in chosen if cell.language != "rust" or RUST_SERVER.is_file()])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
