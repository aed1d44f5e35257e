"""Evil servers over any transport: ids, JSON, results, and lists that are hard to read."""

import json

from rows import HTTP, MIB, STDIO, row, wait
from servers import INFO, MODERN, discovered, text

# ── ids and messages ─────────────────────────────────────────────────────────────────────────────────


def raw_reply(id, result):
    """Returns a reply whose id and result are JSON."""
    return b'{"jsonrpc":"2.0","id":%s,"result":%s}' % (id.encode(), json.dumps(result).encode())


@row("ids that only equal the right one in value", "right", STDIO)
def _(peer, id):
    numbers = (f"{id}.0", f"{id}e0", f"{id}.0e0", f"{id * 10}e-1", f"0{id}", f"+{id}")
    for other in (*numbers, f'"0{id}"', f"[{id}]", "true"):
        peer.say(raw_reply(other, text("wrong")))
    peer.reply(id, text("right"))


# Some servers return numbers as strings, whose meaning is certain.
@row("the id as a string", "right", STDIO)
def _(peer, id):
    peer.say(raw_reply(f'"{id}"', text("right")))


@row("a batch of replies to one id", "right", STDIO)
def _(peer, id):
    replies = [{"jsonrpc": "2.0", "id": id, "result": text(word)} for word in ("right", *["wrong"] * 500)]
    peer.say(json.dumps(replies).encode())


# As in JavaScript, the last of several members with one name counts, over all transports.
@row("each member of a reply twice", "last")
def _(peer, id):
    first, last = json.dumps(text("first")), json.dumps(text("last"))
    peer.say(f'{{"jsonrpc":"2.0","id":{id + 1000},"id":{id},"result":{first},"result":{last}}}'.encode())


@row("a batch of replies of 17 MiB", "protocol|lost", era="legacy")
def _(peer, id):
    other = {"jsonrpc": "2.0", "method": "x", "params": {"x": "x" * (17 * MIB)}}
    peer.say(json.dumps([other, {"jsonrpc": "2.0", "id": id, "result": text("wrong")}]).encode())


@row("a reply of JSON-RPC 1.0", "protocol", STDIO)
def _(peer, id):
    peer.say(json.dumps({"jsonrpc": "1.0", "id": id, "result": text("wrong")}).encode())


# A string of JavaScript may have one.
@row("a text with a lone surrogate", "protocol|\ud800", HTTP)
def _(peer, id):
    peer.reply(id, text("\ud800"))


# Event streams are decoded with replacement characters, and WebSockets are closed.
@row("a reply that is not UTF-8", {"http": "\ufffd", "ws": "lost", "stdio": "protocol"})
def _(peer, id):
    peer.say(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"\xff"}]}}' % id)


@row("an error with 1 MiB of data", "protocol", HTTP)
def _(peer, id):
    peer.refuse(id, {"code": -32603, "message": "wrong", "data": ["x" * MIB]})


# ── the handshake ────────────────────────────────────────────────────────────────────────────────────


@row("a second answer to discover", "right", STDIO, method="server/discover")
def _(peer, id):
    peer.reply(id, discovered())
    peer.reply(id, {**discovered(), "supportedVersions": ["2099-01-01"], "capabilities": 3})


@row("a second answer to initialize", "right", STDIO, era="legacy", method="initialize")
def _(peer, id):
    result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": INFO}
    peer.reply(id, result)
    peer.reply(id, {**result, "protocolVersion": "2031-01-01"})
    peer.refuse(id, {"code": -32603, "message": "wrong"})


@row("50,000 revisions", "right", HTTP, method="server/discover")
def _(peer, id):
    peer.answer(id, {**discovered(), "supportedVersions": [f"2099-{number}" for number in range(50_000)] + [MODERN]})


@row("instructions of 1 MiB", "right", HTTP, method="server/discover")
def _(peer, id):
    peer.answer(id, {**discovered(), "instructions": "x" * MIB})


# ── results ──────────────────────────────────────────────────────────────────────────────────────────


def listed(*tools, **members):
    return {"resultType": "complete", "tools": list(tools), "ttlMs": 0, "cacheScope": "private", **members}


def named(name):
    return {"name": name, "inputSchema": {"type": "object"}}


POLLUTED = {"__proto__": {"evil": 1}, "constructor": {"prototype": {"evil": 1}}}
FORM = {"type": "object", "properties": {"a": {"type": "string"}}}
QUESTION = {"method": "elicitation/create", "params": {"mode": "form", "message": "?", "requestedSchema": FORM}}

# These are read above the transports, so one transport stands for all.


@row("terminal escapes in a result", "\x1b]0;x\x07\x1b[2Jright", HTTP)
def _(peer, id):
    peer.reply(id, text("\x1b]0;x\x07\x1b[2Jright"))


@row("content of an unknown type", "right", HTTP)
def _(peer, id):
    peer.reply(id, {"resultType": "complete", "content": [{"type": "hologram", "text": 3}, *text("right")["content"]]})


@row("content of 5,000 parts", "right", HTTP)
def _(peer, id):
    part = {"type": "image", "data": "", "mimeType": ""}
    peer.reply(id, {"resultType": "complete", "content": [part] * 5_000 + text("right")["content"]})


IMAGE = {"type": "image", "data": "", "mimeType": ""}


@row("content of 10,000 parts", "right", HTTP)
def _(peer, id):
    peer.reply(id, {"resultType": "complete", "content": [IMAGE] * 9_999 + text("right")["content"]})


for part in (IMAGE, {"type": "text", "text": "x"}, {"type": "x"}):

    @row(f"content of 300,000 parts of type {part['type']}", "protocol", HTTP)
    def _(peer, id, part=part):
        peer.reply(id, {"resultType": "complete", "content": [part] * 300_000})


# The limits count the objects of which clients make values, wherever they are.
@row("a content block with 300,000 others inside", "protocol", HTTP)
def _(peer, id):
    outcome = {"type": "tool_result", "toolUseId": "x", "content": [IMAGE] * 300_000}
    peer.reply(id, {"resultType": "complete", "content": [outcome]})


for count, expected in ((25_000, "25000"), (100_000, "protocol")):

    @row(f"a page of {count:,} tools", expected, HTTP, action="list", method="tools/list")
    def _(peer, id, count=count):
        peer.answer(id, listed(*(named(f"tool {number}") for number in range(count))))


@row("two pages of 15,000 tools", "protocol", HTTP, action="list", method="tools/list")
def _(peer, id):
    cursor = peer.params.get("cursor", "")
    peer.answer(id, listed(*(named(f"tool {number} {cursor}") for number in range(15_000)), nextCursor=f"{id}"))


@row("a tool with 300,000 icons", "protocol", HTTP, action="list", method="tools/list")
def _(peer, id):
    peer.answer(id, listed({**named("evil"), "icons": [{"src": ""}] * 300_000}))


@row("structured content of 100,000 numbers", "right", HTTP)
def _(peer, id):
    peer.reply(id, {**text("right"), "structuredContent": {"n": [0] * 100_000}})


@row("members named as those of all objects", "right", HTTP, action="list and call", method="tools/list")
def _(peer, id):
    tools = [{**named(name), "__proto__": POLLUTED, "_meta": POLLUTED} for name in ("__proto__", "constructor", "evil")]
    peer.answer(id, listed(*tools, **POLLUTED))


@row("members named as those of all objects", "")
def _(peer, id):
    value = {**POLLUTED, "toString": 1, "then": 2, "__class__": 3, "__dict__": {"evil": 1}}
    if "inputResponses" not in peer.params:
        asked = dict.fromkeys(("__proto__", "constructor", "__class__"), QUESTION)
        return peer.answer(id, {"resultType": "input_required", "inputRequests": asked, "requestState": "x"})
    answered = sorted(peer.params["inputResponses"]) == ["__class__", "__proto__", "constructor"]
    peer.answer(id, {**text("right" if answered else "wrong"), **POLLUTED, "structuredContent": value, "_meta": value})


# JavaScript reads them as infinite.
@row("numbers beyond a double", "protocol|right", HTTP)
def _(peer, id):
    start = json.dumps(text("right")).encode()[:-1]
    peer.say(b'{"jsonrpc":"2.0","id":%d,"result":%s,"structuredContent":{"n":[1e999,-1e999]}}}' % (id, start))


@row("error data with a number beyond a double", "protocol", HTTP)
def _(peer, id):
    peer.say(b'{"jsonrpc":"2.0","id":%d,"error":{"code":1,"message":"x","data":1e999}}' % id)


@row("error data of 1,000 levels", "protocol", HTTP)
def _(peer, id):
    deep = b"[" * 1000 + b"]" * 1000
    peer.say(b'{"jsonrpc":"2.0","id":%d,"error":{"code":1,"message":"x","data":%s}}' % (id, deep))


@row("a capability with a lone surrogate", "right|connect|protocol", HTTP, method="server/discover")
def _(peer, id):
    peer.answer(id, {**discovered(), "capabilities": {"tools": {}, "experimental": {"x": {"y": "\ud800"}}}})


@row("a failed result with a number beyond a double", "tool|protocol", HTTP)
def _(peer, id):
    start = json.dumps({**text("wrong"), "isError": True}).encode()[:-1]
    peer.say(b'{"jsonrpc":"2.0","id":%d,"result":%s,"_meta":{"n":1e999}}}' % (id, start))


@row("a failed result with a text that is an object", "tool|protocol", HTTP)
def _(peer, id):
    peer.reply(id, {"resultType": "complete", "isError": True, "content": [{"type": "text", "text": {}}]})


@row("content without a type", "protocol", HTTP)
def _(peer, id):
    peer.reply(id, {"resultType": "complete", "content": [{"text": "wrong"}, 3, None]})


@row("a text that is a number", "protocol", HTTP)
def _(peer, id):
    peer.reply(id, {"resultType": "complete", "content": [{"type": "text", "text": 3}]})


@row("an image that is not base64", "right", HTTP)
def _(peer, id):
    image = {"type": "image", "data": "%%%", "mimeType": "image/png"}
    peer.reply(id, {"resultType": "complete", "content": [image, *text("right")["content"]]})


# ── lists ────────────────────────────────────────────────────────────────────────────────────────────


@row("cursors without end", "protocol|timeout", HTTP, action="list", method="tools/list")
def _(peer, id):
    peer.answer(id, listed(named(f"tool {id}"), nextCursor=str(id)))


@row("a cursor that is a number", "protocol", HTTP, action="list", method="tools/list")
def _(peer, id):
    peer.answer(id, listed(nextCursor=3))


@row("a list that stays valid for 2^63 ms", "right", HTTP, action="list and call", method="tools/list")
def _(peer, id):
    peer.answer(id, listed(named("evil"), ttlMs=2**63))


@row("a list that stays valid for no number", "right", HTTP, action="list and call", method="tools/list")
def _(peer, id):
    peer.answer(id, listed(named("evil"), ttlMs=-1e300, cacheScope=7))


ODD_NAMES = [named(name) for name in ("", "\0", "a\r\nb", "\x1b[2J", "\u202e", "x" * MIB)]


@row("a tool whose description is a number", "protocol", HTTP, action="list", tools=[{**named("a"), "description": 3}])
@row("tools of one name", "3", HTTP, action="list", tools=[named("evil")] * 3)
@row("names of control characters, and one of 1 MiB", "6", HTTP, action="list", tools=ODD_NAMES)
def _(peer, id):
    wait()
