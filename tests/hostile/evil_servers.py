"""Evil servers against the clients of three languages: how each call ends, and what it costs."""

import json
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

from processes import CLIENTS, FOLDER, MIB, Process, processes_with
from rows import ALL, table

ROWS = table()
# The clients' `max_timeout`, and what a busy machine may add to it.
MAX_TIMEOUT = 2.0
MARGIN = 1.5
CLOSE = 8.0
PING = 100.0
STUCK = 30.0


class Evil:
    """The evil servers that listen."""

    def __init__(self):
        command = [sys.executable, str(FOLDER / "servers.py"), "listen"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.port, canary = self.process.stdout.readline().split()
        self.canary = f"http://127.0.0.1:{canary}"

    def visits(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/visits", timeout=10) as answer:
            return json.load(answer)

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Driver(Process):
    """A client program."""

    def __init__(self, language, honest, evil):
        super().__init__([*CLIENTS[language], honest])
        self.evil = evil

    def run(self, row, transport):
        """Returns what a row came to, and what is wrong with that."""
        token = f"hostile-{uuid4().hex}"
        target = self.target(row, transport, token)
        before = self.memory()
        self.forget_peak()
        job = {"target": target, "action": row.action, "changes": row.era == "legacy"}
        try:
            self.process.stdin.write(json.dumps(job).encode() + b"\n")
            self.process.stdin.flush()
            found = json.loads(self.process.stdout.readline())
        except (OSError, ValueError):
            return {}, [f"the client ended with {self.process.wait(5)}: {''.join(self.said)[-2000:]}"]
        found["grown"] = self.memory("VmHWM") - before
        wrong = []
        if found["outcome"] not in row.expected(transport):
            wrong.append(f"the outcome is {found['outcome']!r}, not {row.expected(transport)}: {found['detail']}")
        if found["took"] > MAX_TIMEOUT + MARGIN:
            wrong.append(f"it took {found['took']:.1f} s")
        if found["closed"] > CLOSE:
            wrong.append(f"closing took {found['closed']:.1f} s")
        if found["grown"] > row.memory:
            wrong.append(f"memory grew by {found['grown'] // MIB} MiB")
        if found["ping"] > PING:
            wrong.append(f"a ping of another server took {found['ping']:.0f} ms")
        if left := left_of(token):
            wrong.append(f"processes are left: {left}")
        return found, wrong

    def target(self, row, transport, token):
        if transport == "stdio":
            return [sys.executable, str(FOLDER / "servers.py"), "stdio", row.name, self.evil.canary, token]
        return f"{transport}://127.0.0.1:{self.evil.port}/{quote(row.name)}"

    def stop(self):
        self.process.stdin.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            pass
        super().stop()


def left_of(token):
    """Returns the processes that are left a second later, and ends them."""
    until = time.monotonic() + 1
    while (left := processes_with(token)) and time.monotonic() < until:
        time.sleep(0.05)
    shown = []
    for process in left:
        try:
            shown.append(Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
            os.kill(process, 9)
        except OSError:
            pass
    return shown


def cells(wanted):
    """Returns the cells by client program: language and transport."""
    chosen = {}
    for language in CLIENTS:
        for transport in ALL:
            for row in ROWS.values():
                name = f"{language} / {transport} / {row.name}"
                if transport in row.transports and all(word in name for word in wanted):
                    chosen.setdefault((language, transport), []).append(row)
    return chosen


def run(language, transport, rows, honest):
    """Runs rows one after the other with one client; returns those that failed, with the reasons."""
    failures = []
    # Servers of its own, because floods would delay those of other clients.
    evil = Evil()
    driver = Driver(language, honest, evil)
    try:
        for row in rows:
            found, wrong = driver.run(row, transport)
            if os.environ.get("HOSTILE_SHOW"):
                print(language, transport, row.name, json.dumps(found), flush=True)
            if wrong:
                failures.append((row, wrong))
                if not driver.is_alive():
                    driver.stop()
                    driver = Driver(language, honest, evil)
        failures += [(ROWS[it["row"]], [f"the client visited another origin: {it}"]) for it in evil.visits()]
    finally:
        driver.stop()
        evil.stop()
    return failures
