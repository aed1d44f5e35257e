"""Runs every test there is, stage by stage, and counts them: the last line is `<n> passed, <n> failed[, <n> skipped]`.

Names of stages on the command line choose; `lint` stands for all stages that only look. Each stage's output goes to
target/test-logs/ and is shown when it fails. In CI a skip for any reason but a missing folder of shared files fails.
"""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOGS = ROOT / "target/test-logs"
BIN = ROOT / ".venv/bin"
SHARED = ROOT.parent / "shared"
API = Path(os.environ.get("GUDGEON_SHARED_API", SHARED / "api"))

# Stages are (name, command, how to count); a command that prints no count is one test.
LINT = [
    ("rustfmt", ["cargo", "fmt", "--all", "--check"], None),
    ("clippy", ["cargo", "clippy", "--quiet", "--workspace", "--all-targets", "--", "--deny", "warnings"], None),
    ("ruff", [BIN / "ruff", "check", "."], None),
    ("ruff format", [BIN / "ruff", "format", "--check", "."], None),
    ("mypy", [BIN / "mypy"], None),
    ("pyright", [BIN / "pyright"], None),
    ("tsc", ["npm", "run", "--silent", "check:types"], None),
]
CORE = ["cargo", "test", "--quiet", "--package", "gudgeon"]
TESTS = [
    ("sans-io tree", [sys.executable, ROOT / "tests/sans_io.py"], None),
    ("rust sans-io", [*CORE, "--no-default-features", "--", "--show-output"], "cargo"),
    ("rust", ["cargo", "test", "--quiet", "--workspace", "--", "--show-output"], "cargo"),
    ("stubs", [BIN / "python", ROOT / "tests/stubs.py"], None),
    ("python", [BIN / "pytest", "-q"], "pytest"),
    ("node", ["node", "--test", "--test-reporter=tap", *sorted((ROOT / "tests/node").glob("*.test.mjs"))], "tap"),
    ("examples", [BIN / "pytest", "-q", "tests/examples", "tests/demo"], "pytest"),
    (
        "examples node",
        ["node", "--test", "--test-reporter=tap", *sorted((ROOT / "tests/examples").glob("*.test.mjs"))],
        "tap",
    ),
    ("api python", [BIN / "python", ROOT / "tests/types/api_python.py", API], "skips"),
    ("api typescript", [BIN / "python", ROOT / "tests/types/api_typescript.py", API], "skips"),
    ("interop judge", [BIN / "pytest", "-q", "tests/interop"], "pytest"),
    ("interop", [sys.executable, ROOT / "tests/interop/run.py"], "interop"),
    ("interactive", [BIN / "pytest", "-q", "tests/interactive"], "pytest"),
    ("http", [BIN / "python", ROOT / "tests/http/run.py"], "pytest"),
    ("conformance judge", [BIN / "pytest", "-q", "tests/conformance"], "pytest"),
    ("conformance", [BIN / "python", ROOT / "tests/conformance/run.py"], "conformance"),
    ("demo", [BIN / "python", ROOT / "tests/demo/run.py"], "demo"),
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
    stages = [*LINT, *TESTS]
    if chosen == ["lint"]:
        stages = LINT
    elif chosen:
        stages = [it for it in stages if it[0] in chosen]
    LOGS.mkdir(parents=True, exist_ok=True)
    passed = failed = 0
    skips = []
    for name, command, counted_by in stages:
        done, broke, reasons = run_stage(name, command, counted_by)
        passed, failed = passed + done, failed + broke
        skips += [(name, reason) for reason in reasons]
    for name, reason in skips:
        print(f"skipped in {name}: {reason}")
        if os.environ.get("CI") and not reason.startswith(ALLOWED_SKIPS):
            print("  in CI only a missing folder of shared files may skip a test: counted as failed")
            failed += 1
    print(f"{passed} passed, {failed} failed" + (f", {len(skips)} skipped" if skips else ""))
    return 1 if failed else 0


def run_stage(name, command, counted_by):
    print(f"{name:16}", end="", flush=True)
    log = LOGS / f"{name.replace(' ', '-')}.log"
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
    text = log.read_text(errors="replace")
    passed, failed, reasons = count(text, status, counted_by)
    took = time.monotonic() - start
    print(
        f"{passed:5} passed, {failed} failed" + (f", {len(reasons)} skipped" if reasons else "") + f"  ({took:.0f} s)",
        flush=True,
    )
    if failed or status:
        print(told(text))
        failed = max(failed, 1)
    return passed, failed, reasons


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
