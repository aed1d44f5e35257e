"""Servers of the bench `scale.py`, with a client of each: over stdio, or over one connection of HTTP."""

import json
import os
import re
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

from common import OURS_PYTHON, ROOT, SERVERS, Broken
from listening import without_huge_pages
from ports import reserve_port
from scale_wire import Connection, Pipe

COMMANDS = {
    "Python": [OURS_PYTHON, SERVERS / "scale.py"],
    # A small young generation, which V8 would let grow to 48 MB for any server.
    "Node": ["node", "--expose-gc", "--max-semi-space-size=4", SERVERS / "scale.mjs"],
    "Rust": [ROOT / "target/release/scale-server"],
}


@contextmanager
def one_processor():
    """Keeps this process, and servers that it starts, on one processor.

    One call after the other then takes the time of its work. On several processors it takes up to four times that,
    or not, in each pair of processes, because the system wakes up a second processor for each message."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


class Server:
    """A server that runs; `given` are its tools and options, as servers/scale.py reads them."""

    def __init__(self, name, transport, **given):
        start = time.perf_counter()
        place, self.port = "stdio", None
        if transport == "http":
            self.port = reserve_port()
            place = f"http://127.0.0.1:{self.port}/mcp"
        self.process = subprocess.Popen(
            [str(word) for word in (*COMMANDS[name], place, json.dumps(given))],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE if transport == "stdio" else subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=without_huge_pages,
        )
        try:
            self.client = Pipe(self.process) if transport == "stdio" else self._connect()
            self.client.ask("server/discover", {})
        except BaseException:
            self.stop()
            raise
        # From the start of the process to its first reply.
        self.seconds_to_start = time.perf_counter() - start

    def _connect(self):
        until = time.monotonic() + 60
        while time.monotonic() < until and self.process.poll() is None:
            try:
                return Connection(self.port)
            except OSError:
                time.sleep(0.01)
        raise Broken(f"the server does not listen (exit status {self.process.poll()})")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self.process.kill()
        self.process.wait()

    def resident(self):
        """Returns the resident bytes after a garbage collection."""
        for _ in range(2):
            self.client.call("collect")
            time.sleep(0.1)
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) * 1024

    def processor_seconds(self):
        """Returns the processor time of all threads, which is exact while they wait."""
        threads = Path(f"/proc/{self.process.pid}/task").iterdir()
        return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9


def is_built(name):
    return name != "Rust" or os.access(COMMANDS[name][0], os.X_OK)
