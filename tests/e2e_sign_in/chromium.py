"""Finds Chromium, or unpacks Debian's packages of it into target/chromium, which does not need root.

Run as a program, it prints the reason if Chromium can't be installed.
"""

import shutil
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]

sys.path.append(str(ROOT / "tests/debian"))
from debian_packages import Missing as Missing, unpack  # noqa: E402

FOLDER = ROOT / "target/chromium"
PROGRAM = FOLDER / "usr/lib/chromium/chromium"


class Chromium(NamedTuple):
    program: Path
    environment: dict[str, str]


@cache
def find() -> Chromium:
    """Returns the installed Chromium, or else an unpacked one. Raises `Missing` without both."""
    if program := shutil.which("chromium"):
        return Chromium(Path(program), {})
    if not PROGRAM.is_file():
        unpack(FOLDER, "chromium")
    if not PROGRAM.is_file():
        raise Missing(f"the packages that were unpacked in {FOLDER} have no Chromium; install Debian's chromium")
    libraries = {str(library.parent) for library in FOLDER.glob("**/*.so*") if library.parent != PROGRAM.parent}
    environment = {
        "LD_LIBRARY_PATH": ":".join(sorted(libraries)),
        # Fonts are looked for below this folder, too.
        "XDG_DATA_HOME": f"{FOLDER}/usr/share",
    }
    if not Path("/etc/fonts/fonts.conf").is_file():
        environment["FONTCONFIG_PATH"] = f"{FOLDER}/etc/fonts"
    return Chromium(PROGRAM, environment)


if __name__ == "__main__":
    try:
        find()
    except Missing as reason:
        # The tests that need it say so again.
        print(f"set-up: {reason}", file=sys.stderr)
