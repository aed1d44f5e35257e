"""The fixture servers as processes, connected by raw lines."""

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SERVERS = {
    "python": [sys.executable, str(HERE / "server.py")],
    "node": ["node", str(HERE / "server.mjs")],
    "rust": [str(ROOT / "target/debug/examples/transcript_server")],
}
PATIENCE = 20.0


class Peer:
    """A server process whose output is read only on demand: `with Peer("python") as peer: …`."""

    def __init__(self, server: str, *arguments: str) -> None:
        program = Path(SERVERS[server][-1])
        assert program.exists(), f"{program} does not exist; run cargo build --package gudgeon --example {program.name}"
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            [*SERVERS[server], *arguments],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            bufsize=0,
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout
        os.set_blocking(self._input.fileno(), False)
        self._received = b""

    def __enter__(self) -> "Peer":
        return self

    def __exit__(self, *error: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._input.close()
        self._output.close()
        self._stderr.close()

    @property
    def memory(self) -> int:
        """Returns the resident memory in bytes."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS"))

    def send(self, *messages: Any) -> None:
        """Sends each message as a line: bytes unchanged, other values as JSON."""
        for message in messages:
            line = message if isinstance(message, bytes) else json.dumps(message).encode()
            self.write(line + b"\n")

    def write(self, data: bytes) -> None:
        written = self.offer(data, PATIENCE)
        assert written == len(data), f"took only {written} of {len(data)} bytes; {self.told()}"

    def offer(self, data: bytes, patience: float) -> int:
        """Writes until the server reads nothing for so many seconds; returns the number of bytes written."""
        view, written = memoryview(data), 0
        while written < len(data) and self._ready(self._input, patience, writing=True):
            try:
                written += os.write(self._input.fileno(), view[written : written + 65_536])
            except BlockingIOError:
                time.sleep(0.001)
        return written

    def receive(self) -> Any:
        """Reads the next frame."""
        line = self.receive_line()
        try:
            return json.loads(line)
        except ValueError:
            raise AssertionError(f"no JSON: {line[:200]!r}") from None

    def receive_line(self) -> bytes:
        searched = 0
        while (end := self._received.find(b"\n", searched)) < 0:
            searched = len(self._received)
            assert self._ready(self._output, PATIENCE), f"no frame in {PATIENCE:.0f} s; {self.told()}"
            piece = os.read(self._output.fileno(), 1 << 20)
            assert piece, f"the server has ended; {self.told()}"
            self._received += piece
        line, self._received = self._received[:end], self._received[end + 1 :]
        return line

    def ask(self, message: Any) -> Any:
        self.send(message)
        return self.receive()

    def end(self) -> list[bytes]:
        """Ends the input; returns the remaining lines. The server must exit with status 0."""
        self._input.close()
        return self.last()

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def last(self) -> list[bytes]:
        """Returns the remaining lines. The server must exit with status 0."""
        deadline = time.monotonic() + PATIENCE
        while self._ready(self._output, deadline - time.monotonic()):
            if not (piece := os.read(self._output.fileno(), 1 << 20)):
                break
            self._received += piece
        try:
            status = self._process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running {PATIENCE:.0f} s after its end; {self.told()}") from None
        assert status == 0, f"left with {status}; {self.told()}"
        return self._received.splitlines()

    def told(self) -> str:
        """Returns the end of the server's stderr."""
        self._stderr.seek(0)
        return f"stderr: {self._stderr.read().decode(errors='replace')[-2000:]}"

    @staticmethod
    def _ready(pipe: Any, patience: float, *, writing: bool = False) -> bool:
        poll = select.poll()
        poll.register(pipe.fileno(), select.POLLOUT if writing else select.POLLIN)
        return bool(poll.poll(max(0.0, patience) * 1000))
