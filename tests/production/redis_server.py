"""A Redis server that can be killed and started again, without what it had stored, stopped, and filled."""

import signal
import socket
import subprocess
from contextlib import suppress
from pathlib import Path

from ports import reserve_port
from proxies import program

from eventually import eventually


class Redis:
    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, reserve_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.found = program("redis-server")
        self.start()

    def start(self) -> None:
        options = ["--port", self.port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", self.folder]
        self.process = subprocess.Popen(
            [str(word) for word in [self.found.program, *options]],
            env=self.found.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        eventually(self._listens)

    def _listens(self) -> bool:
        assert self.process.poll() is None
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
            return True
        return False

    def restart(self) -> None:
        self.stop()
        self.start()

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()

    def pause(self) -> None:
        """Has the process stand still, with its connections open."""
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def fill(self) -> None:
        """Has it refuse what takes memory."""
        self._limit_memory(1)

    def empty(self) -> None:
        self._limit_memory(0)

    def _limit_memory(self, limit: int) -> None:
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            connection.sendall(f"CONFIG SET maxmemory {limit}\r\n".encode())
            assert connection.recv(5) == b"+OK\r\n"

    def __enter__(self) -> "Redis":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
