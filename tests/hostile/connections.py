"""Servers under attack, and connections to them over every transport."""

import json
import os
import select
import sys
import time
from collections import deque

from processes import PING, ROOT, SERVERS, Process

sys.path.append(str(ROOT / "tests/http"))
import speak
import websocket
import wire

OPTIONS = {"header_timeout": 2.0, "idle_timeout": 2.0, "body_timeout": 2.0}


class Wrong(Exception):
    """The findings of an attack."""


def check(holds, *found):
    if not holds:
        raise Wrong(" ".join(str(finding)[:500] for finding in found))


class Server(Process):
    """A server under attack."""

    path = "/mcp"
    lines = None

    def __init__(self, language, transport):
        url = {"stdio": "stdio", "tcp": "tcp://127.0.0.1:0"}.get(transport, "http://127.0.0.1:0/mcp")
        super().__init__([*SERVERS[language], url, *([] if url == "stdio" else [json.dumps(OPTIONS)])])
        self.transport = transport
        self.longest_ping = PING[language]
        if transport != "stdio":
            self.address = ("127.0.0.1", self.wait_for_port())

    def stop(self):
        # It would wait for the calls of an attack; how servers end is tested elsewhere.
        self.process.kill()
        super().stop()

    def connect(self, **options):
        return wire.Connection(self.address, **options)

    def open(self, **options):
        """Returns a connection of messages."""
        if self.transport == "stdio":
            # All rows share it, with what was read already.
            self.lines = self.lines or Lines(self.process.stdout.fileno(), self.process.stdin.fileno())
            self.lines.others = []
            return self.lines
        if self.transport == "ws":
            return Frames(self)
        connection = self.connect(**options)
        return Lines(connection.socket.fileno(), connection.socket.fileno(), connection)


class Messages:
    """A connection that carries messages."""

    def ask(self, message, within=10.0):
        self.send(json.dumps(message).encode())
        return self.answer_to(message["id"], within)

    def answer_to(self, id, within=10.0):
        """Returns the answer to a request; others are kept in `others`."""
        until = time.monotonic() + within
        while True:
            text = self.receive(until - time.monotonic())
            message = json.loads(text)
            if "method" not in message and message.get("id") == id:
                return message
            self.others.append(message)

    def is_honest(self):
        """Checks that the connection still serves."""
        reply = self.ask(modern("tools/list", id="honest"))
        check("result" in reply, reply)


class Lines(Messages):
    """Messages in lines, over stdio or TCP."""

    def __init__(self, input, output, owner=None):
        self.input, self.output, self.owner = input, output, owner
        self.lines = deque()
        self.begun = b""
        self.others = []
        self.rest = b""

    def send(self, data):
        self.raw(data + b"\n")

    def raw(self, data):
        view = memoryview(data)
        while view:
            if not wire.is_ready(self.output, select.POLLOUT, 10):
                raise TimeoutError("the server does not read")
            view = view[os.write(self.output, view[:65536]) :]

    def flood(self, data, seconds):
        """Sends as often as it can; returns the number of bytes sent."""
        until, sent = time.monotonic() + seconds, 0
        block = memoryview(data * (65536 // len(data) + 2))
        os.set_blocking(self.output, False)
        try:
            while time.monotonic() < until:
                if wire.is_ready(self.output, select.POLLOUT, 0.05):
                    sent += os.write(self.output, block[sent % len(data) :])
        except OSError:
            pass
        finally:
            os.set_blocking(self.output, True)
        self.rest = data[sent % len(data) :]
        return sent

    def receive(self, within):
        while not self.lines:
            if not wire.is_ready(self.input, select.POLLIN, max(0, within)):
                raise TimeoutError("no answer")
            piece = os.read(self.input, 1 << 20)
            if not piece:
                raise Wrong("the server closed the connection")
            *lines, self.begun = (self.begun + piece).split(b"\n")
            self.lines.extend(lines)
        return self.lines.popleft()

    def close(self):
        if self.owner:
            self.owner.close()


class Frames(Messages):
    """Messages in frames of a WebSocket."""

    def __init__(self, server):
        self.socket = websocket.WebSocket(server)
        self.others = []

    def send(self, data):
        self.raw(websocket.frame(websocket.TEXT, data))

    def raw(self, data):
        self.socket.connection.send(data)

    def flood(self, data, seconds):
        return Lines.flood(self, websocket.frame(websocket.TEXT, data), seconds)

    @property
    def output(self):
        return self.socket.connection.socket.fileno()

    def receive(self, within):
        with self.socket.connection.patience(max(0.01, within)):
            opcode, payload = self.socket.frame()
        check(opcode == websocket.TEXT, "the server closed the connection", payload)
        return payload

    def close(self):
        self.socket.connection.close()


def modern(method, params=None, *, id):
    return speak.modern(method, params, id=id)[1]


def call(tool, id, **arguments):
    return modern("tools/call", {"name": tool, "arguments": arguments}, id=id)
