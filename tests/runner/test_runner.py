"""The order of stages; second tries: which tests get one, and what the run says of them."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[1]))

from runner import running
from runner.reports import Cargo, Pytest, Report, Suite, Tap
from runner.stages import BIN, TEST, Stage, known

# Fails when it runs for the first time, or always.
PYTHON_TEST = """
from pathlib import Path

def test_once(tmp_path_factory):
    assert run_before("first try")

def test_steady():
    pass

def run_before(name):
    path = Path(__file__).with_name(name)
    existed = path.exists()
    path.touch()
    return existed and {passes}
"""
NODE_TEST = """
import { test } from "node:test";
import assert from "node:assert";
import { existsSync, writeFileSync } from "node:fs";

test("once (of two)", (context) => context.test("inner", () => {
  const path = new URL("first", import.meta.url);
  const existed = existsSync(path);
  writeFileSync(path, "");
  assert(existed && PASSES);
}));
test("steady", () => {});
"""


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Runs one stage; returns the exit status and the printed lines."""
    monkeypatch.setattr(running, "LOGS", tmp_path)

    def run(stage):
        whole = running.Run([stage], TEST, None, in_ci=True)
        whole.tests = [stage]
        return whole.run(), capsys.readouterr().out.splitlines()

    return run


def pytest_stage(folder, passes, real=True):
    path = folder / "test_written.py"
    path.write_text(PYTHON_TEST.replace("{passes}", str(passes)))
    command = [BIN / "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={folder}", path]
    # Options of the project's own tests would be looked for in the folder.
    return Stage("written", command, FirstWords(), needs=(), real=real)


class FirstWords(Pytest):
    """Names of tests are relative to the folder in which the tests were written."""

    def again(self, command, name):
        return [*command[:-1], command[-1].parent / name.split("/")[-1]]


def node_stage(folder, passes):
    path = folder / "written.test.mjs"
    path.write_text(NODE_TEST.replace("PASSES", str(passes).lower()))
    return Stage("written", ["node", "--test", "--test-reporter=tap", path], Tap(), needs=(), real=True)


@pytest.mark.parametrize("written", [pytest_stage, node_stage])
def test_a_test_that_passes_alone_passes_and_is_reported(run, tmp_path, written):
    status, lines = run(written(tmp_path, passes=True))
    assert status == 0
    at = lines.index("flaky: 1")
    assert "once" in lines[at + 1] and lines[-1] in ("2 passed, 0 failed", "3 passed, 0 failed")


@pytest.mark.parametrize("written", [pytest_stage, node_stage])
def test_a_test_that_fails_twice_fails(run, tmp_path, written):
    status, lines = run(written(tmp_path, passes=False))
    assert status == 1 and "flaky: 0" in lines and lines[-1] in ("1 passed, 1 failed", "1 passed, 2 failed")


def test_a_test_without_io_gets_no_second_try(run, tmp_path):
    status, lines = run(pytest_stage(tmp_path, passes=True, real=False))
    assert status == 1 and "flaky: 0" in lines and lines[-1] == "1 passed, 1 failed"


def test_a_stage_that_runs_no_test_fails(run):
    for report in (Pytest(), Tap(), Cargo(), Suite("death")):
        status, lines = run(Stage("empty", ["true"], report, needs=(), real=True))
        assert (status, lines[-1]) == (1, "0 passed, 1 failed")


def test_a_stage_that_ends_with_an_error_after_its_tests_fails(run):
    text = "suite: 3 passed, 0 failed"
    status, lines = run(Stage("ends", ["sh", "-c", f"echo {text}; exit 1"], Suite("suite"), needs=(), real=True))
    assert (status, lines[-1]) == (1, "3 passed, 1 failed")


def test_what_a_suite_ran_again_itself_is_reported(run):
    text = "flaky: client / python: slow\nsuite: 3 passed, 0 failed"
    status, lines = run(Stage("suite", ["printf", text], Suite("suite"), needs=(), real=True))
    assert status == 0 and lines[lines.index("flaky: 1") + 1] == "  suite: client / python: slow"


def test_a_stage_that_needs_a_preparation_does_not_hold_up_the_others(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(running, "LOGS", tmp_path)
    free, prepared = tmp_path / "free", tmp_path / "prepared"
    # The preparation ends after the stage that does not need it.
    preparation = Stage(
        "set-up", ["sh", "-c", f"until test -e {free}; do sleep 0.01; done; touch {prepared}"], needs=()
    )
    waiting = [Stage(f"waits {at}", ["test", "-e", prepared], needs=("set-up",)) for at in range(3)]
    whole = running.Run([], TEST, None, in_ci=True)
    whole.preparations, whole.checks = [preparation], []
    whole.prepared = set()
    whole.tests = [*waiting, Stage("free", ["touch", free], needs=())]
    assert whole.run() == 0
    assert capsys.readouterr().out.splitlines()[-1] == "4 passed, 0 failed"


def test_a_command_that_does_not_end_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(running, "LOGS", tmp_path)
    status, text, _ = running.output_of("waits", ["sh", "-c", "echo begun; exec sleep 1000"], limit=0.2)
    assert status != 0 and text.startswith("begun\n") and "did not end by itself" in text


def test_skipped_tests_count_as_failed_unless_the_reason_is_allowed(run):
    for reason, status in (("no node", 1), ("spec schemas not found at x", 0)):
        assert run(Stage("skips", ["echo", f"skipped: {reason}"], Report(), needs=()))[0] == status


def test_failed_tests_of_cargo_are_named():
    lists = "failures:\n\n---- a::b stdout ----\nno\n\nfailures:\n    a::b\n    c\n\n"
    text = f"{lists}test result: FAILED. 1 passed; 2 failed; 0 ignored;"
    result = Cargo().read(text, 101)
    assert (result.passed, result.failed, result.names) == (1, 2, ["a::b", "c"])
    assert Cargo().again(["cargo", "test", "--", "--show-output"], "c") == ["cargo", "test", "--", "--exact", "c"]


def test_one_test_is_selected_by_name_in_every_language():
    stages = known()
    for name, words in {
        "rust": ["wire", "--", "--show-output", "--test-threads=4"],
        "python": ["-k", "wire"],
    }.items():
        command = stages[name].report.only(stages[name].command, "wire")
        assert command[-len(words) :] == words
    assert "--test-name-pattern=wire" in stages["node"].report.only(stages["node"].command, "wire")
