"""Evil servers against the clients of three languages: how each call ends, and what it costs."""

import json
import os
import select
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

import bindings
from processes import CLIENTS, FOLDER, MIB, PING, Process, processes_with
from rows import ALL, table

ROWS = table()
# The clients' `timeout` in rows that end with it, and in others, which end sooner; `max_timeout` is twice that.
SHORT, LONG = 1.0, 15.0
# What a busy machine may add to that.
MARGIN = 8.0
CLOSE = 8.0
# The seconds after which a client without an outcome counts as hanging.
STUCK = 60.0
# The seconds that a client may take to end after its input.
END = 5.0


class Broken(Exception):
    """A client program that ended or whose output is not an outcome."""


class Hangs(Broken):
    """A client program without an outcome."""


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

    def __init__(self, command, honest, evil, stuck, longest_ping):
        super().__init__([*command, honest])
        # The honest server, until the program has connected to it.
        self.honest = honest
        self.evil = evil
        self.stuck = stuck
        self.longest_ping = longest_ping

    def run(self, row, transport):
        """Returns what a row came to, and what is wrong with that. A client that broke or hangs is ended."""
        token = f"hostile-{uuid4().hex}"
        try:
            if self.honest:
                # Code that the program loads and compiles for its first connection is not growth.
                self.outcome({"target": self.honest, "action": "connect", "changes": False, "timeout": LONG})
                self.honest = ""
            before = self.memory()
            self.forget_peak()
            found = self.outcome({"target": self.target(row, transport, token), **job_of(row, transport)})
            found["grown"] = self.memory("VmHWM") - before
        except (OSError, ValueError, Broken) as problem:
            wrong = self.broken(problem)
            # Its servers would keep their pipes, and the machine busy.
            left_of(token)
            return {}, [wrong]
        wrong = []
        if found["outcome"] not in row.expected(transport):
            wrong.append(f"the outcome is {found['outcome']!r}, not {row.expected(transport)}: {found['detail']}")
        if found["took"] > 2 * timeout_of(row, transport) + MARGIN:
            wrong.append(f"it took {found['took']:.1f} s")
        if found["closed"] > CLOSE:
            wrong.append(f"closing took {found['closed']:.1f} s")
        if found["grown"] > row.memory:
            wrong.append(f"memory grew by {found['grown'] // MIB} MiB")
        if found["ping"] > self.longest_ping:
            wrong.append(f"a ping of another server took {found['ping']:.0f} ms")
        if left := left_of(token):
            wrong.append(f"processes are left: {left}")
        return found, wrong

    def outcome(self, job):
        """Runs a job; raises `Hangs` if no outcome arrives in time, and `Broken` if the output is not an outcome."""
        self.process.stdin.write(json.dumps(job).encode() + b"\n")
        self.process.stdin.flush()
        output = self.process.stdout.fileno()
        poll = select.poll()
        poll.register(output, select.POLLIN)
        until = time.monotonic() + self.stuck
        line = b""
        while not line.endswith(b"\n"):
            if not poll.poll(max(0, until - time.monotonic()) * 1000):
                raise Hangs(f"the client hangs: no outcome in {self.stuck:g} s")
            if not (piece := os.read(output, 1 << 16)):
                raise Broken("the client ended")
            line += piece
        try:
            return json.loads(line)
        except ValueError:
            raise Broken(f"the client's outcome is not JSON: {line[:200]!r}") from None

    def broken(self, problem):
        """Ends the client; returns the description of what happened to it."""
        try:
            status = self.process.wait(0 if isinstance(problem, Hangs) else END)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            status = None
        self.reading.join(END)
        said = "".join(self.said)[-2000:]
        return f"{problem}{f', with status {status}' if status is not None else ''}; its stderr: {said!r}"

    def target(self, row, transport, token):
        if transport == "stdio":
            return [sys.executable, str(FOLDER / "servers.py"), "stdio", row.name, self.evil.canary, token]
        return f"{transport}://127.0.0.1:{self.evil.port}/{quote(row.name)}"

    def stop(self):
        """Ends the client; returns what is wrong with how it ends."""
        wrong = []
        try:
            self.process.stdin.close()
            self.process.wait(min(END, self.stuck))
        except OSError:
            pass
        except subprocess.TimeoutExpired:
            wrong = ["the client does not end after its input"]
        super().stop()
        return wrong


def job_of(row, transport):
    changes = row.era == "legacy" or "subscriptions/listen" in row.behaviours
    return {"action": row.action, "changes": changes, "timeout": timeout_of(row, transport)}


def timeout_of(row, transport):
    return SHORT if row.outlasts_timeout or "timeout" in row.expected(transport) else LONG


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
            for row in bindings.chosen(language, transport, ROWS, bindings.CLIENT):
                name = f"{language} / {transport} / {row.name}"
                if all(word in name for word in wanted):
                    chosen.setdefault((language, transport), []).append(row)
    return chosen


def run(language, transport, rows, honest):
    """Runs rows one after the other with one client; returns those that failed, with the reasons."""
    return attack(language, CLIENTS[language], transport, rows, honest)


def attack(language, command, transport, rows, honest, stuck=STUCK):
    """Runs rows with a client program."""
    failures = []
    # Servers of its own, because floods would delay those of other clients.
    evil = Evil()
    driver = None
    try:
        for row in rows:
            driver = driver or Driver(command, honest, evil, stuck, PING[language])
            found, wrong = driver.run(row, transport)
            if os.environ.get("HOSTILE_SHOW"):
                print(language, transport, row.name, json.dumps(found), flush=True)
            if wrong:
                failures.append((row, wrong))
                if not driver.is_alive():
                    driver.stop()
                    driver = None
        if driver and (wrong := driver.stop()):
            failures.append((rows[-1], wrong))
        for visit in evil.visits():
            # The address of the request names the row, unless the client changed it.
            row = ROWS.get(visit["row"], rows[-1])
            failures.append((row, [f"the client visited another origin: {visit}"]))
    finally:
        if driver:
            driver.stop()
        evil.stop()
    return failures
