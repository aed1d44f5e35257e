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
    limits = {"max_sessions": 2, "max_streams": 1, "max_in_flight": 2, "max_body": 2000}
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


def test_sessions_of_all_clients_and_streams_of_each(limited, kind):
    def initialize(**options):
        params = {"protocolVersion": speak.LATEST_LEGACY, "capabilities": {}, "clientInfo": speak.CLIENT}
        with limited.connect(**options) as connection:
            speak.post(connection, limited.path, message("initialize", params))
            return connection.response()

    with Session(limited) as one, Session(limited) as other:
        assert one.ask("ping")["result"] == other.ask("ping")["result"] == {}
        with one.stream(), other.stream():
            # Sessions with a stream are not ended for another one of the same client.
            too_much(initialize(), "max_sessions", "maxSessions")
            connection, head = one.get()
            with connection:
                head.body = connection.body()
                too_much(head, "max_streams", "maxStreams")
        # The client with the most sessions gives one up for another; where they can't be told apart, for itself, once
        # the server has noticed the end of a stream.
        answers = []

        def is_opened():
            answers.append(initialize(source=OTHER))
            return answers[-1].status == 200

        assert eventually(is_opened)
        elsewhere = answers[-1]
        left = [session for session in (one, other) if session.post(message("ping")).status == 200]
        assert len(left) == 1
        for session in left:
            assert session.delete().status == 204
    if session_id := elsewhere.header("mcp-session-id"):
        with limited.connect() as connection:
            assert connection.ask("DELETE", limited.path, {"Mcp-Session-Id": session_id}).status == 204


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
