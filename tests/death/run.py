"""Tests the end of server processes: every cause, with every kind of handler that does not stop, in every language.

Each cell starts a server, lets a handler begin, brings about the cause, and checks that the process is gone within a
bound, with the status that the cause has. Servers that our clients have started are in clients.py. Arguments select
cells by parts of their names. A cell that fails is run again, alone.
"""

import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, NamedTuple

import clients
from processes import (
    BLOCKING,
    BOUND,
    FOLDER,
    GRACE,
    ROOT,
    SERVERS,
    START,
    STUBBORN,
    Wrong,
    children_of,
    grandchildren_in,
    is_alive,
    sockets_of,
)

PROGRAMS = {"python": SERVERS["python"], "python with workers": SERVERS["python"], **SERVERS}
# The second signal has to arrive before the handlers have had their time.
GRACE_BEFORE_SECOND = 5000
CELLS_AT_ONCE = 12

STATES = ("idle", *STUBBORN)
# With these causes it is the report about the handler that can be lost or wait: there is none of an idle server, the
# watchdog writes that of a blocked one, and the server's own end that of one that ignores its cancellation.
REPORTED = ("idle", "blocked", "swallows")
# Calls that fail and log more than a pipe or a socket holds, while nobody reads stderr.
FAILING = 400
MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Cell(NamedTuple):
    language: str
    transport: str
    cause: str
    state: str

    def __str__(self) -> str:
        return " / ".join(self)


class Process:
    """A server process, and what it is to be cleaned of."""

    def __init__(self, cell: Cell, folder: Path, stack: ExitStack) -> None:
        self.cell = cell
        self.began = folder / "began"
        self.url: str | None = None
        command = [*PROGRAMS[cell.language], "stdio" if cell.transport == "stdio" else "http://127.0.0.1:0/mcp"]
        command.append(str(GRACE_BEFORE_SECOND if cell.cause == "SIGINT twice" else GRACE))
        if cell.language == "python with workers":
            command.append("2")
        if cell.cause == "parent killed":
            command = [sys.executable, str(FOLDER / "host.py"), *command]
        # Without a descriptor 2 from the start.
        if cell.cause == "stderr missing":
            command = ["sh", "-c", 'exec "$@" 2>&-', "sh", *command]
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        stack.callback(self.clean_up)
        self.server = self.process.pid
        self.calls: list[threading.Thread] = []
        self.workers: list[int] = []
        if cell.cause == "parent killed":
            assert self.process.stdout is not None
            self.server = int(self.process.stdout.readline())
        if cell.transport == "http":
            self.url = self.find_url() if cell.cause != "stderr missing" else self.find_port()

    def find_url(self) -> str:
        assert self.process.stderr is not None
        while line := self.process.stderr.readline().decode():
            if found := re.search(r"http://127\.0\.0\.1:[1-9]\d*/\S+", line):
                return found[0]
        raise Wrong("the server did not start")

    def find_port(self) -> str:
        """Finds the port at which a server listens that can't name it."""
        deadline = time.monotonic() + START
        while time.monotonic() < deadline and is_alive(self.server):
            sockets = {name for process in (self.server, *children_of(self.server)) for name in sockets_of(process)}
            for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
                # The local address, the state (of those that listen 0A) and the inode, in this place among the columns.
                columns = line.split()
                if columns[3] == "0A" and f"socket:[{columns[9]}]" in sockets:
                    return f"http://127.0.0.1:{int(columns[1].partition(':')[2], 16)}/mcp"
            time.sleep(0.01)
        raise Wrong("the server did not start")

    def call(self, name: str, arguments: dict[str, Any]) -> None:
        params = {"name": name, "arguments": arguments, "_meta": MODERN}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
        if self.url is None:
            assert self.process.stdin is not None
            self.process.stdin.write(body + b"\n")
            self.process.stdin.flush()
            return
        headers = {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": "2026-07-28",
            "mcp-method": "tools/call",
            "mcp-name": name,
        }
        request = urllib.request.Request(self.url, body, headers)
        thread = threading.Thread(target=ask, args=(request,), daemon=True)
        thread.start()
        self.calls.append(thread)
        if len(self.calls) % 20 == 0:
            self.wait_for_calls()

    def wait_for_calls(self) -> None:
        """Waits until the calls at an address are answered."""
        deadline = time.monotonic() + BOUND
        for thread in self.calls:
            thread.join(max(0.0, deadline - time.monotonic()))
            if thread.is_alive():
                raise Wrong("a call is not answered")
        self.calls.clear()

    def wait_until_it_runs(self) -> None:
        """Waits until the handler has begun, or an idle server has answered."""
        deadline = time.monotonic() + START
        while not self.began.exists():
            if not is_alive(self.server):
                raise Wrong(f"it ended at the start: {self.rest_of_stderr()}")
            if time.monotonic() > deadline:
                raise Wrong("the handler did not begin")
            time.sleep(0.01)

    def wait(self, bound: float = BOUND) -> int | None:
        """Returns the exit status; None for the server of a host that was killed."""
        deadline = time.monotonic() + bound
        while any(is_alive(process) for process in (self.server, *self.workers)):
            self.process.poll()
            if time.monotonic() > deadline:
                raise Wrong(f"it still runs {bound:.0f} s later")
            time.sleep(0.01)
        if self.cell.cause == "parent killed":
            return None
        status = self.process.wait(5)
        # As a shell shows it.
        return status if status >= 0 else 128 - status

    def fill_stderr(self) -> None:
        """Fills the pipe that nobody reads, by a description of its own, so that the server's stays blocking."""
        with closing(Descriptor(f"/proc/{self.server}/fd/2")) as pipe:
            for size in (4096, 1):
                try:
                    while True:
                        os.write(pipe.number, b"x" * size)
                except BlockingIOError:
                    pass

    def rest_of_stderr(self) -> str:
        assert self.process.stderr is not None
        if self.process.poll() is None or self.process.stderr.closed:
            return ""
        os.set_blocking(self.process.stderr.fileno(), False)
        return (self.process.stderr.read() or b"").decode(errors="replace")

    def find_workers(self) -> None:
        """Finds the processes that serve for this one, which end with it."""
        if self.cell.language == "python with workers":
            # The address is there once the first one listens.
            deadline = time.monotonic() + START
            while len(self.workers) != 2:
                if time.monotonic() > deadline:
                    raise Wrong(f"there are {len(self.workers)} workers")
                time.sleep(0.02)
                self.workers = [process for process in children_of(self.server) if process not in self.grandchildren()]

    def clean_up(self) -> None:
        for process in {self.server, self.process.pid, *self.workers, *self.grandchildren()}:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            try:
                pipe.close()  # type: ignore[union-attr]
            except BrokenPipeError:
                pass

    def grandchildren(self) -> list[int]:
        return grandchildren_in(self.began)


class Descriptor:
    def __init__(self, path: str) -> None:
        self.number = os.open(path, os.O_WRONLY | os.O_NONBLOCK)

    def close(self) -> None:
        os.close(self.number)


def ask(request: urllib.request.Request) -> None:
    try:
        urllib.request.urlopen(request, timeout=60).read()
    except OSError:
        pass  # the server has ended


def end_of_input(it: Process) -> None:
    assert it.process.stdin is not None
    it.process.stdin.close()


def terminate(it: Process) -> None:
    os.kill(it.server, signal.SIGTERM)


def interrupt_twice(it: Process) -> None:
    os.kill(it.server, signal.SIGINT)
    # Two signals that a busy process has not handled yet are delivered as one, so it may take a third.
    for seconds in (0.2, 1):
        deadline = time.monotonic() + seconds
        while is_alive(it.server) and time.monotonic() < deadline:
            time.sleep(0.01)
        if is_alive(it.server):
            os.kill(it.server, signal.SIGINT)


def kill_parent(it: Process) -> None:
    it.process.kill()


def stop(it: Process) -> None:
    """Brings about the usual end of the transport."""
    (end_of_input if it.cell.transport == "stdio" else terminate)(it)


def close_stderr(it: Process) -> None:
    assert it.process.stderr is not None
    it.process.stderr.close()
    stop(it)


def close_stdout(it: Process) -> None:
    assert it.process.stdout is not None
    it.process.stdout.close()


CAUSES = {
    "EOF": end_of_input,
    "SIGTERM": terminate,
    "SIGINT twice": interrupt_twice,
    "parent killed": kill_parent,
    # It was filled before the first call.
    "stderr full": stop,
    "stderr closed": close_stderr,
    "stderr missing": stop,
    "stdout gone": close_stdout,
}
# At an address neither the parent nor the standard streams say that the server is to end.
AT_ADDRESSES = ("SIGTERM", "SIGINT twice", "stderr full", "stderr closed", "stderr missing")


def expected(cell: Cell) -> tuple[int | None, ...]:
    if cell.cause == "parent killed":
        return (None,)
    if cell.cause == "SIGINT twice":
        # The first one may be enough.
        return (0, 130) if cell.state == "idle" else (130,)
    if cell.state not in BLOCKING:
        return (0,)
    if cell.language == "rust" and cell.transport == "stdio" and cell.state == "blocked":
        # It blocks the thread that reads, which nothing waits for.
        return (0,)
    is_signal = cell.cause == "SIGTERM" or cell.transport == "http"
    return (143,) if is_signal else (1,)


def run(cell: Cell) -> str | None:
    """Returns what is wrong with a cell."""
    try:
        return check(cell)
    except (Wrong, BrokenPipeError) as wrong:
        return str(wrong)


def check(cell: Cell) -> str | None:
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="death-"))
        stack.callback(shutil.rmtree, folder)
        it = Process(cell, folder, stack)
        if cell.cause == "stderr full":
            # Not after a call: what it logs would have found room before, and would block now.
            it.fill_stderr()
        if cell.state == "failing":
            fail_often(it)
        elif cell.state == "idle":
            it.call("fail", {"size": 1})
            wait_for_answer(it)
        else:
            it.call(cell.state, {"at": str(it.began)})
            it.wait_until_it_runs()
        it.find_workers()
        CAUSES[cell.cause](it)
        status = it.wait()
        said = it.rest_of_stderr()
        if status not in expected(cell):
            return f"its status is {status}, not {expected(cell)}; {said}"
        if "panicked" in said:
            return said
        if status not in (0, None) and cell.cause in ("EOF", "SIGTERM") and f'tool "{cell.state}"' not in said:
            return f"its stderr does not name the tool: {said}"
    return None


def fail_often(it: Process) -> None:
    """Checks that every call is answered although its log message is not read."""
    for number in range(FAILING):
        it.call("fail", {"size": 1000})
        if it.url is not None:
            continue
        assert it.process.stdout is not None
        # The first answer comes after the start.
        if not select.select([it.process.stdout], [], [], START if number == 0 else BOUND)[0]:
            raise Wrong(f"call {number} is not answered")
        it.process.stdout.readline()
    if it.url is not None:
        it.wait_for_calls()


def wait_for_answer(it: Process) -> None:
    if it.url is not None:
        it.wait_for_calls()
    elif it.cell.cause != "parent killed":
        assert it.process.stdout is not None
        if not it.process.stdout.readline():
            raise Wrong(f"it ended at the start: {it.rest_of_stderr()}")


def cells() -> list[Cell]:
    return [
        Cell(language, transport, cause, state)
        for language in PROGRAMS
        for transport, causes in (("stdio", tuple(CAUSES)), ("http", AT_ADDRESSES))
        if transport == "http" or language != "python with workers"
        for cause in causes
        for state in states_for(cause)
    ]


def states_for(cause: str) -> tuple[str, ...]:
    if cause.startswith("stderr"):
        return REPORTED
    return (*STATES, "failing") if cause in ("EOF", "SIGTERM") else STATES


def main(wanted: list[str]) -> int:
    jobs = [(cell, run) for cell in cells()] + [(cell, clients.run) for cell in clients.cells()]
    jobs = [job for job in jobs if all(word in str(job[0]) for word in wanted)]
    with ThreadPoolExecutor(CELLS_AT_ONCE) as pool:
        found = list(pool.map(lambda job: job[1](job[0]), jobs))
    failures = []
    for (cell, run_cell), first in zip(jobs, found, strict=True):
        if first is None:
            continue
        # A cell that fails is repeated alone.
        if wrong := run_cell(cell):
            failures.append((cell, wrong))
        else:
            print(f"flaky: {cell}: {shortened(first)}")
    print(f"death: {len(jobs) - len(failures)} passed, {len(failures)} failed")
    for cell, wrong in failures:
        print(f"  {cell} FAILED: {shortened(wrong)}")
    return 1 if failures or not jobs else 0


def shortened(wrong: str) -> str:
    """Returns a finding on one line. A server's stderr may be long; its end tells how it ended."""
    wrong = " ".join(wrong.split())
    return wrong if len(wrong) <= 900 else f"{wrong[:300]} … {wrong[-600:]}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
