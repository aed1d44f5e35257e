"""Checks the messages that the compiler has for mistakes in Rust programs: `compile_errors.toml` has both.

    python3 tests/compile_errors.py [NAME…]

A mistake passes if the program is not compiled and the message has every part that the table names.
"""

import json
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import tomllib

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "tests/compile_errors.toml"
CRATES = ("gudgeon", "schemars", "serde", "tokio")
# The command of `public_items.py`, whose artifacts are used.
PROGRAMS = ("gudgeon", "docsearch", "interop", "conformance", "bench-driver")
CHECK = ["cargo", "check", "--quiet", *(word for program in PROGRAMS for word in ("--package", program))]


def main() -> int:
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    chosen = [mistake for mistake in table["mistake"] if not sys.argv[1:] or mistake["name"] in sys.argv[1:]]
    externs = crates()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as threads:
        problems = list(threads.map(lambda mistake: problem(mistake, table["prelude"], externs, Path(folder)), chosen))
    found = [text for text in problems if text]
    print("\n".join(found))
    print(f"{len(chosen) - len(found)} of {len(chosen)} messages name the cause")
    return 1 if found or not chosen else 0


def problem(mistake, prelude, externs, folder):
    """Returns what is wrong with the message for a mistake; `None` if nothing is."""
    name, code, says = mistake["name"], mistake["code"], mistake["says"]
    stem = re.sub(r"\W+", "_", name)
    source = folder / f"{stem}.rs"
    main = "" if "fn main" in code else "\nfn main() {}"
    source.write_text(f"{prelude}{code}{main}\n", encoding="utf-8")
    command = ["rustc", "--edition", "2024", "--emit", "metadata", "-o", folder / f"{stem}.rmeta", *externs, source]
    ran = subprocess.run(command, check=False, capture_output=True, text=True)
    if ran.returncode == 0:
        return f"{name}: compiles, but should not"
    missing = [part for part in says if part not in ran.stderr]
    return f"{name}: the message lacks {missing}\n{ran.stderr}" if missing else None


def crates():
    """Returns the options of rustc for the crates that the programs use."""
    ran = subprocess.run([*CHECK, "--message-format", "json"], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    options = ["-L", f"dependency={ROOT / 'target/debug/deps'}"]
    for line in ran.stdout.splitlines():
        message = json.loads(line)
        if message["reason"] == "compiler-artifact" and message["target"]["name"] in CRATES:
            files = [file for file in message["filenames"] if file.endswith(".rmeta")]
            options += ["--extern", f"{message['target']['name']}={files[0]}"] if files else []
    return options


if __name__ == "__main__":
    sys.exit(main())
