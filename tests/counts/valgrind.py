"""Finds valgrind, or unpacks Debian's package of it into target/valgrind, which does not need root."""

import shutil
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]

sys.path.append(str(ROOT / "tests/debian"))
from debian_packages import Missing as Missing, unpack  # noqa: E402

FOLDER = ROOT / "target/valgrind"


class Valgrind(NamedTuple):
    program: Path
    vgdb: Path
    environment: dict[str, str]


@cache
def find() -> Valgrind:
    """Returns the installed valgrind, or else an unpacked one. Raises `Missing` without both."""
    program, vgdb = shutil.which("valgrind"), shutil.which("vgdb")
    if program and vgdb:
        return Valgrind(_behind_script(Path(program)), Path(vgdb), {})
    binaries = FOLDER / "usr/bin"
    if not (binaries / "vgdb").is_file():
        unpack(FOLDER, "valgrind")
    # The folder of the tools differs between releases of Debian.
    tools = next((FOLDER / "usr").glob("lib*/**/callgrind-*-linux"), None)
    if not tools:
        raise Missing(f"the package that was unpacked in {FOLDER} has no callgrind; install valgrind")
    environment = {"VALGRIND_LIB": str(tools.parent)}
    return Valgrind(_behind_script(binaries / "valgrind"), binaries / "vgdb", environment)


def _behind_script(program: Path) -> Path:
    """Returns the program that Debian's script `valgrind` starts; the script would have it load debug libraries."""
    binary = program.with_name("valgrind.bin")
    return binary if binary.is_file() else program
