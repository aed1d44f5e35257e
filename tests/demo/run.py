"""`make demo`: every client language against every server language over stdio, in both eras, on docsearch."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from checks import PLAN, REPOSITORY, STEPS, Facts, same_for_all, wrong

ERAS = {"2025-11-25": "legacy: a handshake, then a session", "2026-07-28": "modern: stateless"}
PAIR_SECONDS = 120

DEMO = Path(__file__).parent
DOCSEARCH = REPOSITORY / "examples/docsearch"
RUST = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target")) / "debug"
CLIENTS = {
    "Python": [sys.executable, str(DEMO / "client.py")],
    "Node": ["node", str(DEMO / "client.mjs")],
    "Rust": [str(RUST / "demo-client")],
}
SERVERS = {
    "Python": [sys.executable, str(DOCSEARCH / "python/server.py")],
    "Node": ["node", str(DOCSEARCH / "typescript/dist/server.js")],
    "Rust": [str(RUST / "docsearch")],
}


class Tally:
    """Counts calls and failures over all pairs, and compares the servers' results."""

    def __init__(self) -> None:
        self.pairs = self.calls = self.failed = 0
        self._agreed: dict[str, tuple[str, Any]] = {}

    def failures(self, facts: Facts, revision: str, pair: str) -> list[str]:
        found = wrong(facts, revision)
        for topic, value in same_for_all(facts).items():
            first, agreed = self._agreed.setdefault(topic, (pair, value))
            if value != agreed:
                found.append(f"{topic}: {str(value)[:200]}, but {first} said {str(agreed)[:200]}")
        return found


def steps_of(command: list[str]) -> Iterator[Facts]:
    """Runs a client and yields its JSON lines as they arrive, then errors of the process itself."""
    try:
        client = subprocess.Popen(
            command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, encoding="utf-8"
        )
    except OSError as error:
        yield {"step": "start", "error": f"{error}; `make demo` builds everything that is needed"}
        return
    overdue = threading.Timer(PAIR_SECONDS, client.kill)
    overdue.start()
    with client:
        assert client.stdout is not None
        for printed in client.stdout:
            try:
                facts = json.loads(printed)
                yield {"step": facts["step"], **facts}
            except (ValueError, TypeError, KeyError):
                yield {"step": "output", "error": f"the client printed {printed[:200]!r}, which is not a step"}
    timed_out = overdue.finished.is_set()
    overdue.cancel()
    if timed_out:
        yield {"step": "exit", "error": f"not done after {PAIR_SECONDS} s, killed"}
    elif client.returncode != 0:
        yield {"step": "exit", "error": f"the client ended with status {client.returncode}"}


def run_pair(tally: Tally, revision: str, client: str, server: str, *, show_hits: bool) -> None:
    """Runs a pair; one that fails is run again."""
    tally.pairs += 1
    if first := failures_of(tally, revision, client, server, show_hits=show_hits):
        again = failures_of(tally, revision, client, server, show_hits=False)
        tally.failed += bool(again)
        if not again:
            line(f"flaky: {revision} {client} → {server}: {'; '.join(first)}")


def failures_of(tally: Tally, revision: str, client: str, server: str, *, show_hits: bool) -> list[str]:
    """Runs a pair once and prints what it finds; returns what is wrong."""
    pair = f"{client:>6} → {server:<6}"
    done: list[str] = []
    failures: list[str] = []
    facts_of: dict[str, Facts] = {}
    for facts in steps_of([*CLIENTS[client], "--revision", revision, "--", *SERVERS[server]]):
        step = facts["step"]
        done.append(step)
        facts_of[step] = facts
        tally.calls += facts.get("calls", 0)
        progress(f"  {pair}  {len(done)}/{len(STEPS)} {step}")
        for failure in tally.failures(facts, revision, f"{revision} {' '.join(pair.split())}"):
            failures.append(f"{step}: {failure}")
            line(f"  {pair}  FAILED {step}: {failure}")
        if show_hits and step == "search" and facts.get("hits"):
            hit = facts["hits"][0]
            line(f"    “{facts['query']}”  {facts['ms']:.1f} ms")
            line(f"        {hit['path']}:{hit['line']}  {hit['title']}  (score {hit['score']:.2f})")
            line(f"        {hit['snippet'][:110]}")
    if done != STEPS and not failures:
        failures.append(f"the steps were {done}, expected {STEPS}")
        line(f"  {pair}  FAILED: {failures[0]}")
    if not failures:
        line(f"  {pair}  {summary(facts_of)}")
    return failures


def summary(facts_of: dict[str, Facts]) -> str:
    connect, index, quick = facts_of["connect"], facts_of["reindex"], facts_of["quick"]
    return (
        f"start {connect['ms']:6.1f} ms   indexed {index['files']} files, {index['sections']} sections "
        f"in {index['ms']:6.1f} ms ({len(index['progress'])} progress reports)   "
        f"search median {statistics.median(quick['times']):.3f} ms of {len(quick['times'])}"
    )


def progress(text: str) -> None:
    """Overwrites the current line of a terminal; prints nothing to a log."""
    if sys.stdout.isatty():
        print(f"\r\033[K{text}", end="", flush=True)


def line(text: str) -> None:
    progress("")
    print(text, flush=True)


def main() -> int:
    tally = Tally()
    line(f"docsearch over stdio: {len(CLIENTS)} clients × {len(SERVERS)} servers × {len(ERAS)} eras")
    line("each pair: connect, list the tools, index, search, outline, read, get a prompt, complete a path,")
    line(f"and ask for two things that must be refused; then {PLAN['quick']} timed searches, one after the other")
    for revision, era in ERAS.items():
        line(f"\n{revision} ({era})")
        for server in SERVERS:
            for client in CLIENTS:
                run_pair(tally, revision, client, server, show_hits=client == "Python")
    print(f"\ndemo: {tally.pairs} pairs, {tally.calls} calls, {tally.failed} failed", flush=True)
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
