"""Finds Chromium, or unpacks Debian's packages of it into target/chromium, which does not need root.

Run as a program, it prints the reason if Chromium can't be installed.
"""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "target/chromium"
PROGRAM = FOLDER / "usr/lib/chromium/chromium"
APT = [
    "apt-get",
    "--quiet=2",
    f"--option=Dir::State={FOLDER}/state",
    f"--option=Dir::Cache={FOLDER}/cache",
    # Changing the folder of the state would otherwise hide which packages are installed.
    "--option=Dir::State::status=/var/lib/dpkg/status",
    # Otherwise apt, started by root, downloads as a user who cannot write to the folder.
    "--option=APT::Sandbox::User=",
    "--option=APT::Update::Error-Mode=any",
    # Nothing is installed, so the lock, which only root may take, is not needed.
    "--option=Debug::NoLocking=true",
]


class Missing(Exception):
    """Chromium is not installed, and was not unpacked."""


class Chromium(NamedTuple):
    program: Path
    environment: dict[str, str]


@cache
def find() -> Chromium:
    """Returns the installed Chromium, or else an unpacked one. Raises `Missing` without both."""
    if program := shutil.which("chromium"):
        return Chromium(Path(program), {})
    if not PROGRAM.is_file():
        _unpack()
    libraries = {str(library.parent) for library in FOLDER.glob("**/*.so*") if library.parent != PROGRAM.parent}
    environment = {
        "LD_LIBRARY_PATH": ":".join(sorted(libraries)),
        # Fonts are looked for below this folder, too.
        "XDG_DATA_HOME": f"{FOLDER}/usr/share",
    }
    if not Path("/etc/fonts/fonts.conf").is_file():
        environment["FONTCONFIG_PATH"] = f"{FOLDER}/etc/fonts"
    return Chromium(PROGRAM, environment)


def _unpack() -> None:
    """Downloads the packages that an installation of Chromium would need here, and extracts their files."""
    print("set-up: Debian's chromium into target/chromium", flush=True)
    shutil.rmtree(FOLDER, ignore_errors=True)
    # apt creates its other folders itself.
    (FOLDER / "state/lists/partial").mkdir(parents=True)
    archives = FOLDER / "cache/archives"
    (archives / "partial").mkdir(parents=True)
    _run([*APT, "update"])
    _run([*APT, "install", "--download-only", "--yes", "--no-install-recommends", "chromium"])
    for package in sorted(archives.glob("*.deb")):
        _run(["dpkg-deb", "--extract", str(package), str(FOLDER)])
    for folder in ("state", "cache"):
        shutil.rmtree(FOLDER / folder)
    if not PROGRAM.is_file():
        raise Missing(f"the packages that were unpacked in {FOLDER} have no Chromium; install Debian's chromium")


def _run(command: list[str]) -> None:
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        done = subprocess.run(
            command, check=False, cwd=FOLDER, capture_output=True, text=True, timeout=300, env=environment
        )
        why = " ".join((done.stderr or done.stdout).split())[-300:] if done.returncode else ""
    except (OSError, subprocess.TimeoutExpired) as error:
        why = str(error)
    if why:
        raise Missing(f"chromium is not installed, nor could it be unpacked ({why}); install Debian's chromium")


if __name__ == "__main__":
    try:
        find()
    except Missing as reason:
        # The tests that need it say so again.
        print(f"set-up: {reason}", file=sys.stderr)
