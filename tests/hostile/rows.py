"""The table of evil servers: what each one does, and what a client makes of it. `table()` returns all rows."""

import importlib
import json
import time
from collections import Counter
from dataclasses import dataclass, field

from servers import CAPABILITIES

MIB = 1 << 20
STREAMS = ("stdio", "ws")
ALL = ("stdio", "http", "ws")
STDIO = ("stdio",)
HTTP = ("http",)
WS = ("ws",)
# A handshake that fails: Rust has no kind of its own for it.
REFUSED = "connect|protocol"
ROWS = {}


@dataclass
class Row:
    """An evil server."""

    name: str
    # The outcome: the text of the result, or the kind of the error, or several between "|". Transports may differ.
    expect: str | dict[str, str]
    transports: tuple[str, ...] = ALL
    # The client's actions: connect, list, call, call twice, list and call, list and call first (the first tool listed),
    # validate (a call with 200 KB of arguments, which are checked), push (8 calls of 1 MiB at once).
    action: str = "call"
    era: str = "modern"
    tools: list = field(default_factory=lambda: [{"name": "evil", "inputSchema": {"type": "object"}}])
    capabilities: dict = field(default_factory=lambda: CAPABILITIES)
    # It goes on after the client's timeout, which is not an outcome then.
    outlasts_timeout: bool = False
    # The bytes by which the client may grow.
    memory: int = 96 * MIB
    # By method. "GET" opens the stream of a session and "DELETE" ends one; "body" comes before the body of a request of
    # 1 MiB is read.
    behaviours: dict = field(default_factory=dict)
    # The numbers that behaviours of the same server count.
    counts: Counter = field(default_factory=Counter)
    begin: object = None
    handshake: object = None

    def expected(self, transport):
        expect = self.expect if isinstance(self.expect, str) else self.expect.get(transport, self.expect.get("else"))
        return expect.split("|")


def row(name, expect, transports=ALL, *, method="tools/call", **options):
    """Makes a row of the function that answers `method`; without an expectation, adds it to the row of this name."""

    def add(behaviour):
        if bool(expect) == (name in ROWS):
            raise ValueError(f"row {name!r}: the first part, and no other, has an expectation")
        made = ROWS.setdefault(name, Row(name, expect, transports, **options))
        if method in ("begin", "handshake"):
            setattr(made, method, behaviour)
        else:
            made.behaviours[method] = behaviour
        return behaviour

    return add


def wait(*_):
    """Says nothing any more."""
    time.sleep(60)


def forever(peer, step):
    while True:
        step()


def answers(peer, ids):
    """Returns the client's answers to the questions with these ids."""
    found = {}
    while len(found) < len(ids):
        message = peer.answers.get(timeout=5) if peer.kind == "http" else json.loads(peer.receive())
        if message.get("id") in ids and "method" not in message:
            found[message["id"]] = message
    return [found[question_id] for question_id in ids]


MODULES = (
    "server_rows",
    "transport_rows",
    "reply_rows",
    "message_rows",
    "schema_rows",
    "http_rows",
    "websocket_rows",
    "process_rows",
)


def table():
    """Returns the rows of all modules, by their names."""
    for module in MODULES:
        importlib.import_module(module)
    return ROWS
