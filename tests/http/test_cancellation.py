"""Cancellation: in the modern era a disconnect ends a call, in the legacy era only `notifications/cancelled`."""

import time

import pytest
import speak
from servers import eventually
from speak import Session, cancelled_so_far, message, notification, started_so_far


def slow(ms):
    return {"name": "test_slow", "arguments": {"ms": ms}}


@pytest.fixture
def have_started(server):
    """Waits until that many calls have started since the test began."""
    before = started_so_far(server)

    def wait(count):
        assert eventually(lambda: started_so_far(server) - before == count)

    return wait


@pytest.fixture
def cancelled(server):
    """The number of calls that were cancelled since the test began."""
    before = cancelled_so_far(server)
    return lambda: cancelled_so_far(server) - before


def test_closing_a_modern_stream_cancels_its_call(server, cancelled):
    # "Closing the SSE response stream MUST be treated by the server as cancellation of that request."
    with server.connect() as connection:
        speak.send_modern(connection, server, "tools/call", slow(30_000))
        assert connection.head().type == "text/event-stream"  # the keep-alive has begun it
    assert eventually(lambda: cancelled() == 1)


@pytest.mark.parametrize("how", ["close", "abort"])
def test_leaving_before_a_modern_answer_cancels_its_call(server, have_started, cancelled, how):
    # "The server MUST treat a client disconnect as cancellation of that request."
    connection = server.connect()
    speak.send_modern(connection, server, "tools/call", slow(30_000))
    have_started(1)
    getattr(connection, how)()
    assert eventually(lambda: cancelled() == 1)


def test_leaving_cancels_nobody_elses_call(server, have_started, cancelled):
    with server.connect() as staying:
        speak.send_modern(staying, server, "tools/call", slow(1000))
        leaving = server.connect()
        speak.send_modern(leaving, server, "tools/call", slow(30_000))
        have_started(2)
        leaving.close()
        assert speak.text_of(speak.reply(staying.response())) == "Took 1000 ms"
    assert eventually(lambda: cancelled() == 1)


def test_leaving_cancels_no_legacy_call(server, have_started, cancelled):
    # "Disconnection SHOULD NOT be interpreted as the client cancelling its request."
    with Session(server) as session:
        with server.connect() as connection:
            session.send(message("tools/call", slow(500)), connection=connection)
            have_started(1)
        time.sleep(0.8)
        assert cancelled() == 0
        assert session.ask("ping")["result"] == {}


def test_a_legacy_call_is_cancelled_by_saying_so_and_gets_no_response(server, have_started, cancelled):
    with Session(server) as session, server.connect() as connection:
        session.send(message("tools/call", slow(30_000), id="long"), connection=connection)
        have_started(1)
        said = session.post(notification("notifications/cancelled", {"requestId": "long", "reason": "changed my mind"}))
        assert (said.status, said.body) == (202, b"")
        with connection.patience(5):
            answer = connection.response()
        assert not [it for it in speak.messages_of(answer) if "result" in it]
        assert eventually(lambda: cancelled() == 1)


@pytest.mark.parametrize(
    "params", [{"requestId": "nobody"}, {"requestId": 1}, {"requestId": None}, {"requestId": [1]}, {}], ids=str
)
def test_cancelling_what_is_not_there_is_ignored(server, params):
    # "Invalid cancellation notifications SHOULD be ignored" [Cancellation, Error Handling]
    with Session(server) as session:
        assert session.post(notification("notifications/cancelled", params)).status in (202, 400)
        assert session.ask("ping")["result"] == {}


def test_one_session_cannot_cancel_anothers_call(server, have_started, cancelled):
    with Session(server) as one, Session(server) as other, server.connect() as connection:
        one.send(message("tools/call", slow(500), id="mine"), connection=connection)
        have_started(1)
        assert other.post(notification("notifications/cancelled", {"requestId": "mine"})).status == 202
        assert speak.text_of(speak.reply(connection.response())) == "Took 500 ms"
    assert cancelled() == 0


def test_a_modern_notification_cancels_nothing_over_http(server, have_started, cancelled):
    # "notifications/cancelled is used only on the stdio transport"
    with server.connect() as connection:
        body = speak.send_modern(connection, server, "tools/call", slow(500), id="mine")
        have_started(1)
        with server.connect() as other:
            said = notification("notifications/cancelled", {"requestId": body["id"], "_meta": speak.meta()})
            speak.post(other, server.path, said, {"MCP-Protocol-Version": speak.MODERN})
            assert other.response().status in (202, 400)
        assert speak.text_of(speak.reply(connection.response())) == "Took 500 ms"
    assert cancelled() == 0
