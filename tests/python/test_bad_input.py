"""Invalid input from clients: servers continue, and exit with status 0.

What the core decides by itself is tested with the server in Rust; what bindings read, convert or schedule with
every server.
"""

import contextlib
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from peer import SERVERS, Peer

pytestmark = pytest.mark.io

MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
MIB = 1024 * 1024

every_server = pytest.mark.parametrize("server", SERVERS)
the_core = pytest.mark.parametrize("server", ["rust"])


def request(id: Any, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def call(id: Any, tool: str, **arguments: Any) -> dict[str, Any]:
    return request(id, "tools/call", name=tool, arguments=arguments)


def initialize(revision: str) -> dict[str, Any]:
    info = {"name": "c", "version": "1"}
    return request(0, "initialize", protocolVersion=revision, capabilities={}, clientInfo=info)


def text_of(reply: Any) -> Any:
    return reply["result"]["content"][0]["text"]


def assert_serves(peer: Peer) -> None:
    assert peer.ask(request("alive", "ping")) == {"jsonrpc": "2.0", "id": "alive", "result": {}}


@contextlib.contextmanager
def opened(server: str, *arguments: str, revision: str = "2025-11-25") -> Iterator[Peer]:
    """A server after the handshake; afterwards it must still serve, say nothing more, and leave with 0."""
    with Peer(server, *arguments) as peer:
        assert peer.ask(initialize(revision))["result"]["protocolVersion"] == revision
        peer.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        yield peer
        assert_serves(peer)
        assert peer.end() == []


@the_core
def test_invalid_json(server: str) -> None:
    with opened(server) as peer:
        for line in (
            b"{",
            b"nonsense",
            b"\0",
            b'{"jsonrpc":"2.0","id":1,"method":"ping"',
            b'{"jsonrpc":"2.0","id":1,"method":"ping"}}',
            b'{"jsonrpc":"2.0","id":1,"method":"ping",}',
            b"{'jsonrpc':'2.0','id':1,'method':'ping'}",
            b'{"jsonrpc":"2.0","id":1,"method":"pi\x01ng"}',
            b'{"jsonrpc":"2.0","id":1,"method":"ping"} {"jsonrpc":"2.0","id":2,"method":"ping"}',
            b"[1,",
        ):
            error = peer.ask(line)
            assert error["error"]["code"] == -32700 and "id" not in error, (line, error)


@the_core
def test_json_that_is_no_message(server: str) -> None:
    with opened(server) as peer:
        for line in (b"7", b"null", b"{}", b'""', b'{"jsonrpc":"2.0","id":null,"method":"ping"}', b'{"jsonrpc":"2.0"}'):
            assert peer.ask(line)["error"]["code"] == -32600, line


@the_core
def test_invalid_utf8(server: str) -> None:
    with opened(server) as peer:
        for bad in (b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xc0\xaf"):
            line = json.dumps(call(1, "echo", text="BAD")).encode().replace(b"BAD", bad)
            assert peer.ask(line)["error"]["code"] == -32700
        assert text_of(peer.ask(call(2, "echo", text="héllo 😀"))) == "héllo 😀"


@every_server
def test_lone_surrogate(server: str) -> None:
    """Valid JSON, but no Unicode: whatever the answer is, it is one, and it is JSON."""
    with opened(server) as peer:
        line = json.dumps(call(1, "echo", text="\ud800"))
        reply = peer.ask(line.encode())
        assert reply["id"] == 1 and ("error" in reply or reply["result"].get("isError") or text_of(reply)), reply


@the_core
def test_line_ends(server: str) -> None:
    with opened(server) as peer:
        peer.write(b"\r\n\n \t \r\n\n")
        peer.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\r\n \n')
        peer.write(b'  {"jsonrpc":"2.0","id":2,"method":"ping"}  \r\n')
        assert [peer.receive()["id"], peer.receive()["id"]] == [1, 2]


@pytest.mark.parametrize(("left", "right"), [("[", "]"), ('{"a":', "}")])
@pytest.mark.parametrize(
    ("server", "revision"), [("rust", "2025-03-26"), *((server, "2025-11-25") for server in SERVERS)]
)
def test_nesting(server: str, revision: str, left: str, right: str) -> None:
    deep = f"{left * 100_000}1{right * 100_000}"
    with opened(server, revision=revision) as peer:
        for frame in (
            "DEEP",
            '{"jsonrpc":"2.0","id":DEEP,"method":"ping"}',
            '{"jsonrpc":"2.0","id":1,"method":"ping","params":DEEP}',
            '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":DEEP}}',
            '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":DEEP}}',
            '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":DEEP}}}',
            '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nope","arguments":{"text":DEEP}}}',
            '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"content","arguments":{"more":DEEP}}}',
            '{"jsonrpc":"2.0","id":1,"method":"acme/echo","params":{"text":DEEP}}',
            '[{"jsonrpc":"2.0","id":1,"method":"ping","params":DEEP}]',
            "[DEEP,DEEP]",
        ):
            reply = peer.ask(frame.replace("DEEP", deep).encode())
            assert reply, frame
        assert peer.ask((left * 100_000).encode())["error"]["code"] == -32700


@the_core
def test_line_over_a_small_limit(server: str) -> None:
    with opened(server, "--limit", "4096") as peer:
        error = peer.ask(call(1, "echo", text="x" * 4096))
        assert error["error"]["code"] == -32600 and "4096" in error["error"]["message"], error
        room = 4096 - len(json.dumps(call(2, "echo", text="")))
        assert text_of(peer.ask(call(2, "echo", text="x" * room))) == "x" * room
        assert "error" in peer.ask(call(3, "echo", text="x" * (room + 1)))
        assert text_of(peer.ask(call(4, "echo", text="on"))) == "on"


@every_server
def test_line_over_the_default_limit(server: str) -> None:
    with opened(server) as peer:
        before = peer.memory
        error = peer.ask(call(1, "echo", text="x" * (17 * MIB)))
        assert error["error"]["code"] == -32600 and error["id"] == 1, error
        assert text_of(peer.ask(call(2, "echo", text="on"))) == "on"
        assert peer.memory - before < 40 * MIB


@the_core
def test_id_in_flight(server: str) -> None:
    with opened(server) as peer:
        peer.send(call(1, "wait"))
        assert peer.ask(call(1, "echo", text="again"))["error"]["code"] == -32600
        peer.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
        assert text_of(peer.ask(call(1, "echo", text="free again"))) == "free again"


@the_core
def test_batch_of_too_many(server: str) -> None:
    with opened(server, revision="2025-03-26") as peer:
        replies = peer.ask([request(id, "ping") for id in range(1000)])
        assert [reply["id"] for reply in replies] == list(range(1000))
        assert peer.ask([request(id, "ping") for id in range(1001)])["error"]["code"] == -32600


@every_server
def test_content_of_a_type_unknown_here(server: str) -> None:
    for revision in ("2024-11-05", "2025-11-25"):
        with opened(server, revision=revision) as peer:
            assert peer.ask(call(1, "custom"))["result"]["content"] == [{"type": "acme/thing", "data": [1]}]


@every_server
def test_ids_beyond_doubles(server: str) -> None:
    with opened(server) as peer:
        big = 2**53
        peer.send(call(big, "wait"), call(big + 1, "wait"))
        assert peer.ask(call(big + 1, "wait"))["error"]["code"] == -32600
        peer.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": big + 1}})
        assert text_of(peer.ask(call(big + 1, "echo", text="free"))) == "free"
        assert peer.ask(call(big, "wait"))["error"]["code"] == -32600
        peer.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": big}})
        assert peer.ask(request(10**40, "ping"))["id"] == 10**40
        counted = call(1, "count", steps=1)
        counted["params"]["_meta"] = {"progressToken": big + 1}
        assert peer.ask(counted)["params"]["progressToken"] == big + 1
        assert text_of(peer.receive()) == "done"


@every_server
def test_arguments_beyond_doubles(server: str) -> None:
    """No overflow, no crash: a result where the language can, an error where it can't."""
    with opened(server) as peer:
        for number in (10**30, -(10**30), 2**63, 1.5e300):
            assert peer.ask(call(1, "add", a=number, b=1))["id"] == 1
        for written in (b"1e999", b"-0", b"1E400"):
            line = json.dumps(call(2, "add", a=7777, b=1)).encode().replace(b"7777", written)
            assert peer.ask(line)["id"] == 2


@the_core
def test_out_of_turn(server: str) -> None:
    with Peer(server) as peer:
        assert peer.ask(call(1, "echo", text="early"))["error"]["code"] == -32600
        assert "result" in peer.ask(initialize("2025-06-18"))
        assert peer.ask(initialize("2024-11-05"))["error"]["code"] == -32600
        modern = call(2, "echo", text="newest")
        modern["params"]["_meta"] = MODERN
        assert peer.ask(modern)["result"]["resultType"] == "complete"
        assert text_of(peer.ask(call(3, "echo", text="later"))) == "later"
        assert_serves(peer)
        assert peer.end() == []


@every_server
def test_a_frame_byte_by_byte(server: str) -> None:
    with opened(server) as peer:
        for byte in json.dumps(call(1, "echo", text="é😀"), ensure_ascii=False).encode():
            peer.write(bytes([byte]))
        peer.write(b"\n" + json.dumps(call(2, "echo", text="half")).encode()[:30])
        assert text_of(peer.receive()) == "é😀"
        peer.write(json.dumps(call(2, "echo", text="half")).encode()[30:] + b"\n")
        assert text_of(peer.receive()) == "half"


@every_server
def test_a_client_that_does_not_read(server: str) -> None:
    """3,500 requests for 70 MB of answers: the server stops reading rather than keep them, and loses none."""
    count, text = 3_500, "x" * 20_000
    data = b"".join(json.dumps(call(id, "echo", text=text)).encode() + b"\n" for id in range(1, count + 1))
    with opened(server) as peer:
        before = peer.memory
        taken = peer.offer(data, 1.0)
        assert taken < len(data) / 2, "it reads on although nobody reads its answers"
        assert peer.memory - before < 56 * MIB
        writer = threading.Thread(target=peer.write, args=(data[taken:],), daemon=True)
        writer.start()
        seen = set()
        for _ in range(count):
            reply = peer.receive()
            assert text_of(reply) == text
            seen.add(reply["id"])
        writer.join()
        assert seen == set(range(1, count + 1))


@every_server
def test_small_requests_to_a_client_that_does_not_read(server: str) -> None:
    """Half a megabyte of answers is kept: a client may write a whole list of requests before it reads."""
    with opened(server) as peer:
        peer.write(b"".join(json.dumps(call(id, "add", a=id, b=1)).encode() + b"\n" for id in range(5_000)))
        replies = [peer.receive() for _ in range(5_000)]
        assert {reply["id"]: reply["result"]["structuredContent"]["result"] for reply in replies} == {
            id: id + 1 for id in range(5_000)
        }


@every_server
@pytest.mark.parametrize(
    ("rest", "answers"),
    [(b'{"jsonrpc":"2.0","id":1,"meth', 1), (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', 1), (b" ", 0)],
)
def test_end_in_the_middle_of_a_line(server: str, rest: bytes, answers: int) -> None:
    with Peer(server) as peer:
        peer.ask(initialize("2025-11-25"))
        assert_serves(peer)
        peer.write(rest)
        assert len(peer.end()) == answers


@every_server
def test_end_while_handlers_run(server: str) -> None:
    with Peer(server) as peer:
        peer.ask(initialize("2025-11-25"))
        peer.send(call(1, "wait"), call(2, "wait"), call(3, "echo", text="last"))
        assert [json.loads(line)["id"] for line in peer.end()] == [3]


@every_server
def test_nothing_but_the_end(server: str) -> None:
    with Peer(server) as peer:
        assert peer.end() == []
