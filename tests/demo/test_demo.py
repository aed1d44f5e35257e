"""The demo's checks: a correct run passes, and every kind of wrong answer makes it fail with a non-zero status."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]
PLAN: dict[str, Any] = json.loads((HERE / "plan.json").read_text("utf-8"))
DOCUMENT: str = (REPOSITORY / PLAN["document"]).read_text("utf-8")

# run.py with one client that prints a prepared file, in two pairs an era.
RUN = """
import sys
sys.path.insert(0, sys.argv[1])
import run
run.CLIENTS = {"Fake": [sys.executable, "-c", sys.argv[2], sys.argv[3]]}
run.SERVERS = {"One": ["1"], "Two": ["2"]}
run.PAIR_SECONDS = 5
sys.exit(run.main())
"""
FAKE = """
import json, sys
lines, _, revision, _, server = sys.argv[1:]
for facts in json.load(open(lines + "/" + server)):
    if isinstance(facts, dict):
        code = "-32002" if revision == "2025-11-25" else "-32602"
        facts = json.dumps(facts).replace("REVISION", revision).replace('"CODE"', code)
    print(facts, flush=True)
"""

Run = list[Any]


def good_run() -> Run:
    def hit(path: str, score: float) -> dict[str, Any]:
        title = (REPOSITORY / path).read_text("utf-8").split("\n")[0].removeprefix("# ")
        return {"path": path, "title": title, "line": 1, "score": score, "snippet": "some words"}

    done: Run = [
        {"step": "connect", "calls": 0, "revision": "REVISION", "server": "docsearch"},
        {"step": "tools", "names": ["search", "outline", "reindex"]},
        {"step": "reindex", "files": 2, "sections": 3, "progress": [1, 2]},
    ]
    for wanted in PLAN["searches"]:
        hits = [hit(wanted["best"], 2), hit(PLAN["document"], 1)]
        done.append({"step": "search", "query": wanted["query"], "hits": hits})
    done += [
        {"step": "outline", "path": PLAN["document"], "headings": [{"level": 1, "title": "docsearch", "line": 1}]},
        {"step": "unknown", "is_error": True, "text": "no nowhere.md"},
        {"step": "read", "mime_type": "text/markdown", "text": DOCUMENT},
        {"step": "outside", "error": "refused", "code": "CODE"},
        {"step": "prompt", "role": "user", "text": "Summarize " + DOCUMENT},
        {"step": "complete", "values": [PLAN["document"]]},
        {"step": "complete", "values": [PLAN["document"]]},
        {"step": "quick", "calls": PLAN["quick"], "times": [0.1] * PLAN["quick"]},
    ]
    return [{"calls": 1, "ms": 1.0, **facts} for facts in done]


def demo(folder: Path, one: Run, two: Run) -> tuple[int, list[str]]:
    (folder / "1").write_text(json.dumps(one))
    (folder / "2").write_text(json.dumps(two))
    command = [sys.executable, "-c", RUN, str(HERE), FAKE, str(folder)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return ended.returncode, ended.stdout.splitlines()


def test_a_good_run_passes(tmp_path: Path) -> None:
    status, lines = demo(tmp_path, good_run(), good_run())
    calls = 4 * (len(good_run()) - 2 + PLAN["quick"])
    assert (status, lines[-1]) == (0, f"demo: 4 pairs, {calls} calls, 0 failed")


WRONG: dict[str, tuple[str, dict[str, Any]]] = {
    "another revision": ("connect", {"revision": "2024-11-05"}),
    "another server": ("connect", {"server": "shelf"}),
    "a tool is missing": ("tools", {"names": ["search"]}),
    "no progress": ("reindex", {"progress": []}),
    "progress that shrinks": ("reindex", {"progress": [2, 1, 2]}),
    "progress that ends early": ("reindex", {"progress": [1]}),
    "nothing indexed": ("reindex", {"files": 0, "sections": 0, "progress": [0]}),
    "no hits": ("search", {"hits": []}),
    "hits of the wrong shape": ("search", {"hits": [{"path": "README.md"}]}),
    "no headings": ("outline", {"headings": []}),
    "an unknown document that is not an error": ("unknown", {"is_error": False}),
    "another text": ("read", {"text": "else"}),
    "another type": ("read", {"mime_type": "text/plain"}),
    "another code": ("outside", {"code": -32000}),
    "a prompt without the document": ("prompt", {"text": "Summarize"}),
    "no completion": ("complete", {"values": []}),
    "unanswered calls": ("quick", {"times": [0.1]}),
    "an error": ("outline", {"error": "CallTimeout: 30 s"}),
}


def changed(step: str, changes: dict[str, Any]) -> Run:
    run = copy.deepcopy(good_run())
    next(facts for facts in run if facts["step"] == step).update(changes)
    return run


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_answer_fails(tmp_path: Path, what: str) -> None:
    bad = changed(*WRONG[what])
    status, lines = demo(tmp_path, bad, bad)
    assert status == 1
    assert not lines[-1].endswith(" 0 failed")
    assert any(f"FAILED {WRONG[what][0]}: " in line for line in lines)


def search_step(run: Run) -> dict[str, Any]:
    return next(facts for facts in run if facts["step"] == "search")


def test_hits_in_the_wrong_order_or_place_fail(tmp_path: Path) -> None:
    spoils: list[Callable[[list[dict[str, Any]]], None]] = [
        lambda hits: hits[0].update(score=0.5),
        lambda hits: hits[0].update(path="README.md"),
        lambda hits: hits[0].update(line=2),
        lambda hits: hits[1].update(path="nowhere.md"),
        lambda hits: hits[1].update(snippet=None),
        lambda hits: hits.extend(hits * 2),
    ]
    for spoil in spoils:
        bad = copy.deepcopy(good_run())
        spoil(search_step(bad)["hits"])
        assert demo(tmp_path, bad, bad)[0] == 1


def test_a_file_served_from_outside_fails(tmp_path: Path) -> None:
    bad = [{**facts, "text": "a secret"} if facts["step"] == "outside" else facts for facts in good_run()]
    for facts in bad:
        if facts["step"] == "outside":
            del facts["error"]
    assert demo(tmp_path, bad, bad)[0] == 1


def test_servers_that_disagree_fail(tmp_path: Path) -> None:
    for step, changes in (
        ("reindex", {"sections": 4}),
        ("outline", {"headings": [{"level": 1, "title": "else", "line": 1}]}),
        ("complete", {"values": [PLAN["document"], "more.md"]}),
    ):
        status, lines = demo(tmp_path, good_run(), changed(step, changes))
        assert status == 1
        assert any("but 2025-11-25 Fake → One said" in line for line in lines)


def test_a_client_that_ends_early_or_prints_extra_lines_fails(tmp_path: Path) -> None:
    for bad in (good_run()[:-1], [], [*good_run(), "not JSON"], [*good_run(), "[]"], good_run() * 2):
        status, lines = demo(tmp_path, bad, good_run())
        assert status == 1
        assert any("FAILED" in line for line in lines)


def test_a_crashing_hanging_or_missing_client_fails(tmp_path: Path) -> None:
    endings = {"import sys; sys.exit(3)": "ended with status 3", "import time; time.sleep(60)": "not done after 1 s"}
    for code, message in endings.items():
        fast = RUN.replace("PAIR_SECONDS = 5", "PAIR_SECONDS = 1")
        command = [sys.executable, "-c", fast, str(HERE), code, str(tmp_path)]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert ended.returncode == 1
        assert message in ended.stdout
    missing = RUN.replace("[sys.executable,", '["/nonexistent",')
    ended = subprocess.run(
        [sys.executable, "-c", missing, str(HERE), "", ""], capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 1
    assert "`make demo` builds" in ended.stdout
