"""Limits that are options of each server and mount: what is too much gets 503 with the time to wait."""

import select

import pytest
import speak
from servers import Server, eventually
from speak import Session, message, refused

SLOW = {"name": "test_slow", "arguments": {"ms": 600_000}}
# Through `fetch` and tower the server does not learn who calls, so there all callers count as one.
KNOWS_ADDRESSES = {"python", "node", "rust", "asgi", "node-http"}
OTHER = "127.0.0.2"


@pytest.fixture(scope="module")
def limited(kind):
    """A server with low limits, which each test leaves unused."""
    limits = {"max_sessions": 1, "max_streams": 1, "max_in_flight": 2, "max_body": 2000}
    with Server(kind, **limits, keep_alive=0.2, event_store=False, legacy_sse=False) as server:
        yield server


def too_much(answer, *settings):
    text = refused(answer, 503)
    assert int(answer.header("retry-after")) >= 1
    assert any(setting in text for setting in settings), text


def leaves_room(server, kind):
    """Asserts that another client is served if the server can tell it from the first one."""
    with server.connect(source=OTHER) as other:
        answer = speak.call_modern(server, "test_simple_text", connection=other)
    assert answer.status == (200 if kind in KNOWS_ADDRESSES else 503)


def test_the_size_of_a_body(limited):
    too_long = speak.ask_modern(limited, "tools/list", meta_more={"example.com/pad": "x" * 2000})
    assert "max_body" in refused(too_long, 413) or "maxBody" in too_long.body.decode()
    speak.serves(limited)


def test_sessions_that_hold_something_and_streams_of_each(limited):
    with Session(limited) as one, Session(limited) as other:
        # Sessions at rest need no room.
        assert one.ask("ping")["result"] == other.ask("ping")["result"] == {}
        stream = one.stream()
        connection, head = one.get()
        with connection:
            head.body = connection.body()
            too_much(head, "max_streams", "maxStreams")
        # The session that is idle for longest loses its stream to another one, and goes on.
        assert other.ask("ping")["result"] == {}
        with stream:
            stream.body()  # It has an end.
        assert one.ask("ping")["result"] == {}
        # One whose call runs keeps what it holds.
        running, head = one.start("tools/call", SLOW)
        assert head.status == 200
        with limited.connect() as connection:
            params = {"protocolVersion": speak.LATEST_LEGACY, "capabilities": {}, "clientInfo": speak.CLIENT}
            speak.post(connection, limited.path, message("initialize", params))
            too_much(connection.response(), "max_sessions", "maxSessions")
        for session in (one, other):
            # The other one is not in memory.
            assert session.delete().status == 204
        running.close()
    assert eventually(lambda: speak.call_modern(limited, "test_simple_text").status == 200)


def test_calls_in_flight(limited, kind):
    def is_refused():
        return speak.call_modern(limited, "test_simple_text").status == 503

    busy = [limited.connect() for _ in range(2)]
    for connection in busy:
        speak.send_modern(connection, limited, "tools/call", SLOW)
        # A comment has come, so the call runs.
        assert connection.head().status == 200
    too_much(speak.call_modern(limited, "test_simple_text"), "max_in_flight", "maxInFlight")
    leaves_room(limited, kind)
    for connection in busy:
        connection.close()
    assert eventually(lambda: not is_refused())


def test_resuming_and_the_pair_are_options(limited):
    with Session(limited) as session:
        params = {"name": "test_tool_with_progress", "arguments": {}, "_meta": {"progressToken": "t"}}
        connection, _ = session.start("tools/call", params)
        with connection:
            events = connection.events()
        assert [event.id for event in events] == [None] * 4
        assert session.delete().status == 204
    with limited.connect() as connection:
        connection.request("GET", "/sse", {"Accept": "text/event-stream"})
        assert connection.head(to="GET").status in (400, 404, 405)


# The servers of all languages, and tower, share one implementation; through a program of Node, the server does not
# learn when a client has read its answer.
@pytest.mark.only("rust", "asgi")
def test_answers_that_a_client_leaves_unread_are_bounded(start, kind):
    server = start(max_body=9 << 20)
    call = {"name": "test_touch_resource", "arguments": {"uri": "x" * (8 << 20)}}
    whole = speak.request(server, "tools/call", call)
    deaf = [server.connect(receive_buffer=4096) for _ in range(20)]  # 320 MiB of answers
    for connection in deaf:
        connection.send(whole)

    # All calls have been handled once each answer, or its refusal, has begun.
    sockets = [connection.socket for connection in deaf]
    assert eventually(lambda: len(select.select(sockets, [], [], 0)[0]) == len(deaf), within=60)
    too_much(speak.call_modern(server, "test_simple_text"), "wait to be read")
    leaves_room(server, kind)
    statuses, unread = set(), 0
    for connection in deaf:
        with connection:
            connection.widen()
            answer = connection.response()
            statuses.add(answer.status)
            unread += len(answer.body)
    assert statuses == {200, 503} and unread < 258 << 20
    assert eventually(lambda: speak.call_modern(server, "test_simple_text").status == 200)
