"""Runs the `gudgeon` command in a process of its own, with an empty home folder."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from background import processes

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("GUDGEON_COMMAND", ROOT / "target/release/gudgeon"))
SERVERS = Path(__file__).parent / "servers"


class Outcome(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


class Command:
    """The command, with the environment that it is started with."""

    def __init__(self, home: Path):
        self.home = home
        self.folder = home
        # The servers' interpreters are found first; nothing of the user's own environment is used.
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        kept = {name: os.environ[name] for name in ("LANG", "PYTHONPATH", "LD_LIBRARY_PATH") if name in os.environ}
        self.environment = {**kept, "PATH": path, "HOME": str(home), "NO_COLOR": "1"}

    def words(self, *words):
        return [str(PROGRAM), *map(str, words)]

    def __call__(self, *words, text="", timeout=120, **environment) -> Outcome:
        done = subprocess.run(
            self.words(*words),
            input=text,
            capture_output=True,
            encoding="utf-8",
            timeout=timeout,
            cwd=self.folder,
            env={**self.environment, **environment},
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    def start(self, *words, **environment) -> subprocess.Popen:
        """Starts the command with pipes; the caller ends it."""
        return subprocess.Popen(
            self.words(*words),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            cwd=self.folder,
            env={**self.environment, **environment},
        )


@pytest.fixture
def gudgeon(tmp_path) -> Command:
    """The command in an empty home folder."""
    assert PROGRAM.is_file(), f"{PROGRAM} is missing; `make build` builds it"
    return Command(tmp_path)


@pytest.fixture
def shelf() -> Path:
    """A server in Python with a tool of each kind."""
    return SERVERS / "shelf.py"


@pytest.fixture
def desk() -> Path:
    """A server in Python with content of every kind, questions, and control characters."""
    return SERVERS / "desk.py"


@pytest.fixture
def shop() -> Path:
    """A server in Python that counts its calls and asks questions."""
    return SERVERS / "shop.py"


@pytest.fixture
def run(gudgeon) -> Iterator[Path]:
    """The folder of the background process, which is ended after the test. Paths of sockets must be short."""
    folder = Path(tempfile.mkdtemp(prefix="g"))
    gudgeon.environment["XDG_RUNTIME_DIR"] = str(folder)
    yield folder / "gudgeon"
    for process in processes(folder / "gudgeon"):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGTERM)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def odd() -> Callable[[str], list[object]]:
    """A server that a user would not expect, as the words behind the arguments of a command."""
    return lambda kind: ["--", sys.executable, SERVERS / "odd.py", kind]
