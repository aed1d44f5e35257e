"""Measures the small calls of one client while four connections send calls of 3 MiB, in milliseconds.

python3 tests/bench/victim.py [--pause 0.2] [SERVER…]
python3 tests/bench/victim.py --port PORT

With `--port` a server that runs already is attacked, in rounds; the output is their 99th percentiles as JSON.

`other` is a server that nobody attacks, measured at the same time: what the machine itself costs. Without a pause, the
attackers and the server keep all processors busy.
"""

import argparse
import json
import multiprocessing
import os
import re
import socket
import subprocess
import sys
import threading
import time

from common import OURS_PYTHON, ROOT, main, print_goal, print_table

HOSTILE = ROOT / "tests/hostile"
SERVERS = {
    "rust": [ROOT / "target/release/hostile", "server"],
    "python": [OURS_PYTHON, HOSTILE / "server.py"],
    "node": ["node", HOSTILE / "server.mjs"],
}
ATTACKERS = 4
SIZE = 3 << 20
SECONDS = 3.0
P99 = 5.0  # milliseconds
ROUNDS = 4
# The server that nobody attacks.
OTHER = "python"
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def bench():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pause", type=float, default=0.2, help="seconds between the calls of an attacker")
    parser.add_argument("--port", type=int, help="the port of a server on this machine")
    parser.add_argument("servers", nargs="*", default=list(SERVERS))
    options = parser.parse_args()
    if options.port:
        print(json.dumps(rounds(options.port, options.pause)))
        return
    rows, goals = [], []
    with Listening(OTHER) as other:
        for name in options.servers:
            with Listening(name) as server:
                idle = [percentiles(server.port, method) for method in ("tools/list", "tools/call")]
                with Attack(server.port, options.pause) as attack:
                    for method, alone in zip(("tools/list", "tools/call"), idle, strict=True):
                        loaded, rate = percentiles(server.port, method), attack.rate()
                        rows.append([name, method, *alone, *loaded, *percentiles(other.port, method), f"{rate:.0f}"])
                        goals.append((f"{name}, {method}: attacked p99 below {P99:g} ms", float(loaded[1])))
    head = ["server", "method", "p50", "p99", "attacked p50", "p99", "other p50", "p99", "attacks/s"]
    print_table(head, rows)
    for goal in goals:
        print_goal(*goal, lambda latency: latency < P99, " ms")


def rounds(port, pause):
    """Returns the 99th percentiles of calls to this server and to one that nobody attacks, and the limit of their
    difference, until they differ by less.
    """
    found = []
    with Listening(OTHER) as other, Attack(port, pause):
        while len(found) < ROUNDS:
            own = float(percentiles(port, "tools/call")[1])
            # Programs beside the attack and the server lengthen each call, by as many as wait for a processor.
            limit = P99 * max(1.0, waiting() - 1.0)
            reference = float(percentiles(other.port, "tools/call")[1])
            found.append((own, reference, limit))
            if own - reference < limit:
                break
    return found


def waiting():
    """Returns how many programs want to run, for each processor, in the last minute or at the moment."""
    with open("/proc/loadavg") as file:
        minute, _, _, now, _ = file.read().split()
    return max(float(minute), float(now.partition("/")[0])) / os.cpu_count()


class Listening:
    def __init__(self, name):
        command = [*map(str, SERVERS[name]), "http://127.0.0.1:0/mcp"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if found := re.search(r"http://127\.0\.0\.1:([1-9]\d*)", line):
                self.port = int(found[1])
                break
        else:
            sys.exit(f"{name} did not start: run make build")
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


class Attack:
    """Four connections in a process of their own."""

    def __init__(self, port, pause):
        self.done = multiprocessing.Value("i", 0)
        self.process = multiprocessing.Process(target=attack, args=(port, pause, self.done), daemon=True)
        self.process.start()
        time.sleep(0.5)
        self.since, self.before = time.monotonic(), self.done.value

    def rate(self):
        """Returns the calls a second since the last time."""
        now, done = time.monotonic(), self.done.value
        rate = (done - self.before) / (now - self.since)
        self.since, self.before = now, done
        return rate

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.join()


def attack(port, pause, done):
    data = request(port, "tools/call", "x" * SIZE)

    def loop():
        connection, rest = socket.create_connection(("127.0.0.1", port)), b""
        while True:
            connection.sendall(data)
            rest = read(connection, rest)
            with done.get_lock():
                done.value += 1
            time.sleep(pause)

    threads = [threading.Thread(target=loop, daemon=True) for _ in range(ATTACKERS)]
    for thread in threads:
        thread.start()
    threads[0].join()


def percentiles(port, method):
    """Returns the median and the 99th percentile of calls, one after the other."""
    data, times, rest = request(port, method, "x"), [], b""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            began = time.perf_counter()
            connection.sendall(data)
            rest = read(connection, rest)
            times.append((time.perf_counter() - began) * 1000)
            time.sleep(0.001)
    times.sort()
    return [f"{times[len(times) // 2]:.2f}", f"{times[len(times) * 99 // 100]:.2f}"]


def request(port, method, text):
    params = {"_meta": META}
    if method == "tools/call":
        params |= {"name": "length", "arguments": {"text": text}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    lines = [
        "POST /mcp HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        "MCP-Protocol-Version: 2026-07-28",
        f"Mcp-Method: {method}",
        *(["Mcp-Name: length"] if method == "tools/call" else []),
        f"Content-Length: {len(body)}",
    ]
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()


def read(connection, data):
    """Reads a response; returns the bytes after it."""
    while b"\r\n\r\n" not in data:
        data += connection.recv(65536)
    head, _, data = data.partition(b"\r\n\r\n")
    if b" 200 " not in head[:20]:
        raise OSError(f"refused: {head[:200]!r}")
    length = int(re.search(rb"content-length: (\d+)", head, re.I)[1])
    while len(data) < length:
        data += connection.recv(65536)
    return data[length:]


if __name__ == "__main__":
    main(bench)
