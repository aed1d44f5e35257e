"""Compares the list of unsafe code in docs/design/unsafe.md with the source.

Counted is the keyword `unsafe` in code: blocks, functions, implementations, `unsafe extern` and `#[unsafe(…)]`. Nothing
may `allow(unsafe_code)`: `expect` reports itself where nothing is unsafe any more. The core forbids unsafe code.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "docs/design/unsafe.md"
ROW = re.compile(r"^\| `(?P<file>[^`]+\.rs)` \| (?P<number>\d+) \| \S", re.M)
# Comments and literals, whose text is not code. Lifetimes are not literals.
NO_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|b?r(?P<hashes>#+)".*?"(?P=hashes)|b?r"[^"]*"|b?"(?:\\.|[^"\\])*"|b?\'(?:\\.[^\']*|[^\'\\])\'',
    re.S,
)


def main():
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.rs"]
    sources = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    found = {}
    problems = []
    for name in filter(None, sources):
        path = ROOT / name
        code = NO_CODE.sub(" ", path.read_text(encoding="utf-8")) if path.exists() else ""
        if number := len(re.findall(r"\bunsafe\b", code)):
            found[name] = number
        if re.search(r"\ballow\s*\([^)]*\bunsafe_code\b", code):
            problems.append(f"{name}: `allow(unsafe_code)`; use `expect` at the place, with a reason")
    listed = {row["file"]: int(row["number"]) for row in ROW.finditer(LIST.read_text(encoding="utf-8"))}
    for name in sorted(found.keys() | listed.keys()):
        if found.get(name, 0) != listed.get(name, 0):
            numbers = f"{found.get(name, 0)} in the source, {listed.get(name, 0)} in {LIST.relative_to(ROOT)}"
            problems.append(f"{name}: `unsafe` {numbers}; list it with its reason, or remove it from the list")
    if "#![forbid(unsafe_code)]" not in (ROOT / "core/src/lib.rs").read_text(encoding="utf-8"):
        problems.append("core/src/lib.rs: the core must `#![forbid(unsafe_code)]`")
    print("\n".join([*problems, f"{sum(found.values())} in {len(found)} files, {len(problems)} problems"]))
    return 1 if problems or not found else 0


if __name__ == "__main__":
    sys.exit(main())
