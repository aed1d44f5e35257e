"""The versions of everything that is counted along with this project's code."""

import platform
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import valgrind
from cells import Cell, node

# Those that matter to the cells of one language only.
OWN = ("python", "node")


def versions() -> dict[str, str]:
    return {
        "libc": "-".join(platform.libc_ver()),
        "machine": platform.machine() + (" with AVX2" if _has_avx2() else ""),
        "node": _output(node(), "--version"),
        "python": platform.python_version(),
        "rustc": _output("rustc", "--version").split()[1],
        "valgrind": _output(str(valgrind.find().program), "--version"),
    }


def differences(cell: Cell, committed: Mapping[str, str], here: Mapping[str, str]) -> str:
    """Returns the committed versions, and those of this machine, that differ and matter to a cell; empty if none do."""
    names = [name for name in here if name not in OWN or name == cell.language]
    differing = [name for name in names if committed.get(name) != here[name]]
    return ", ".join(f"{name} {committed.get(name)} instead of {here[name]}" for name in differing)


def _has_avx2() -> bool:
    """Returns whether the functions of libc for AVX2 run; those for AVX-512 never do under valgrind."""
    info = Path("/proc/cpuinfo")
    return info.is_file() and bool(re.search(r"^flags.* avx2\b", info.read_text(), re.M))


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
