"""Measures the CPU time that access tokens add to a call: ES256, with the keys at hand.

python3 tests/bench/auth.py [--rounds 7] [--calls 2000]

The calls are `tools/list` in 2026-07-28, one after another on one connection; no handler takes part in them. A token
that is new is verified; a token that was verified before is looked up.
"""

import argparse
import http.client
import json
import re
import subprocess
import threading
from functools import partial
from pathlib import Path

from common import (
    OURS_PYTHON,
    ROOT,
    SERVERS,
    Broken,
    broken,
    main,
    print_goal,
    print_table,
    python_is_built,
    take_turns,
)

ISSUER, AUDIENCE = "https://issuer.example", "https://bench.example/mcp"
NEW, REPEATED = 150.0, 5.0  # microseconds
HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": "2026-07-28",
    "Mcp-Method": "tools/list",
}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
BODY = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META}})


def bench():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--calls", type=int, default=2000, help="calls in a round; a tenth of them with new tokens")
    options = parser.parse_args()
    if not python_is_built():
        raise Broken("the Python binding is missing: run make build")
    new = options.calls // 10
    signed = sign((options.rounds + 1) * new + 1)
    tokens = iter(signed["tokens"])
    with Listening() as plain, Listening(ISSUER, AUDIENCE, json.dumps(signed["keys"])) as protected:
        same = next(tokens)
        jobs = {
            "no token": partial(plain.cpu, [None] * options.calls),
            "repeated token": partial(protected.cpu, [same] * options.calls),
            "new token": lambda: protected.cpu([next(tokens) for _ in range(new)]),
        }
        take_turns(jobs, 1)
        found = take_turns(jobs, options.rounds)
    if broken:
        return
    base = found["no token"]
    print(f"HTTP, tools/list in 2026-07-28, ES256, medians of {options.rounds}")
    rows = [[name, f"{found[name]:.1f}", f"{found[name] - base:+.1f}"] for name in jobs]
    print_table(["calls with", "CPU µs", "added"], rows)
    for name, limit in (("new token", NEW), ("repeated token", REPEATED)):
        added = found[name] - base
        print_goal(
            f"a {name} adds at most {limit:g} µs of CPU time", added, lambda cost, limit=limit: cost <= limit, " µs"
        )


def sign(count):
    command = ["node", Path(__file__).with_name("sign_tokens.mjs"), ISSUER, AUDIENCE, str(count)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise Broken(f"the tokens were not signed: {done.stderr}")
    return json.loads(done.stdout)


class Listening:
    """A server process, which counts its CPU time."""

    def __init__(self, *arguments):
        command = [OURS_PYTHON, SERVERS / "ours_auth.py", *arguments]
        self.process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if found := re.search(r"http://(127\.0\.0\.1:[1-9]\d*)", line):
                self.connection = http.client.HTTPConnection(found[1], timeout=60)
                break
        else:
            raise Broken("the server did not start")
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()
        self.process.terminate()
        self.process.wait()

    def cpu(self, tokens):
        """Returns the microseconds of CPU time that the server needs for a call, with these tokens."""
        before = self.spent()
        for token in tokens:
            headers = HEADERS if token is None else {**HEADERS, "Authorization": f"Bearer {token}"}
            self.connection.request("POST", "/mcp", BODY, headers)
            response = self.connection.getresponse()
            body = response.read()
            if response.status != 200:
                raise Broken(f"{response.status}: {body.decode()}")
        return (self.spent() - before) / len(tokens) / 1000

    def spent(self):
        """Returns the nanoseconds that the threads of the server have run."""
        tasks = Path(f"/proc/{self.process.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[0]) for task in tasks)


if __name__ == "__main__":
    main(bench)
