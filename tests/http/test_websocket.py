"""WebSocket on the endpoint: one message a frame, both eras, the same guards.

The servers of all languages share this code, so one of them is tested, and the others with a conversation.
"""

import json

import pytest
import speak
from servers import NATIVE, eventually
from speak import message, notification, refused
from websocket import BINARY, CLOSE, PING, PONG, TEXT, WebSocket, frame

rust_only = pytest.mark.only("rust")


@pytest.fixture
def socket(server):
    with WebSocket(server) as socket:
        assert socket.head.status == 101, socket.head
        yield socket


def modern(method, params=None, **options):
    return speak.modern(method, params, **options)[1]


def initialize(socket, version=speak.LATEST_LEGACY, capabilities=None):
    params = {"protocolVersion": version, "capabilities": capabilities or {}, "clientInfo": speak.CLIENT}
    said = socket.ask(message("initialize", params))
    socket.send(notification("notifications/initialized"))
    assert said["result"]["protocolVersion"] == version


@pytest.mark.only(*NATIVE)
def test_both_eras_on_one_socket(server):
    cancelled = speak.cancelled_so_far(server)
    with WebSocket(server) as socket:
        initialize(socket)
        # Nothing waits for this call.
        socket.send(modern("tools/call", {"name": "test_slow", "arguments": {"ms": 600_000}}, id="slow"))
        assert socket.ask(message("ping"))["result"] == {}
        assert speak.text_of(socket.ask(message("tools/call", {"name": "test_simple_text", "arguments": {}})))
        assert socket.ask(modern("tools/list"))["result"]["resultType"] == "complete"
        socket.send(modern("tools/call", {"name": "test_tool_with_progress"}, id="p", meta_more={"progressToken": 3}))
        said = [socket.message() for _ in range(4)]
        assert [notice["params"]["progress"] for notice in said[:3]] == [0, 50, 100] and said[3]["id"] == "p"
    # Tests that follow count the calls of this tool.
    assert eventually(lambda: speak.cancelled_so_far(server) == cancelled + 1)


@rust_only
@pytest.mark.parametrize("version", speak.LEGACY)
def test_every_legacy_version(socket, version):
    initialize(socket, version)
    assert socket.ask(message("ping"))["result"] == {}


@rust_only
def test_questions_are_answered_however_much_is_in_flight(start):
    with WebSocket(start(max_in_flight=2)) as socket:
        initialize(socket, capabilities={"elicitation": {}})
        for id in ("a", "b"):
            params = {"name": "test_elicitation", "arguments": {"message": "Who?"}}
            socket.send(message("tools/call", params, id=id))
        for question in [socket.message() for _ in range(2)]:
            socket.send({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}})
        assert {socket.message()["id"] for _ in range(2)} == {"a", "b"}


@pytest.mark.only(*NATIVE)
def test_cancelling_by_a_notification_and_by_leaving(server, socket):
    def start(name):
        """Starts a slow call."""
        started = speak.started_so_far(server)
        socket.send(modern("tools/call", {"name": "test_slow", "arguments": {"ms": 600_000}}, id=name))
        assert eventually(lambda: speak.started_so_far(server) == started + 1)

    before = speak.cancelled_so_far(server)
    start("a")
    socket.send(notification("notifications/cancelled", {"requestId": "a", "_meta": speak.meta()}))
    assert eventually(lambda: speak.cancelled_so_far(server) == before + 1)
    start("b")
    socket.connection.abort()
    assert eventually(lambda: speak.cancelled_so_far(server) == before + 2)


@rust_only
def test_the_caller_is_checked(server):
    own = f"http://127.0.0.1:{server.port}"
    for origin in ("http://evil.example.com", "null", "https://localhost.evil.example.com"):
        with WebSocket(server, Origin=origin) as socket:
            refused(socket.head, 403)
    with WebSocket(server, Host="evil.example.com") as socket:
        refused(socket.head, 421)
    with WebSocket(server, Origin=own) as socket:
        assert socket.ask(modern("tools/list"))["result"]


@rust_only
def test_a_ping_is_answered_and_a_close_too(socket):
    socket.connection.send(frame(PING, b"there?"))
    assert socket.frame() == (PONG, b"there?")
    socket.connection.send(frame(CLOSE, b"\x03\xe8bye"))
    assert socket.closed_with() == 1000
    assert socket.connection.ends()


@rust_only
def test_a_message_in_fragments_is_one_message(socket):
    text = json.dumps(modern("tools/list", id="whole")).encode()
    socket.connection.send(frame(TEXT, text[:5], fin=False) + frame(PING, b"") + frame(0, text[5:]))
    said = [socket.frame() for _ in range(2)]
    assert (PONG, b"") in said
    assert json.loads(next(payload for opcode, payload in said if opcode == TEXT))["id"] == "whole"


@rust_only
@pytest.mark.parametrize("text", [b"", b"{", b"nonsense", b"[" * 100_000], ids=["empty", "cut", "words", "nested"])
def test_what_is_no_json_is_told_and_the_socket_stays(socket, text):
    socket.connection.send(frame(TEXT, text))
    assert socket.message()["error"]["code"] in (-32700, -32600)
    assert socket.ask(modern("tools/list"))["result"]


@rust_only
def test_a_handshake_of_another_kind_is_refused(server):
    for headers in ({"Sec-WebSocket-Version": "8"}, {"Sec-WebSocket-Key": None}, {"Sec-WebSocket-Key": "short"}):
        with WebSocket(server, **headers) as socket:
            assert 400 <= socket.head.status < 500 or headers.get("Sec-WebSocket-Key") == "short"


@rust_only
@pytest.mark.parametrize(
    "bad, code",
    [
        (frame(TEXT, b"{}", mask=False), 1002),
        (frame(TEXT, b"\xff\xfe"), 1007),
        (frame(3, b"?"), 1002),
        (frame(PING, b"x" * 200), 1002),
        (frame(BINARY, b"{}"), 1003),
    ],
    ids=["unmasked", "not UTF-8", "unknown opcode", "long ping", "binary"],
)
def test_frames_against_the_rules_end_the_socket(server, bad, code):
    with WebSocket(server) as socket:
        socket.connection.send(bad)
        assert socket.closed_with() in (code, None)
    assert speak.ask_modern(server, "tools/list").status == 200


@rust_only
def test_a_message_over_the_limit_ends_the_socket(server):
    before = server.resident()
    with WebSocket(server) as socket:
        try:
            socket.connection.send(frame(TEXT, b"x" * (5 << 20)))
        except OSError:
            pass
        assert socket.closed_with() in (1009, None)
    with WebSocket(server) as socket:  # and one that only claims to be
        socket.connection.send(b"\x81\xff" + (1 << 62).to_bytes(8, "big") + b"mask")
        assert socket.closed_with() in (1009, 1002, None)
    assert server.resident() < before + (64 << 20)
    assert speak.ask_modern(server, "tools/list").status == 200


@rust_only
@pytest.mark.parametrize("end", ["nothing", "a ping"])
def test_half_sent_messages_hold_little_memory(start, end):
    server = start()
    before = server.resident()
    message = frame(TEXT, b"x" * 4_000_000)[:-10] if end == "nothing" else frame(TEXT, b"x" * 4_000_000, fin=False)
    message += frame(PING) if end == "a ping" else b""
    sockets = []
    try:
        for _ in range(100):  # 400 MB
            sockets.append(WebSocket(server))
            try:
                sockets[-1].connection.send(message)
            except OSError:
                pass  # it was closed
        assert server.resident() < before + (350 << 20)
        assert any(socket.closed_with() == 1013 for socket in sockets[-3:])
        assert speak.ask_modern(server, "tools/list").status == 200
    finally:
        for socket in sockets:
            socket.connection.close()


@rust_only
def test_pings_whose_answers_nobody_reads_are_not_read_either(brisk):
    before = brisk.resident()
    with WebSocket(brisk) as socket:
        pings = frame(PING, b"p" * 125) * 10_000
        with pytest.raises(OSError):
            for _ in range(400):
                socket.connection.send(pings)
        assert brisk.resident() < before + (64 << 20)
    assert speak.ask_modern(brisk, "tools/list").status == 200
