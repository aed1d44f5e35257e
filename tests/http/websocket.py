"""A minimal WebSocket client (RFC 6455) that sends valid and invalid frames."""

import base64
import hashlib
import json
import os
import struct

import wire

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def frame(opcode, payload=b"", *, fin=True, mask=True):
    head = bytes([(0x80 if fin else 0) | opcode])
    size, bit = len(payload), 0x80 if mask else 0
    if size < 126:
        head += bytes([bit | size])
    elif size < 1 << 16:
        head += bytes([bit | 126]) + struct.pack(">H", size)
    else:
        head += bytes([bit | 127]) + struct.pack(">Q", size)
    if not mask:
        return head + payload
    key = os.urandom(4)
    long_key = key * (size // 4 + 1)
    masked = (int.from_bytes(payload, "big") ^ int.from_bytes(long_key[:size], "big")).to_bytes(size, "big")
    return head + key + masked


class WebSocket:
    def __init__(self, server, **headers):
        self.connection = server.connect()
        key = base64.b64encode(os.urandom(16)).decode()
        given = {
            "Upgrade": "websocket",
            "Connection": "Upgrade",
            "Sec-WebSocket-Key": key,
            "Sec-WebSocket-Version": "13",
        }
        self.connection.request("GET", server.path, {**given, **headers})
        self.head = self.connection.head(to="GET", interim=True)
        if self.head.status == 101:
            wanted = base64.b64encode(hashlib.sha1(key.encode() + MAGIC).digest()).decode()
            assert self.head.header("sec-websocket-accept") == wanted
        else:
            self.head.body = self.connection.body()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()

    def send(self, message):
        self.connection.send(frame(TEXT, json.dumps(message).encode()))

    def _take(self, count):
        while len(self.connection.buffer) < count:
            self.connection._fill()
        taken, self.connection.buffer = self.connection.buffer[:count], self.connection.buffer[count:]
        return taken

    def frame(self):
        """Reads the next frame as (opcode, payload); fragments are joined."""
        whole, kind = b"", None
        while True:
            first, second = self._take(2)
            if second & 0x80 or first & 0x70:
                raise wire.Malformed("a masked frame, or one with reserved bits, from a server")
            size = second & 0x7F
            if size == 126:
                (size,) = struct.unpack(">H", self._take(2))
            elif size == 127:
                (size,) = struct.unpack(">Q", self._take(8))
            payload, opcode = self._take(size), first & 0x0F
            if opcode >= CLOSE:
                return opcode, payload
            kind, whole = kind or opcode, whole + payload
            if first & 0x80:
                return kind, whole

    def message(self):
        opcode, payload = self.frame()
        while opcode == PING:
            self.connection.send(frame(PONG, payload))
            opcode, payload = self.frame()
        assert opcode == TEXT, (opcode, payload)
        return json.loads(payload)

    def ask(self, message):
        self.send(message)
        while "method" in (said := self.message()):
            pass
        return said

    def closed_with(self):
        """Returns the server's close code; None if it closes the connection without one."""
        try:
            while True:
                opcode, payload = self.frame()
                if opcode == CLOSE:
                    return struct.unpack(">H", payload[:2])[0] if payload else 1005
        except TimeoutError:
            raise
        except (wire.Gone, OSError):
            return None
