"""Server processes of the interop suite that share keys and a ledger, and client programs for them."""

import contextlib
import json
import os
import socket
import subprocess
import time

import pairs
from ports import reserve_port
from programs import ROOT, Program

SERVERS = {name: entry["command"] for name, entry in pairs.servers["ours"].items()}
CLIENTS = {
    f"{side} {name}": entry["command"] for side, programs in pairs.clients.items() for name, entry in programs.items()
}
# The client programs that run, by name.
PROGRAMS = {}
JOB_TIME = 300  # seconds, in which a server may be started again three times
KEYS = "a key that all of the replicas know, an old one that some of them knew"


class Process:
    """A server process with its own port."""

    def __init__(self, server, ledger):
        self.port = reserve_port()
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        self.command = [*SERVERS[server], self.url]
        self.environment = {**os.environ, "GUDGEON_STATE_KEYS": KEYS, "INTEROP_LEDGER": str(ledger)}
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            self.command, cwd=ROOT, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        until = time.monotonic() + 60
        while time.monotonic() < until and self.process.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
            time.sleep(0.02)
        raise AssertionError(f"{self.command} does not listen")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def restart(self):
        self.kill()
        self.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()


@contextlib.contextmanager
def started(client, era, target, steps, folder):
    """Starts a client program for one job; its output is text."""
    path = folder / "job.json"
    path.write_text(json.dumps({"era": era, "target": target, "steps": steps}))
    with (
        path.open() as job,
        subprocess.Popen(
            CLIENTS[client], cwd=ROOT, stdin=job, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as program,
    ):
        try:
            yield program
        finally:
            program.kill()


def meet(client, era, target, steps):
    """Runs the steps with a client program, which goes on running; returns the results by the names of the steps."""
    program = PROGRAMS.setdefault(client, Program(CLIENTS[client], JOB_TIME))
    lines, problem = program.perform({"era": era, "target": target, "steps": steps})
    assert problem is None and len(lines) == len(steps), (problem, lines)
    return {line["check"]: line["got"] for line in lines}
