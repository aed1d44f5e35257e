"""Server processes of the interop suite that share keys and a ledger, and client programs for them."""

import contextlib
import json
import os
import socket
import subprocess
import time
from pathlib import Path

from ports import reserve_port

ROOT = Path(__file__).resolve().parents[2]
INTEROP = ROOT / "tests/interop"
SERVERS = {name: entry["command"] for name, entry in json.loads((INTEROP / "servers.json").read_text())["ours"].items()}
CLIENTS = {
    f"{side} {name}": entry["command"]
    for side, programs in json.loads((INTEROP / "clients.json").read_text()).items()
    for name, entry in programs.items()
}
KEYS = "a key that all replicas know, an old one"


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
        until = time.monotonic() + 20
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
    """Starts a client program whose output is text."""
    path = folder / "steps.json"
    path.write_text(json.dumps(steps))
    command = [*CLIENTS[client], era, str(path), *target]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        try:
            yield program
        finally:
            program.kill()


def meet(client, era, target, steps, folder):
    """Runs a client program; returns its results by the names of the steps."""
    path = folder / "steps.json"
    path.write_text(json.dumps(steps))
    command = [*CLIENTS[client], era, str(path), *target]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.strip()]
    assert done.returncode == 0 and len(lines) == len(steps), done.stdout + done.stderr
    return {line["check"]: line["got"] for line in lines}
