"""Evil servers that break the framing, the handshake or the end of a WebSocket."""

import base64
import hashlib
import json

from rows import WS, forever, row, wait
from servers import MAGIC, text

# ── frames ───────────────────────────────────────────────────────────────────────────────────────────

FRAMES = {
    "a ping of 126 bytes": b"\x89\x7e\x00\x7e" + b"p" * 126,
    "a ping in fragments": b"\x09\x01p\x80\x01p",
    "the second reserved bit": b"\xa1\x02{}",
    "the third reserved bit": b"\x91\x02{}",
    "an unknown opcode": b"\x83\x02{}",
    "an unknown control opcode": b"\x8b\x00",
    "a continuation of nothing": b"\x80\x02{}",
    "a message inside the fragments of another": b"\x01\x01{\x81\x02{}",
    "a length of 2^63 bytes": b"\x81\x7f\x80" + b"\0" * 7,
    "a close frame of one byte": b"\x88\x01x",
    "a close frame of 126 bytes": b"\x88\x7e\x00\x7e\x03\xe8" + b"x" * 124,
    **{f"a close frame with the code {code}": b"\x88\x02" + code.to_bytes(2, "big") for code in (0, 1005, 1006, 5000)},
}
for name, frame in FRAMES.items():

    @row(name, "protocol|lost" if "2^63" in name else "lost", WS)
    def _(peer, id, frame=frame):
        peer.raw(frame)
        peer.reply(id, text("wrong"))
        wait()


@row("a message after the close frame", "lost", WS)
def _(peer, id):
    peer.frame(8, (1000).to_bytes(2, "big"))
    peer.reply(id, text("wrong"))
    wait()


@row("a reply in a binary frame", "right", WS)
def _(peer, id):
    peer.frame(2, json.dumps({"jsonrpc": "2.0", "id": id, "result": text("right")}).encode())


@row("a reply in fragments of one byte", "right", WS)
def _(peer, id):
    reply = json.dumps({"jsonrpc": "2.0", "id": id, "result": text("right")}).encode()
    peer.raw(b"\x01\x00" + b"".join(b"\x00\x01%c" % byte for byte in reply) + b"\x80\x00")


@row("WebSocket pongs without end", "timeout|lost", WS)
def _(peer, id):
    forever(peer, lambda: peer.raw(b"\x8a\x00" * 1000))


@row("it never answers a close frame", "right", WS)
def _(peer, id):
    peer.reply(id, text("right"))
    wait()


# ── the handshake ────────────────────────────────────────────────────────────────────────────────────


def accepted(peer, *headers, status="101 X"):
    accept = base64.b64encode(hashlib.sha1(peer.headers["sec-websocket-key"].encode() + MAGIC).digest()).decode()
    lines = [f"HTTP/1.1 {status}", f"sec-websocket-accept: {accept}", *headers]
    peer.raw("\r\n".join(lines).encode() + b"\r\n\r\n")


UPGRADE = ("upgrade: websocket", "connection: upgrade")
HANDSHAKES = {
    "a subprotocol that was not offered": (*UPGRADE, "sec-websocket-protocol: soap"),
    "a handshake without an upgrade": ("connection: upgrade",),
    "a handshake for another protocol": ("upgrade: h2c", "connection: upgrade"),
}
for name, headers in HANDSHAKES.items():

    @row(name, "connect", WS, action="connect", method="handshake")
    def _(peer, id, headers=headers):
        accepted(peer, *headers)
        wait()


@row("an extension that was not offered", "connect", WS, action="connect", method="handshake")
def _(peer, id):
    accepted(peer, *UPGRADE, "sec-websocket-extensions: permessage-deflate")
    wait()


@row("a handshake with HTTP 200", "connect", WS, action="connect", method="handshake")
def _(peer, id):
    accepted(peer, *UPGRADE, "content-length: 0", status="200 X")
    wait()


@row("a handshake with HTTP 401 that names another origin", "auth", WS, action="connect", method="handshake")
def _(peer, id):
    place = f"{peer.canary}/a%20handshake%20with%20HTTP%20401%20that%20names%20another%20origin"
    peer.raw(f'HTTP/1.1 401 X\r\nwww-authenticate: Bearer resource_metadata="{place}"\r\n\r\n'.encode())
    peer.close()


@row("a handshake that is not answered", "connect|timeout", WS, action="connect", method="handshake")
def _(peer, id):
    wait()


@row("frames without sense right after the handshake", "connect|lost", WS, action="connect", method="handshake")
def _(peer, id):
    accepted(peer, *UPGRADE)
    peer.raw(b"\xff" * 1000)
    wait()
