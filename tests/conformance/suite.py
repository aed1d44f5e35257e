"""Runs the official suite."""

from __future__ import annotations

import subprocess
from pathlib import Path

PACKAGES = Path(__file__).resolve().parent / "referee/node_modules"
# The suite needs Node 22, servers and clients run on any from 20 on.
COMMAND = [PACKAGES / "node/bin/node", PACKAGES / "@modelcontextprotocol/conformance/dist/index.js"]
LEGACY, MODERN = SETS = ("2025-11-25", "2026-07-28")
SECONDS = 300


class Broken(Exception):
    """A server or the suite failed to start or to finish."""


def is_installed() -> bool:
    return all(path.exists() for path in COMMAND)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the suite. The results of a server are in the files that it writes, not in its exit status."""
    command = [str(part) for part in (*COMMAND, *arguments)]
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        raise Broken(f"the suite took longer than {SECONDS} s") from None
    if done.returncode not in (0, 1):
        raise Broken(f"the suite ended with status {done.returncode}: {done.stderr.strip()[-400:]}")
    return done
