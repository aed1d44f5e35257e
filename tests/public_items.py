"""Checks the crate as its users get it, without the feature `bindings`: warnings, and the number of public items.

It compiles the workspace's Rust programs, which use only public items, and the documentation. Items are counted in the
documentation: modules, types, traits, functions, constants, macros, and the methods and associated constants that the
crate defines on them. Fields, enum variants and methods of implemented traits don't count, nor do the methods of a type
alias, which are those of its type.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 449
TARGET = ROOT / "target"
PAGES = TARGET / "doc/gudgeon"
PROGRAMS = ("gudgeon", "docsearch", "interop", "conformance", "bench-driver")
COMMANDS = [
    ["cargo", "check", "--quiet", *(word for program in PROGRAMS for word in ("--package", program))],
    ["cargo", "doc", "--quiet", "--package", "gudgeon", "--no-deps", "--target-dir", str(TARGET)],
]

REDIRECT = '<meta http-equiv="refresh"'
# The part of a page that lists the methods that the crate defines on a type or in a trait.
OWN = re.compile(
    r'id="(?:implementations|required-methods|provided-methods|required-associated-consts)-?[^"]*"'
    r'(.*?)(?=<h2 id="(?:deref|trait-impl|synthetic|blanket|foreign|implementors)|$)',
    re.S,
)
MEMBER = re.compile(r'<section id="(?:ty)?(?:method|associatedconstant)\.(\w+)')


def main():
    shutil.rmtree(PAGES, ignore_errors=True)
    for command in COMMANDS:
        ran = subprocess.run(command, cwd=ROOT, check=False, stderr=subprocess.PIPE, text=True)
        if ran.returncode or "warning" in ran.stderr:
            sys.exit(f"{' '.join(command)}:\n{ran.stderr}")
    items = list(public_items())
    print("\n".join(items))
    print(f"{len(items)} public items; the limit is {LIMIT}")
    return 0 if 0 < len(items) <= LIMIT else 1


def public_items():
    for page in sorted(PAGES.rglob("*.html")):
        kind, _, name = page.name.removesuffix(".html").rpartition(".")
        *modules, _ = page.relative_to(PAGES).parts
        text = page.read_text(encoding="utf-8")
        if page.name == "index.html":
            yield "::".join(["gudgeon", *modules])
        elif kind and REDIRECT not in text:
            path = "::".join(["gudgeon", *modules, name])
            yield path
            own = kind != "type" and OWN.search(text)
            yield from (f"{path}::{member}" for member in MEMBER.findall(own[1] if own else ""))


if __name__ == "__main__":
    sys.exit(main())
