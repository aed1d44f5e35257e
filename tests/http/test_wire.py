"""The tests' own HTTP, against bytes that say what they are."""

import socket
import threading

import pytest
import wire


@pytest.fixture
def served():
    """Serves pieces on one connection, and gives a client's connection to them. With `paced`, each piece but the first
    is sent when the test calls `proceed` of the connection.
    """
    opened = []

    def serve(*pieces, paced=False, close=True):
        listener = socket.create_server(("127.0.0.1", 0))
        turns, stop = threading.Semaphore(0), threading.Event()

        def run():
            peer, _ = listener.accept()
            with peer:
                for at, piece in enumerate(pieces):
                    if paced and at:
                        turns.acquire(timeout=60)
                    peer.sendall(piece)
                if not close:
                    stop.wait(60)

        thread = threading.Thread(target=run)
        thread.start()
        connection = wire.Connection(listener.getsockname())
        connection.proceed = turns.release
        opened.append((listener, connection, stop, thread))
        return connection

    yield serve
    for listener, connection, stop, thread in opened:
        stop.set()
        connection.close()
        thread.join()
        listener.close()


def test_a_body_that_is_counted(served):
    response = served(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX: a\r\n\r\nhirest").response()
    assert (response.status, response.body, response.header("x")) == (200, b"hi", "a")


def test_a_chunked_body_byte_by_byte(served):
    whole = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n"
    assert served(*(bytes([byte]) for byte in whole)).response().body == b"abc0123456789"


def test_interim_responses_are_passed_over_or_shown(served):
    both = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"
    assert served(both).response().status == 202
    assert served(both).head(interim=True).status == 100


@pytest.mark.parametrize(
    "bad",
    [
        b"HTTP/1.0 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\n\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    ],
)
def test_what_is_not_http_is_told(served, bad):
    with pytest.raises(wire.Malformed):
        served(bad).response()


def test_a_body_cut_short_is_told(served):
    with pytest.raises(wire.Gone):
        served(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab").response()


def test_events_of_every_kind(served):
    stream = (
        b': hi\n\nid: 1\ndata:\n\nid: 2\r\nretry: 30\r\ndata: {"a":\r\ndata: 1}\r\n\r\nevent: endpoint\rdata: /x\r\r'
    )
    connection = served(b"HTTP/1.1 200 OK\r\n\r\n" + stream + b"\n")
    connection.head()
    comment, priming, message, endpoint = (connection.event(comments=True) for _ in range(4))
    assert comment.comment == "hi" and comment.data is None
    assert (priming.id, priming.data) == ("1", "")
    assert (message.id, message.retry, message.json()) == ("2", 30, {"a": 1})
    assert (endpoint.event, endpoint.data) == ("endpoint", "/x")
    assert connection.event() is None


def test_a_timeout_loses_nothing(served):
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    connection = served(head, b"d\r\ndata: [1", b",2]\n\n\r\n0\r", b"\n\r\n", paced=True)
    connection.head()
    for _ in range(2):
        with pytest.raises(TimeoutError):
            connection.message(within=0.03)
        connection.proceed()
    assert connection.message() == [1, 2]
    connection.proceed()
    assert connection.event() is None


def test_silence_and_ends(served):
    open_one = served(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", close=False)
    open_one.head()
    assert open_one.is_quiet(0.05) and not open_one.ends(0.05)
    assert served(b"x").ends()


def test_a_request_is_written_as_told():
    assert wire.request_bytes("POST", "/mcp", {"A": ["1", "2"], "host": None}, {"é": 1}) == (
        b"POST /mcp HTTP/1.1\r\nContent-Length: 9\r\nA: 1\r\nA: 2\r\n\r\n" + '{"é": 1}'.encode()
    )
