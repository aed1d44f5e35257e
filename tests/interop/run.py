"""Runs official clients against our servers and our clients against official and published servers; prints a matrix.

    python3 tests/interop/run.py [--only TEXT]… [--official] [--details]

`--only` keeps the pairs whose `client → server` line contains the text; `--official` pairs official clients with
official and published servers instead, which shows that this harness judges rightly; `--details` prints each failed
check.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import expect
import peers
import processes
from servers.pixel import PIXEL

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SECONDS = 30  # for one client program, its server included
AT_ONCE = 2

clients = json.loads((HERE / "clients.json").read_text())
servers = json.loads((HERE / "servers.json").read_text())
suites = json.loads((HERE / "suites.json").read_text())


class Pair:
    """One client program in one era against one server."""

    def __init__(self, client_side, client, era, server_side, server):
        self.era = era
        self.row = f"{client_side} {client}, {era}"
        self.column = f"{server_side} {server}"
        self.program = clients[client_side][client]["command"]
        self.server = servers[server_side][server]
        self.strict = ["our_client"] * (client_side == "ours") + ["our_server"] * (server_side == "ours")
        modern = self.server["modern"] and era == "auto"
        self.revision = "2026-07-28" if modern else "2025-11-25"
        actual = "modern" if modern else "legacy"
        lacks = self.server.get("lacks", {}).get(actual, [])
        self.steps = [
            step
            for step in suites[self.server["suite"]]
            # `client.ping()` of ours works in every era.
            if (client_side == "ours" or actual in step.get("eras", [actual])) and step["check"] not in lacks
        ]
        self.failures = {}

    @property
    def title(self):
        return f"{self.row} → {self.column}"

    def run(self):
        missing = next((path for path in (self.program[0], self.server["command"][0]) if not _runs(path)), None)
        if missing:
            self._fail_all(f"{missing} is not there: run `make build`")
            return self
        with tempfile.TemporaryDirectory(prefix="interop-") as folder:
            self._run_in(Path(folder).resolve())
        return self

    def _run_in(self, folder):
        data = folder / "data"
        data.mkdir()
        (data / "pixel.png").write_bytes(PIXEL)
        fill = {"dir": str(data), "revision": self.revision}
        steps, command = expect.fill(self.steps, fill), expect.fill(self.server["command"], fill)
        (folder / "steps.json").write_text(json.dumps(steps))
        status, out, err = _run([*self.program, self.era, str(folder / "steps.json"), *command])
        lines = {}
        for line in filter(str.strip, out.splitlines()):
            try:
                lines[json.loads(line)["check"]] = json.loads(line)["got"]
            except (ValueError, KeyError, TypeError):
                self.failures["output"] = f"not a line of ours: {line[:200]}"
        last_words = _last_words(err)
        for step in steps:
            if step["check"] not in lines:
                self.failures[step["check"]] = f"no answer ({status}): {last_words}"
                continue
            for key in ("expect", *self.strict):
                why = key in step and expect.differs(step[key], lines[step["check"]])
                if why:
                    self.failures[step["check"]] = why
        if not self.failures and status != "exit 0":
            self.failures["exit"] = f"{status} after the last check: {last_words}"

    def _fail_all(self, why):
        self.failures = {step["check"]: why for step in self.steps}

    def report(self, details):
        """A line for each failure; a few only unless details are wanted, and one when all failed of the same."""
        whys = list(self.failures.items())
        if len(whys) > 1 and len(set(self.failures.values())) == 1:
            return [f"all {len(whys)} checks: {whys[0][1]}"]
        lines = [f"{check}: {why}" for check, why in whys]
        return lines if details or len(lines) <= 3 else [*lines[:2], f"… {len(lines) - 2} more (--details)"]

    @property
    def total(self):
        return len(self.steps) + len(self.failures.keys() & {"exit", "output"})

    @property
    def cell(self):
        failed = list(self.failures)
        if not failed:
            return f"{self.total}/{self.total}"
        if len(failed) == self.total:
            return f"0/{self.total}"
        return f"{self.total - len(failed)}/{self.total} not {', '.join(failed[:3])}{', …' * (len(failed) > 3)}"


def _runs(program):
    return shutil.which(program) or os.access(ROOT / program, os.X_OK)


def _run(command):
    """Runs one client program; what outlives it or hangs is killed and told."""
    pipe = subprocess.PIPE
    child = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe)
    try:
        # Servers inherit stderr, so this also waits for a server that outlives its client.
        out, err = child.communicate(timeout=SECONDS)
        status = f"exit {child.returncode}"
    except subprocess.TimeoutExpired:
        ended = child.poll() is not None
        status = f"exit {child.returncode}, but its server lives on" if ended else f"killed after {SECONDS} s"
        for pid in processes.under(child.pid) | processes.with_stderr(child.stderr):
            processes.kill(pid)
        out, err = child.communicate()
    return status, out.decode(errors="replace"), err.decode(errors="replace")


def _last_words(err):
    """The line that names the error, where there is one, else the last line."""
    lines = [line.strip() for line in err.splitlines() if line.strip()]
    errors = [line for line in lines if "rror:" in line or "Error" in line]
    return next(iter([*errors[-1:], *lines[-1:]]), "")[:400]


def pairs(official):
    sides = (
        [("official", "official"), ("official", "published")]
        if official
        else [("official", "ours"), ("ours", "published"), ("ours", "official")]
    )
    for client_side, server_side in sides:
        for client, program in clients[client_side].items():
            for era in program["eras"]:
                for server in servers[server_side]:
                    yield Pair(client_side, client, era, server_side, server)


def print_matrix(done):
    for columns in _groups(done):
        rows = list(dict.fromkeys(pair.row for pair in done if pair.column in columns))
        cells = {(pair.row, pair.column): pair.cell for pair in done}
        table = [["client", *columns]] + [[row, *(cells.get((row, column), "") for column in columns)] for row in rows]
        widths = [max(len(line[at]) for line in table) for at in range(len(columns) + 1)]
        for line in table:
            print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())
        print()


def _groups(done):
    """One table for each side of the servers: ours, official, published."""
    groups = {}
    for pair in done:
        groups.setdefault(pair.column.split()[0], {})[pair.column] = None
    return [list(columns) for columns in groups.values()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", default=[], metavar="TEXT")
    parser.add_argument("--official", action="store_true")
    parser.add_argument("--details", action="store_true")
    options = parser.parse_args()
    peers.set_up()
    chosen = [pair for pair in pairs(options.official) if all(text in pair.title for text in options.only)]
    if not chosen:
        sys.exit("no pair of client and server contains what --only says")
    with ThreadPoolExecutor(AT_ONCE) as pool:
        done = list(pool.map(Pair.run, chosen))
    print_matrix(done)
    failed = sum(len(pair.failures) for pair in done)
    for pair in done:
        for line in pair.report(options.details):
            print(f"{pair.title}: {line}")
    print(f"interop: {sum(pair.total for pair in done) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
