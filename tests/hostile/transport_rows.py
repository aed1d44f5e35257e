"""Evil servers that break HTTP or WebSocket."""

import gzip
import json

from rows import HTTP, MIB, WS, forever, row, wait
from servers import text

# ── HTTP ─────────────────────────────────────────────────────────────────────────────────────────────


@row("a redirect to another origin", "protocol|connect|lost", HTTP)
def _(peer, id):
    peer.whole(307, b"", f"location: {peer.canary}/a%20redirect%20to%20another%20origin")


@row(
    "a redirect to another origin at once",
    "protocol|connect|lost",
    ("http", "ws"),
    action="connect",
    method="server/discover",
)
def _(peer, id):
    peer.whole(308, b"", f"location: {peer.canary}/a%20redirect%20to%20another%20origin%20at%20once")


@row("a redirect to another origin at once", "", method="handshake")
def _(peer, id):
    to = f"{peer.canary}/a%20redirect%20to%20another%20origin%20at%20once"
    peer.raw(f"HTTP/1.1 302 X\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n".encode())
    peer.close()


@row("redirects in a circle", "protocol|connect|lost", HTTP)
def _(peer, id):
    peer.whole(307, b"", "location: /redirects%20in%20a%20circle")


@row("events without end", "timeout", HTTP)
def _(peer, id):
    forever(peer, lambda: peer.event(b": " + b"x" * 1000 + b"\n\n"))


@row("empty events without end", "timeout", HTTP)
def _(peer, id):
    forever(peer, lambda: peer.event(b"id: 1\nevent: x\ndata\n\n" * 50))


@row("a stream that ends without an answer and an endless delay", "lost|timeout", HTTP, era="legacy")
def _(peer, id):
    peer.event(b"retry: 99999999999999999999\nid: 1\ndata\n\n")


@row("a stream that ends without an answer and no delay", "", method="GET")
@row("a stream that ends without an answer and no delay", "lost|timeout", HTTP, era="legacy")
def _(peer, id):
    peer.event(b"retry: 0\nid: 1\ndata\n\n")


@row("an event id of 1 MiB", "lost|timeout|protocol", HTTP, era="legacy")
def _(peer, id):
    peer.event(b"id: " + b"x" * MIB + b"\ndata\n\n")


@row("a compressed bomb", "protocol|lost", HTTP)
def _(peer, id):
    peer.whole(200, gzip.compress(b" " * (100 * MIB), 1), "content-encoding: gzip")


@row("headers without end", "protocol|lost|connect", HTTP)
def _(peer, id):
    peer.raw(b"HTTP/1.1 200 X\r\n")
    forever(peer, lambda: peer.raw(b"x-more: " + b"y" * 1000 + b"\r\n"))


@row("interim responses without end", "timeout|lost|connect", HTTP)
def _(peer, id):
    forever(peer, lambda: peer.raw(b"HTTP/1.1 100 Continue\r\n\r\n" * 50))


@row("no HTTP", "lost|connect|protocol", HTTP)
def _(peer, id):
    peer.raw(b"SSH-2.0-OpenSSH_9.6\r\n")
    peer.close()


@row("a chunk of 2^64 bytes", "lost|connect|protocol", HTTP)
def _(peer, id):
    peer.raw(
        b"HTTP/1.1 200 X\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\nx"
    )
    peer.close()


@row("a content-length that is too long", "lost|timeout", HTTP)
def _(peer, id):
    body = json.dumps({"jsonrpc": "2.0", "id": id, "result": text("wrong")}).encode()
    peer.raw(
        b"HTTP/1.1 200 X\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(body) + 1, body)
    )
    wait()


@row("a reply that no request asked for", "right|wrong|lost", HTTP, action="call twice")
def _(peer, id):
    wrong = json.dumps({"jsonrpc": "2.0", "id": id + 1, "result": text("wrong")}).encode()
    peer.answer(id, text("right"))
    peer.raw(b"HTTP/1.1 200 X\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(wrong), wrong))


@row("a page of HTML", "protocol", HTTP)
def _(peer, id):
    peer.raw(b"HTTP/1.1 200 X\r\ncontent-type: text/html\r\n\r\n<html>")
    forever(peer, lambda: peer.raw(b"x" * 65536))


@row("an error page without end", "protocol|lost|connect|timeout", HTTP)
def _(peer, id):
    peer.raw(b"HTTP/1.1 500 X\r\ncontent-type: application/json\r\n\r\n")
    forever(peer, lambda: peer.raw(b"x" * 65536))


# ── WebSocket ────────────────────────────────────────────────────────────────────────────────────────


@row("a message in fragments without end", "protocol|lost", WS)
def _(peer, id):
    peer.frame(1, b"[", first=0)
    forever(peer, lambda: peer.frame(0, b"x" * 65536, first=0))


@row("empty fragments without end", "timeout|lost", WS)
def _(peer, id):
    peer.frame(1, b"[", first=0)
    forever(peer, lambda: peer.raw(b"\0\0" * 1000))


@row("WebSocket pings without end", "timeout|lost", WS)
def _(peer, id):
    forever(peer, lambda: peer.raw((b"\x89\x7d" + b"p" * 125) * 100))


@row("a frame of 2^62 bytes", "protocol|lost", WS)
def _(peer, id):
    peer.raw(b"\x81\x7f" + (1 << 62).to_bytes(8, "big") + b"x")
    wait()


@row("a compressed frame", "lost|protocol", WS)
def _(peer, id):
    peer.frame(1, b"x" * 100, first=0xC0)
    wait()


@row("a masked frame", "lost|protocol", WS)
def _(peer, id):
    peer.raw(b"\x81\x82keyyxx")
    wait()


@row("text that is not UTF-8", "lost|protocol", WS)
def _(peer, id):
    peer.say(b"\xff\xfe")
    wait()


@row("a close frame without sense", "lost", WS)
def _(peer, id):
    peer.frame(8, b"\x00\x01\xff\xfe")
    wait()


@row("a handshake without end", "connect|timeout", WS, action="connect", method="handshake")
def _(peer, id):
    peer.raw(b"HTTP/1.1 101 X\r\n")
    forever(peer, lambda: peer.raw(b"x-more: " + b"y" * 1000 + b"\r\n"))


@row("a handshake of another key", "connect", WS, action="connect", method="handshake")
def _(peer, id):
    peer.raw(b"HTTP/1.1 101 X\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: eA==\r\n\r\n")
    wait()
