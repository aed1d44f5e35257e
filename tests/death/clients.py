"""Tests that servers end with the programs of our clients: nothing that a client has started is left."""

import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from processes import (
    BOUND,
    CLIENTS,
    GRACE,
    ROOT,
    SERVERS,
    START,
    STUBBORN,
    Wrong,
    children_of,
    grandchildren_in,
    is_alive,
)

# The program closes its client; returns without closing it; fails.
ENDS = {"close": 0, "exit": 0, "error": 1}
# Nothing in the program runs any more, so it ends no children of its server, and the server sees its input end. What
# servers do then in every state is tested without a client.
KILLS = {"SIGTERM": signal.SIGTERM, "SIGKILL": signal.SIGKILL}


class Cell(NamedTuple):
    language: str
    end: str
    state: str

    def __str__(self) -> str:
        return f"{self.language} / client / {self.end} / {self.state}"


def cells() -> list[Cell]:
    return [
        Cell(language, end, state)
        for language in CLIENTS
        for end in (*ENDS, *KILLS)
        for state in (STUBBORN if end in ENDS else ("blocked",))
    ]


def run(cell: Cell) -> str | None:
    """Returns what is wrong with a cell."""
    folder = Path(tempfile.mkdtemp(prefix="death-"))
    try:
        return check(cell, folder / "began")
    except (Wrong, OSError) as wrong:
        return str(wrong)
    finally:
        shutil.rmtree(folder)


def check(cell: Cell, began: Path) -> str | None:
    language, end, state = cell
    server = [*SERVERS[language], "stdio", str(GRACE)]
    command = [*CLIENTS[language], end, state, str(began), *server]
    client = subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert client.stdin and client.stdout and client.stderr
    servers: list[int] = []
    try:
        if not select.select([client.stdout], [], [], START)[0] or client.stdout.readline() != "ready\n":
            raise Wrong("the handler did not begin")
        servers = children_of(client.pid)
        if len(servers) != 1:
            raise Wrong(f"the client has started {len(servers)} processes")
        if end in KILLS:
            client.send_signal(KILLS[end])
        else:
            client.stdin.close()
        wanted = [*servers, *(grandchildren_in(began) if end in ENDS else [])]
        deadline = time.monotonic() + BOUND
        while client.poll() is None or (left := [process for process in wanted if is_alive(process)]):
            if time.monotonic() > deadline:
                state = "runs" if client.poll() is None else f"has ended, and {left} are left"
                raise Wrong(f"{BOUND:.0f} s later the client {state}")
            time.sleep(0.01)
        status = ENDS[end] if end in ENDS else -KILLS[end]
        return None if client.returncode == status else f"the client's status is {client.returncode}, not {status}"
    finally:
        for process in (client.pid, *servers, *grandchildren_in(began)):
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        client.wait()
        for pipe in (client.stdin, client.stdout, client.stderr):
            pipe.close()
