"""Processes under attack: how they are started, what memory they take, and whether any is left."""

import os
import re
import subprocess
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(__file__).parent
PYTHON = str(ROOT / ".venv/bin/python")
RUST = str(ROOT / "target/debug/hostile")
SERVERS = {
    "python": [PYTHON, str(FOLDER / "server.py")],
    "node": ["node", str(FOLDER / "server.mjs")],
    "rust": [RUST, "server"],
}
CLIENTS = {
    "python": [PYTHON, str(FOLDER / "client.py")],
    "node": ["node", str(FOLDER / "client.mjs")],
    "rust": [RUST, "client"],
}
ADDRESS = re.compile(r"(?:http|tcp)://127\.0\.0\.1:([1-9]\d*)")
MIB = 1 << 20
# The milliseconds that a ping may take during an attack. The program in Rust is not optimised, as the packages for
# Python and Node are.
PING = {"python": 100.0, "node": 100.0, "rust": 1000.0}


class Process:
    """A process whose stderr is read to its end."""

    def __init__(self, command):
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.said = []
        self.port = None
        self.ready = threading.Event()
        self.reading = threading.Thread(target=self.read, daemon=True)
        self.reading.start()

    def read(self):
        for line in self.process.stderr:
            text = line.decode(errors="replace")
            # A flood of log messages is part of some attacks.
            if len(self.said) < 1000:
                self.said.append(text)
            if self.port is None and (found := ADDRESS.search(text)):
                self.port = int(found[1])
                self.ready.set()
        self.ready.set()

    def wait_for_port(self):
        """Returns the port that a server announces."""
        if not self.ready.wait(30) or self.port is None:
            raise RuntimeError(f"the server did not start: {''.join(self.said)}")
        return self.port

    def memory(self, of="VmRSS"):
        """Returns the bytes of resident memory; those of the peak are `VmHWM`."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(rf"{of}:\s+(\d+) kB", status)
        if not found:
            raise ProcessLookupError("the process ended")
        return int(found[1]) * 1024

    def processor_time(self):
        """Returns the seconds for which the process has computed, to a hundredth."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")

    def forget_peak(self):
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def is_alive(self):
        return self.process.poll() is None

    def stop(self):
        for pipe in (self.process.stdin, self.process.stdout):
            try:
                pipe.close()
            except OSError:
                pass
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.reading.join(5)
        self.process.stderr.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def processes_with(token):
    """Returns the processes whose command or environment has this word."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                text = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if token.encode() in text and state not in "ZX":
                found.append(int(entry.name))
    return found
