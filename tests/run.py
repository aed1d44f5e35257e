"""Runs every test there is, stage by stage, and counts them: the last line is `<n> passed, <n> failed[, <n> skipped]`.

Names of stages on the command line choose, and `lint` stands for all stages that only look; without any, everything is
set up and built first. Tests run one stage after the other; what only looks or compiles goes on beside them, on
processor time that they leave. Each stage's output goes to target/test-logs/ and is shown when it fails. In CI a skip
for any reason but a missing folder of shared files fails.
"""

import os
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
LOGS = ROOT / "target/test-logs"
BIN = ROOT / ".venv/bin"
SHARED = ROOT.parent / "shared"
API = Path(os.environ.get("GUDGEON_SHARED_API", SHARED / "api"))


class Stage(NamedTuple):
    name: str
    command: list
    # Of a command that prints no count, its status is one test.
    counted_by: str | None = None
    # What has to be there before it starts; it starts as well where making that failed, and says so itself.
    needs: str | None = None


CARGO_TEST = ["cargo", "test", "--quiet"]
SANS_IO = [*CARGO_TEST, "--package", "gudgeon", "--no-default-features"]
WORKSPACE = [*CARGO_TEST, "--workspace"]
# Tests mostly wait: more go on at once than there are processors.
SHOWN = ["--", "--show-output", "--test-threads=4"]
PYTEST = [BIN / "pytest", "-q"]
PYTEST_AT_ONCE = [*PYTEST, "--numprocesses", "3", "--dist", "worksteal"]
NODE_TEST = ["node", "--test", "--test-reporter=tap", "--test-concurrency=3"]

# Two at once: packages come while something else compiles.
BUILD = Stage("build", ["make", "--no-print-directory", "-j2", "setup", "build"])
# What tests need and is no test, by the names that they need it under.
MADE = [
    # Of the whole workspace, as the tests are, so that it is compiled once.
    Stage("rust examples", ["cargo", "build", "--quiet", "--workspace", "--examples"]),
    Stage("rust tests", [*WORKSPACE, "--no-run"]),
    Stage("sans-io tests", [*SANS_IO, "--no-run"]),
]
LINT = [
    Stage("rustfmt", ["cargo", "fmt", "--all", "--check"]),
    Stage("clippy", ["cargo", "clippy", "--quiet", "--workspace", "--all-targets", "--", "--deny", "warnings"]),
    Stage("ruff", [BIN / "ruff", "check", "."], needs="build"),
    Stage("ruff format", [BIN / "ruff", "format", "--check", "."], needs="build"),
    Stage("mypy", [BIN / "mypy"], needs="build"),
    Stage("pyright", [BIN / "pyright"], needs="build"),
    Stage("tsc", ["npm", "run", "--silent", "check:types"], needs="build"),
]
LOOKS = [
    Stage("sans-io tree", [sys.executable, ROOT / "tests/sans_io.py"]),
    Stage("built once", [sys.executable, ROOT / "tests/built_once.py"]),
    Stage("stubs", [BIN / "python", ROOT / "tests/stubs.py"], needs="build"),
    Stage("api python", [BIN / "python", ROOT / "tests/types/api_python.py", API], "skips", needs="build"),
    Stage("api typescript", [BIN / "python", ROOT / "tests/types/api_typescript.py", API], "skips", needs="build"),
]
TESTS = [
    Stage("http", [BIN / "python", ROOT / "tests/http/run.py"], "pytest"),
    Stage("interop judge", [*PYTEST, "tests/interop"], "pytest"),
    Stage("interop", [BIN / "python", ROOT / "tests/interop/run.py"], "interop"),
    Stage("interactive", [*PYTEST_AT_ONCE, "tests/interactive"], "pytest"),
    Stage("conformance judge", [*PYTEST, "tests/conformance"], "pytest"),
    Stage("conformance", [BIN / "python", ROOT / "tests/conformance/run.py", "--all"], "conformance"),
    Stage("demo", [BIN / "python", ROOT / "tests/demo/run.py"], "demo"),
    Stage("examples", [*PYTEST_AT_ONCE, "tests/examples", "tests/demo"], "pytest"),
    Stage("examples node", [*NODE_TEST, *sorted((ROOT / "tests/examples").glob("*.test.mjs"))], "tap"),
    Stage("markdown", [*PYTEST, "tests/markdown"], "pytest", needs="rust examples"),
    Stage("python", PYTEST_AT_ONCE, "pytest", needs="rust examples"),
    Stage("node", [*NODE_TEST, *sorted((ROOT / "tests/node").glob("*.test.mjs"))], "tap", needs="rust examples"),
    Stage("rust sans-io", [*SANS_IO, *SHOWN], "cargo", needs="sans-io tests"),
    Stage("rust", [*WORKSPACE, *SHOWN], "cargo", needs="rust tests"),
]
PATTERNS = {
    "cargo": r"test result: \w+\. (?P<passed>\d+) passed; (?P<failed>\d+) failed; (?P<skipped>\d+) ignored",
    "pytest": r"^(?=.*\d (?:passed|failed|error|skipped))(?:(?P<failed>\d+) failed,? ?)?(?:(?P<passed>\d+) passed,? ?)?"
    r"(?:(?P<skipped>\d+) skipped,? ?)?(?:\d+ warnings?,? ?)?(?:(?P<errors>\d+) errors? ?)?in ",
    "tap": r"^# pass (?P<passed>\d+)$|^# fail (?P<failed>\d+)$"
    r"|^# skipped (?P<skipped>\d+)$|^# cancelled (?P<errors>\d+)$",
    "interop": r"^interop: (?P<passed>\d+) passed, (?P<failed>\d+) failed",
    "conformance": r"^conformance: (?P<passed>\d+) passed, (?P<failed>\d+) failed",
    "demo": r"^demo: (?P<passed>\d+) pairs, \d+ calls, (?P<failed>\d+) failed",
    "skips": r"$^",
}
# How TAP, cargo and the suites of this project begin what they say of one that failed; pytest says it at its end.
FAILURE = re.compile(r"not ok |failures:$|FAILED? |  .+ FAILED")
SKIPPED = re.compile(r"^skipped: (.+)$", re.M)
ALLOWED_SKIPS = ("spec schemas not found", "shared api not found")


def main(chosen):
    known = {it.name for it in [*LINT, *LOOKS, *TESTS]} | {"lint"}
    if unknown := set(chosen) - known:
        sys.exit(f"no such stage: {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}")
    LOGS.mkdir(parents=True, exist_ok=True)
    run = Run(chosen)
    with ThreadPoolExecutor(1) as pool:
        aside = pool.submit(run.aside)
        try:
            if not chosen:
                run.make(BUILD)
            run.test()
            aside.result()
        finally:
            run.ends = True
    return run.sum_up()


class Run:
    """The chosen stages, and what they came to."""

    def __init__(self, chosen):
        def those(stages, group=None):
            return [it for it in stages if not chosen or it.name in chosen or group in chosen]

        self.testing = those(TESTS)
        # Last what looks at something that is built meanwhile.
        self.looking = sorted(those(LINT, "lint") + those(LOOKS), key=lambda it: it.needs is not None)
        needed = {it.needs for it in self.testing}
        self.making = [it for it in MADE if it.name in needed]
        self.made = {it.name: threading.Event() for it in [BUILD, *MADE]}
        if chosen:
            self.made[BUILD.name].set()
        # Who chose waits for it.
        self.idly = not chosen
        self.ends = False
        self.passed = self.failed = 0
        self.skips = []
        self.telling = threading.Lock()

    def test(self):
        for stage in self.testing:
            if not self.ends:
                self.run(stage)

    def aside(self):
        """What nobody waits for yet."""
        for stage in [*self.making, *self.looking]:
            if self.ends:
                return
            (self.make if stage in self.making else self.run)(stage, self.idly)

    def make(self, stage, idly=False):
        try:
            status, text, took = output_of(stage, idly)
            with self.telling:
                print(f"{stage.name:18}{'failed' if status else 'made'}  ({took:.0f} s)", flush=True)
                if status:
                    print(told(text), flush=True)
                    self.failed += 1
                    self.ends |= stage is BUILD
        finally:
            self.made[stage.name].set()

    def run(self, stage, idly=False):
        if stage.needs:
            self.made[stage.needs].wait()
            if self.ends:
                return
        status, text, took = output_of(stage, idly)
        passed, failed, reasons = count(text, status, stage.counted_by)
        with self.telling:
            skipped = f", {len(reasons)} skipped" if reasons else ""
            print(f"{stage.name:18}{passed:5} passed, {failed} failed{skipped}  ({took:.0f} s)", flush=True)
            if failed or status:
                print(told(text), flush=True)
                failed = max(failed, 1)
            self.passed, self.failed = self.passed + passed, self.failed + failed
            self.skips += [(stage.name, reason) for reason in reasons]

    def sum_up(self):
        """The exit status."""
        for name, reason in self.skips:
            print(f"skipped in {name}: {reason}")
            if os.environ.get("CI") and not reason.startswith(ALLOWED_SKIPS):
                print("  in CI only a missing folder of shared files may skip a test: counted as failed")
                self.failed += 1
        skipped = f", {len(self.skips)} skipped" if self.skips else ""
        print(f"{self.passed} passed, {self.failed} failed{skipped}")
        return 1 if self.failed else 0


def output_of(stage, idly):
    """The exit status of a stage's command, what it wrote, and how many seconds it took."""
    log = LOGS / f"{stage.name.replace(' ', '-')}.log"
    command = [*(["nice", "-n", "19"] if idly else []), *stage.command]
    start = time.monotonic()
    with log.open("wb") as output:
        status = subprocess.run(
            [str(it) for it in command],
            cwd=ROOT,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        ).returncode
    return status, log.read_text(errors="replace"), time.monotonic() - start


def told(text):
    """The first failures with what they say, and the end of the output."""
    lines = text.splitlines()
    places = [at for at, line in enumerate(lines[:-60]) if FAILURE.match(line)]
    return "\n".join([line for at in places[:5] for line in lines[at : at + 30]] + lines[-60:])


def count(text, status, counted_by):
    """How many tests passed and failed, and why others did not run."""
    reasons = SKIPPED.findall(text)
    if counted_by is None:
        return (0, 1, reasons) if status else (1, 0, reasons)
    totals = {"passed": 0, "failed": 0, "skipped": 0, "errors": 0}
    for found in re.finditer(PATTERNS[counted_by], text, re.M):
        for key, value in found.groupdict().items():
            totals[key] += int(value or 0)
    if counted_by == "skips":
        return (0 if reasons or status else 1), (1 if status else 0), reasons
    # A Rust test that says that it skipped has passed in cargo's eyes.
    told = len(reasons) if counted_by == "cargo" else 0
    reasons += ["reason not told"] * (totals["skipped"] - (0 if counted_by == "cargo" else len(reasons)))
    failed = totals["failed"] + totals["errors"]
    if not totals["passed"] and not failed:
        failed = 1  # a stage in which nothing ran did not do its job
    return totals["passed"] - told, failed, reasons


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
