"""A server process over pipes for tests: frames in both directions, and its exit."""

import json
import os
import queue
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def is_alive(pid: int) -> bool:
    """Returns whether a process exists and has not ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


class ServerProcess:
    """A process that runs `source` with `app` defined before it and `app.run()` after it, unless it calls that."""

    def __init__(
        self, source: str, era: str = "legacy", options: str = "", capabilities: dict[str, Any] | None = None
    ) -> None:
        head = "import asyncio, os, sys, threading, time\nfrom gudgeon import Context, Server, SyncContext, ToolError\n"
        head += f"app = Server('t'{options})\n"
        source = textwrap.dedent(source)
        tail = "" if "app.run(" in source else "\napp.run()\n"
        self.era = era
        self.process = subprocess.Popen(
            [sys.executable, "-c", head + source + tail],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"},
        )
        self.frames: queue.Queue[Any] = queue.Queue()
        self.errors: list[bytes] = []
        self.seen: list[Any] = []
        self._next = 0
        self._threads = [threading.Thread(target=self._read), threading.Thread(target=self._read_errors)]
        for thread in self._threads:
            thread.start()
        if era == "legacy":
            info = {"name": "t", "version": "1"}
            client = {"protocolVersion": "2025-11-25", "capabilities": capabilities or {}, "clientInfo": info}
            self.ask("initialize", client)
            self.send({"method": "notifications/initialized"})

    def __enter__(self) -> "ServerProcess":
        return self

    def __exit__(self, *exc: object) -> None:
        self.process.kill()
        self.process.wait()
        for thread in self._threads:
            thread.join()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            try:
                pipe.close()  # type: ignore[union-attr]
            except BrokenPipeError:
                pass

    def send(self, message: dict[str, Any]) -> None:
        if self.era == "modern":
            params = dict(message.get("params", {}))
            params["_meta"] = {**MODERN, **params.get("_meta", {})}
            message = {**message, "params": params}
        self.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def start(self, method: str, params: dict[str, Any] | None = None) -> int:
        self._next += 1
        self.send({"id": self._next, "method": method, "params": params or {}})
        return self._next

    def start_tool(self, name: str, /, **arguments: Any) -> int:
        return self.start("tools/call", {"name": name, "arguments": arguments})

    def ask(self, method: str, params: dict[str, Any] | None = None) -> Any:
        return self.reply(self.start(method, params))

    def tool(self, name: str, /, **arguments: Any) -> Any:
        return self.reply(self.start_tool(name, **arguments))["result"]

    def text(self, name: str, /, **arguments: Any) -> str:
        return str(self.tool(name, **arguments)["content"][0]["text"])

    def receive(self, timeout: float = 60) -> Any:
        frame = self.frames.get(timeout=timeout)
        self.seen.append(frame)
        return frame

    def reply(self, id: int, timeout: float = 60) -> Any:
        """Returns the reply to this request; earlier frames are in `seen`."""
        for frame in self.seen:
            if frame.get("id") == id and "method" not in frame:
                return frame
        deadline = time.monotonic() + timeout
        while True:
            frame = self.receive(max(0.0, deadline - time.monotonic()))
            if frame.get("id") == id and "method" not in frame:
                return frame

    def until(self, method: str, timeout: float = 60) -> Any:
        while (frame := self.receive(timeout)).get("method") != method:
            pass
        return frame

    def close_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def has_pending_interrupt(self) -> bool:
        """Returns whether the process has not handled a SIGINT yet, where the system tells."""
        status = Path(f"/proc/{self.process.pid}/status")
        pending = re.findall(r"^(?:SigPnd|ShdPnd):\s*(\w+)$", status.read_text(), re.M) if status.exists() else []
        return any(int(mask, 16) & 1 << (signal.SIGINT - 1) for mask in pending)

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def wait(self, timeout: float = 60) -> int:
        """Waits for the exit; returns the status, with all output collected."""
        status = self.process.wait(timeout)
        for thread in self._threads:
            thread.join(timeout)
        while not self.frames.empty():
            self.receive(0)
        return status

    @property
    def stderr(self) -> str:
        return b"".join(self.errors).decode()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.frames.put(json.loads(line))

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.errors.append(line)
