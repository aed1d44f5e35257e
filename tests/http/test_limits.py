"""Limits: what is too much is 503 with the time to wait, and there is room again afterwards."""

import select

import pytest
import speak
from servers import eventually
from speak import Session, refused


def too_much(answer, *settings):
    text = refused(answer, 503)
    assert int(answer.header("retry-after")) >= 1
    assert any(setting in text for setting in settings), text


def initialize(server, **options):
    params = {"protocolVersion": speak.LATEST_LEGACY, "capabilities": {}, "clientInfo": speak.CLIENT}
    with server.connect(**options) as connection:
        speak.post(connection, server.path, speak.message("initialize", params))
        return connection.response()


def test_sessions(start):
    server = start(max_sessions=2)
    with Session(server) as one, Session(server) as other:
        assert one.ask("ping")["result"] == other.ask("ping")["result"] == {}
        answer = initialize(server)
        too_much(answer, "max_sessions", "maxSessions")
        assert answer.header("mcp-session-id") is None
        assert one.ask("ping")["result"] == other.ask("ping")["result"] == {}
        # The modern era needs no session.
        assert speak.call_modern(server, "test_simple_text").status == 200
        one.delete()
        assert initialize(server).status == 200


def test_sessions_that_nobody_uses_lock_nobody_out(start):
    server = start(max_sessions=20)
    with Session(server) as used:
        assert used.ask("ping")["result"] == {}
        for _ in range(100):
            assert initialize(server).status == 200
        with Session(server) as late:
            assert late.ask("ping")["result"] == used.ask("ping")["result"] == {}


# Through `fetch` and tower the server does not learn who calls, so there all callers count as one.
KNOWS_ADDRESSES = {"python", "node", "rust", "asgi", "node-http"}


def test_sessions_of_one_address_leave_room_to_others(start, kind):
    server = start(max_sessions=4)
    sessions = [Session(server) for _ in range(4)]
    for session in sessions:
        assert session.ask("ping")["result"] == {}
        session.connection.close()
    too_much(initialize(server), "max_sessions", "maxSessions")
    other = initialize(server, source="127.0.0.2")
    assert other.status == (200 if kind in KNOWS_ADDRESSES else 503)


def test_calls_of_one_address_leave_room_to_others(start, kind):
    server = start(max_in_flight=4, keep_alive=0.2)
    call = {"name": "test_slow", "arguments": {"ms": 5000}}
    busy = [server.connect() for _ in range(4)]
    for connection in busy:
        speak.send_modern(connection, server, "tools/call", call)
    for connection in busy:  # a comment has come, so that all of them run
        connection.head()
    too_much(speak.call_modern(server, "test_simple_text"), "max_in_flight", "maxInFlight")
    with server.connect(source="127.0.0.2") as other:
        answer = speak.call_modern(server, "test_simple_text", connection=other)
        assert answer.status == (200 if kind in KNOWS_ADDRESSES else 503)
    for connection in busy:
        with connection:
            assert speak.text_of(connection.messages()[-1]) == "Took 5000 ms"


# Mounted in a program of Node, the server does not learn when a client has read its answer.
@pytest.mark.only("python", "node", "rust", "asgi", "tower")
def test_answers_that_a_client_leaves_unread_are_bounded(start, kind):
    server = start(max_body=9 << 20)
    call = {"name": "test_touch_resource", "arguments": {"uri": "x" * (8 << 20)}}
    deaf = [server.connect(receive_buffer=4096) for _ in range(60)]
    for connection in deaf:
        speak.send_modern(connection, server, "tools/call", call)

    # All calls have been handled once each answer, or its refusal, has begun.
    sockets = [it.socket for it in deaf]
    assert eventually(lambda: len(select.select(sockets, [], [], 0)[0]) == len(deaf), within=30)
    too_much(speak.call_modern(server, "test_simple_text"), "wait to be read")
    with server.connect(source="127.0.0.2") as other:
        answer = speak.call_modern(server, "test_simple_text", connection=other)
        assert answer.status == (200 if kind in KNOWS_ADDRESSES else 503)
    # Without the limit it is 960 MiB of answers (in TypeScript 480), and what handling them takes.
    assert server.resident() < 1000 << 20
    statuses, unread = set(), 0
    for connection in deaf:
        with connection:
            answer = connection.response()
            statuses.add(answer.status)
            unread += len(answer.body)
    assert statuses == {200, 503} and unread < 258 << 20
    assert eventually(lambda: speak.call_modern(server, "test_simple_text").status == 200)


def test_streams_of_a_session(start):
    server = start(max_streams=2)
    with Session(server) as session, Session(server) as other, session.stream(), session.stream() as second:
        connection, head = session.get()
        with connection:
            head.body = connection.body()
            too_much(head, "max_streams", "maxStreams")
        with other.stream():
            assert session.ask("ping")["result"] == {}
        second.close()

        def room():
            connection, head = session.get()
            connection.close()
            return head.status == 200

        assert eventually(room)


def test_calls_in_flight(start, era):
    server = start(max_in_flight=4, keep_alive=0.2)
    sessions = [Session(server) for _ in range(5)] if era == "legacy" else [None] * 5
    call = {"name": "test_slow", "arguments": {"ms": 5000}}

    def begin(session):
        connection = server.connect()
        if session:
            session.send(speak.message("tools/call", call), connection=connection)
        else:
            speak.send_modern(connection, server, "tools/call", call)
        return connection

    busy = [begin(session) for session in sessions[:4]]
    for connection in busy:
        connection.head()
    with begin(sessions[4]) as one_more:
        too_much(one_more.response(), "max_in_flight", "maxInFlight")
    for connection in busy:
        with connection:
            assert speak.text_of(connection.messages()[-1]) == "Took 5000 ms"
    with begin(sessions[4]) as again:
        assert speak.text_of(speak.reply(again.response())) == "Took 5000 ms"
    for session in sessions:
        if session:
            session.connection.close()


def test_answers_and_cancellations_are_taken_however_much_is_in_flight(start):
    server = start(max_in_flight=2)
    with Session(server) as session:
        params = {"name": "test_elicitation", "arguments": {"message": "Who?"}}
        (one, _), (other, _) = (session.start("tools/call", params, id=id) for id in ("a", "b"))
        with one, other:
            first, second = one.message(), other.message()
            too_much(session.post(speak.message("ping")), "max_in_flight", "maxInFlight")
            answer = {"jsonrpc": "2.0", "id": first["id"], "result": {"action": "decline"}}
            assert session.post(answer).status == 202
            assert one.message()["id"] == "a"
            assert session.post(speak.notification("notifications/cancelled", {"requestId": "b"})).status == 202
            # The question is taken back, and the stream ends without an answer.
            assert [it["params"]["requestId"] for it in other.messages()] == [second["id"]]
            assert session.ask("ping")["result"] == {}


def test_the_bodys_limit_is_an_option(start, era):
    server = start(max_body=2000)
    with server.connect() as connection:
        headers, body = speak.modern("tools/list", meta_more={"example.com/pad": "x" * 2000})
        speak.post(connection, server.path, body, headers)
        refused(connection.response(), 413)
    assert speak.ask_modern(server, "tools/list").status == 200
