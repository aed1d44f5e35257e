"""Client programs that break or hang: each must make its cell fail in a bounded time, with a message that says why."""

import sys
from dataclasses import dataclass

import evil_servers

OUTCOME = '{"outcome": "right", "detail": "", "took": 0, "closed": 0, "ping": 0}'
SLOW = OUTCOME.replace('"ping": 0', '"ping": 500')
ROWS = {}


@dataclass
class Row:
    """A client program in Python, and a part of what the runner says about it."""

    name: str
    program: str
    says: str
    # The seconds without an outcome after which it counts as hanging.
    stuck: float


def row(name, says, *lines, stuck=evil_servers.STUCK):
    ROWS[name] = Row(name, "\n".join(["import json, subprocess, sys, time", *lines]), says, stuck)


row("a client that hangs", "the client hangs: no outcome in 0.5 s", "time.sleep(60)", stuck=0.5)
row(
    "a client that hangs inside its outcome",
    "the client hangs: no outcome in 0.5 s",
    'print(\'{"outcome"\', end="", flush=True)',
    "time.sleep(60)",
    stuck=0.5,
)
row(
    "a client that does not end",
    "the client does not end after its input",
    f"print('{OUTCOME}', flush=True)",
    "time.sleep(60)",
    stuck=10,
)
row(
    "a client that ends",
    "the client ended, with status 3; its stderr: 'why\\n'",
    'print("why", file=sys.stderr)',
    "input()",
    "sys.exit(3)",
)
row("a client without sense", "the client's outcome is not JSON: b'well\\n'", 'print("well", flush=True)', "input()")
row(
    "a client with another outcome",
    "the outcome is 'wrong', not ['right']",
    "input()",
    f"print('{OUTCOME.replace('right', 'wrong')}', flush=True)",
    "input()",
)
row(
    "a client that computes for half a second",
    "a ping of another server took 500 ms",
    "input()",
    f"print('{SLOW}', flush=True)",
    "input()",
)
row(
    "a client that leaves a process",
    "processes are left: ['sleep 60 ']",
    'token = json.loads(input())["target"][-1]',
    'pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}',
    'subprocess.Popen(["sleep", "60"], env={"TOKEN": token}, start_new_session=True, **pipes)',
    f"print('{OUTCOME}', flush=True)",
    "input()",
)
row(
    "a client that visits another origin with credentials",
    "the client visited another origin: {'row': 'it', 'authorization': 'secret'}",
    "import urllib.request",
    'canary = json.loads(input())["target"][-2]',
    'request = urllib.request.Request(f"{canary}/it", headers={"authorization": "secret"})',
    "try: urllib.request.urlopen(request)",
    "except OSError: pass",
    f"print('{OUTCOME}', flush=True)",
    "input()",
)


def cells(wanted):
    rows = [row for row in ROWS.values() if all(word in f"python / stdio / {row.name}" for word in wanted)]
    return {("python", "stdio"): rows} if rows else {}


def run(language, transport, rows):
    """Returns the rows of which the runner does not say what it should."""
    failures = []
    # It answers, so that only the client is at fault.
    server = evil_servers.ROWS["a child that writes what is not a message"]
    for row in rows:
        command = [sys.executable, "-c", row.program]
        wrong = evil_servers.attack("python", command, transport, [server], "", row.stuck)
        said = [text for _, all in wrong for text in all]
        if not any(row.says in text for text in said):
            failures.append((row, [f"the runner says {said}, not {row.says!r}"]))
    return failures
