"""Evil servers over any transport: replies, schemas, lists, floods, the handshake, and processes."""

import json
import os
import subprocess
import sys

from rows import HTTP, MIB, REFUSED, STREAMS, forever, row, wait
from servers import CAPABILITIES, text

# ── replies ──────────────────────────────────────────────────────────────────────────────────────────


@row("a batch of 2,000,000 members", "right")
def _(peer, id):
    peer.say(b"[" + b"1," * 2_000_000 + b"1]")
    peer.reply(id, text("right"))


@row("content that is a number", "protocol", HTTP)
def _(peer, id):
    peer.reply(id, {"resultType": "complete", "content": 3})


@row("a result 100,000 levels deep", "protocol|", HTTP, memory=96 * MIB)
def _(peer, id):
    deep = b"[" * 100_000 + b"]" * 100_000
    peer.say(
        b'{"jsonrpc":"2.0","id":%d,"result":{"resultType":"complete","content":[],"structuredContent":%s}}' % (id, deep)
    )


@row("a number of 100,000 digits", "protocol|", HTTP)
def _(peer, id):
    peer.say(
        b'{"jsonrpc":"2.0","id":%d,"result":{"resultType":"complete","content":[],"structuredContent":{"n":%s}}}'
        % (id, b"9" * 100_000)
    )


@row("an error with a code beyond 64 bits", "protocol", HTTP)
def _(peer, id):
    peer.refuse(id, {"code": 10**30, "message": "wrong"})


@row("an error message of 15 MiB", "protocol")
def _(peer, id):
    peer.refuse(id, {"code": -32603, "message": "x" * (15 * MIB)})


@row("a reply of 100 MiB", "protocol")
def _(peer, id):
    reply_of_100_mib(peer, id)


@row("a reply of 100 MiB to discover", REFUSED, HTTP, action="connect", method="server/discover", memory=96 * MIB)
def _(peer, id):
    reply_of_100_mib(peer, id)


def reply_of_100_mib(peer, id):
    start, end = b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"' % id, b'"}]}}'
    if peer.kind == "ws":
        peer.raw(b"\x81\x7f" + (len(start) + 100 * MIB + len(end)).to_bytes(8, "big"))
    elif peer.kind == "http":
        peer.raw(b"HTTP/1.1 200 X\r\ncontent-type: application/json\r\n\r\n")
    peer.raw(start)
    for _ in range(100):
        peer.raw(b"x" * MIB)
    peer.raw(end + (b"\n" if peer.kind == "stdio" else b""))
    if peer.kind == "http":
        peer.close()


@row("a notification of 17 MiB before the reply", "right", ("stdio",))
def _(peer, id):
    peer.send(method="notifications/message", params={"level": "info", "data": "x" * (17 * MIB)})
    peer.reply(id, text("right"))


@row("an event of 100 MiB", "protocol", ("http",))
def _(peer, id):
    peer.event(b"data: ")
    for _ in range(100):
        peer.event(b"x" * MIB)
    peer.event(b"\n\n")


# ── schemas ──────────────────────────────────────────────────────────────────────────────────────────


def tool(output):
    return [{"name": "evil", "inputSchema": {"type": "object"}, "outputSchema": output}]


def structured(value):
    return {**text(json.dumps(value)), "structuredContent": value}


NUMBER = {"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]}


@row("a result that fails its schema", "protocol", HTTP, action="list and call", tools=tool(NUMBER))
def _(peer, id):
    peer.reply(id, structured({"n": "wrong"}))


@row("a schema with a network $ref", "protocol|right", HTTP, action="list and call", method="tools/list")
def _(peer, id):
    schema = {"$ref": f"{peer.canary}/a%20schema%20with%20a%20network%20$ref", "$schema": f"{peer.canary}/x"}
    peer.answer(id, {"resultType": "complete", "tools": tool(schema), "ttlMs": 0, "cacheScope": "private"})


@row("a schema that refers to itself", '{"a": {"a": {}}}', HTTP, action="list and call", tools=tool({"$ref": "#"}))
def _(peer, id):
    peer.reply(id, structured({"a": {"a": {}}}))


SLOW = {"type": "object", "properties": {"n": {"type": "string", "pattern": r"^(?=(a|aa)+$)(a|aa)+b\1$"}}}


@row("a pattern that backtracks", "protocol|timeout", HTTP, action="list and call", tools=tool(SLOW))
def _(peer, id):
    peer.reply(id, structured({"n": "a" * 5000}))


LOOKS_AHEAD = {"type": "string", "pattern": "(?=.*[a-z])(?=.*[0-9]).{8}"}


@row(
    "a result of 200 KB against a pattern that looks ahead",
    "protocol",
    HTTP,
    action="list and call",
    tools=tool({"type": "object", "properties": {"n": LOOKS_AHEAD}}),
)
def _(peer, id):
    peer.reply(id, structured({"n": "b" * 200_000}))


ASKS_FOR_A_PASSWORD = [{"name": "evil", "inputSchema": {"type": "object", "properties": {"n": LOOKS_AHEAD}}}]


@row(
    "arguments of 200 KB against a pattern that looks ahead",
    "misuse",
    HTTP,
    action="validate",
    tools=ASKS_FOR_A_PASSWORD,
)
def _(peer, id):
    peer.reply(id, text("it was sent"))


def form_of(size):
    fields = {"a": {"type": "string"}, "n": {**LOOKS_AHEAD, "default": "b" * size}}
    return {"mode": "form", "message": "?", "requestedSchema": {"type": "object", "properties": fields}}


for size in (200, 60):

    @row(f"a form whose default of {size} KB has a pattern that looks ahead", "protocol", HTTP)
    def _(peer, id, size=size):
        question = {"method": "elicitation/create", "params": form_of(size * 1000)}
        peer.answer(id, {"resultType": "input_required", "inputRequests": {"q": question}, "requestState": "x"})


# ── lists ────────────────────────────────────────────────────────────────────────────────────────────


def page(peer, id, cursor, tools=()):
    result = {"resultType": "complete", "tools": list(tools), "nextCursor": cursor, "ttlMs": 0, "cacheScope": "private"}
    peer.answer(id, result)


@row("a cursor that repeats", "protocol|timeout", HTTP, action="list", method="tools/list")
def _(peer, id):
    page(peer, id, "again")


@row("cursors of 1 MiB without end", "protocol|timeout", HTTP, action="list", method="tools/list", memory=96 * MIB)
def _(peer, id):
    page(peer, id, str(id) + "x" * MIB)


@row("tools of the wrong shape", "protocol", HTTP, action="list", tools=[{"name": 3}, "x", None])
@row("tools that are not a list", "protocol", HTTP, action="list", tools={"a": 1})
def _(peer, id):
    wait()


# ── floods and silence ───────────────────────────────────────────────────────────────────────────────


@row("silence", "timeout")
def _(peer, id):
    wait()


@row("silence from the start", "", method="initialize")
@row("silence from the start", "timeout", action="connect", method="server/discover")
def _(peer, id):
    wait()


@row("it stops reading", "timeout", STREAMS, action="push", memory=160 * MIB)
def _(peer, id):
    wait()


@row("log messages without end", "timeout")
def _(peer, id):
    forever(peer, lambda: peer.notify("message", level="error", data="x" * 1000))


@row("progress without end", "timeout")
def _(peer, id):
    forever(peer, lambda: peer.notify("progress", progressToken=peer.token, progress=1, message="x" * 1000))


@row("changes without end", "timeout", era="legacy")
def _(peer, id):
    forever(peer, lambda: peer.notify("tools/list_changed"))


@row("progress that is not a number", "right", HTTP)
def _(peer, id):
    for value in ("x", None, -1, 1e308, {}, []):
        peer.notify("progress", progressToken=peer.token, progress=value)
    for token in (None, "x", -1, {}, 2**70):
        peer.notify("progress", progressToken=token, progress=1)
    peer.say(b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1e999}}')
    peer.reply(id, text("right"))


@row("pings without end", "timeout", era="legacy")
def _(peer, id):
    forever(peer, lambda: peer.send(id="p", method="ping"))


@row("questions without end", "timeout", era="legacy")
def _(peer, id):
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    forever(
        peer, lambda: peer.send(id="q", method="elicitation/create", params={"message": "?", "requestedSchema": schema})
    )


@row("rounds of questions without end", "protocol", HTTP, memory=96 * MIB)
def _(peer, id):
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    question = {"method": "elicitation/create", "params": {"mode": "form", "message": "?", "requestedSchema": schema}}
    peer.answer(id, {"resultType": "input_required", "inputRequests": {"q": question}, "requestState": "x" * MIB})


# The questions, their answers and the callbacks of 64 of them.
@row("a round of 20,000 questions", "protocol", HTTP)
def _(peer, id):
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    question = {"method": "elicitation/create", "params": {"mode": "form", "message": "?", "requestedSchema": schema}}
    peer.answer(id, {"resultType": "input_required", "inputRequests": {str(n): question for n in range(20_000)}})


@row("a question of an unknown kind", "protocol|unsupported", HTTP)
def _(peer, id):
    peer.answer(
        id, {"resultType": "input_required", "inputRequests": {"q": {"method": "password/steal", "params": {}}}}
    )


@row("it closes in the middle of a reply", "lost")
def _(peer, id):
    half = b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"wro' % id
    if peer.kind == "ws":
        peer.raw(b"\x81\x7e" + (200).to_bytes(2, "big"))
    elif peer.kind == "http":
        peer.raw(b"HTTP/1.1 200 X\r\ncontent-type: application/json\r\ncontent-length: 200\r\n\r\n")
    peer.raw(half)
    peer.close()


@row("it closes at every call", "lost")
def _(peer, id):
    peer.close()


# ── the handshake ────────────────────────────────────────────────────────────────────────────────────


@row("garbage to discover", "right|protocol|unsupported", HTTP, method="server/discover", era="legacy")
def _(peer, id):
    peer.answer(id, {"resultType": "complete", "supportedVersions": 3, "capabilities": [], "ttlMs": "x"})


@row("no version to discover", "right|protocol|unsupported", HTTP, method="server/discover", era="legacy")
def _(peer, id):
    peer.answer(id, {"resultType": "complete", "supportedVersions": ["2099-01-01"], "capabilities": {}, "ttlMs": 0})


@row("an unknown revision", "unsupported", HTTP, action="connect", method="initialize", era="legacy")
def _(peer, id):
    info = {"name": "evil", "version": "1"}
    peer.answer(id, {"protocolVersion": "2031-01-01", "capabilities": CAPABILITIES, "serverInfo": info})


@row("garbage to initialize", REFUSED, HTTP, action="connect", method="initialize", era="legacy")
def _(peer, id):
    peer.answer(id, {"protocolVersion": 7, "capabilities": "x", "serverInfo": []})


# ── processes ────────────────────────────────────────────────────────────────────────────────────────


@row("a child that writes what is not a message", "right", ("stdio",), method="begin")
def _(peer):
    peer.raw(b"Welcome to evil 1.0!\n\n\0\0\r\n\xff\xfe\n" + b"=" * 100_000 + b"\n")


@row("a child that writes to stderr without end", "right", ("stdio",), method="begin")
def _(peer):
    subprocess.Popen(
        ["sh", "-c", "while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx >&2; done"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        env=marked(),
    )


@row("a child that ignores the end of input and SIGTERM", "right", ("stdio",), method="begin")
def _(peer):
    import signal
    import threading

    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    threading.Thread(target=wait).start()


@row("a child that leaves grandchildren", "right", ("stdio",), method="begin")
def _(peer):
    subprocess.Popen(["sh", "-c", "sleep 600 & sleep 600"], env=marked())


@row("a child that forks and ends", "timeout", ("stdio",))
def _(peer, id):
    subprocess.Popen(["sh", "-c", "trap '' TERM; sleep 600"], env=marked())
    peer.close()


def marked():
    """Returns the environment by which the runner finds what is left."""
    return {**os.environ, "HOSTILE": sys.argv[4]}
