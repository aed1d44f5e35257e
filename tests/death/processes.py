"""Shared by both parts of the matrix: the programs, the bounds, and which processes are there."""

import os
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(__file__).parent
PYTHON = str(ROOT / ".venv/bin/python")
EXAMPLES = ROOT / "target/debug/examples"
SERVERS = {
    "python": [PYTHON, str(FOLDER / "server.py")],
    "node": ["node", str(FOLDER / "server.mjs")],
    "rust": [str(EXAMPLES / "stubborn_server")],
}
CLIENTS = {
    "python": [PYTHON, str(FOLDER / "client.py")],
    "node": ["node", str(FOLDER / "client.mjs")],
    "rust": [str(EXAMPLES / "stubborn_server_client")],
}
# Milliseconds that a server gives its handlers; those that it cancelled have 3 s more. Machines are busy.
GRACE = 300
# Seconds.
BOUND = 10.0
START = 30.0

# Those that don't stop when they are cancelled and don't let the loop of their language run.
BLOCKING = ("blocked", "spin")
STUBBORN = (*BLOCKING, "swallows", "grandchild")


class Wrong(Exception):
    """The findings of a cell."""


def is_alive(process: int) -> bool:
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def children_of(parent: int) -> list[int]:
    """Returns the processes that any thread of a process has started."""
    children: list[int] = []
    # Threads, and the process itself, may end in between.
    with suppress(FileNotFoundError):
        for thread in Path(f"/proc/{parent}/task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):
                children += [int(child) for child in (thread / "children").read_text().split()]
    return children


def sockets_of(process: int) -> set[str]:
    """Returns the names of the sockets that a process has open, like `socket:[4026]`."""
    names: set[str] = set()
    # Descriptors may be closed in between, and the process may end.
    with suppress(FileNotFoundError):
        for descriptor in Path(f"/proc/{process}/fd").iterdir():
            with suppress(FileNotFoundError):
                names.add(os.readlink(descriptor))
    return {name for name in names if name.startswith("socket:")}


def grandchildren_in(began: Path) -> list[int]:
    """Returns the process that a handler has started and named in its file."""
    text = began.read_text() if began.exists() else ""
    return [int(text)] if text else []
