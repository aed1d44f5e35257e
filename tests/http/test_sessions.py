"""Legacy sessions: who is known by an id, until when, and what an id that is not good is told."""

import re
import time

import speak
from servers import eventually
from speak import Session, message, refused


def test_ids_are_unguessable(server):
    # "The session ID SHOULD be globally unique and cryptographically secure ... MUST only contain visible ASCII"
    ids = []
    for _ in range(20):
        with Session(server) as session:
            ids.append(session.id)
            session.delete()
    assert len(set(ids)) == 20
    assert all(re.fullmatch(r"[\x21-\x7e]{22,}", it) for it in ids), ids
    length = min(map(len, ids))
    same = sum(len({it[at] for it in ids}) == 1 for at in range(length))
    assert same <= length / 4, f"{same} of {length} characters never change"


def test_a_request_without_an_id_is_400(server):
    # "Servers that require a session ID SHOULD respond to requests without an MCP-Session-Id header with 400"
    for method in ("tools/list", "ping", "notifications/initialized"):
        with server.connect() as connection:
            speak.post(connection, server.path, message(method), {"MCP-Protocol-Version": speak.LATEST_LEGACY})
            refused(connection.response(), 400)
    for method in ("GET", "DELETE"):
        with server.connect() as connection:
            refused(connection.ask(method, server.path, {"Accept": "text/event-stream"}), 400)


def test_an_unknown_version_is_400_for_delete_too(server):
    with Session(server) as session:
        headers = session.headers(MCP_Protocol_Version="1999-01-01")
        refused(session.connection.ask("DELETE", server.path, headers), 400)
        assert session.post(message("ping")).status == 200


def test_a_deleted_session_is_404(server):
    # "The server MAY terminate the session at any time, after which it MUST respond ... with HTTP 404 Not Found"
    with Session(server) as session, session.stream() as stream:
        assert 200 <= session.delete().status < 300
        refused(session.post(message("tools/list")), 404)
        refused(session.post(speak.notification("notifications/cancelled", {"requestId": 1})), 404)
        refused(session.delete(), 404)
        connection, head = session.get()
        with connection:
            head.body = connection.body()
            refused(head, 404)
        assert stream.events() == [], "the session's streams outlive it"


def test_deleting_one_session_leaves_the_others(server):
    with Session(server) as one, Session(server) as other:
        one.delete()
        assert other.ask("ping")["result"] == {}


def test_deleting_a_session_ends_its_calls(server):
    started, before = speak.started_so_far(server), speak.cancelled_so_far(server)
    with Session(server) as session, server.connect() as connection:
        session.send(message("tools/call", {"name": "test_slow", "arguments": {"ms": 30_000}}), connection=connection)
        assert eventually(lambda: speak.started_so_far(server) == started + 1)
        assert 200 <= session.delete().status < 300
        connection.socket.settimeout(5)
        connection.response()  # whatever it is, it comes now
    assert eventually(lambda: speak.cancelled_so_far(server) == before + 1)


def test_an_idle_session_ends_and_one_at_work_does_not(start):
    server = start(session_idle=3, keep_alive=0.2)
    with Session(server) as idle, Session(server) as calling, Session(server) as listening, Session(server) as busy:
        with server.connect() as slow, listening.stream():
            calling.send(message("tools/call", {"name": "test_slow", "arguments": {"ms": 8000}}), connection=slow)
            until = time.monotonic() + 7
            while time.monotonic() < until:
                assert busy.ask("ping")["result"] == {}
                time.sleep(0.15)
            refused(idle.reconnected().post(message("ping")), 404)
            assert speak.text_of(speak.reply(slow.response())) == "Took 8000 ms"
            assert listening.reconnected().ask("ping")["result"] == {}
        assert calling.reconnected().ask("ping")["result"] == {}
        time.sleep(4.5)
        for session in (calling, listening, busy):
            refused(session.reconnected().post(message("ping")), 404)


def test_a_second_initialize_changes_nothing(server):
    with Session(server, "2025-06-18") as session:
        params = {"protocolVersion": speak.LATEST_LEGACY, "capabilities": {}, "clientInfo": speak.CLIENT}
        answer = session.post(message("initialize", params))
        assert speak.reply(answer)["error"]["code"] == -32600
        assert session.ask("ping")["result"] == {}
        assert isinstance(session.ask("tools/list")["result"]["tools"], list)


def test_initialize_with_params_that_are_no_good_makes_no_session(server):
    for params in ({}, {"protocolVersion": 1}, {"protocolVersion": speak.LATEST_LEGACY, "capabilities": 3}):
        with server.connect() as connection:
            speak.post(connection, server.path, message("initialize", params))
            answer = connection.response()
            assert speak.reply(answer)["error"]["code"] == -32602
            assert answer.header("mcp-session-id") is None
            assert not speak.INSIDES.search(answer.body.decode())


def test_one_sessions_answers_never_reach_another(server):
    with Session(server) as one, Session(server) as other:
        slow = message("tools/call", {"name": "test_slow", "arguments": {"ms": 300}}, id="same")
        quick = message("ping", id="same")
        with server.connect() as connection:
            one.send(slow, connection=connection)
            assert speak.reply(other.post(quick)) == {"jsonrpc": "2.0", "id": "same", "result": {}}
            assert speak.text_of(speak.reply(connection.response())) == "Took 300 ms"


def test_an_id_that_is_in_flight_is_refused(server):
    # "The request ID MUST NOT have been previously used by the requestor within the same session."
    with Session(server) as session:
        # The stream begins with the keep-alive, so the call runs.
        first, _ = session.start("tools/call", {"name": "test_slow", "arguments": {"ms": 4000}}, id="twice")
        with first:
            assert speak.reply(session.post(message("ping", id="twice")))["error"]["code"] == -32600
            assert speak.text_of(first.messages()[-1]) == "Took 4000 ms"
