"""Evil clients against the servers of three languages: what they are answered, at what cost to memory and to others.

What concerns heads, chunks, slow bodies and single frames is in tests/http.
"""

import json
import os
import sys
import threading
import time
from dataclasses import dataclass
from typing import Any

import bindings
from connections import Lines, Server, call, check, modern
from processes import MIB, ROOT, SERVERS

sys.path.append(str(ROOT / "tests/http"))
import speak
import websocket
import wire

HOUR = 3_600_000
# Codes of JSON-RPC with which a request may be refused.
REFUSALS = {-32700, -32600, -32601, -32602, -32603, -32020, -32021, -32022, -32001, -32004}
ROWS = {}


@dataclass
class Row:
    """An evil client."""

    name: str
    transports: tuple[str, ...]
    attack: Any
    # The bytes by which the server may grow.
    memory: int
    # Whether an honest client is watched meanwhile.
    has_victim: bool


def row(name, *transports, memory=96 * MIB, has_victim=True):
    def add(attack):
        ROWS[name] = Row(name, transports, attack, memory, has_victim)
        return attack

    return add


# ── messages ─────────────────────────────────────────────────────────────────────────────────────────

ALL = ("http", "ws", "tcp", "stdio")
STREAMS = ("ws", "tcp", "stdio")


def exchange(server, messages, tool="length", count=0):
    """Sends texts of messages, calls of this tool; returns the answers, at least `count` of them."""
    if server.transport != "http":
        connection = server.open()
        for text in messages:
            connection.send(text)
        connection.is_honest()
        while len(connection.others) < count:
            connection.others.append(json.loads(connection.receive(60)))
        return connection.others
    answers = []
    with server.connect() as connection:
        for text in messages:
            headers = {"MCP-Protocol-Version": speak.MODERN, "Mcp-Method": "tools/call", "Mcp-Name": tool}
            speak.post(connection, server.path, text, headers)
            answer = connection.response()
            check(answer.status < 500, answer.status, text[:100], answer.body)
            answers += speak.messages_of(answer)
    return answers


def check_refusals(answers):
    for answer in answers:
        is_answer = "result" in answer or "method" in answer
        check(is_answer or answer.get("error", {}).get("code") in REFUSALS, answer)


WRONG = (None, True, -1, 10**30, "", "x", [], {}, [[]], {"": None})


def replaced(value):
    """Returns copies of a JSON value, each with one part of another type, or left out."""
    yield from (wrong for wrong in WRONG)
    if isinstance(value, dict):
        for name, member in value.items():
            yield {key: other for key, other in value.items() if key != name}
            for changed in replaced(member):
                yield {**value, name: changed}


@row("wrong types at every level", *ALL)
def _(server):
    requests = [call("length", "a", text="x"), modern("tools/list", {"cursor": "x"}, id="a")]
    requests += [modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, id="a")][
        server.transport == "http" :
    ]
    initialize = {
        "protocolVersion": "2025-11-25",
        "capabilities": {"roots": {}},
        "clientInfo": {"name": "a", "version": "1"},
    }
    if server.transport == "stdio":
        # Everybody else has a connection of its own afterwards.
        initialize["protocolVersion"] = 7
    requests.append(speak.message("initialize", initialize, id="a"))
    check_refusals(exchange(server, [json.dumps(variant).encode() for one in requests for variant in replaced(one)]))


@row("texts that are not messages", *ALL)
def _(server):
    texts = [
        b"{",
        b"}",
        b'"',
        b"nul",
        b"1e",
        b"\xef\xbb\xbf{}",
        b'{"id":1}' * 2,
        b"{'a':1}",
        b'{"a":1,}',
        b'{"\\ud800":1}',
    ]
    texts += [
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"[" + b"1," * 100_000 + b"1]",
        b"9" * 1_000_000,
        b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}',
    ]
    if server.transport in ("tcp", "stdio"):
        texts += [b"\xff\xfe", b"\0", b"\r", b" " * 1_000_000]
    check_refusals(exchange(server, texts))


@row("arguments 100,000 levels deep", *ALL)
def _(server):
    text = json.dumps(call("length", 1, text="?")).encode().replace(b'"?"', b"[" * 100_000 + b"]" * 100_000)
    check_refusals(exchange(server, [text] * 5))


@row("ids, cursors and tokens of 1 MiB", *ALL)
def _(server):
    huge = "x" * MIB
    token = call("slow", "a", ms=1)
    token["params"]["_meta"]["progressToken"] = huge
    messages = [modern("tools/list", id=huge), modern("tools/list", {"cursor": huge}, id="b"), token]
    messages += [call(huge, "c"), modern(huge, id="d"), {**call("length", "e", text="x"), huge: huge}]
    answers = exchange(server, [json.dumps(message).encode() for message in messages])
    check_refusals(answers)


@row("a batch of 2,000,000 members", *ALL)
def _(server):
    check_refusals(exchange(server, [b"[" + b"1," * 2_000_000 + b"1]"]))


@row("arguments of 500,000 numbers", *ALL, memory=128 * MIB)
def _(server):
    text = json.dumps(call("length", 1, text="?")).encode().replace(b'"?"', b"[" + b"1," * 500_000 + b"1]")
    check_refusals(exchange(server, [text] * 3))


@row("texts against a pattern that looks ahead", *ALL)
def _(server):
    texts = ["b" * size for size in [60_000, 200_000] * 4]
    calls = [json.dumps(call("password", n, text=text)).encode() for n, text in enumerate(texts)]
    answers = exchange(server, calls, tool="password", count=8)
    check_refusals(answers)
    check(all("takes too many steps" in json.dumps(answer) for answer in answers), answers)


@row("an id that is in use", *STREAMS)
def _(server):
    connection = server.open()
    for _ in range(100):
        connection.send(json.dumps(call("slow", "same", ms=300)).encode())
    connection.is_honest()
    deadline = time.monotonic() + 10
    while sum("result" in message for message in connection.others) < 1 and time.monotonic() < deadline:
        connection.others.append(json.loads(connection.receive(10)))
    check(sum("result" in message for message in connection.others) == 1, connection.others[:2])
    check_refusals(connection.others)


@row("cancellations and answers that nobody waits for", *STREAMS)
def _(server):
    connection = server.open()
    cancelled = json.dumps(
        speak.notification("notifications/cancelled", {"requestId": "never", "reason": "x" * 1000})
    ).encode()
    answer = json.dumps(
        {"jsonrpc": "2.0", "id": "never", "result": {"action": "accept", "content": {"a": "x" * 1000}}}
    ).encode()
    for _ in range(5000):
        connection.send(cancelled)
        connection.send(answer)
    connection.is_honest()


@row("a call of an hour, 1,000 times", "http", "ws", "tcp")
def _(server):
    if server.transport == "http":
        texts = [speak.modern("tools/call", {"name": "slow", "arguments": {"ms": HOUR}}, id=n) for n in range(1000)]
        connections = []
        try:
            for headers, body in texts:
                connections.append(server.connect())
                speak.post(connections[-1], server.path, body, headers)
            with server.connect(source="127.0.0.2") as other:
                answer = speak.call_modern(server, "length", {"text": "x"}, connection=other)
                check(answer.status == 200, answer)
        finally:
            for connection in connections:
                connection.close()
        return
    connection = server.open()
    for number in range(1000):
        connection.send(json.dumps(call("slow", number, ms=HOUR)).encode())
    other = server.open(source="127.0.0.2") if server.transport == "tcp" else server.open()
    reply = other.ask(call("length", "x", text="x"))
    check("result" in reply, reply)
    connection.close()


# ── HTTP ─────────────────────────────────────────────────────────────────────────────────────────────


@row("3,000 sessions with 60 KB of client information", "http", memory=128 * MIB)
def _(server):
    info = {"name": "x", "version": "1", "title": "x" * 60_000}
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
    with server.connect() as connection:
        for _ in range(3000):
            speak.post(connection, server.path, speak.message("initialize", params))
            answer = connection.response()
            check(answer.status in (200, 503), answer.status, answer.body)
    with server.connect(source="127.0.0.2") as connection:
        params["clientInfo"] = {"name": "honest", "version": "1"}
        speak.post(connection, server.path, speak.message("initialize", params))
        answer = connection.response()
        check(answer.status == 200, answer)


@row("12,000 sessions", "http", memory=96 * MIB)
def _(server):
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    with server.connect() as connection:
        # In pieces of 100, because answering each alone would take long.
        one = wire.request_bytes(
            "POST",
            server.path,
            {"Content-Type": "application/json", "Accept": speak.BOTH, "Host": "127.0.0.1"},
            speak.message("initialize", params),
        )
        for _ in range(120):
            connection.send(one * 100)
            for _ in range(100):
                answer = connection.response()
                check(answer.status in (200, 503), answer.status, answer.body)
    with server.connect(source="127.0.0.2") as connection:
        late = speak.Session(server, connection=connection)
        check(late.ask("ping")["result"] == {}, "a late client is locked out")


# ── TCP and WebSocket ────────────────────────────────────────────────────────────────────────────────


@row("lines of 15 MiB that do not end", "tcp", memory=192 * MIB)
def _(server):
    connections = []
    try:
        for _ in range(20):
            connections.append(server.connect())
            try:
                connections[-1].send(b"x" * (15 * MIB))
            except OSError:
                pass  # it was closed
        with server.connect(source="127.0.0.2") as other:
            connection = Lines(other.socket.fileno(), other.socket.fileno())
            text = "x" * (8 * MIB)
            check(connection.ask(call("length", 1, text=text)).get("result"), "others are not served")
    finally:
        for connection in connections:
            connection.close()


@row("500 idle connections", "tcp", "http")
def _(server):
    connections = [server.connect() for _ in range(500)]
    try:
        for connection in connections:
            check(connection.ends(10), "an idle connection stays")
    finally:
        for connection in connections:
            connection.close()


@row("a message that comes a byte at a time", "tcp", "ws")
def _(server):
    connection = server.connect() if server.transport == "tcp" else websocket.WebSocket(server).connection
    if server.transport == "ws":
        connection.send(b"\x01\x81keyy\x10")
    began = time.monotonic()
    with connection:
        while connection.is_quiet(0.05) and time.monotonic() - began < 8:
            try:
                connection.send(b"x" if server.transport == "tcp" else b"\x00\x81keyy\x10")
            except OSError:
                break
        check(time.monotonic() - began < 8, "a message is waited for without end")


@row("fragments without end", "ws")
def _(server):
    connection = websocket.WebSocket(server).connection
    began = time.monotonic()
    with connection:
        try:
            connection.send(b"\x01\x80keyy")
            while time.monotonic() - began < 8:
                connection.send(b"\x00\x80keyy" * 10_000)
        except OSError:
            pass
        check(time.monotonic() - began < 8, "fragments are read without end")


# ── the runner ───────────────────────────────────────────────────────────────────────────────────────


class Victim(threading.Thread):
    """Measures the longest ping of an honest client of the same server: of one below 3 seconds the part in which the
    server computed, because on a busy machine pings wait for other processes too.
    """

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server = server
        self.stop = threading.Event()
        self.longest = 0.0
        self.problem = None

    def run(self):
        try:
            with self.server.connect(source="127.0.0.2") as connection:
                lines = Lines(connection.socket.fileno(), connection.socket.fileno())
                number = 0
                while not self.stop.wait(0.01):
                    began, computed = time.monotonic(), self.server.processor_time()
                    if self.server.transport == "tcp":
                        check("result" in lines.ask(modern("tools/list", id="honest")), "no answer")
                    else:
                        answer = speak.ask_modern(self.server, "tools/list", connection=connection)
                        check(answer.status == 200, answer)
                    number += 1
                    if number > 1:
                        took = time.monotonic() - began
                        took = took if took > 3 else min(took, self.server.processor_time() - computed)
                        self.longest = max(self.longest, took * 1000)
        except Exception as problem:
            self.problem = f"an honest client failed: {type(problem).__name__}: {problem}"

    def wrong(self):
        self.stop.set()
        self.join(15)
        if self.problem or self.is_alive():
            return [self.problem or "an honest client is not answered"]
        return [f"a ping took {self.longest:.0f} ms"] if self.longest > self.server.longest_ping else []


def cells(wanted):
    """Returns the cells by server: language and transport."""
    chosen = {}
    for language in SERVERS:
        for transport in ALL:
            for row in bindings.chosen(language, transport, ROWS, bindings.SERVER):
                name = f"{language} / {transport} / {row.name}"
                if all(word in name for word in wanted):
                    chosen.setdefault((language, transport), []).append(row)
    return chosen


def run(language, transport, rows):
    """Runs rows one after the other against one server; returns those that failed, with the reasons."""
    failures = []
    server = Server(language, transport)
    try:
        for row in rows:
            began = time.monotonic()
            grown, ping, wrong = attack(server, row)
            if os.environ.get("HOSTILE_SHOW"):
                took = time.monotonic() - began
                print(language, transport, row.name, f"{grown // MIB} MiB, {took:.1f} s, {ping:.0f} ms", flush=True)
            if wrong:
                failures.append((row, wrong))
                server.stop()
                server = Server(language, transport)
    finally:
        server.stop()
    return failures


def attack(server, row):
    """Returns the bytes by which the server grew, the longest ping in milliseconds, and what went wrong."""
    before = server.memory()
    server.forget_peak()
    victim = None
    if server.transport != "stdio" and row.has_victim:
        victim = Victim(server)
        victim.start()
    wrong = []
    try:
        row.attack(server)
    except Exception as problem:
        wrong.append(f"{type(problem).__name__}: {problem}"[:600])
    if victim:
        wrong += victim.wrong()
    if not server.is_alive():
        return 0, 0, [*wrong, f"the server ended with {server.process.returncode}: {''.join(server.said)[-1000:]}"]
    grown = server.memory("VmHWM") - before
    if grown > row.memory:
        wrong.append(f"memory grew by {grown // MIB} MiB")
    if said := [line for line in server.said if "panicked" in line or "Traceback" in line]:
        wrong.append(f"it said {said[:3]}")
    return grown, victim.longest if victim else 0, wrong
