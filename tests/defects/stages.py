"""The test stages of a copy of the repository, run until the first failure."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

from tree import Tree

# From quick to slow. Stages of the copy that are not here come after these, but for LEFT_OUT.
ORDER = (
    "rust sans-io",
    "smoke",
    "python sans-io",
    "node sans-io",
    "rust",
    "python",
    "node",
    "http",
    "command",
    "interactive",
    "inspector",
    "hostile",
    "interop",
    "conformance",
    "outage",
    "death",
    "sign-in",
)
# They build programs of their own, or test the tests.
LEFT_OUT = (
    "counts",
    "package",
    "markdown",
    "rustdoc",
    "interop self-test",
    "conformance self-test",
    "runner self-test",
)
# Prints the names and commands of the stages that CI runs.
NAMES = """
import json
try:
    from runner.stages import TEST, TESTS
except ImportError:
    from run import TESTS
    TEST = None
chosen = [stage for stage in TESTS if TEST is None or stage.set <= TEST]
print(json.dumps([[stage.name, [str(word) for word in stage.command]] for stage in chosen]))
"""
# A line that reports a failed test: of cargo, TAP, pytest, and the suites of this project.
FAILED = re.compile(r"test .+ \.\.\. FAILED|\s*not ok (?!.*# (?:TODO|SKIP))|(?:FAILED|ERROR) tests/|  .+ FAILED: ")
# How long a stage may take: this many times as long as without a defect, and these seconds.
FACTOR, SECONDS = 3, 90
TOO_LONG = "it took too long"
TICK = 0.2  # seconds between two looks at a stage's output


class Outcome(NamedTuple):
    """The outcome of a stage: the first test that failed, or None if all passed."""

    failed: str | None
    seconds: float


class Stage(NamedTuple):
    name: str
    # Commands that run one after the other, each with its folder.
    commands: list[tuple[list[str], Path]]

    def run(self, tree: Tree, limit: float | None = None) -> Outcome:
        """Runs the commands until one fails, or the time is over, which is a failure."""
        start = time.monotonic()
        log = tree.target / "defect-logs" / f"{self.name.replace(' ', '-')}.log"
        log.parent.mkdir(exist_ok=True)
        log.write_text("")
        for command, folder in self.commands:
            left = None if limit is None else limit - (time.monotonic() - start)
            if (failed := _run(command, folder, tree.env, left, log)) is not None:
                return Outcome(failed, time.monotonic() - start)
        return Outcome(None, time.monotonic() - start)


def read(tree: Tree) -> dict[str, Stage]:
    """Returns the stages of the copy that CI runs, in the order of ORDER; programs of Rust's tests are built."""
    command = [str(tree.python), "-c", NAMES]
    said = subprocess.run(command, cwd=tree.path / "tests", env=tree.env, stdout=subprocess.PIPE, check=True)
    known = {name: words for name, words in json.loads(said.stdout) if name not in LEFT_OUT}
    names = [name for name in ORDER if name in known] + [name for name in known if name not in ORDER]
    return {name: Stage(name, _until_failure(tree, known[name])) for name in names}


def _until_failure(tree: Tree, command: list[str]) -> list[tuple[list[str], Path]]:
    """Returns a stage's command so that it stops at the first failure."""
    if command[:2] == ["cargo", "test"]:
        return _programs(tree, command)
    if command[0].endswith("/pytest") or command[-1].endswith("tests/http/run.py"):
        return [([*command, "-x"], tree.path)]
    return [(command, tree.path)]


def _programs(tree: Tree, command: list[str]) -> list[tuple[list[str], Path]]:
    """Builds the test programs of `cargo test …` and returns the commands that run them: cargo itself takes seconds."""
    options = command[: command.index("--")] if "--" in command else command
    build = [*options, "--no-run", "--message-format=json"]
    built = subprocess.run(build, cwd=tree.path, env=tree.env, check=False, capture_output=True, text=True)
    if built.returncode != 0:
        raise SystemExit(built.stderr)
    programs = []
    for message in map(json.loads, built.stdout.splitlines()):
        if message.get("executable") and message["profile"]["test"]:
            folder = Path(message["manifest_path"]).parent
            programs.append(
                (["env", f"CARGO_MANIFEST_DIR={folder}", message["executable"], "--test-threads=4"], folder)
            )
    return programs


def _run(command: list[str], folder: Path, env: dict[str, str], left: float | None, log: Path) -> str | None:
    """Runs a command until it reports a failure; returns that line, or None if it succeeds.

    Its output goes into a file: a process that it leaves behind would keep a pipe open.
    """
    with log.open("ab") as output, log.open(errors="replace") as lines:
        lines.seek(0, os.SEEK_END)
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        end = None if left is None else time.monotonic() + left
        begun = ""
        try:
            while True:
                has_ended = process.poll() is not None
                *whole, begun = (begun + lines.read()).split("\n")
                for line in whole:
                    if FAILED.match(line):
                        return line.strip()
                if has_ended:
                    return None if process.returncode == 0 else f"exit status {process.returncode}"
                if end is not None and time.monotonic() > end:
                    return TOO_LONG
                time.sleep(TICK)
        finally:
            _kill(process)
            process.wait()


def _kill(process: subprocess.Popen[str]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
