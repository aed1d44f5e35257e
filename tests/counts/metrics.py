"""Compares the instructions of a call to a Rust server over HTTP, without metrics and with them.

python3 tests/counts/metrics.py
"""

import sys

from cells import CELLS, RUST_SERVER, measure

#: A microsecond is about as many instructions on a machine that executes one or two in a nanosecond.
LIMIT = 1_500
OPTIONS = '{"metrics": "/metrics"}'


def main() -> int:
    failed = 0
    print(f"{'instructions a call':28}{'without':>12}{'with':>12}")
    for cell in CELLS:
        if cell.language == "rust" and cell.transport == "http" and cell.size == "16 B":
            without, counted = measure(cell), measure(cell, RUST_SERVER, OPTIONS)
            failed += counted - without > LIMIT
            print(f"{cell!s:28}{without:12,}{counted:12,}{counted - without:+9,}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
