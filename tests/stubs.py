"""Checks that the committed stubs of the native modules equal the generated ones; `--write` updates the former."""

import difflib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHON = ROOT / "bindings-python/python/gudgeon/_native.pyi"
NODE = ROOT / "bindings-node/native.d.ts"
NODE_BUILT = ROOT / "bindings-node/dist/native.d.ts"


def main(write):
    wrong = 0
    for committed, generated in ((PYTHON, python_stub()), (NODE, NODE_BUILT.read_text())):
        if write:
            committed.write_text(generated)
        elif committed.read_text() != generated:
            wrong += 1
            lines = difflib.unified_diff(
                committed.read_text().splitlines(),
                generated.splitlines(),
                str(committed.relative_to(ROOT)),
                "generated",
                lineterm="",
            )
            print("\n".join(lines))
    return "out of date: run `make stubs` and commit" if wrong else 0


def python_stub():
    """Returns the generated stub of the extension module."""
    maturin = Path(sys.executable).parent / "maturin"
    with tempfile.TemporaryDirectory() as folder:
        # Rust's tests compile the core with the second feature, and then it need not be compiled again.
        features = "stubs,gudgeon/simulation"
        command = [maturin, "generate-stubs", "--quiet", "--profile", "dev", "--features", features, "--out", folder]
        subprocess.run(command, check=True, cwd=ROOT, env={**os.environ, "VIRTUAL_ENV": str(ROOT / ".venv")})
        return (Path(folder) / "gudgeon/_native.pyi").read_text()


if __name__ == "__main__":
    sys.exit(main("--write" in sys.argv[1:]))
