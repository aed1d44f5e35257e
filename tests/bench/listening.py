"""Listening servers for the HTTP benchmarks: spawned on a free port, with memory measured by /proc."""

import ctypes
import http.client
import json
import os
import re
import resource
import socket
import subprocess
import time
from pathlib import Path

from common import OURS_PYTHON, ROOT, SERVERS, Broken
from ports import reserve_port

DRIVER = ROOT / "target/release/bench-driver"
RUST_SERVER = ROOT / "target/release/bench-server"
RMCP_SERVER = ROOT / "target/release/bench-rmcp"
HYPER_SERVER = ROOT / "target/release/bench-hyper"
COMMANDS = {
    "mcp 2": [ROOT / ".interop/py2/bin/python", SERVERS / "mcp2_http.py"],
    "python": [OURS_PYTHON, SERVERS / "ours_http.py"],
    "python async": [OURS_PYTHON, SERVERS / "ours_http_async.py"],
    "ts 2": ["node", SERVERS / "ts2_http.mjs"],
    "node": ["node", "--expose-gc", SERVERS / "ours_http.mjs"],
    "rmcp": [RMCP_SERVER],
    "rust": [RUST_SERVER],
    "hyper": [HYPER_SERVER],
}
OURS = ("python", "node", "rust")
PR_SET_THP_DISABLE = 41
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def allow_many_files():
    """Raises the limit of file descriptors for this process and its children."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def without_huge_pages():
    """Disables huge pages for the next process, which would round its memory up by 2 MB at random times."""
    ctypes.CDLL(None).prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0)


class Listening:
    """A server on its own port; `options` are those of `HttpOptions` by their Python names.

    `environment` are additional variables, `processors` the numbers of those that it may use.
    """

    def __init__(self, name, *, environment=None, processors=None, **options):
        def prepare():
            without_huge_pages()
            if processors is not None:
                os.sched_setaffinity(0, processors)

        self.port = reserve_port()
        command = [*COMMANDS[name], str(self.port), *([json.dumps(options)] if options else [])]
        self.process = subprocess.Popen(
            [str(word) for word in command],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, **(environment or {})},
            preexec_fn=prepare,
        )
        try:
            self._wait_until_it_listens()
        except Broken:
            self.stop()
            raise

    def _wait_until_it_listens(self):
        until = time.monotonic() + 30
        while time.monotonic() < until:
            if self.process.poll() is not None:
                raise Broken(f"exit {self.process.returncode}\n{self.process.stderr.read().decode()[-2000:]}")
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                time.sleep(0.05)
        raise Broken("does not listen after 30 s")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stderr.close()

    def drive(self, *options):
        """Runs the driver's calls once."""
        try:
            done = subprocess.run(self._driver(options), check=False, capture_output=True, text=True, timeout=300)
        except subprocess.TimeoutExpired:
            raise Broken(f"no end after 300 s with {' '.join(options)}") from None
        if done.returncode:
            raise Broken("\n".join(done.stderr.strip().splitlines()[-20:]))
        return json.loads(done.stdout)

    def drive_in_lots(self, count, *options):
        """Runs several lots of calls on the same connections; yields after each."""
        command = [*self._driver(options), "--lots", str(count)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with subprocess.Popen(command, text=True, **pipes) as driver:
            try:
                for lot in range(count):
                    said = driver.stdout.readline()
                    if (said != "paused\n" and lot < count - 1) or not said:
                        raise Broken(driver.communicate()[1].strip())
                    yield lot
                    if lot < count - 1:
                        driver.stdin.write("\n")
                        driver.stdin.flush()
            finally:
                driver.kill()

    def _driver(self, options):
        words = [DRIVER, "http", "--at", f"127.0.0.1:{self.port}", "--pid", self.process.pid, *options]
        return [str(word) for word in words]

    def call(self, tool):
        """Sends a modern call without arguments; returns the structured content of its result."""
        params = {"name": tool, "arguments": {}, "_meta": META}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        headers |= {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("POST", "/mcp", body, headers)
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        if answer.status != 200 or "error" in json.loads(text):
            raise Broken(f"{tool}: status {answer.status}, {text[:500]}")
        return json.loads(text)["result"].get("structuredContent")

    def resident(self):
        """Returns the resident bytes after a garbage collection."""
        for _ in range(3):
            self.call("collect")
            time.sleep(0.2)
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) * 1024

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))
