"""Measures the CPU time that a call costs a server which passes it on to an upstream server.

python3 tests/bench/upstream.py [--rounds 7] [--calls 2000]

The calls are `tools/call` of a tool that adds two numbers, in 2026-07-28, one after another. The time is that of the
server in the middle only, beside the time of one that answers such calls itself: clients and upstream servers are
other processes.
"""

import argparse
import re
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

from common import OURS_PYTHON, ROOT, Broken, broken, main, print_goal, print_table, python_is_built, take_turns

GOAL = 150.0  # microseconds
TOOL = """
import sys
from gudgeon import Server

app = Server("below")

@app.tool
def add(a: int, b: int) -> int:
    return a + b

app.run(*sys.argv[1:])
"""
MIDDLE = """
import sys
from gudgeon import Server, Upstream

app = Server("middle")
target = sys.argv[2:]
app.mount("below", Upstream(target[0] if len(target) == 1 else target))
app.run(*([] if sys.argv[1] == "stdio" else [sys.argv[1]]))
"""
CLIENT = """
import sys
from gudgeon import SyncClient

target = sys.argv[1:]
with SyncClient(target[0] if len(target) == 1 else target) as client:
    [tool] = [tool.name for tool in client.list_tools()]
    print("ready", flush=True)
    for line in sys.stdin:
        for _ in range(int(line)):
            assert client.call_tool(tool, {"a": 1, "b": 2}).data == 3
        print("done", flush=True)
"""
ANYWHERE = "http://127.0.0.1:0/mcp"


def bench():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--calls", type=int, default=2000, help="calls in a round")
    options = parser.parse_args()
    if not python_is_built():
        raise Broken("the Python binding is missing: run make build")
    transports = ("stdio", "http")
    chains = {(above, below): Chain(above, below) for above in transports for below in (None, *transports)}
    try:
        jobs = {pair: partial(chain.cpu, options.calls) for pair, chain in chains.items()}
        take_turns(jobs, 1)
        found = take_turns(jobs, options.rounds)
    finally:
        for chain in chains.values():
            chain.stop()
    if broken:
        return
    print(f"tools/call in 2026-07-28 through a server in Python, medians of {options.rounds}")
    rows = [
        [above, below or "none", f"{cpu:.1f}", f"{cpu - found[above, None]:+.1f}"]
        for (above, below), cpu in found.items()
    ]
    print_table(["client", "upstream server", "CPU µs", "added"], rows)
    for above, below in chains:
        if below:
            added = found[above, below] - found[above, None]
            print_goal(
                f"{above} → {below}: adds at most {GOAL:g} µs of CPU time", added, lambda cost: cost <= GOAL, " µs"
            )


class Chain:
    """A client, a server that passes its calls on, and the server that answers them."""

    def __init__(self, above, below):
        self.processes = []
        place = [] if above == "stdio" else [ANYWHERE]
        if below is None:
            middle = ["-c", TOOL, *place]
        else:
            target = [OURS_PYTHON, "-c", TOOL] if below == "stdio" else [self.listening(["-c", TOOL, ANYWHERE])]
            middle = ["-c", MIDDLE, *(place or ["stdio"]), *target]
        place = [OURS_PYTHON, *middle] if above == "stdio" else [self.listening(middle)]
        self.client = subprocess.Popen(
            [OURS_PYTHON, "-c", CLIENT, *place], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.processes.append(self.client)
        self.wait("ready")
        self.middle = self.processes[-2].pid if above == "http" else child_of(self.client.pid)

    def listening(self, words):
        """Starts a server; returns its URL."""
        process = subprocess.Popen([OURS_PYTHON, *words], cwd=ROOT, stderr=subprocess.PIPE, text=True)
        self.processes.append(process)
        for line in process.stderr:
            if found := re.search(r"http://127\.0\.0\.1:[1-9]\d*/mcp", line):
                threading.Thread(target=process.stderr.read, daemon=True).start()
                return found[0]
        raise Broken("the server did not start")

    def wait(self, word):
        if self.client.stdout.readline().strip() != word:
            raise Broken("the client failed")

    def cpu(self, calls):
        """Returns the microseconds of CPU time that the server in the middle needs for a call."""
        before = self.spent()
        self.client.stdin.write(f"{calls}\n")
        self.client.stdin.flush()
        self.wait("done")
        return (self.spent() - before) / calls / 1000

    def spent(self):
        """Returns the nanoseconds that the threads of the server in the middle have run."""
        tasks = Path(f"/proc/{self.middle}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[0]) for task in tasks)

    def stop(self):
        self.client.stdin.close()
        self.client.wait()
        for process in self.processes:
            process.terminate()
            process.wait()


def child_of(parent):
    """Returns the process that another one has started."""
    children = Path(f"/proc/{parent}/task").glob("*/children")
    return int(" ".join(path.read_text() for path in children).split()[0])


if __name__ == "__main__":
    sys.exit(main(bench))
