"""Compares the instructions of a call to a Rust server without `auth`, compiled with the cargo feature and without.

python3 tests/counts/auth_feature.py
"""

import shutil
import subprocess
import sys

from cells import CELLS, measure
from counting import ROOT

#: A folder of its own, because tests/counts/run.py counts a server with other features.
FOLDER = ROOT / "target/counts"
BUILD = ["cargo", "build", "--release", "--quiet", "--package", "bench-driver", "--bin", "bench-server"]
WITH = FOLDER / "release/bench-server"
WITHOUT = FOLDER / "bench-server-without-auth"
TOLERANCE = 0.01


def main() -> int:
    build("--no-default-features")
    shutil.copy(WITH, WITHOUT)
    build()
    failed = 0
    print(f"{'instructions a call':28}{'without':>12}{'with':>12}")
    for cell in CELLS:
        if cell.language == "rust" and cell.size == "16 B":
            without, with_feature = measure(cell, WITHOUT), measure(cell, WITH)
            change = with_feature / without - 1
            failed += abs(change) > TOLERANCE
            print(f"{cell!s:28}{without:12,}{with_feature:12,}{change:+9.1%}", flush=True)
    return 1 if failed else 0


def build(*features: str) -> None:
    subprocess.run([*BUILD, "--target-dir", FOLDER, *features], cwd=ROOT, check=True)


if __name__ == "__main__":
    sys.exit(main())
