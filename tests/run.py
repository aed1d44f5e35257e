"""Runs all tests, stage by stage; the last line is `<n> passed, <n> failed[, <n> skipped]`.

Arguments select stages by name; `lint` selects all static checks. Without arguments everything is set up and built
first. Test stages run one after the other; static checks and compilation run beside them at low priority. Each stage's
output is written to target/test-logs/ and shown if the stage fails. In CI, a skipped test counts as a failure unless
the reason is a missing folder of shared files, or that instructions were counted with other versions of compilers.
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
    # The pattern that counts the tests in the output; without it the exit status counts as one test.
    counted_by: str | None = None
    # The preparation that must end before the stage starts. If it fails, the stage runs anyway and reports the error.
    needs: str | None = None


CARGO_TEST = ["cargo", "test", "--quiet"]
SANS_IO = [*CARGO_TEST, "--package", "gudgeon", "--no-default-features", "--features", "bindings"]
WORKSPACE = [*CARGO_TEST, "--workspace"]
CLIPPY = ["cargo", "clippy", "--quiet"]
WARNINGS = ["--deny", "warnings"]
NO_UNIX_SOCKETS = ["--cfg", "no_unix_sockets", *WARNINGS]
# Tests mostly wait, so more of them run concurrently than there are processors.
SHOWN = ["--", "--show-output", "--test-threads=4"]
PYTEST = [BIN / "pytest", "-q"]
PYTEST_PARALLEL = [*PYTEST, "--numprocesses", "3", "--dist", "worksteal"]
NODE_TEST = ["node", "--test", "--test-reporter=tap", "--test-concurrency=3"]

# Two jobs, so that packages are downloaded while something else compiles.
BUILD = Stage("build", ["make", "--no-print-directory", "-j2", "setup", "build"])
# Preparations for the stages that name them in `needs`.
PREPARATIONS = [
    # For the whole workspace, like the tests, so that everything is compiled once.
    Stage("rust examples", ["cargo", "build", "--quiet", "--workspace", "--examples"]),
    Stage("rust tests", [*WORKSPACE, "--no-run"]),
    Stage("sans-io tests", [*SANS_IO, "--no-run"]),
    Stage("counted servers", ["make", "--no-print-directory", "build-counts"]),
]
LINT = [
    Stage("rustfmt", ["cargo", "fmt", "--all", "--check"]),
    # With the keyring, which the published command is compiled without.
    Stage("clippy", [*CLIPPY, "--workspace", "--all-targets", "--features", "gudgeon-cli/keyring", "--", *WARNINGS]),
    # The command as on Windows, where it has no background process, and as published, without the keyring. With the
    # package that asks for all features, the dependencies are those that were checked already.
    Stage(
        "clippy without unix sockets",
        [*CLIPPY, "--package", "gudgeon-cli", "--package", "shared-features", "--no-deps", "--", *NO_UNIX_SOCKETS],
    ),
    Stage("ruff", [BIN / "ruff", "check", "."], needs="build"),
    Stage("ruff format", [BIN / "ruff", "format", "--check", "."], needs="build"),
    Stage("mypy", [BIN / "mypy"], needs="build"),
    Stage("pyright", [BIN / "pyright"], needs="build"),
    Stage("tsc", ["npm", "run", "--silent", "check:types"], needs="build"),
]
CHECKS = [
    Stage("sans-io tree", [sys.executable, ROOT / "tests/sans_io.py"]),
    Stage("public items", [sys.executable, ROOT / "tests/public_items.py"]),
    Stage("lock files", [sys.executable, ROOT / "tests/lock_files.py"]),
    Stage("unsafe code", [sys.executable, ROOT / "tests/unsafe_code.py"]),
    Stage("built once", [sys.executable, ROOT / "tests/built_once.py"]),
    Stage("stubs", [BIN / "python", ROOT / "tests/stubs.py"], needs="build"),
    Stage("api python", [BIN / "python", ROOT / "tests/types/api_python.py", API], "skips", needs="build"),
    Stage("api typescript", [BIN / "python", ROOT / "tests/types/api_typescript.py", API], "skips", needs="build"),
]
TESTS = [
    Stage("http", [BIN / "python", ROOT / "tests/http/run.py"], "pytest"),
    Stage("interop self-test", [*PYTEST, "tests/interop"], "pytest"),
    Stage("interop", [BIN / "python", ROOT / "tests/interop/run.py"], "interop"),
    Stage("interactive", [*PYTEST_PARALLEL, "tests/interactive"], "pytest"),
    Stage("conformance self-test", [*PYTEST, "tests/conformance"], "pytest"),
    Stage("conformance", [BIN / "python", ROOT / "tests/conformance/run.py", "--all"], "conformance"),
    Stage("demo", [BIN / "python", ROOT / "tests/demo/run.py"], "demo"),
    Stage("examples", [*PYTEST_PARALLEL, "tests/examples", "tests/demo"], "pytest"),
    Stage("examples node", [*NODE_TEST, *sorted((ROOT / "tests/examples").glob("*.test.mjs"))], "tap"),
    Stage("death", [BIN / "python", ROOT / "tests/death/run.py"], "death", needs="rust examples"),
    Stage("outage", [BIN / "python", ROOT / "tests/outage/run.py"], "outage"),
    Stage("command", [*PYTEST_PARALLEL, "tests/cli"], "pytest"),
    Stage("inspector", [*PYTEST_PARALLEL, "tests/inspector"], "pytest"),
    Stage("sign-in", [*PYTEST, "tests/e2e_sign_in"], "pytest"),
    Stage("markdown", [*PYTEST, "tests/markdown"], "pytest", needs="rust examples"),
    Stage("python", PYTEST_PARALLEL, "pytest", needs="rust examples"),
    Stage("node", [*NODE_TEST, *sorted((ROOT / "tests/node").glob("*.test.mjs"))], "tap", needs="rust examples"),
    Stage("rust sans-io", [*SANS_IO, *SHOWN], "cargo", needs="sans-io tests"),
    Stage("rust", [*WORKSPACE, *SHOWN], "cargo", needs="rust tests"),
    # It measures how long other clients wait, so it comes when the background stages have usually ended.
    Stage("hostile", [BIN / "python", ROOT / "tests/hostile/run.py"], "hostile"),
    Stage("counts", [BIN / "python", ROOT / "tests/counts/run.py"], "counts", needs="counted servers"),
    # Last and not in the background: its builds take both processors for minutes, which measuring stages would notice.
    Stage("package", [BIN / "python", ROOT / "tests/package/run.py"], "pytest"),
]
PATTERNS = {
    "cargo": r"test result: \w+\. (?P<passed>\d+) passed; (?P<failed>\d+) failed; (?P<skipped>\d+) ignored",
    "pytest": r"^(?=.*\d (?:passed|failed|error|skipped))(?:(?P<failed>\d+) failed,? ?)?(?:(?P<passed>\d+) passed,? ?)?"
    r"(?:(?P<skipped>\d+) skipped,? ?)?(?:\d+ warnings?,? ?)?(?:(?P<errors>\d+) errors? ?)?in ",
    "tap": r"^# pass (?P<passed>\d+)$|^# fail (?P<failed>\d+)$"
    r"|^# skipped (?P<skipped>\d+)$|^# cancelled (?P<errors>\d+)$",
    "interop": r"^interop: (?P<passed>\d+) passed, (?P<failed>\d+) failed",
    "conformance": r"^conformance: (?P<passed>\d+) passed, (?P<failed>\d+) failed",
    "death": r"^death: (?P<passed>\d+) passed, (?P<failed>\d+) failed",
    "outage": r"^outage: (?P<passed>\d+) passed, (?P<failed>\d+) failed",
    "hostile": r"^hostile: (?P<passed>\d+) passed, (?P<failed>\d+) failed",
    "counts": r"^counts: (?P<passed>\d+) passed, (?P<failed>\d+) failed(?:, (?P<skipped>\d+) skipped)?",
    "demo": r"^demo: (?P<passed>\d+) pairs, \d+ calls, (?P<failed>\d+) failed",
    "skips": r"$^",
}
# The beginning of a failure report of TAP, cargo and this project's suites; pytest reports failures at the end.
FAILURE = re.compile(r"not ok |failures:$|FAILED? |  .+ FAILED")
SKIPPED = re.compile(r"^skipped: (.+)$", re.M)
ALLOWED_SKIPS = ("spec schemas not found", "shared api not found", "other versions")


def main(chosen):
    known = {it.name for it in [*LINT, *CHECKS, *TESTS]} | {"lint"}
    if unknown := set(chosen) - known:
        sys.exit(f"unknown stage: {', '.join(sorted(unknown))}; the stages are {', '.join(sorted(known))}")
    LOGS.mkdir(parents=True, exist_ok=True)
    run = Run(chosen)
    with ThreadPoolExecutor(1) as pool:
        background = pool.submit(run.background)
        try:
            if not chosen:
                run.prepare(BUILD)
            run.test()
            background.result()
        finally:
            run.ends = True
    return run.sum_up()


class Run:
    """The selected stages and their results."""

    def __init__(self, chosen):
        def selected(stages, group=None):
            return [it for it in stages if not chosen or it.name in chosen or group in chosen]

        self.tests = selected(TESTS)
        # Checks of build results come last.
        self.checks = sorted(selected(LINT, "lint") + selected(CHECKS), key=lambda it: it.needs is not None)
        needed = {it.needs for it in self.tests}
        self.preparations = [it for it in PREPARATIONS if it.name in needed]
        self.prepared = {it.name: threading.Event() for it in [BUILD, *PREPARATIONS]}
        if chosen:
            self.prepared[BUILD.name].set()
        # With selected stages the user waits for the checks, so these run at normal priority.
        self.low_priority = not chosen
        self.ends = False
        self.passed = self.failed = 0
        self.failures, self.skips = [], []
        self.print_lock = threading.Lock()

    def test(self):
        for stage in self.tests:
            if not self.ends:
                self.run(stage)

    def background(self):
        """Runs preparations and checks while the test stages run."""
        for stage in [*self.preparations, *self.checks]:
            if self.ends:
                return
            (self.prepare if stage in self.preparations else self.run)(stage, self.low_priority)

    def prepare(self, stage, low_priority=False):
        try:
            status, text, took = output_of(stage, low_priority)
            with self.print_lock:
                print(f"{stage.name:22}{'failed' if status else 'done'}  ({took})", flush=True)
                if status:
                    print(excerpt(text), flush=True)
                    self.failed += 1
                    self.failures.append((stage.name, text))
                    self.ends |= stage is BUILD
        finally:
            self.prepared[stage.name].set()

    def run(self, stage, low_priority=False):
        if stage.needs:
            self.prepared[stage.needs].wait()
            if self.ends:
                return
        status, text, took = output_of(stage, low_priority)
        passed, failed, reasons = count(text, status, stage.counted_by)
        with self.print_lock:
            skipped = f", {len(reasons)} skipped" if reasons else ""
            print(f"{stage.name:22}{passed:5} passed, {failed} failed{skipped}  ({took})", flush=True)
            if failed or status:
                print(excerpt(text), flush=True)
                failed = max(failed, 1)
                self.failures.append((stage.name, text))
            self.passed, self.failed = self.passed + passed, self.failed + failed
            self.skips += [(stage.name, reason) for reason in reasons]

    def sum_up(self):
        """Prints failures again, shorter, then the totals. Returns the exit status."""
        for name, text in self.failures:
            print(f"failed: {name}", *excerpt(text).splitlines()[-12:], sep="\n  ")
        for name, reason in self.skips:
            print(f"skipped in {name}: {reason}")
            if os.environ.get("CI") and not reason.startswith(ALLOWED_SKIPS):
                print("  counted as failed: in CI, this is no reason to skip a test")
                self.failed += 1
        skipped = f", {len(self.skips)} skipped" if self.skips else ""
        print(f"{self.passed} passed, {self.failed} failed{skipped}")
        return 1 if self.failed else 0


def output_of(stage, low_priority):
    """Runs a stage's command; returns its exit status, its output, and the elapsed and the CPU time as a text."""
    log = LOGS / f"{stage.name.replace(' ', '-')}.log"
    command = [*(["nice", "-n", "19"] if low_priority else []), *stage.command]
    start = time.monotonic()
    with log.open("wb") as output:
        words = [str(it) for it in command]
        with subprocess.Popen(
            words, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        ) as process:
            # Its usage includes that of the processes that it has waited for.
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
    took = f"{time.monotonic() - start:.0f} s, CPU {usage.ru_utime + usage.ru_stime:.0f} s"
    return process.returncode, log.read_text(errors="replace"), took


def excerpt(text):
    """Returns the first failure reports and the end of the output."""
    lines = text.splitlines()
    places = [at for at, line in enumerate(lines[:-60]) if FAILURE.match(line)]
    return "\n".join([line for at in places[:5] for line in lines[at : at + 30]] + lines[-60:])


def count(text, status, counted_by):
    """Returns the numbers of passed and failed tests and the reasons for skipped ones."""
    reasons = SKIPPED.findall(text)
    if counted_by is None:
        return (0, 1, reasons) if status else (1, 0, reasons)
    totals = {"passed": 0, "failed": 0, "skipped": 0, "errors": 0}
    for found in re.finditer(PATTERNS[counted_by], text, re.M):
        for key, value in found.groupdict().items():
            totals[key] += int(value or 0)
    if counted_by == "skips":
        return (0 if reasons or status else 1), (1 if status else 0), reasons
    # cargo counts a Rust test that prints a reason for being skipped as passed.
    skipped = len(reasons) if counted_by == "cargo" else 0
    reasons += ["no reason given"] * (totals["skipped"] - (0 if counted_by == "cargo" else len(reasons)))
    failed = totals["failed"] + totals["errors"]
    if not totals["passed"] and not failed and not reasons:
        failed = 1  # a stage that ran no test, and has no reason, has failed
    return totals["passed"] - skipped, failed, reasons


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
