"""Finds nginx, HAProxy and Redis, or unpacks Debian's packages of them into target/proxies.

Run as a program, it prints the reason if they can't be unpacked.
"""

import fcntl
import os
import shutil
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

from debian_packages import Missing, library_path, unpack

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "target/proxies"
# The name of each program, and the package that has it.
PACKAGES = {"nginx": "nginx-light", "haproxy": "haproxy", "redis-server": "redis-server"}
# nginx's module for TCP, which is a package of its own.
STREAM = "ngx_stream_module.so"
MODULES = Path("usr/lib/nginx/modules")
# Where systems have programs for the administrator, which are not on every user's path.
SEARCHED = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/local/sbin", "/usr/sbin", "/sbin"])


class ProxyProgram(NamedTuple):
    program: Path
    environment: dict[str, str]
    # The root of the file system that the package was installed or unpacked into.
    root: Path


@cache
def find(name: str) -> ProxyProgram:
    """Returns the installed program, or else the unpacked one. Raises `Missing` without both."""
    if program := shutil.which(name, path=SEARCHED):
        return ProxyProgram(Path(program), {}, Path("/"))
    return _unpacked(name)


@cache
def stream_module() -> Path:
    """Returns nginx's module for TCP."""
    installed = find("nginx").root / MODULES / STREAM
    if not installed.is_file():
        _unpack()
    return installed if installed.is_file() else FOLDER / MODULES / STREAM


def _unpacked(name: str) -> ProxyProgram:
    _unpack()
    program = next((path for path in FOLDER.glob(f"usr/*bin/{name}") if path.is_file()), None)
    if not program:
        raise Missing(f"the packages that were unpacked in {FOLDER} have no {name}; install {PACKAGES[name]}")
    return ProxyProgram(program, {"LD_LIBRARY_PATH": library_path(FOLDER)}, FOLDER)


def _unpack() -> None:
    """Unpacks those packages that are not installed, once. Raises the same `Missing` each time if that failed."""
    if reason := _failed():
        raise Missing(reason)


@cache
def _failed() -> str | None:
    """Unpacks the packages unless that was done before; returns the reason if it fails."""
    # One process after the other, because pytest's workers all call this.
    FOLDER.parent.mkdir(exist_ok=True)
    with (FOLDER.parent / ".proxies.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (FOLDER / ".complete").is_file():
            return None
        try:
            unpack(FOLDER, *PACKAGES.values(), "libnginx-mod-stream")
        except Missing as reason:
            return str(reason)
        (FOLDER / ".complete").touch()
        return None


if __name__ == "__main__":
    try:
        for name in PACKAGES:
            find(name)
        stream_module()
    except Missing as reason:
        # The tests that need them say so again.
        print(f"set-up: {reason}", file=sys.stderr)
