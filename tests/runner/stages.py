"""The stages of the tests, and the preparations that they need."""

import os
import sys
from pathlib import Path
from typing import NamedTuple

from runner.reports import Cargo, Pytest, Report, Suite, Tap

ROOT = Path(__file__).resolve().parents[2]
BIN = ROOT / ".venv/bin"
SHARED = ROOT.parent / "shared"
API = Path(os.environ.get("GUDGEON_SHARED_API", SHARED / "api"))

# The sets of stages; each contains those before it.
QUICK, TEST, ALL = 0, 1, 2


# The preparations that compile something.
BUILT = ("packages", "rust tests")
WITH_PEERS = (*BUILT, "peers")


class Stage(NamedTuple):
    name: str
    command: list
    report: Report = Report()
    # The preparations that must end before the stage starts.
    needs: tuple[str, ...] = BUILT
    # The smallest set that contains the stage.
    set: int = TEST
    # Its tests have real processes, sockets or threads, so a test that fails is run again, alone.
    real: bool = False
    # How much it leaves to others, as the command `nice` counts; preparations and checks more than tests.
    nice: int = 0


CARGO_TEST = ["cargo", "test", "--quiet", "--workspace", "--exclude", "gudgeon-python", "--exclude", "bench-driver"]
# Tests with processes mostly wait, so more of them run concurrently than there are processors.
SHOWN = ["--", "--show-output", "--test-threads=4"]
CLIPPY = ["cargo", "clippy", "--quiet"]
WARNINGS = ["--deny", "warnings"]
NO_UNIX_SOCKETS = ["--cfg", "no_unix_sockets", *WARNINGS]
PYTEST = [BIN / "pytest", "-q"]
PYTEST_PARALLEL = [*PYTEST, "--numprocesses", "3", "--dist", "worksteal"]
# Tests that share servers stay together.
PYTEST_BY_FILE = [*PYTEST, "--numprocesses", "3", "--dist", "loadfile"]
# A test that waits forever fails, by name, after 10 minutes.
NODE_TEST = ["node", "--test", "--test-reporter=tap", "--test-concurrency=3", "--test-timeout=600000"]


def script(path, *words):
    return [BIN / "python", ROOT / "tests" / path, *words]


def files(pattern):
    return sorted((ROOT / "tests").glob(pattern))


# In the order in which they start, beside the tests. Nearly everything waits for the packages.
PREPARATIONS = [
    Stage("set-up", ["make", "--no-print-directory", "setup"], needs=()),
    Stage("packages", ["make", "--no-print-directory", "build"], needs=("set-up",), nice=5),
    # Everything of Rust but the packages: the tests, the programs that other tests start, and the examples.
    Stage("rust tests", ["make", "--no-print-directory", "build-tests"], needs=(), nice=10),
    Stage("peers", script("interop/peers.py"), needs=("set-up",), nice=10),
    Stage("counted servers", ["make", "--no-print-directory", "build-counts"], needs=("packages",), set=ALL),
]
CHECKS = [
    Stage("rustfmt", ["cargo", "fmt", "--all", "--check"], needs=(), set=QUICK),
    Stage("clippy", [*CLIPPY, "--workspace", "--all-targets", "--", *WARNINGS], needs=(), set=QUICK),
    # The published command is compiled without the keyring, which adds D-Bus.
    Stage(
        "clippy with keyring",
        [*CLIPPY, "--package", "gudgeon-cli", "--all-targets", "--features", "keyring", "--", *WARNINGS],
        needs=(),
        set=ALL,
    ),
    # The command as on Windows, where it has no background process, and as published, without the keyring. With the
    # package that asks for all features, the dependencies are those that were checked already.
    Stage(
        "clippy without unix sockets",
        [*CLIPPY, "--package", "gudgeon-cli", "--package", "shared-features", "--no-deps", "--", *NO_UNIX_SOCKETS],
        needs=(),
        set=ALL,
    ),
    Stage("sans-io tree", [sys.executable, ROOT / "tests/sans_io.py"], needs=()),
    Stage("features", [sys.executable, ROOT / "tests/features.py"], needs=(), set=ALL),
    Stage("public items", [sys.executable, ROOT / "tests/public_items.py"], needs=(), set=ALL),
    Stage("compile errors", [sys.executable, ROOT / "tests/compile_errors.py"], needs=(), set=ALL),
    # What is published compiles by itself.
    Stage(
        "crates",
        ["cargo", "package", "--quiet", "--package", "gudgeon", "--package", "gudgeon-cli", "--allow-dirty"],
        needs=(),
        set=ALL,
    ),
    Stage("lock files", [sys.executable, ROOT / "tests/lock_files.py"], needs=(), set=QUICK),
    Stage("unsafe code", [sys.executable, ROOT / "tests/unsafe_code.py"], needs=(), set=QUICK),
    Stage("built once", [sys.executable, ROOT / "tests/built_once.py"], needs=()),
    Stage("advisories", [sys.executable, ROOT / "tests/advisories.py"], needs=(), set=ALL),
    Stage("ruff", [BIN / "ruff", "check", "."], needs=("set-up",), set=QUICK),
    Stage("ruff format", [BIN / "ruff", "format", "--check", "."], needs=("set-up",), set=QUICK),
    Stage("mypy", [BIN / "mypy"], set=QUICK),
    Stage("pyright", [BIN / "pyright"], set=QUICK),
    Stage("tsc", ["npm", "run", "--silent", "check:types"], set=QUICK),
    Stage("stubs", script("stubs.py")),
    Stage("api python", script("types/api_python.py", API), set=QUICK),
    Stage("api typescript", script("types/api_typescript.py", API), set=QUICK),
]
# Not 19: beside a busy program that would leave Clippy a hundredth of a processor.
CHECKS = [stage._replace(nice=10) for stage in CHECKS]
SANS_IO = [path for path in files("node/*.test.mjs") if not path.name.endswith(".io.test.mjs")]
# In the order in which they start: those that need no package first, while the packages are compiled.
TESTS = [
    Stage(
        "rust sans-io",
        [*CARGO_TEST, "--lib", "--test", "sans_io", "--test", "index", "--test", "corpus", "--", "--show-output"],
        Cargo(),
        # Set-up downloads the test suite of JSON Schema.
        needs=("set-up", "rust tests"),
        set=QUICK,
    ),
    Stage(
        "rust",
        [*CARGO_TEST, "--bin", "gudgeon", "--test", "runtime", "--test", "server_stdio", *SHOWN],
        Cargo(),
        needs=("rust tests",),
        real=True,
    ),
    Stage("rustdoc", [*CARGO_TEST, "--doc"], Cargo(), needs=("rust tests",)),
    Stage("runner self-test", [*PYTEST, "tests/runner"], Pytest(), needs=("set-up",)),
    Stage("smoke", [*PYTEST, "tests/smoke"], Pytest(), set=QUICK, real=True),
    Stage("python sans-io", [*PYTEST_PARALLEL, "-m", "not io"], Pytest(), set=QUICK),
    Stage("node sans-io", [*NODE_TEST, *SANS_IO], Tap(), set=QUICK),
    Stage("python", [*PYTEST_PARALLEL, "-m", "io"], Pytest(), real=True),
    Stage("node", [*NODE_TEST, *files("node/*.io.test.mjs")], Tap(), real=True),
    Stage("http", [*PYTEST_PARALLEL, "tests/http"], Pytest(), real=True),
    Stage("interop self-test", [*PYTEST, "tests/interop"], Pytest()),
    Stage("interop", script("interop/run.py"), Suite("interop"), needs=WITH_PEERS, real=True),
    Stage("interactive", [*PYTEST_PARALLEL, "tests/interactive"], Pytest(), needs=WITH_PEERS, real=True),
    Stage("conformance self-test", [*PYTEST, "tests/conformance"], Pytest()),
    Stage("conformance", script("conformance/run.py"), Suite("conformance"), real=True),
    Stage("demo", script("demo/run.py"), Suite("demo", passed="pairs"), real=True),
    Stage("examples", [*PYTEST_PARALLEL, "tests/examples", "tests/demo"], Pytest(), real=True),
    Stage("examples node", [*NODE_TEST, *files("examples/*.test.mjs")], Tap(), real=True),
    Stage("death", script("death/run.py"), Suite("death"), real=True),
    Stage("outage", script("outage/run.py"), Suite("outage"), real=True),
    Stage("command", [*PYTEST_PARALLEL, "tests/cli"], Pytest(), real=True),
    Stage("inspector", [*PYTEST_PARALLEL, "tests/inspector"], Pytest(), real=True),
    Stage("production", [*PYTEST_BY_FILE, "tests/production"], Pytest(), needs=WITH_PEERS, real=True),
    Stage("sign-in", [*PYTEST, "tests/e2e_sign_in"], Pytest(), real=True),
    Stage("markdown", [*PYTEST_PARALLEL, "tests/markdown"], Pytest(), real=True),
    Stage("hostile", script("hostile/run.py"), Suite("hostile"), real=True),
    Stage("counts", script("counts/run.py", "--packages"), Suite("counts")),
    Stage("package", script("package/run.py"), Pytest(), real=True),
    Stage("all pairs", script("interop/run.py", "--ours"), Suite("interop"), needs=WITH_PEERS, real=True, set=ALL),
    Stage("all mounts", script("conformance/run.py", "--mounts"), Suite("conformance"), real=True, set=ALL),
    Stage("all counts", script("counts/run.py"), Suite("counts"), needs=("counted servers",), set=ALL),
    Stage("source distribution", script("package/source.py"), set=ALL),
    Stage("fuzz", ["make", "--no-print-directory", "fuzz"], set=ALL),
]


def known():
    """Returns all stages but the preparations, by name."""
    return {stage.name: stage for stage in [*CHECKS, *TESTS]}
