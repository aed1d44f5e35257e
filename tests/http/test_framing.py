"""Heads, pipelined requests and chunked bodies: how HTTP frames requests and responses.

The servers of all languages share this code, so one of them is tested.
"""

import json

import pytest
import speak
import wire
from servers import eventually
from speak import chunked, request, serves

pytestmark = pytest.mark.only("rust")


# ── heads ───────────────────────────────────────────────────────────────────────────────────────────


def test_headers_over_64_KiB_are_431_or_end_the_connection(server):
    with server.connect() as connection:
        data = wire.request_bytes("POST", server.path, {"X-Long": "x" * (70 << 10), "Host": "127.0.0.1"}, b"{}")
        try:
            connection.send(data)
            assert connection.response().status == 431
        except (OSError, wire.Gone):
            pass
    serves(server)


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
    serves(server)


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
        b"POST * HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n",
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
        "asterisk",
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
        assert not got or got[9:12] in (b"400", b"404", b"421", b"403", b"505", b"431"), got[:300]
    serves(brisk)


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
            assert eventually(connection.is_read)
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
        (None, {"Content-Length": "999999999999"}, 413),
    ],
)
def test_a_request_that_may_not_call_is_told_before_it_sends_its_body(server, path, extra, status, expects):
    headers, _ = speak.modern("tools/list")
    headers |= {"Content-Type": "application/json", "Accept": speak.BOTH, "Content-Length": str(4 << 20)}
    headers |= {"Expect": "100-continue"} if expects else {}
    with server.connect() as connection:
        connection.request("POST", path or server.path, headers | extra)
        assert connection.head(interim=True).status == status


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
    serves(server)


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
    serves(brisk)


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
            is_late = first.count(b"data:") > 1 or b": keep-alive" in first or not connection.is_quiet(0)
        assert b"\r\n\r\n" in first and event in first.partition(b"\r\n\r\n")[2]
        # Segments with later events count too if the reader comes late.
        if not is_late:
            break
    assert segments == 1


def test_connection_close_is_kept_to(server):
    with server.connect() as connection:
        answer = speak.ask_modern(server, "tools/list", connection=connection, headers={"Connection": "close"})
        assert answer.status == 200 and answer.header("connection") == "close"
        assert connection.ends()
