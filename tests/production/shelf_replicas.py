"""Processes that serve the same tools at ports of their own, with the same keys."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
from pathlib import Path

import wire
from ports import reserve_port

from eventually import eventually

HERE = Path(__file__).resolve().parent
KEYS = "a key of thirty-two bytes or more that every replica has"


class Replica:
    """A server process, started with options of `app.run`. It can be killed and started again at the same port."""

    def __init__(self, folder: Path, *, scheme: str = "http", name: str = "", **options: object) -> None:
        self.folder = folder
        self.port = reserve_port()
        self.name = name or str(self.port)
        self.scheme, self.options = scheme, options
        self.stderr: list[str] = []
        self.start()

    def command(self) -> list[object]:
        url = f"{self.scheme}://127.0.0.1:{self.port}/mcp"
        return [sys.executable, HERE / "server.py", url, json.dumps(self.options)]

    def start(self) -> None:
        self.process = subprocess.Popen(
            [str(word) for word in self.command()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                "GUDGEON_STATE_KEYS": KEYS,
                "REPLICA": self.name,
                "FOLDER": str(self.folder),
            },
        )
        self._reader = threading.Thread(target=self._read, args=(self.process.stderr,), daemon=True)
        self._reader.start()
        eventually(self.listens)

    def _read(self, pipe: object) -> None:
        with pipe:
            self.stderr += pipe

    def listens(self) -> bool:
        assert self.process.poll() is None, "".join(self.stderr)
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
            return True
        return False

    def probe(self, path: str) -> tuple[int, bytes]:
        """Returns the status and the body of a health check."""
        with wire.Connection(("127.0.0.1", self.port), **self._speaks_tls()) as connection:
            answer = connection.ask("GET", path)
        return answer.status, answer.body

    def _speaks_tls(self) -> dict[str, object]:
        if self.scheme == "http":
            return {}
        preamble = b"PROXY UNKNOWN\r\n" if self.options.get("proxy_protocol") else b""
        context = ssl.create_default_context(cafile=self.options["tls"][0])
        return {"tls": context, "name": "localhost", "preamble": preamble}

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join()

    def restart(self) -> None:
        """Kills the process and starts another one, after its peers have noticed."""
        self.kill()
        eventually(lambda: not self._has_connections())
        self.start()

    def _has_connections(self) -> bool:
        lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        remote, state = 2, 3
        time_wait, port = "06", f":{self.port:04X}"
        return any(words[remote].endswith(port) and words[state] != time_wait for words in lines)

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def ends(self) -> None:
        """Waits for the end of a process that was terminated."""
        status = self.process.wait(60)
        self._reader.join()
        assert status == 0, "".join(self.stderr)

    def resident(self) -> int:
        """Returns the resident memory in bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) * 1024


class UnixReplica(Replica):
    """A server process at a Unix socket in its folder."""

    def __init__(self, folder: Path, **options: object) -> None:
        self.path = folder / "shelf.sock"
        super().__init__(folder, **options)

    def command(self) -> list[object]:
        return [sys.executable, HERE / "server.py", f"http+unix:{self.path}", json.dumps(self.options)]

    def listens(self) -> bool:
        assert self.process.poll() is None, "".join(self.stderr)
        return self.path.is_socket()


@contextlib.contextmanager
def running(number: int, folder: Path, **options: object):
    """Starts replicas; at the end those that still run must end well."""
    replicas: list[Replica] = []
    try:
        for at in range(number):
            replicas.append(Replica(folder, name=f"replica-{at}", **options))
        yield replicas
        for replica in replicas:
            if replica.process.poll() is None:
                replica.terminate()
                replica.ends()
    finally:
        for replica in replicas:
            replica.kill()
