"""Unpacks packages of Debian into a folder, which needs neither root nor a terminal, and installs nothing."""

import os
import shutil
import subprocess
from pathlib import Path


class Missing(Exception):
    """A program is not installed, and its package could not be unpacked."""


def unpack(folder: Path, *packages: str) -> None:
    """Downloads what an installation of these packages would need here, and extracts the files into a new folder.

    Raises:
        Missing: apt is missing, can't reach its servers, or does not know a package.
    """
    name = packages[0]
    print(f"set-up: Debian's {name} into {os.path.relpath(folder)}", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    # apt creates its other folders itself.
    (folder / "state/lists/partial").mkdir(parents=True)
    archives = folder / "cache/archives"
    (archives / "partial").mkdir(parents=True)
    apt = [
        "apt-get",
        "--quiet=2",
        f"--option=Dir::State={folder}/state",
        f"--option=Dir::Cache={folder}/cache",
        # Changing the folder of the state would otherwise hide which packages are installed.
        "--option=Dir::State::status=/var/lib/dpkg/status",
        # Otherwise apt, started by root, downloads as a user who cannot write to the folder.
        "--option=APT::Sandbox::User=",
        "--option=APT::Update::Error-Mode=any",
        # Nothing is installed, so the lock, which only root may take, is not needed.
        "--option=Debug::NoLocking=true",
    ]
    _run(name, [*apt, "update"], folder)
    _run(name, [*apt, "install", "--download-only", "--yes", "--no-install-recommends", *packages], folder)
    for package in sorted(archives.glob("*.deb")):
        _run(name, ["dpkg-deb", "--extract", str(package), str(folder)], folder)
    for subfolder in ("state", "cache"):
        shutil.rmtree(folder / subfolder)


def library_path(folder: Path) -> str:
    """Returns the value of `LD_LIBRARY_PATH` with which unpacked programs find unpacked libraries."""
    return ":".join(sorted({str(library.parent) for library in folder.glob("**/*.so*")}))


def _run(name: str, command: list[str], folder: Path) -> None:
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        done = subprocess.run(
            command,
            check=False,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            env=environment,
        )
        why = " ".join((done.stderr or done.stdout).split())[-300:] if done.returncode else ""
    except (OSError, subprocess.TimeoutExpired) as error:
        why = str(error)
    if why:
        raise Missing(f"{name} is not installed, nor could it be unpacked ({why}); install Debian's {name}")
