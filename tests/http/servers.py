"""The conformance server in each language, natively and behind each mount, as a process of its own."""

import base64
import json
import os
import re
import signal
import subprocess
import threading
import time
from pathlib import Path

import wire

ROOT = Path(__file__).resolve().parents[2]
SERVE = ROOT / "tests/conformance/serve"
NATIVE = ("python", "node", "rust")
KINDS = {
    "python": ["python"],
    "node": ["node"],
    "rust": ["rust"],
    "asgi": ["python", "--mount", "asgi"],
    "fetch": ["node", "--mount", "fetch"],
    "node-http": ["node", "--mount", "node"],
    "tower": ["rust", "--mount", "tower"],
}
# Does not match a message that shows the requested URL with port 0.
READY = re.compile(r"(https?)://(\[[^\]]+\]|[^\s:/]+):([1-9]\d*)(/\S*)?")
# Output of a server in case of unexpected errors.
SURPRISE = re.compile(
    r"Traceback|panicked|Unhandled|never (?:retrieved|awaited)|^\s+at .+:\d+:\d+|RuntimeError|KeyboardInterrupt",
    re.M,
)


class DidNotStart(Exception):
    pass


class Server:
    """A server process. Options are those of `HttpOptions` by Python names, in seconds; it prints its URL on
    stderr. `files`: the maximum number of files that it may open.
    """

    path = "/mcp"
    address = None

    def __init__(self, kind, *, host="127.0.0.1", command=None, files=None, **options):
        self.kind = kind
        if command is None:
            command = [str(SERVE), *KINDS[kind], "--http", f"{host}:0"]
            if options:
                command += ["--options", json.dumps(options)]
        if files:
            command = ["sh", "-c", f'ulimit -n {files} && exec "$@"', "sh", *command]
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.stderr, self.stdout = [], []
        self._ready = threading.Event()
        self._threads = [
            threading.Thread(target=self._read, args=(self.process.stderr, self.stderr), daemon=True),
            threading.Thread(target=self._read, args=(self.process.stdout, self.stdout), daemon=True),
        ]
        for thread in self._threads:
            thread.start()
        if not self._ready.wait(60) or not self.address:
            self.kill()
            raise DidNotStart(f"{' '.join(command)}: exit {self.process.returncode}\n{self.said()}")
        eventually(self._listens)

    def _listens(self):
        try:
            self.connect().close()
            return True
        except OSError:
            return False

    def _read(self, pipe, lines):
        for line in pipe:
            lines.append(line)
            if self.address is None and (found := READY.search(line)):
                _, host, port, _ = found.groups()
                host = host.strip("[]")
                self.address = ("127.0.0.1" if host in ("0.0.0.0", "localhost") else host, int(port))
                self._ready.set()
        if pipe is self.process.stderr:
            self._ready.set()

    @property
    def port(self):
        return self.address[1]

    def connect(self, **options):
        return wire.Connection(self.address, **options)

    def said(self):
        return "".join(self.stderr)

    def surprises(self):
        return [line for line in self.stderr if SURPRISE.search(line)]

    def is_alive(self):
        return self.process.poll() is None

    def connections(self):
        """Returns the number of connections whose sockets the process has open."""
        folder = f"/proc/{self.process.pid}/fd"
        found = set()
        for name in os.listdir(folder):
            try:
                found.add(os.readlink(f"{folder}/{name}"))
            except FileNotFoundError:
                pass
        return sum(link.startswith("socket:") for link in found - _sockets_without_peers())

    def has_no_connections(self):
        """Waits until the connections of earlier tests are closed."""
        return eventually(lambda: self.connections() == 0)

    def resident(self):
        """Returns the resident memory in bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) * 1024

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self, within):
        """Waits for the process and its output to end; returns the exit status."""
        status = self.process.wait(within)
        for thread in self._threads:
            thread.join(60)
        return status

    def stop(self):
        if self.is_alive():
            self.signal(signal.SIGTERM)
            try:
                self.wait(60)
            except subprocess.TimeoutExpired:
                self.kill()
                raise
        self.kill()

    def kill(self):
        self.process.kill()
        self.wait(60)
        self.process.stdout.close()
        self.process.stderr.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def _sockets_without_peers():
    """Returns the listening TCP sockets, and those between processes of this machine."""
    tcp = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    local = [line.split() for line in Path("/proc/net/unix").read_text().splitlines()[1:]]
    listening = "0A"
    inodes = [words[9] for words in tcp if words[3] == listening] + [words[6] for words in local]
    return {f"socket:[{inode}]" for inode in inodes}


def is_logged(server, text):
    """Returns whether a server has logged this text once. The Rust one logs nothing: each program chooses where to."""
    return server.said().count(text) == (server.kind != "rust")


def eventually(what, within=30.0, every=0.02):
    """Waits until `what()` is true; returns its last value."""
    until = time.monotonic() + within
    while not (value := what()) and time.monotonic() < until:
        time.sleep(every)
    return value


def base64_of(text):
    return base64.b64encode(text.encode()).decode()
