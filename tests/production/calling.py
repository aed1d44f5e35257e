"""Callers: client programs that make calls when they are told to, and say what became of each."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from programs import ROOT

HERE = Path(__file__).resolve().parent / "callers"
COMMANDS = {
    "ours python": [sys.executable, HERE / "ours.py"],
    "official python": [ROOT / ".interop/py2/bin/python", HERE / "official.py"],
    "official ts": ["node", HERE / "official.mjs"],
}
ENDS_WITHIN = 60  # seconds


class Outcome(NamedTuple):
    """The end of a call: a result, or an error with its name."""

    number: int
    got: str | None = None
    error: str | None = None
    message: str = ""
    memory: int = 0


class Caller:
    """A client program. `on_outcome` is called on its thread for each call that ends."""

    def __init__(self, kind: str, era: str, url: str, timeout: float, on_outcome: Callable[[Caller, Outcome], None]):
        self.name = f"{kind} {era}"
        self.is_legacy = era == "legacy"
        self.is_ours = kind.startswith("ours")
        self.on_outcome = on_outcome
        self.stderr: list[str] = []
        self.connected = threading.Event()
        self.process = subprocess.Popen(
            [str(word) for word in [*COMMANDS[kind], url, era, timeout]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        self._readers = [threading.Thread(target=read, daemon=True) for read in (self._read, self._read_errors)]
        for reader in self._readers:
            reader.start()

    def _read(self) -> None:
        for line in self.process.stdout:
            outcome = Outcome(**json.loads(line))
            if outcome.number < 0:
                self.connected.set()
            else:
                self.on_outcome(self, outcome)
        self.connected.set()

    def _read_errors(self) -> None:
        self.stderr += self.process.stderr

    def call(self, number: int, kind: str) -> None:
        self.process.stdin.write(json.dumps({"number": number, "kind": kind}) + "\n")
        self.process.stdin.flush()

    def end(self) -> None:
        """Ends the input, and asserts that the program ends well."""
        self.process.stdin.close()
        try:
            status = self.process.wait(ENDS_WITHIN)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"{self.name} did not end within {ENDS_WITHIN} s") from None
        for reader in self._readers:
            reader.join()
        assert status == 0, f"{self.name} ended with status {status}: {''.join(self.stderr)[-2000:]}"

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
