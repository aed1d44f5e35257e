"""The cost of calls in flight: the memory of calls that wait, and the time of as many that wait for each other."""

import statistics
import time
from contextlib import ExitStack, closing

from common import Broken
from scale_series import Metric, Series
from scale_server import Server
from scale_wire import Connection

SIZES = [1, 10, 100, 300, 1_000]
TRANSPORTS = {"stdio": "stdio", "http": "HTTP, one connection each"}
MEMORY = {
    transport: Metric(f"flight-memory-{transport}", f"Memory of calls in flight, {called}", "calls", "memory")
    for transport, called in TRANSPORTS.items()
}
TIME = {
    transport: Metric(f"flight-time-{transport}", f"Time of that many calls at once, {called}", "calls", "time")
    for transport, called in TRANSPORTS.items()
}
# Calls that are measured with each size, in as many lots as that takes.
CALLS = 20_000
LEAST_LOTS, MOST_LOTS = 5, 200
PATIENCE = 60  # seconds


def measure(name, quick):
    sizes = SIZES[:4] if quick else SIZES
    return [series for transport in TRANSPORTS for series in measure_over(transport, name, sizes, quick)]


def measure_over(transport, name, sizes, quick):
    options = {"http": {"max_in_flight": 2 * SIZES[-1]}} if transport == "http" else {}
    memory, times = [], []
    with ExitStack() as stack:
        server = stack.enter_context(Server(name, transport, **options))
        lots = stack.enter_context(closing(LOTS[transport](server)))
        for _ in range(100):
            lots.run(1)
        before = server.resident()
        for size in sizes:
            # The last call is missing, so the others wait.
            requests = lots.requests(size + 1)
            lots.send(requests[:-1])
            lots.wait_until_waiting(size)
            memory.append(server.resident() - before)
            lots.send(requests[-1:], first=size)
            lots.receive(size + 1)
        for size in sizes:
            count = min(MOST_LOTS, max(LEAST_LOTS, CALLS // size // (10 if quick else 1)))
            times.append(statistics.median(lots.run(size) for _ in range(count)))
    return [Series(MEMORY[transport], name, sizes, memory), Series(TIME[transport], name, sizes, times)]


class Lots:
    """Calls of `meet`, each of which waits until `size` of them are waiting."""

    def __init__(self, server):
        self.client = server.client

    def run(self, size):
        """Makes calls that wait for each other; returns the seconds until the last one is answered."""
        requests = self.requests(size)
        start = time.perf_counter()
        self.send(requests)
        self.receive(size)
        return time.perf_counter() - start

    def requests(self, size):
        # Ids from 2: that of other requests is 1.
        return [self.client.prepare_call("meet", id=id + 2, count=size) for id in range(size)]

    def wait_until_waiting(self, size):
        until = time.monotonic() + PATIENCE
        while b'"text":"%d"' % size not in self.client.call("count_waiting"):
            if time.monotonic() > until:
                raise Broken(f"{size} calls are not waiting after {PATIENCE} s")
            time.sleep(0.01)


class OnPipe(Lots):
    def send(self, requests, first=0):
        self.client.send(b"".join(requests))

    def receive(self, count):
        for _ in range(count):
            self.client.reply()

    def close(self):
        pass


class OnConnections(Lots):
    """Each call has its own connection."""

    def __init__(self, server):
        super().__init__(server)
        self.connections = []

    def send(self, requests, first=0):
        while len(self.connections) < first + len(requests):
            self.connections.append(Connection(self.client.port))
        for connection, request in zip(self.connections[first:], requests, strict=False):
            connection.socket.sendall(request)

    def receive(self, count):
        for connection in self.connections[:count]:
            connection.reply()

    def close(self):
        for connection in self.connections:
            connection.socket.close()


LOTS = {"stdio": OnPipe, "http": OnConnections}
