"""Evil servers over any transport: notifications, questions, and subscriptions."""

import json

from rows import HTTP, MIB, WS, answers, forever, row, wait
from servers import text

# ── notifications ────────────────────────────────────────────────────────────────────────────────────


@row("progress that decreases and is about others", "right", HTTP)
def _(peer, id):
    for value in (10, 5, 5, 0, -1e308, 11):
        peer.notify("progress", progressToken=peer.token, progress=value, total=-1, message=3)
    for token in (id - 1, id + 1, id + 1000, str(peer.token), [peer.token], 2**64 - 1):
        peer.notify("progress", progressToken=token, progress=50, total=100)
    peer.reply(id, text("right"))


@row("notifications of the wrong shape", "right", HTTP)
def _(peer, id):
    for params in ({}, {"level": 7, "data": 1}, {"level": "loud"}, {"level": "info", "data": {}, "logger": 3}):
        peer.notify("message", **params)
    for method in (
        "message",
        "progress",
        "cancelled",
        "resources/updated",
        "tools/list_changed",
        "elicitation/complete",
    ):
        for params in ([], 3, None, "x", {"_meta": 3}, {"uri": 7, "elicitationId": {}}):
            peer.send(method=f"notifications/{method}", params=params)
    for method in ("", "notifications/", "\0", "x" * MIB, "tools/call"):
        peer.send(method=method, params={})
    peer.reply(id, text("right"))


# ── questions ────────────────────────────────────────────────────────────────────────────────────────


@row("a round of questions that the client did not declare", "protocol|unsupported", HTTP)
def _(peer, id):
    question = {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}}
    peer.answer(id, {"resultType": "input_required", "inputRequests": {"q": question}})


@row("questions with every kind of id", "right", HTTP, era="legacy")
def _(peer, id):
    for other in (None, 1.5, True, [], {}, -1, 2**70, "", "x" * MIB, "\0"):
        peer.send(id=other, method="password/steal")
        peer.send(id=other, method="ping", params=7)
    peer.reply(id, text("right"))


@row("undeclared questions without end", "timeout", HTTP, era="legacy")
def _(peer, id):
    forever(peer, lambda: peer.send(id=f"q{'x' * 1000}", method="roots/list"))


@row("questions before the end of the handshake", "right", ("http", "stdio"), era="legacy", method="initialize")
def _(peer, id):
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    peer.send(id="early", method="elicitation/create", params={"message": "?", "requestedSchema": schema})
    peer.send(id="earlier", method="roots/list")
    peer.notify("message", level="error", data="x")
    peer.notify("tools/list_changed")
    peer.reply(id, {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "evil"}})
    for answer in answers(peer, ["early", "earlier"]):
        if "result" in answer:
            peer.close()


URLS = {
    "of JavaScript": "javascript:alert(1)",
    "of a file": "file:///etc/passwd",
    "that begins with a space": " https://a.example",
    "with a line break in its scheme": "java\nscript:alert(1)",
    "without a scheme": "//a.example",
    "of 1 MiB": "x" * MIB,
}
for kind, url in URLS.items():

    @row(f"a page to visit whose URL is one {kind}", "protocol", HTTP)
    def _(peer, id, url=url):
        params = {"mode": "url", "message": "?", "url": url, "elicitationId": "1"}
        question = {"method": "elicitation/create", "params": params}
        if "inputResponses" in peer.params:
            return peer.answer(id, text(f"wrong: {peer.params['inputResponses']}"))
        peer.answer(id, {"resultType": "input_required", "inputRequests": {"q": question}, "requestState": "x"})


@row("a form with 10,000 fields", "right", HTTP)
def _(peer, id):
    if "inputResponses" in peer.params:
        return peer.answer(id, text("right"))
    fields = {f"field {number}": {"type": "string", "title": "x"} for number in range(10_000)}
    schema = {"type": "object", "properties": fields}
    question = {"method": "elicitation/create", "params": {"mode": "form", "message": "?", "requestedSchema": schema}}
    peer.answer(id, {"resultType": "input_required", "inputRequests": {"q": question}, "requestState": "x"})


# ── subscriptions ────────────────────────────────────────────────────────────────────────────────────


def acknowledge(peer, id, **filter):
    meta = {"io.modelcontextprotocol/subscriptionId": id}
    peer.notify("subscriptions/acknowledged", notifications=filter, _meta=meta)


@row("20,000 changes of a subscription", "right", method="subscriptions/listen")
def _(peer, id):
    acknowledge(peer, id, toolsListChanged=True)
    params = {"_meta": {"io.modelcontextprotocol/subscriptionId": id}}
    change = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": params}
    change = json.dumps(change).encode()
    for _ in range(20_000):
        peer.say(change)
    if peer.kind == "http":
        wait()


@row("a subscription that is never confirmed", "right", WS, outlasts_timeout=True, method="subscriptions/listen")
def _(peer, id):
    pass


@row("a subscription that is refused", "right", ("http", "ws"), method="subscriptions/listen")
def _(peer, id):
    peer.refuse(id, {"code": -32603, "message": "wrong"})


@row(
    "a subscription that is confirmed with nonsense", "right|protocol|unsupported", HTTP, method="subscriptions/listen"
)
def _(peer, id):
    for filter in (3, [], None, {"toolsListChanged": "x"}):
        meta = {"io.modelcontextprotocol/subscriptionId": id}
        peer.notify("subscriptions/acknowledged", notifications=filter, _meta=meta)
    acknowledge(peer, id + 1000, toolsListChanged=True)
    acknowledge(peer, id, everything=True)
    if peer.kind == "http":
        wait()


@row("a subscription that ends again and again", "right", HTTP, method="subscriptions/listen")
def _(peer, id):
    peer.counts["subscriptions"] += 1
    acknowledge(peer, id, toolsListChanged=True)
    peer.reply(id, {"resultType": "complete"})


@row("a subscription that ends again and again", "", method="tools/call")
def _(peer, id):
    opened = peer.counts["subscriptions"]
    peer.answer(id, text("right" if opened < 10 else f"wrong: {opened} subscriptions"))
