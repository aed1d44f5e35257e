"""Clients of the bench `scale.py`: they send requests that were made before and parse no JSON, so they cost little."""

import json
import os
import re
import socket

from common import Broken
from listening import META

MODERN, LEGACY = "2026-07-28", "2025-11-25"
CHUNK = 1 << 20


def message(method, params, id=1, modern=True):
    if modern:
        params = {**params, "_meta": META}
    body = {"jsonrpc": "2.0"} | ({} if id is None else {"id": id}) | {"method": method, "params": params}
    return json.dumps(body).encode()


def check(reply):
    """Raises `Broken` for an error. A result's own text is not searched."""
    if b'"error":' in bytes(reply[:100]) or b'"isError":true' in bytes(reply[-200:]):
        raise Broken(f"an error: {bytes(reply[:500]).decode(errors='replace')}")
    return reply


class Client:
    """Sends one request after the other."""

    def ask(self, method, params):
        return bytes(self.exchange(self.prepare(method, params)))

    def call(self, tool, **arguments):
        return bytes(self.exchange(self.prepare_call(tool, **arguments)))

    def prepare_call(self, tool, id=1, **arguments):
        return self.prepare("tools/call", {"name": tool, "arguments": arguments}, id)


class Buffer:
    """Received bytes in memory that is kept, so that a large reply costs the client no new pages."""

    def __init__(self, read_into):
        self.read_into = read_into
        self.memory = bytearray(CHUNK)
        self.start = self.end = 0

    def until(self, mark):
        """Receives until the mark; returns the bytes before it, which stay until the next call."""
        self._forget()
        searched = 0
        while (found := self.memory.find(mark, self.start + searched, self.end)) < 0:
            searched = max(0, self.end - self.start - len(mark) + 1)
            self._receive()
        reply = memoryview(self.memory)[self.start : found]
        self.start = found + len(mark)
        return reply

    def exactly(self, count):
        """Receives that many bytes, which stay until the next call."""
        self._forget()
        while self.end - self.start < count:
            self._receive()
        reply = memoryview(self.memory)[self.start : self.start + count]
        self.start += count
        return reply

    def _forget(self):
        if self.start == self.end:
            self.start = self.end = 0

    def _receive(self):
        if self.end == len(self.memory):
            held = self.memory[self.start : self.end]
            self.memory = bytearray(2 * len(self.memory))
            self.memory[: len(held)] = held
            self.start, self.end = 0, len(held)
        count = self.read_into(memoryview(self.memory)[self.end : self.end + CHUNK])
        if not count:
            raise Broken("the server closed the connection")
        self.end += count


class Pipe(Client):
    """The standard streams of a process."""

    def __init__(self, process):
        self.input, output = process.stdin.fileno(), process.stdout.fileno()
        self.received = Buffer(lambda view: os.readv(output, [view]))

    def prepare(self, method, params, id=1):
        return message(method, params, id) + b"\n"

    def exchange(self, data):
        """Sends a request; returns the reply, which stays until the next one."""
        self.send(data)
        return self.reply()

    def send(self, data):
        written = os.write(self.input, data)
        while written < len(data):
            written += os.write(self.input, memoryview(data)[written : written + CHUNK])

    def reply(self):
        return check(self.received.until(b"\n"))


class Connection(Client):
    """A connection of HTTP/1.1: modern, or, after `open_session`, of a legacy session."""

    def __init__(self, port):
        self.port = port
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=120)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.received = Buffer(self.socket.recv_into)

    def prepare(self, method, params, id=1):
        names = [f"MCP-Protocol-Version: {MODERN}", f"Mcp-Method: {method}"]
        if "name" in params:
            names.append(f"Mcp-Name: {params['name']}")
        return self.post(message(method, params, id), *names)

    def prepare_in_session(self, session, method, params, id=1):
        names = [f"MCP-Protocol-Version: {LEGACY}", f"Mcp-Session-Id: {session}"]
        return self.post(message(method, params, id, modern=False), *names)

    def post(self, body, *headers, verb="POST"):
        lines = [
            f"{verb} /mcp HTTP/1.1",
            f"Host: 127.0.0.1:{self.port}",
            "Content-Type: application/json",
            "Accept: application/json, text/event-stream",
            *headers,
            f"Content-Length: {len(body)}",
        ]
        return ("\r\n".join(lines) + "\r\n\r\n").encode() + body

    def exchange(self, data):
        """Sends a request; returns the body of the response, which stays until the next one."""
        self.socket.sendall(data)
        return self.reply()

    def reply(self):
        status, _, body = self.response()
        if status != 200:
            raise Broken(f"status {status}: {bytes(body[:500]).decode(errors='replace')}")
        return check(body)

    def response(self):
        """Returns status, head and body of the next response."""
        head = bytes(self.received.until(b"\r\n\r\n"))
        length = re.search(rb"content-length: *(\d+)", head, re.I)
        return int(head[9:12]), head, self.received.exactly(int(length[1]) if length else 0)

    def open_session(self):
        """Returns the id of a new legacy session."""
        info = {"name": "bench", "version": "1"}
        initialize = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": info}
        self.socket.sendall(self.post(message("initialize", initialize, modern=False)))
        status, head, body = self.response()
        found = re.search(rb"mcp-session-id: *(\S+)", head, re.I)
        if status != 200 or not found:
            raise Broken(f"no session: status {status}: {bytes(body[:500])!r}")
        session = found[1].decode()
        self.socket.sendall(self.prepare_in_session(session, "notifications/initialized", {}, id=None))
        status, _, _ = self.response()
        if status != 202:
            raise Broken(f"notifications/initialized: status {status}")
        return session

    def close_session(self, session):
        self.socket.sendall(self.post(b"", f"Mcp-Session-Id: {session}", verb="DELETE"))
        status, _, body = self.response()
        if status >= 300:
            raise Broken(f"the session can't be ended: status {status}: {bytes(body[:500])!r}")
