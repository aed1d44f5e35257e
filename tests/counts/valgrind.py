"""Finds valgrind, or unpacks Debian's package of it into target/valgrind, which does not need root."""

import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "target/valgrind"
APT = [
    "apt-get",
    "--quiet=2",
    f"--option=Dir::State={FOLDER}/state",
    f"--option=Dir::Cache={FOLDER}/cache",
    # Otherwise apt, started by root, downloads as a user who cannot write to the folder.
    "--option=APT::Sandbox::User=",
    "--option=APT::Update::Error-Mode=any",
]


class Missing(Exception):
    """Valgrind is not installed, and was not unpacked."""


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
        _unpack()
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


def _unpack() -> None:
    print(f"setting up {FOLDER.relative_to(ROOT)}", flush=True)
    shutil.rmtree(FOLDER, ignore_errors=True)
    # apt creates its other folders itself.
    (FOLDER / "state/lists/partial").mkdir(parents=True)
    (FOLDER / "cache/archives/partial").mkdir(parents=True)
    _run([*APT, "update"])
    _run([*APT, "download", "valgrind"])
    for package in FOLDER.glob("valgrind_*.deb"):
        _run(["dpkg-deb", "--extract", str(package), str(FOLDER)])
        package.unlink()
    for folder in ("state", "cache"):
        shutil.rmtree(FOLDER / folder)


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, check=False, cwd=FOLDER, capture_output=True, text=True, timeout=300)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Missing(f"valgrind is not installed, nor could it be unpacked ({error}); install valgrind") from None
    if done.returncode:
        why = " ".join((done.stderr or done.stdout).split())[-300:]
        raise Missing(f"valgrind is not installed, nor could it be unpacked ({why}); install valgrind")
