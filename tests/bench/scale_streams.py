"""The cost of streams of `subscriptions/listen`: their memory, and the time until all have received a change."""

import select
import socket
import statistics
import time
from contextlib import ExitStack

from common import Broken
from scale_series import Metric, Series
from scale_server import Server

SIZES = [1, 10, 100, 1_000, 5_000]
MEMORY = Metric("streams-memory", "Memory of listen streams", "streams", "memory")
CHANGE = Metric("streams-change", "Time from a change to the last stream's notification", "streams", "time")
PATIENCE = 60  # seconds
CHANGES = 25
WARM_UP = 3


def measure(name, quick):
    sizes = SIZES[:4] if quick else SIZES
    memory, times = [], []
    with ExitStack() as stack:
        server = stack.enter_context(Server(name, "http"))
        with Listeners(server) as first:
            first.open(WARM_UP)
            first.change()
        listeners = stack.enter_context(Listeners(server))
        before = server.resident()
        for size in sizes:
            listeners.open(size - len(listeners.streams))
            memory.append(server.resident() - before)
            times.append(statistics.median(listeners.change() for _ in range(CHANGES)))
    return [Series(MEMORY, name, sizes, memory), Series(CHANGE, name, sizes, times)]


class Listeners:
    """Streams, each on its own connection."""

    def __init__(self, server):
        self.client = server.client
        self.at = ("127.0.0.1", server.port)
        self.request = self.client.prepare("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        self.streams = {}
        self.poll = select.epoll()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for stream in self.streams.values():
            stream.close()
        self.poll.close()

    def open(self, count):
        for _ in range(count):
            stream = socket.create_connection(self.at, timeout=PATIENCE)
            stream.sendall(self.request)
            received = b""
            while b"subscriptions/acknowledged" not in received:
                if not (chunk := stream.recv(4096)):
                    raise Broken(f"a stream was refused: {received[:500]!r}")
                received += chunk
            stream.setblocking(False)
            self.streams[stream.fileno()] = stream
            self.poll.register(stream, select.EPOLLIN)

    def change(self):
        """Changes a tool; returns the seconds until the last stream has its notification."""
        missing = dict.fromkeys(self.streams, b"")
        request = self.client.prepare_call("change")
        start = time.perf_counter()
        self.client.socket.sendall(request)
        while missing:
            ready = self.poll.poll(PATIENCE)
            if not ready:
                raise Broken(f"{len(missing)} of {len(self.streams)} streams have no notification")
            for number, _ in ready:
                if not (chunk := self.streams[number].recv(4096)):
                    raise Broken("the server closed a stream")
                # Comments that keep a stream alive are not notifications.
                received = missing.get(number, b"") + chunk
                if b"tools/list_changed" in received:
                    missing.pop(number, None)
                elif number in missing:
                    missing[number] = received
        took = time.perf_counter() - start
        self.client.reply()
        return took
