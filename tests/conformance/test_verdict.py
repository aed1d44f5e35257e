"""The evaluation of the official suite's checks: anything but a success of every expected scenario fails the run."""

import json

import authorization
import pytest
from verdict import Verdict, evaluate, scenarios, table, totals

LISTING = """Required for 2026-07-28 (4 scenarios):

Server scenarios (test against a server):
  - tools-list
  - ping

Client scenarios (test against a client):
  - tools_call
  - auth/basic

Run and reported, but never scored:
  extension (2):
    - auth/dpop [client]
    - tasks-lifecycle [server]
  pending (2):
    - json-schema-2020-12 [server]
    - echo [client]
"""


@pytest.fixture
def written(tmp_path):
    def write(scenario, *checks):
        folder = tmp_path / f"server-{scenario}-2026-11-21T11-42-20-049Z"
        folder.mkdir()
        (folder / "checks.json").write_text(json.dumps([{"id": f"{scenario}-check", **check} for check in checks]))
        return tmp_path

    return write


@pytest.mark.parametrize(
    ("role", "names"),
    [
        ("server", ["tools-list", "ping", "json-schema-2020-12"]),
        ("client", ["tools_call", "auth/basic", "auth/dpop", "echo"]),
    ],
)
def test_a_set_contains_all_scenarios_of_a_role_except_those_of_tasks(role, names):
    assert scenarios(LISTING, role) == names


def test_the_scenarios_of_authorization_servers_are_listed():
    listing = "\nAuthorization server scenarios (test against an authorization server):\n  - metadata [2025-11-25]\n"
    assert authorization.scenarios(LISTING + listing) == ["metadata"]
    assert authorization.scenarios(LISTING) == []


def test_the_results_of_an_authorization_server_are_read(written):
    folder = written("ping", {"status": "SUCCESS"})
    (folder / "server-ping-2026-11-21T11-42-20-049Z").rename(
        folder / "authorization-server-authorization-server-metadata-2026-11-21T11-42-20-049Z"
    )
    verdict = evaluate("authorization", folder, ["authorization-server-metadata"])
    assert (verdict.passed, verdict.failed) == (1, 0)


def test_successes_pass_and_neutral_checks_do_not_count(written):
    folder = written("ping", {"status": "SUCCESS"}, {"status": "INFO"}, {"status": "SKIPPED"})
    verdict = evaluate("python 2026", folder, ["ping"])
    assert (verdict.passed, verdict.failed, verdict.cell("ping")) == (1, 0, "ok")


@pytest.mark.parametrize(("status", "word"), [("FAILURE", "failed"), ("WARNING", "warned")])
def test_a_failure_and_a_warning_fail_with_id_and_reason(written, status, word):
    folder = written("ping", {"status": "SUCCESS"}, {"status": status, "errorMessage": "not\n  pong"})
    verdict = evaluate("python 2026", folder, ["ping"])
    assert verdict.bad == {"ping": [f"{word}: ping-check: not pong"]}
    assert verdict.cell("ping") == f"1 {word}"
    assert table([verdict], ["ping"]).splitlines()[-1] == f"python 2026: ping: {word}: ping-check: not pong"
    assert totals([verdict, Verdict("rust 2026", passed=2)]) == "conformance: 3 passed, 1 failed"


def test_a_scenario_that_did_not_run_or_checked_nothing_fails(written):
    folder = written("ping", {"status": "INFO"})
    verdict = evaluate("python 2026", folder, ["ping", "tools-list"])
    assert verdict.bad == {"ping": ["failed: nothing was checked"], "tools-list": ["failed: it did not run"]}


@pytest.mark.parametrize(("status", "passed", "failed"), [("SUCCESS", 2, 0), ("FAILURE", 1, 2)])
def test_a_scenario_that_fails_runs_again_and_its_first_failure_is_reported(written, status, passed, failed):
    folder = written("ping", {"status": "FAILURE"}, {"status": "SUCCESS"}, {"status": "WARNING"})
    verdict = evaluate("python 2026", folder, ["ping"])
    again = written("again", {"status": status}, {"status": "SUCCESS"}) / "server-again-2026-11-21T11-42-20-049Z"
    verdict.try_again("ping", lambda attempt: attempt.read("ping", again / "checks.json"))
    assert (verdict.passed, verdict.failed) == (passed, failed)
    flaky = "flaky: python 2026: ping: failed: ping-check: no reason given; warned: ping-check: no reason given\n"
    assert totals([verdict]) == (flaky if not failed else "") + f"conformance: {passed} passed, {failed} failed"


def test_scenarios_of_tasks_are_left_out(written):
    verdict = evaluate("python 2026", written("tasks-lifecycle", {"status": "FAILURE"}), [])
    assert (verdict.passed, verdict.failed) == (0, 0)


def test_the_table_has_a_row_for_each_scenario_and_a_column_for_each_server(written):
    folder = written("ping", {"status": "SUCCESS"})
    written("tools-list", {"status": "FAILURE"})
    verdicts = [evaluate("python", folder, []), evaluate("rust", folder, ["prompts-list"])]
    rows = [line.split() for line in table(verdicts, ["tools-list", "ping", "unknown"]).splitlines()[:4]]
    assert rows == [
        ["scenario", "python", "rust"],
        ["tools-list", "1", "failed", "1", "failed"],
        ["ping", "ok", "ok"],
        ["prompts-list", "1", "failed"],
    ]
