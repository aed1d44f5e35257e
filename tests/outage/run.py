"""Kills a server behind clients of each language, in each era, and checks what became of their calls.

    .venv/bin/python tests/outage/run.py [WORD]…

A server is killed 50 times during 5,000 calls of one client. Each read must succeed. Each other call must succeed or
fail with a typed error, and must not run twice. The client must come to an end, and its memory must stay flat. In a
group of five servers, two are killed in turn: calls to the others must succeed, and each list of tools must have
theirs. Words select the cells that have all of them, such as `python group 2025-11-25`.
"""

from __future__ import annotations

import json
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]

sys.path.append(str(ROOT / "tests/interop"))
from ports import reserve_port  # noqa: E402

PYTHON = ROOT / ".venv/bin/python"
CLIENTS = {
    "python": [PYTHON, HERE / "client.py"],
    "node": ["node", HERE / "client.mjs"],
    "rust": [ROOT / "target/debug/outage-client"],
}
KINDS = ("client", "group")
REVISIONS = ("2025-11-25", "2026-07-28")
# The core decides what is repeated, and its own client has all cells. A binding has each kind and each revision once.
BINDINGS = [
    ("python", "client", "2025-11-25"),
    ("python", "group", "2026-07-28"),
    ("node", "client", "2026-07-28"),
    ("node", "group", "2025-11-25"),
]
GROUP = 5  # servers
FLAPPING = (1, 3)  # those that are killed
CALLS = 5_000
KILLS = 50
# Servers that are up between two kills are mostly waited for.
AT_ONCE = 4
READY = 20  # seconds for a server to listen
UPTIME = 0.2  # seconds at least from one start to the next kill, or ten times what a start takes
SECONDS = 240  # for a client to finish
GROWTH = 12 << 20  # bytes; allocators keep a few for themselves


def main() -> int:
    words = sys.argv[1:]
    cells = [("rust", kind, revision) for kind in KINDS for revision in REVISIONS] + BINDINGS
    cells = [cell for cell in cells if all(word in cell for word in words)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        outcomes = list(pool.map(lambda cell: check(*cell), cells))
    for at, (cell, (_, wrong)) in enumerate(zip(cells, outcomes, strict=True)):
        # A cell that fails is run again, alone.
        if wrong and not (again := check(*cell))[1]:
            print(f"flaky: {' / '.join(cell)}: {'; '.join(wrong)}")
            outcomes[at] = again
    failures = [f"{' / '.join(cell)}: {why}" for cell, (_, wrong) in zip(cells, outcomes, strict=True) for why in wrong]
    for (language, kind, revision), (said, wrong) in zip(cells, outcomes, strict=True):
        print(f"{language:7} {kind:7} {revision}  {'FAILED' if wrong else 'ok':7} {said}")
    failed = sum(bool(wrong) for _, wrong in outcomes)
    print(f"outage: {len(cells) - failed} passed, {failed} failed")
    for failure in failures:
        print(f"  {failure} FAILED")
    return 1 if failed or not cells else 0


def check(language: str, kind: str, revision: str) -> tuple[str, list[str]]:
    """Runs a cell; returns a summary and what is wrong."""
    with tempfile.TemporaryDirectory(prefix="outage-") as folder:
        ledger = Path(folder) / "ledger"
        servers = [FlappingServer(ledger) for _ in range(GROUP if kind == "group" else 1)]
        flapping = [servers[at] for at in FLAPPING] if kind == "group" else servers
        try:
            began = time.monotonic()
            urls = ",".join(server.url for server in servers)
            report, kills, problem = drive([*CLIENTS[language], urls, revision, str(CALLS)], flapping)
            took = time.monotonic() - began
        finally:
            for server in servers:
                server.stop()
        if report is None:
            return "", [problem]
        wrong = [problem] if problem else []
        wrong += judge(report, kills, ledger.read_text().split())
        if kind == "group":
            wrong += judge_group(report)
        failed = ", ".join(f"{len(numbers)} {kind}" for kind, numbers in report["failed"].items()) or "none"
        calls = f"{report['reads']} reads, {len(report['counted'])} counted, failed: {failed}"
        return f"{kills} kills, {calls}; memory +{growth(report) >> 10} KiB; {took:.0f} s", wrong


def judge(report: dict[str, Any], kills: int, ledger: list[str]) -> list[str]:
    wrong = list(report["unexpected"][:5])
    if kills < KILLS:
        wrong.append(f"the server was killed {kills} times only")
    if report["reads"] != CALLS // 2:
        wrong.append(f"{report['reads']} of {CALLS // 2} reads succeeded")
    ran = Counter(map(int, ledger))
    twice = [number for number, times in ran.items() if times > 1]
    if twice:
        wrong.append(f"calls that ran twice: {twice[:5]}")
    lost = [number for number in report["counted"] if number not in ran]
    if lost:
        wrong.append(f"calls that succeeded but never ran: {lost[:5]}")
    ended = len(report["counted"]) + sum(map(len, report["failed"].values()))
    if ended != CALLS // 2:
        wrong.append(f"{ended} of {CALLS // 2} calls that may not be repeated came to an end")
    if growth(report) > GROWTH:
        wrong.append(f"its memory grew by {growth(report) >> 20} MiB")
    return wrong


def growth(report: dict[str, Any]) -> int:
    """Returns the bytes of resident memory that the client took after its first calls."""
    first, last = report["memory"]
    return int(last - first)


def judge_group(report: dict[str, Any]) -> list[str]:
    wrong = []
    for kind, numbers in report["failed"].items():
        steady = [number for number in numbers if number // 2 % GROUP not in FLAPPING]
        if steady:
            wrong.append(f"calls to servers that were never away failed ({kind}): {steady[:5]}")
    if len(report["lists"]) != CALLS // 100:
        wrong.append(f"{len(report['lists'])} lists instead of {CALLS // 100}")
    tools = {f"s{at}_{tool}" for at in range(GROUP) if at not in FLAPPING for tool in ("read", "count")}
    for names in report["lists"]:
        if not tools <= set(names):
            wrong.append(f"a list without tools of servers that were never away: {names}")
            break
    return wrong


class FlappingServer:
    """A server process that is started again at the same address."""

    def __init__(self, ledger: Path) -> None:
        self.url = f"http://127.0.0.1:{reserve_port()}/mcp"
        self._ledger = ledger
        self._process = self._start()

    def kill(self) -> None:
        time.sleep(max(UPTIME, 10 * self._start_time))
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self._process = self._start()

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()

    def _start(self) -> subprocess.Popen[str]:
        began = time.monotonic()
        process = subprocess.Popen(
            [ROOT / "target/debug/outage-server", self.url, self._ledger],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        ready = threading.Event()
        threading.Thread(target=_listen, args=(process, ready), daemon=True).start()
        if not ready.wait(READY):
            raise RuntimeError(f"the server did not listen within {READY} s")
        self._start_time = time.monotonic() - began
        return process


def _listen(process: subprocess.Popen[str], ready: threading.Event) -> None:
    for line in process.stderr or ():
        if "http://" in line:
            ready.set()


def drive(command: list[Any], servers: list[FlappingServer]) -> tuple[dict[str, Any] | None, int, str]:
    """Kills a server after every hundredth call, in turn.

    Returns the client's report, the number of kills, and a problem.
    """
    client = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    lines: queue.Queue[str | None] = queue.Queue()
    said: list[str] = []
    readers = [
        threading.Thread(target=_read, args=(client.stdout, lines.put)),
        threading.Thread(target=_read, args=(client.stderr, said.append)),
    ]
    for reader in readers:
        reader.daemon = True
        reader.start()
    kills, end = 0, time.monotonic() + SECONDS
    try:
        while True:
            line = lines.get(timeout=max(end - time.monotonic(), 0.01))
            if line is None:
                return None, kills, f"it ended with status {client.wait()}: {' '.join(filter(None, said))[-400:]}"
            if line.startswith("{"):
                return json.loads(line), kills, ""
            if kills < KILLS:
                servers[kills % len(servers)].kill()
                kills += 1
    except queue.Empty:
        return None, kills, f"it did not end within {SECONDS} s"
    finally:
        client.kill()
        client.wait()


def _read(stream: Any, take: Any) -> None:
    for line in stream:
        take(line)
    take(None)


if __name__ == "__main__":
    sys.exit(main())
