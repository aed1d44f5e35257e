"""Shared code of the benchmarks: servers, driver, tables. All numbers are medians of interleaved runs."""

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SERVERS = ROOT / "tests/bench/servers"
OURS_PYTHON = ROOT / ".venv/bin/python"

sys.path.insert(0, str(ROOT / "tests/interop"))
import peers  # noqa: E402

COMMANDS = {
    "mcp 2": [ROOT / ".interop/py2/bin/python", SERVERS / "mcp2_sync.py"],
    "python sync": [OURS_PYTHON, SERVERS / "ours_sync.py"],
    "python async": [OURS_PYTHON, SERVERS / "ours_async.py"],
    "ts 2": ["node", SERVERS / "ts2.mjs"],
    "node": ["node", SERVERS / "ours_node.mjs"],
}
broken = {}  # errors by server


class Broken(Exception):
    """A server or client failed to run."""


def remark(name):
    """Returns the text that replaces a server's numbers in a table."""
    return "broke, see below" if name in broken else "not built: run make build"


def set_up():
    """Installs the official SDKs and the driver; returns the names of the runnable servers."""
    peers.set_up("py2", "node")
    # With the package that asks for all features, what `make build` compiled is not compiled again.
    packages = ["--package", "shared-features", "--package", "bench-driver"]
    command = ["cargo", "build", "--release", "--quiet", *packages, "--target-dir", ROOT / "target"]
    if subprocess.run(command, check=False, cwd=ROOT).returncode:
        raise Broken("the driver was not built")
    here = {"mcp 2", "ts 2"}
    if python_is_built():
        here |= {"python sync", "python async"}
    if _runs(["node", "--input-type=module", "--eval", 'import "gudgeon"']):
        here.add("node")
    return here


def python_is_built():
    return os.access(OURS_PYTHON, os.X_OK) and _runs([OURS_PYTHON, "-c", "import gudgeon"])


def _runs(command):
    return subprocess.run(command, check=False, cwd=ROOT, capture_output=True, timeout=60).returncode == 0


def drive(server, *options):
    """Runs the driver against a server."""
    command = [ROOT / "target/release/bench-driver", *options, "--stderr", "--", *COMMANDS[server]]
    try:
        done = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        raise Broken(f"no end after 120 s with {' '.join(options)}") from None
    if done.returncode:
        raise Broken("\n".join(done.stderr.strip().splitlines()[-20:]))
    return json.loads(done.stdout)


def medians(runs):
    """Returns the medians of the numbers of several runs; None if a run lacks a number."""
    first = runs[0]
    if isinstance(first, dict):
        return {key: medians([run[key] for run in runs]) for key in first}
    return None if None in runs else statistics.median(runs)


def take_turns(jobs, rounds):
    """Runs every server's job once per round, so that load changes affect all of them; returns medians by server.

    A failing server is skipped from then on."""
    runs = {name: [] for name in jobs}
    for _ in range(rounds):
        for name, job in jobs.items():
            if name in broken:
                continue
            try:
                runs[name].append(job())
            except Broken as why:
                broken[name] = str(why)
    return {name: medians(of) for name, of in runs.items() if name not in broken}


def print_table(head, rows):
    table = [head, *([str(cell) for cell in row] for row in rows)]
    widths = [max((len(row[at]) for row in table if at < len(row)), default=0) for at in range(len(head))]
    for row in table:
        first, *rest = row
        cells = [first.ljust(widths[0])]
        # A row with only a remark is printed outside the table.
        cells += (
            rest if len(row) < len(head) else [cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True)]
        )
        print("  ".join(cells).rstrip())
    print()


def print_goal(what, value, met, unit=""):
    """Prints whether a goal is met. It is not enforced, because the machine may be busy."""
    shown = "no figure" if value is None else f"{value:.1f}{unit}, {'met' if met(value) else 'UNMET'}"
    print(f"goal: {what}: {shown}")


def ratio(one, other):
    return None if one is None or other is None or not other else one / other


def main(bench):
    try:
        bench()
    except Broken as why:
        sys.exit(f"bench: {why}")
    if broken:
        sys.exit("\n".join(f"{name} broke: {why}" for name, why in broken.items()))
