"""Connections: slow peers, many peers, pipelined requests, chunked bodies, large heads."""

import json
import os
import resource
import select
import time

import pytest
import speak
import wire
from servers import Server, eventually

pytestmark = pytest.mark.native


def request(server, method="tools/list", params=None, **options):
    headers, body = speak.modern(method, params, **options)
    headers = {"Content-Type": "application/json", "Accept": speak.BOTH, **headers}
    return wire.request_bytes("POST", server.path, headers, body, host=f"127.0.0.1:{server.port}")


def serves_at_once(server):
    start = time.monotonic()
    assert speak.reply(speak.ask_modern(server, "tools/list"))["result"]["tools"]
    assert time.monotonic() - start < 1


# ── slow ones ───────────────────────────────────────────────────────────────────────────────────────


def dribble(server, data, every, patience):
    """Sends a byte at a time until the server has had enough; how long that took, None when it never had."""
    with server.connect() as slow:
        start = time.monotonic()
        for byte in data:
            try:
                slow.send(bytes([byte]))
            except OSError:
                return time.monotonic() - start
            if not slow.is_quiet(every):
                with slow.patience(patience):
                    if slow.ends(patience):
                        return time.monotonic() - start
            serves_at_once(server)
            if time.monotonic() - start > patience:
                return None
    return None


def test_a_head_that_comes_a_byte_at_a_time_holds_nobody_up_and_is_cut_off(brisk):
    took = dribble(brisk, request(brisk), 0.1, 6)
    assert took is not None and took < 4


def test_a_body_that_comes_a_byte_at_a_time_holds_nobody_up_and_is_cut_off(brisk):
    whole = request(brisk)
    at = whole.index(b"\r\n\r\n") + 4
    with brisk.connect() as slow:
        slow.send(whole[:at])
        began = time.monotonic()
        for byte in whole[at:]:
            try:
                slow.send(bytes([byte]))
            except OSError:
                break
            if not slow.is_quiet(0.2):
                break
            serves_at_once(brisk)
            assert time.monotonic() - began < 12, "a body that takes for ever is waited for"
        assert slow.ends(5)


def test_a_body_that_stops_coming_is_given_up(brisk):
    with brisk.connect() as slow:
        slow.send(request(brisk)[:-10])
        assert slow.ends(8)
    serves_at_once(brisk)


def test_half_sent_bodies_hold_little_memory_and_leave_room_to_others(start):
    server = start()
    before = server.resident()
    whole = request(server, meta_more={"example.com/pad": "x" * (4_000_000)})
    open_ones = []
    try:
        for _ in range(150):  # 600 MB
            open_ones.append(server.connect())
            try:
                open_ones[-1].send(whole[:-10])
            except OSError:
                pass  # it is refused and not read any further
        assert server.resident() < before + (350 << 20)
        serves_at_once(server)

        def refused():
            return len(select.select([one.socket for one in open_ones], [], [], 0)[0])

        # The sockets take all of it before the server has read it.
        assert eventually(lambda: refused() >= 110, within=20), f"{refused()} of 150 are refused"
        # Bodies that arrived at the same moment may both have been refused and have left room for one.
        for _ in range(5):
            open_ones.append(server.connect())
            open_ones[-1].send(whole[:-10])
            if not open_ones[-1].is_quiet(2):
                break
        assert server.resident() < before + (350 << 20)
        with server.connect(source="127.0.0.2") as other:
            other.send(whole)
            assert other.response().status == 200
        with server.connect() as one_more:
            one_more.send(whole)
            answer = one_more.response()
            assert (answer.status, answer.header("retry-after")) == (503, "1")
    finally:
        for connection in open_ones:
            connection.close()

    def has_room():
        with server.connect() as again:
            again.send(whole)
            return again.response().status == 200

    assert eventually(has_room, within=10)


def test_a_reader_that_takes_a_byte_a_second_holds_nobody_up_and_is_cut_off(brisk):
    before = brisk.sockets_at_rest()
    with brisk.connect(receive_buffer=4096) as slow:
        slow.socket.settimeout(0.2)
        one = request(brisk)
        try:
            for _ in range(3000):  # some 30 MB of answers, which nobody fetches
                slow.send(one)
        except OSError:
            pass  # it no longer reads: as it should
        assert brisk.resident() < 400 << 20
        slow.socket.settimeout(5)
        for _ in range(4):
            slow.socket.recv(1)
            serves_at_once(brisk)
            time.sleep(1)
        assert eventually(lambda: brisk.sockets() <= before, within=10), "the reader is waited for"
    serves_at_once(brisk)


def test_1000_idle_connections_hold_nobody_up_and_are_ended(start):
    server = start(header_timeout=10.0, idle_timeout=10.0)
    before = server.sockets_at_rest()
    idle = []
    try:
        for number in range(1000):
            idle.append(server.connect())
            if number % 2:  # half of them have asked something before
                idle[-1].send(request(server))
                assert idle[-1].response().status == 200
        serves_at_once(server)
        assert server.sockets() >= before + 900
        assert eventually(lambda: server.sockets() <= before, within=30), "idle connections stay"
    finally:
        for connection in idle:
            connection.close()


def test_a_connection_at_work_is_not_idle(brisk):
    with brisk.connect() as connection:
        answer = speak.call_modern(brisk, "test_slow", {"ms": 2500}, connection=connection)
        assert speak.text_of(speak.reply(answer))
    with speak.listen(brisk, {"toolsListChanged": True}) as stream:
        assert stream.message()["method"] == "notifications/subscriptions/acknowledged"
        assert stream.no_message(2.5)
        speak.call_modern(brisk, "test_trigger_tool_change", {})
        assert stream.message()["method"] == "notifications/tools/list_changed"


def test_a_subscription_costs_at_most_18_kB(start):
    server = start()

    def open_streams(count):
        return [speak.listen(server, {"toolsListChanged": True}) for _ in range(count)]

    opened = open_streams(200)
    try:
        before = server.resident()
        opened += open_streams(1000)
        assert server.resident() < before + 1000 * 18_000
    finally:
        for stream in opened:
            stream.close()


def test_a_subscription_after_other_requests_on_its_connection_is_kept(server):
    with server.connect() as connection:
        for _ in range(2):
            assert speak.reply(speak.ask_modern(server, "tools/list", connection=connection))["result"]["tools"]
        speak.listen(server, {"toolsListChanged": True}, connection=connection)
        assert connection.message()["method"] == "notifications/subscriptions/acknowledged"
        speak.call_modern(server, "test_trigger_tool_change", {})
        assert connection.message()["method"] == "notifications/tools/list_changed"


def test_a_subscription_whose_body_waits_for_100_continue_is_kept(server):
    params = {"notifications": {"toolsListChanged": True}}
    whole = request(server, "subscriptions/listen", params, headers={"Expect": "100-continue"})
    at = whole.index(b"\r\n\r\n") + 4
    with server.connect() as connection:
        connection.send(whole[:at])
        assert connection.head(interim=True).status == 100
        connection.send(whole[at:])
        assert connection.head().status == 200
        assert connection.message()["method"] == "notifications/subscriptions/acknowledged"
        speak.call_modern(server, "test_trigger_tool_change", {})
        assert connection.message()["method"] == "notifications/tools/list_changed"


# ── heads ───────────────────────────────────────────────────────────────────────────────────────────


def test_headers_over_64_KiB_are_431_or_end_the_connection(server):
    with server.connect() as connection:
        data = wire.request_bytes("POST", server.path, {"X-Long": "x" * (70 << 10), "Host": "127.0.0.1"}, b"{}")
        try:
            connection.send(data)
            assert connection.response().status == 431
        except (OSError, wire.Gone):
            pass
    serves_at_once(server)


def test_headers_without_end_are_cut_off_before_they_fill_the_memory(server):
    before = server.resident()
    with server.connect() as connection:
        connection.send(b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        sent, line = 0, b"X-More: " + b"y" * 1000 + b"\r\n"
        try:
            while sent < 50 << 20:
                connection.send(line * 100)
                sent += len(line) * 100
        except OSError:
            pass
        assert sent < 50 << 20
    assert server.resident() < before + (20 << 20)
    serves_at_once(server)


def test_headers_of_a_decent_size_are_taken(server):
    answer = speak.ask_modern(server, "tools/list", headers={"X-Long": "x" * (48 << 10)})
    assert answer.status == 200


@pytest.mark.parametrize(
    "data",
    [
        b"\r\n\r\n\r\n\r\nnonsense\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /mcp\r\n\r\n",
        b"POST /mcp HTTP/9.9\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nBad Header: 1\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nX: a\0b\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nHost: a\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
    ids=[
        "words",
        "tls",
        "http 0.9",
        "http 9.9",
        "length -1",
        "two lengths",
        "space",
        "nul",
        "no host",
        "two hosts",
        "http 2",
    ],
)
def test_what_is_no_http_request_is_400_or_ends_the_connection(brisk, data):
    with brisk.connect() as connection:
        connection.send(data)
        got = b""
        try:
            while piece := connection.socket.recv(65536):
                got += piece
                if b"\r\n\r\n" in got:
                    break
        except OSError:
            pass
        assert not got or got[9:12] in (b"400", b"421", b"403", b"505", b"431"), got[:300]
    serves_at_once(brisk)


# ── pipelines, chunks, Expect ───────────────────────────────────────────────────────────────────────


def test_pipelined_requests_are_answered_in_order(server):
    slow_first = request(server, "tools/call", {"name": "test_slow", "arguments": {"ms": 200}}, id="slow")
    rest = [request(server, id=f"r{n}") for n in range(50)]
    with server.connect() as connection:
        connection.send(slow_first + b"".join(rest))
        ids = [speak.reply(connection.response())["id"] for _ in range(51)]
    assert ids == ["slow", *(f"r{n}" for n in range(50))]


def test_a_request_in_two_segments_and_two_in_one(server):
    one, other = request(server, id=1), request(server, id=2)
    both = one + other
    for cut in (1, 20, len(one) - 1, len(one), len(one) + 1, len(both) - 1):
        with server.connect() as connection:
            connection.send(both[:cut])
            time.sleep(0.02)
            connection.send(both[cut:])
            assert [speak.reply(connection.response())["id"] for _ in range(2)] == [1, 2]


def test_expect_100_continue_is_answered_before_the_body(server):
    headers, body = speak.modern("tools/list", id=7)
    body = json.dumps(body).encode()
    headers |= {"Content-Type": "application/json", "Accept": speak.BOTH, "Expect": "100-continue"}
    with server.connect() as connection:
        connection.request("POST", server.path, {**headers, "Content-Length": str(len(body))})
        assert connection.head(interim=True).status == 100
        connection.send(body)
        assert speak.reply(connection.response())["id"] == 7


def test_expect_100_continue_with_a_body_that_is_too_large_is_413_and_no_100(server):
    headers, _ = speak.modern("tools/list")
    headers |= {"Content-Type": "application/json", "Expect": "100-continue", "Content-Length": str(5 << 20)}
    with server.connect() as connection:
        connection.request("POST", server.path, headers)
        assert connection.head(interim=True).status == 413


@pytest.mark.parametrize("expects", [True, False])
@pytest.mark.parametrize(
    ("path", "extra", "status"),
    [
        ("/elsewhere", {}, 404),
        (None, {"Origin": "https://evil.example"}, 403),
        (None, {"Content-Type": "text/plain"}, 415),
        (None, {"Accept": "text/html"}, 406),
    ],
)
def test_a_request_that_may_not_call_is_told_before_it_sends_its_body(server, path, extra, status, expects):
    headers, _ = speak.modern("tools/list")
    headers |= {"Content-Type": "application/json", "Accept": speak.BOTH, "Content-Length": str(4 << 20)}
    headers |= {"Expect": "100-continue"} if expects else {}
    with server.connect() as connection:
        connection.request("POST", path or server.path, headers | extra)
        assert connection.head(interim=True).status == status


def chunked(server, pieces, id=9):
    headers, body = speak.modern("tools/list", id=id)
    text = json.dumps(body).encode()
    step = -(-len(text) // pieces)
    chunks = [text[at : at + step] for at in range(0, len(text), step)]
    headers |= {"Content-Type": "application/json", "Accept": speak.BOTH, "Transfer-Encoding": "chunked"}
    head = wire.request_bytes("POST", server.path, headers, host=f"127.0.0.1:{server.port}")
    return head + b"".join(b"%X;a=b\r\n%s\r\n" % (len(it), it) for it in chunks) + b"0\r\n\r\n"


@pytest.mark.parametrize("pieces", [1, 7, 10_000])
def test_chunked_bodies(server, pieces):
    data = chunked(server, pieces)
    with server.connect() as connection:
        connection.send(data + request(server, id=10))
        assert [speak.reply(connection.response())["id"] for _ in range(2)] == [9, 10]


def test_a_chunked_body_that_grows_over_the_limit_is_413(server):
    data = chunked(server, 1)
    head = data[: data.index(b"\r\n\r\n") + 4]
    with server.connect() as connection:
        connection.send(head)
        piece = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
        try:
            for _ in range(80):
                connection.send(piece)
        except OSError:
            pass
        assert connection.response().status == 413
    serves_at_once(server)


@pytest.mark.parametrize("bad", [b"zz\r\n{}\r\n0\r\n\r\n", b"-1\r\n", b"FFFFFFFFFFFFFFFFFF\r\n", b"2\r\n{}xx0\r\n\r\n"])
def test_chunks_that_lie_are_400_or_end_the_connection(brisk, bad):
    data = chunked(brisk, 1)
    head = data[: data.index(b"\r\n\r\n") + 4]
    with brisk.connect() as connection:
        connection.send(head + bad)
        try:
            assert connection.response().status in (400, 413)
        except wire.Gone:
            pass
    serves_at_once(brisk)


def listening(server, connection):
    speak.send_modern(connection, server, "subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    return b"notifications/subscriptions/acknowledged"


def progressing(server, connection):
    params = {"name": "test_tool_with_progress", "arguments": {}}
    speak.send_modern(connection, server, "tools/call", params, meta_more={"progressToken": 1})
    return b'"progress":0'


def waiting(server, connection):
    """The keep-alive begins the stream, and an event that primes it comes first."""
    session = speak.Session(server)
    params = {"name": "test_slow", "arguments": {"ms": 2000}}
    session.send(speak.message("tools/call", params), connection=connection)
    return b"id: "


def opening(server, connection):
    connection.request("GET", server.path, {"Accept": "text/event-stream", **speak.Session(server).headers()})
    return b"\n\n"


def pairing(server, connection):
    connection.request("GET", "/sse", {"Accept": "text/event-stream"})
    return b"event: endpoint"


def answering(server, connection):
    speak.send_modern(connection, server, "tools/list")
    return b'"result"'


@pytest.mark.parametrize("begin", [listening, progressing, waiting, opening, pairing, answering])
def test_the_head_and_what_comes_first_are_one_segment(server, begin):
    for _ in range(3):
        with server.connect() as connection:
            event = begin(server, connection)
            first = connection.socket.recv(1 << 20)
            segments = connection.segments()
            is_late = first.count(b"data:") > 1 or not connection.is_quiet(0)
        assert b"\r\n\r\n" in first and event in first.partition(b"\r\n\r\n")[2]
        # Segments with later events count too if the reader comes late.
        if not is_late:
            break
    assert segments == 1


def test_connection_close_is_kept_to(server):
    with server.connect() as connection:
        answer = speak.ask_modern(server, "tools/list", connection=connection, headers={"Connection": "close"})
        assert answer.status == 200 and answer.header("connection") == "close"
        assert connection.ends(2)


# ── many connections ────────────────────────────────────────────────────────────────────────────────


def test_connections_of_one_address_leave_room_to_others(kind):
    with Server(kind, files=256) as server:
        serves_at_once(server)
        connections = [server.connect() for _ in range(220)]
        first, last = connections[0], connections[-1]
        assert last.ends()
        assert speak.ask_modern(server, "tools/list", connection=first).status == 200
        with server.connect(source="127.0.0.2") as other:
            assert speak.ask_modern(server, "tools/list", connection=other).status == 200
        # A Rust program chooses where its events go.
        refusals = lambda: server.said().count("closing new connections of a client")  # noqa: E731
        if kind != "rust":
            assert eventually(lambda: refusals() == 1), server.said()
        assert refusals() == (kind != "rust")
        for connection in connections:
            connection.close()

        def has_room():
            try:
                return speak.ask_modern(server, "tools/list").status == 200
            except wire.Gone:
                return False

        assert eventually(has_room)


# ── no descriptors left ─────────────────────────────────────────────────────────────────────────────


def test_a_server_without_free_descriptors_logs_it_once_and_recovers(kind):
    with Server(kind) as server:
        # An asynchronous tool is answered once Python's event loop has all its descriptors.
        assert speak.reply(speak.call_modern(server, "test_slow", {"ms": 1}))["result"]
        pid = server.process.pid
        used = len(os.listdir(f"/proc/{pid}/fd"))
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (used + 8, used + 8))
        connections = [server.connect() for _ in range(40)]
        # A Rust program chooses where its events go.
        problems = lambda: server.said().count("connections can't be accepted at the moment")  # noqa: E731
        if kind != "rust":
            eventually(lambda: problems() == 1, within=5)
        time.sleep(0.5)
        assert problems() == (kind != "rust"), server.said()
        for connection in connections:
            connection.close()
        eventually(lambda: speak.ask_modern(server, "tools/list").status == 200, within=5)
