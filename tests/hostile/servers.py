"""The evil servers: `servers.py stdio ROW CANARY TOKEN`, or `servers.py listen` for all rows, at `http://…/<row>` and
`ws://…/<row>`.

A listening one prints its port and that of its canary, an address that no client has a reason to visit, and at
`GET /visits` it returns the requests that its canary received. It uses threads, blocking sockets, and nothing of
Gudgeon.
"""

import base64
import hashlib
import json
import os
import queue
import socket
import sys
import threading
from urllib.parse import unquote, urlsplit

MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
MODERN = "2026-07-28"
MIB = 1 << 20
INFO = {"name": "evil", "version": "1"}
CAPABILITIES = {"tools": {"listChanged": True}, "logging": {}}
visits = []


def main():
    from rows import table

    rows = table()

    if sys.argv[1] == "stdio":
        name, Stdio.canary = sys.argv[2:4]
        return serve(rows[name], Stdio())
    canary = listen(Canary)
    Http.canary = WebSocket.canary = f"http://127.0.0.1:{canary}"
    print(listen(Connection, rows), canary, flush=True)
    threading.Event().wait()


def serve(row, peer):
    """Answers the messages of a stream."""
    if row.begin:
        row.begin(peer)
    while (text := peer.receive()) is not None:
        handle(row, peer, json.loads(text))


def handle(row, peer, message):
    """Answers a message as the row says, or as an honest server."""
    method, id, params = message.get("method"), message.get("id"), message.get("params") or {}
    peer.params, peer.counts = params, row.counts
    peer.token = (params.get("_meta") or {}).get("progressToken")
    if behaviour := row.behaviours.get(method):
        return behaviour(peer, id)
    if method is None:
        peer.answers.put(message)
    if method is None or id is None:
        return peer.accept()
    if method == "server/discover" and row.era == "modern":
        return peer.answer(id, {**discovered(), "capabilities": row.capabilities})
    if method == "initialize" and row.era == "legacy":
        result = {"protocolVersion": params["protocolVersion"], "capabilities": row.capabilities, "serverInfo": INFO}
        return peer.answer(id, result)
    if method == "tools/list":
        return peer.answer(id, {"resultType": "complete", "tools": row.tools, "ttlMs": 0, "cacheScope": "private"})
    if method in ("tools/call", "ping"):
        return peer.answer(id, text("right"))
    peer.refuse(id, {"code": -32601, "message": "Method not found"})


def discovered():
    result = {"resultType": "complete", "supportedVersions": [MODERN], "capabilities": CAPABILITIES}
    return {**result, "_meta": {"io.modelcontextprotocol/serverInfo": INFO}, "ttlMs": 0, "cacheScope": "private"}


def text(value):
    return {"resultType": "complete", "content": [{"type": "text", "text": value}]}


class Peer:
    """The other side of a stream, or of one HTTP exchange."""

    canary = ""
    token = None
    # The params of the request, and the counts of its row.
    params = counts = None
    # The client's answers to questions, over HTTP of all exchanges.
    answers = queue.SimpleQueue()

    def send(self, **message):
        self.say(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def reply(self, id, result):
        self.send(id=id, result=result)

    def notify(self, method, **params):
        self.send(method=f"notifications/{method}", params=params)

    def answer(self, id, result):
        """Sends an honest answer."""
        self.reply(id, result)

    def refuse(self, id, error):
        self.send(id=id, error=error)

    def accept(self):
        """Confirms a message that has no answer."""


class Stdio(Peer):
    kind = "stdio"

    def receive(self):
        return sys.stdin.buffer.readline() or None

    def say(self, data):
        self.raw(data + b"\n")

    def raw(self, data):
        # An unbuffered write does not hold a lock when the process ends.
        while data:
            data = data[os.write(1, data) :]

    def close(self):
        os._exit(0)


class Http(Peer):
    """One exchange. What is sent becomes events of a stream, unless it is the honest answer."""

    kind = "http"

    def __init__(self, connection, headers):
        self.connection = connection
        self.headers = headers
        self.begun = False
        self.over = False

    def say(self, data):
        self.event(b"data: " + data + b"\n\n")

    def event(self, data):
        self.begin()
        self.raw(b"%x\r\n%s\r\n" % (len(data), data))

    def begin(self):
        if not self.begun:
            self.begun = True
            self.raw(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")

    def finish(self):
        if self.begun and not self.over:
            self.raw(b"0\r\n\r\n")

    def answer(self, id, result):
        self.whole(200, {"jsonrpc": "2.0", "id": id, "result": result})

    def refuse(self, id, error):
        self.whole(404, {"jsonrpc": "2.0", "id": id, "error": error})

    def accept(self):
        self.raw(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n")

    def whole(self, status, body, *headers):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = [f"HTTP/1.1 {status} X", "content-type: application/json", f"content-length: {len(body)}", *headers]
        self.raw("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    def raw(self, data):
        self.connection.sendall(data)

    def close(self):
        self.over = True
        raise ConnectionError


class WebSocket(Peer):
    kind = "ws"

    def __init__(self, connection, reader, headers):
        self.connection = connection
        self.reader = reader
        self.headers = headers

    def receive(self):
        while True:
            head = self.reader.read(2)
            if len(head) < 2:
                return None
            opcode, size = head[0] & 15, head[1] & 127
            if size > 125:
                size = int.from_bytes(self.reader.read(2 if size == 126 else 8), "big")
            key, payload = self.reader.read(4), self.reader.read(size)
            if opcode == 8 or len(payload) < size:
                return None
            if opcode == 1:
                return unmask(payload, key)

    def say(self, data):
        self.frame(1, data)

    def frame(self, opcode, data, first=0x80):
        size = len(data)
        length = bytes([size]) if size < 126 else b"\x7f" + size.to_bytes(8, "big")
        self.raw(bytes([first | opcode]) + length + data)

    def raw(self, data):
        self.connection.sendall(data)

    def close(self):
        raise ConnectionError


def unmask(payload, key):
    size = len(payload)
    long_key = (key * (size // 4 + 1))[:size]
    return (int.from_bytes(payload, "big") ^ int.from_bytes(long_key, "big")).to_bytes(size, "big")


class Connection(threading.Thread):
    """A connection with its HTTP exchanges, or a WebSocket."""

    def __init__(self, connection, rows):
        super().__init__(daemon=True)
        self.connection = connection
        self.rows = rows
        self.reader = connection.makefile("rb")

    def run(self):
        try:
            while self.exchange():
                pass
        except (OSError, ValueError):
            pass
        finally:
            self.reader.close()
            self.connection.close()

    def exchange(self):
        method, path, headers, size = read_head(self.reader)
        name = unquote(urlsplit(path).path.strip("/"))
        if name == "visits":
            Http(self.connection, headers).whole(200, visits)
            return True
        row = self.rows[name]
        if "upgrade" in headers:
            if row.handshake:
                row.handshake(WebSocket(self.connection, self.reader, headers), 0)
            accept = base64.b64encode(hashlib.sha1(headers["sec-websocket-key"].encode() + MAGIC).digest())
            self.connection.sendall(
                b"HTTP/1.1 101 X\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: %s\r\n\r\n"
                % accept
            )
            serve(row, WebSocket(self.connection, self.reader, headers))
            return False
        peer = Http(self.connection, headers)
        if size > MIB and row.behaviours.get("body"):
            row.behaviours["body"](peer, 0)
        body = self.reader.read(size)
        if method != "POST" and row.behaviours.get(method):
            row.behaviours[method](peer, 0)
        elif method == "POST":
            handle(row, peer, json.loads(body))
        else:
            peer.whole(405, b"")
        peer.finish()
        return True


class Canary(threading.Thread):
    """Records requests, with the headers that may carry credentials."""

    def __init__(self, connection, _):
        super().__init__(daemon=True)
        self.connection = connection

    def run(self):
        with self.connection, self.connection.makefile("rb") as reader:
            try:
                _, path, headers, _ = read_head(reader)
            except ValueError:
                path, headers = "/unknown", {}
            visits.append({"row": unquote(path.strip("/")), "authorization": headers.get("authorization")})
            self.connection.sendall(b"HTTP/1.1 404 X\r\ncontent-length: 0\r\n\r\n")


def read_head(reader):
    """Returns the method, the path, the headers and the length of the body."""
    words = reader.readline().decode().split()
    if len(words) != 3:
        raise ValueError("the connection ended")
    headers = {}
    while line := reader.readline().decode().strip():
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    return words[0], words[1], headers, int(headers.get("content-length", 0))


def listen(kind, rows=None):
    listener = socket.create_server(("127.0.0.1", 0), backlog=1000)

    def accept():
        while True:
            connection, _ = listener.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            kind(connection, rows).start()

    threading.Thread(target=accept, daemon=True).start()
    return listener.getsockname()[1]


if __name__ == "__main__":
    main()
