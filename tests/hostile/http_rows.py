"""Evil servers that answer HTTP requests with what is not an answer: statuses, headers, bodies, redirects, sessions."""

import gzip
import json
import threading
import time

from rows import HTTP, MIB, REFUSED, forever, row, wait
from servers import INFO, text

CHUNKED = b"HTTP/1.1 200 X\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"


def result(id, value):
    return json.dumps({"jsonrpc": "2.0", "id": id, "result": text(value)}).encode()


# ── statuses and media types ─────────────────────────────────────────────────────────────────────────

for status in (202, 204, 303, 304, 307, 402, 413):

    @row(f"HTTP {status} in place of a result", "protocol", HTTP)
    def _(peer, id, status=status):
        peer.raw(b"HTTP/1.1 %d X\r\n%s\r\n" % (status, b"" if status in (204, 304) else b"content-length: 0\r\n"))


for status in (500, 503, 999):

    @row(f"HTTP {status} in place of a result", "lost", HTTP)
    def _(peer, id, status=status):
        peer.whole(status, b"<html>", "retry-after: 99999999999999999999")


@row("HTTP 401 that names another origin", "auth", HTTP)
def _(peer, id):
    place = f"{peer.canary}/HTTP%20401%20that%20names%20another%20origin"
    peer.whole(401, b"", f'www-authenticate: Bearer resource_metadata="{place}", realm="{"x" * 10_000}"')


@row("HTTP 404 at every call", "protocol", HTTP)
def _(peer, id):
    peer.whole(404, b"")


@row("a list that is not available again and again", "timeout", HTTP, action="list", method="tools/list")
def _(peer, id):
    peer.whole(503, b"", "retry-after: 0")


@row("a result without a media type", "protocol", HTTP)
def _(peer, id):
    body = result(id, "wrong")
    peer.raw(b"HTTP/1.1 200 X\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))


@row("headers that name another origin", "right", HTTP)
def _(peer, id):
    place = f"{peer.canary}/headers%20that%20name%20another%20origin"
    origin = peer.canary.removeprefix("http://")
    found = [f"refresh: 0; url={place}", f"link: <{place}>; rel=preload", f"location: {place}"]
    found += [f'alt-svc: h2="{origin}", http/1.1="{origin}"; persist=1', f"content-location: {place}"]
    peer.whole(200, json.loads(result(id, "right")), *found)


# ── redirects ────────────────────────────────────────────────────────────────────────────────────────


def places(peer):
    """Returns addresses of another origin, some of which begin as this one."""
    origin = peer.canary.removeprefix("http://")
    own = peer.headers["host"]
    return {
        "behind a user name": f"http://{own}@{origin}/x",
        "behind a password": f"http://{own}:80@{origin}/x",
        "without a scheme": f"//{origin}/x",
        "in upper case": f"HTTP://{origin.upper()}/x",
        "that is a file": "file:///etc/passwd",
        "that is a WebSocket": f"ws://{own}/x",
        "by TLS": f"https://{own}/x",
        "whose port is too large": f"http://{own}0000/x",
    }


KINDS = (
    "behind a user name",
    "behind a password",
    "without a scheme",
    "in upper case",
    "that is a file",
    "that is a WebSocket",
    "by TLS",
    "whose port is too large",
)
for kind in KINDS:

    @row(f"a redirect to an address {kind}", "connect", HTTP)
    def _(peer, id, kind=kind):
        peer.whole(308, b"", f"location: {places(peer)[kind]}")


@row("a redirect with backslashes", "connect|protocol", HTTP)
def _(peer, id):
    peer.whole(307, b"", f"location: \\\\{peer.canary.removeprefix('http://')}\\x")


# ── headers ──────────────────────────────────────────────────────────────────────────────────────────


@row("a header of 1 MiB", "lost|protocol", HTTP)
def _(peer, id):
    peer.whole(200, json.loads(result(id, "wrong")), f"x-more: {'x' * MIB}")


@row("10,000 headers", "lost|protocol", HTTP)
def _(peer, id):
    peer.whole(200, json.loads(result(id, "wrong")), *[f"x-{number}: y" for number in range(10_000)])


@row("two lengths", "lost|protocol", HTTP)
def _(peer, id):
    body = result(id, "wrong")
    peer.raw(
        b"HTTP/1.1 200 X\r\ncontent-type: application/json\r\ncontent-length: %d\r\ncontent-length: %d\r\n\r\n%s"
        % (len(body), len(body) + 10, body)
    )


@row("a length that is too short", "protocol", HTTP)
def _(peer, id):
    body = result(id, "wrong")
    peer.raw(
        b"HTTP/1.1 200 X\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(body) - 5, body)
    )


@row("an upgrade that was not asked for", "lost|protocol", HTTP)
def _(peer, id):
    peer.raw(b"HTTP/1.1 101 X\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n\x81\x02{}")
    wait()


@row("the preface of HTTP/2", "lost|protocol", HTTP)
def _(peer, id):
    peer.raw(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    wait()


# ── bodies ───────────────────────────────────────────────────────────────────────────────────────────


@row("a body with the reply to another request", "protocol", HTTP)
def _(peer, id):
    peer.whole(200, result(id + 1000, "wrong"))


@row("a body that goes on after the reply", "protocol", HTTP)
def _(peer, id):
    peer.whole(200, result(id, "wrong") + b" x")


@row("a body that is not UTF-8", "protocol", HTTP)
def _(peer, id):
    peer.whole(200, result(id, "?").replace(b"?", b"\xff"))


@row("white space without end", "protocol", HTTP)
def _(peer, id):
    peer.raw(CHUNKED)
    forever(peer, lambda: peer.raw(b"10000\r\n%s\r\n" % (b" " * 65536)))


@row("chunks of one byte without end", "protocol|timeout", HTTP)
def _(peer, id):
    peer.raw(CHUNKED)
    forever(peer, lambda: peer.raw(b"1\r\n \r\n" * 10_000))


@row("a chunk extension without end", "lost|protocol", HTTP)
def _(peer, id):
    peer.raw(CHUNKED + b"1;x=")
    forever(peer, lambda: peer.raw(b"y" * 65536))


@row("trailers without end", "lost|protocol", HTTP)
def _(peer, id):
    peer.raw(CHUNKED + b"1\r\n \r\n0\r\n")
    forever(peer, lambda: peer.raw(b"x-more: y\r\n" * 1000))


@row("a comment without end", "timeout", HTTP)
def _(peer, id):
    peer.event(b": ")
    forever(peer, lambda: peer.event(b"x" * 65536))


@row("a line of an event without end", "protocol", HTTP, memory=128 * MIB)
def _(peer, id):
    forever(peer, lambda: peer.event(b"x" * 65536))


@row("it closes in the middle of an event", "lost", HTTP)
def _(peer, id):
    peer.event(b"data: " + result(id, "wrong"))
    peer.close()


@row("comments without end after the reply", "right", HTTP, action="call twice")
def _(peer, id):
    peer.reply(id, text("right"))
    forever(peer, lambda: peer.event(b": " + b"x" * 1000 + b"\n\n"))


@row("events of other types", "right", HTTP)
def _(peer, id):
    for kind in (b"endpoint", b"error", b"x", b"MESSAGE", b"message "):
        peer.event(b"event: %s\ndata: %s\n\n" % (kind, result(id, "wrong")))
    peer.event(b"event: message\rdata: %s\r\r" % result(id, "right"))


@row("a compressed stream of events", "lost|protocol", HTTP)
def _(peer, id):
    body = gzip.compress(b"data: " + result(id, "wrong") + b"\n\n")
    head = b"HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n"
    peer.raw(head % len(body) + body)


@row("it never reads a request", "timeout", HTTP, action="push", method="body", memory=160 * MIB)
def _(peer, id):
    wait()


# ── names in headers ─────────────────────────────────────────────────────────────────────────────────


@row(
    "a tool whose name breaks headers",
    "right",
    HTTP,
    action="list and call first",
    tools=[{"name": "a\r\nx-evil: 1\r\n\r\n", "inputSchema": {"type": "object"}}],
)
@row(
    "a parameter that breaks headers",
    "right",
    HTTP,
    action="list and call first",
    tools=[{"name": "a", "inputSchema": {"properties": {"a": {"type": "string", "x-mcp-header": "A"}}}}],
)
def _(peer, id):
    peer.answer(id, text("wrong" if "x-evil" in peer.headers else "right"))


def with_header(name):
    return {"properties": {"a": {"type": "string", "x-mcp-header": name}}}


@row(
    "parameters whose header names break headers",
    "1",
    HTTP,
    action="list",
    tools=[
        {"name": name, "inputSchema": with_header(header)}
        for name, header in (("a", "A\r\nx-evil"), ("b", "A: 1"), ("c", ""), ("d", "é"), ("e", 3), ("f", "Fine"))
    ],
)
def _(peer, id):
    wait()


# ── sessions ─────────────────────────────────────────────────────────────────────────────────────────


def initialized(peer, id, *headers):
    found = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": INFO}
    peer.whole(200, {"jsonrpc": "2.0", "id": id, "result": found}, *headers)


for kind, session in {"a tab": "a\tb", "a letter beyond ASCII": "\u00e9", "10 KB": "x" * 10_000}.items():

    @row(f"a session id with {kind}", "right", HTTP, era="legacy")
    def _(peer, id):
        peer.answer(id, text("wrong" if "mcp-session-id" in peer.headers else "right"))

    @row(f"a session id with {kind}", "", method="initialize")
    def _(peer, id, session=session):
        initialized(peer, id, f"mcp-session-id: {session}")


@row("a session id of 1 MiB", REFUSED, HTTP, era="legacy", action="connect", method="initialize")
def _(peer, id):
    initialized(peer, id, f"mcp-session-id: {'x' * MIB}")


@row("another session id with each result", "right", HTTP, era="legacy", action="call twice")
def _(peer, id):
    session = peer.headers.get("mcp-session-id")
    value = json.loads(result(id, "right" if session == "first" else f"wrong: {session}"))
    peer.whole(200, value, "mcp-session-id: second")


@row("another session id with each result", "", method="initialize")
def _(peer, id):
    initialized(peer, id, "mcp-session-id: first")


@row("a session that is gone at every call", "lost", HTTP, era="legacy")
def _(peer, id):
    peer.whole(404, b"")


@row("a session that is gone at every call", "", method="initialize")
def _(peer, id):
    initialized(peer, id, f"mcp-session-id: {time.monotonic_ns()}")


FLOODS = threading.Event()


@row("the stream of a session without end", "right", HTTP, era="legacy", action="call twice")
def _(peer, id):
    FLOODS.wait(5)
    peer.answer(id, text("right"))


@row("the stream of a session without end", "", method="GET")
def _(peer, id):
    for _ in range(10_000):
        peer.notify("tools/list_changed")
    FLOODS.set()
    forever(peer, lambda: peer.notify("tools/list_changed"))


@row("the stream of a session without end", "", method="initialize")
def _(peer, id):
    initialized(peer, id, "mcp-session-id: first")


@row("the end of a session that is never confirmed", "right", HTTP, era="legacy", method="initialize")
def _(peer, id):
    initialized(peer, id, "mcp-session-id: first")


@row("the end of a session that is never confirmed", "", method="DELETE")
def _(peer, id):
    wait()


# ── HTTP+SSE ─────────────────────────────────────────────────────────────────────────────────────────


@row("an endpoint of another origin", REFUSED, HTTP, era="legacy", action="connect", method="initialize")
@row("an endpoint with a line break", REFUSED, HTTP, era="legacy", action="connect", method="initialize")
@row("an endpoint without end", "timeout", HTTP, era="legacy", action="connect", method="initialize")
def _(peer, id):
    peer.whole(405, b"")


@row("an endpoint without end", "", method="GET")
def _(peer, id):
    forever(peer, lambda: peer.event(b": x\nretry: 1\n\n" * 100))


@row("an endpoint with a line break", "", method="GET")
def _(peer, id):
    peer.event(b"event: endpoint\ndata: /x\ndata: x-evil: 1\n\n")
    wait()


@row("an endpoint of another origin", "", method="GET")
def _(peer, id):
    peer.event(f"event: endpoint\ndata: {peer.canary}/an%20endpoint%20of%20another%20origin\n\n".encode())
    wait()
