"""The cells of the table of counts, and how each is measured."""

import subprocess
import sys
from functools import cache
from itertools import product
from pathlib import Path
from statistics import median
from typing import NamedTuple

from client import Client, Http, Stdio, Transport
from counting import ROOT, Counted

SERVERS = ROOT / "tests/bench/servers"
RUST_SERVER = ROOT / "target/release/bench-server"
TRANSPORTS = ("stdio", "http")
LANGUAGES = ("python", "node", "rust")
ERAS = ("legacy", "modern")
SIZES = {"16 B": 16, "64 KiB": 65_536}
# Calls in a batch: few, so that most batches are free of garbage collections and timers.
CALLS = {"16 B": 5, "64 KiB": 2}
# The median is taken. How often a thread wakes another up differs between calls, and only the usual number is
# repeatable: minima of Node over stdio differ by 4 % between runs, medians by 0.2 %.
BATCHES = {"16 B": 31, "64 KiB": 21}
# Calls before counting starts.
WARM_UP = 50
# With several threads, tokio also counts their search for work.
ENVIRONMENT = {"PYTHONHASHSEED": "0", "TOKIO_WORKER_THREADS": "1"}
# Without the optimizing compilers, whose work and decisions depend on time: JavaScript is interpreted. Compare counts
# of Node with each other only; they say little about the server's speed.
NODE_FLAGS = ("--predictable", "--no-opt", "--no-sparkplug", "--hash-seed=1")


class Cell(NamedTuple):
    transport: str
    language: str
    era: str
    size: str

    def __str__(self) -> str:
        return " ".join(self)


CELLS = [Cell(*parts) for parts in product(TRANSPORTS, LANGUAGES, ERAS, SIZES)]


def measure(cell: Cell, rust_server: Path = RUST_SERVER, *options: str) -> int:
    """Returns the number of instructions that the server process executes for a call, without those of the kernel.

    `options`: further words of the command.
    """
    with Counted([*command(cell, rust_server), *options], ENVIRONMENT) as server:
        transport: Transport = Stdio(server.process) if cell.transport == "stdio" else Http(server.url())
        client = Client(transport, cell.era)
        size, calls = SIZES[cell.size], CALLS[cell.size]
        client.echo(size, WARM_UP)
        server.start()
        batches = []
        for _ in range(1 + BATCHES[cell.size]):
            client.echo(size, calls)
            batches.append(server.take() / calls)
    # The first includes the switch.
    return round(median(batches[1:]))


def command(cell: Cell, rust_server: Path) -> list[str | Path]:
    """Returns the command of a cell's server, which takes a free port."""
    if cell.language == "python":
        return [sys.executable, *([SERVERS / "ours_sync.py"] if is_stdio(cell) else [SERVERS / "ours_http.py", "0"])]
    if cell.language == "node":
        script = [SERVERS / "ours_node.mjs"] if is_stdio(cell) else [SERVERS / "ours_http.mjs", "0"]
        return [node(), *NODE_FLAGS, *script]
    return [rust_server, "stdio" if is_stdio(cell) else "0"]


def is_stdio(cell: Cell) -> bool:
    return cell.transport == "stdio"


@cache
def node() -> str:
    """Returns the path of the program; `node` itself may be a script, which is not what is to be counted."""
    ask = ["node", "--print", "process.execPath"]
    return subprocess.run(ask, check=True, capture_output=True, text=True).stdout.strip()
