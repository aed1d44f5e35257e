"""Cancellation: in the modern era a disconnect ends a call, in the legacy era a notification or the session's end."""

import pytest
import speak
from servers import eventually
from speak import Session, message, notification, refused


def slow(ms=600_000):
    return {"name": "test_slow", "arguments": {"ms": ms}}


class Calls:
    """Counts the calls of `test_slow` since the test began."""

    def __init__(self, server):
        self.server = server
        self._before = speak.started_so_far(server), speak.cancelled_so_far(server)

    def started(self):
        return speak.started_so_far(self.server) - self._before[0]

    def cancelled(self):
        return speak.cancelled_so_far(self.server) - self._before[1]


@pytest.fixture
def calls(server):
    return Calls(server)


@pytest.mark.parametrize("how", ["close", "abort"])
def test_leaving_before_a_modern_answer_cancels_its_call_and_no_other(server, calls, how):
    # "The server MUST treat a client disconnect as cancellation of that request."
    headers = {"Accept": "application/json"}  # so that no answer begins
    with server.connect() as staying, server.connect() as leaving:
        speak.send_modern(staying, server, "tools/call", slow(300), headers=headers)
        speak.send_modern(leaving, server, "tools/call", slow(), headers=headers)
        assert eventually(lambda: calls.started() == 2)
        getattr(leaving, how)()
        assert eventually(lambda: calls.cancelled() == 1)
        assert speak.text_of(speak.reply(staying.response())) == "Took 300 ms"
    assert calls.cancelled() == 1


def test_closing_a_modern_stream_cancels_its_call(server, calls):
    # "Closing the SSE response stream MUST be treated by the server as cancellation of that request."
    with server.connect() as connection:
        speak.send_modern(connection, server, "tools/call", slow())
        # "servers are encouraged to periodically emit an SSE comment line"
        assert connection.head().type == "text/event-stream"
        for _ in range(2):
            assert connection.event(comments=True).comment is not None
    assert eventually(lambda: calls.cancelled() == 1)


def test_a_legacy_call_is_cancelled_by_saying_so_and_gets_no_response(server, calls):
    with Session(server) as session:
        with server.connect() as connection:
            session.send(message("tools/call", slow(), id="long"), connection=connection)
            assert eventually(lambda: calls.started() == 1)
            params = {"requestId": "long", "reason": "changed my mind"}
            said = session.post(notification("notifications/cancelled", params))
            assert (said.status, said.body) == (202, b"")
            assert not [answer for answer in speak.messages_of(connection.response()) if "result" in answer]
        assert eventually(lambda: calls.cancelled() == 1)


def test_deleting_a_session_ends_its_calls(server, calls):
    with Session(server) as session, server.connect() as connection:
        headers = {"Accept": "application/json"}  # so that no answer begins
        session.send(message("tools/call", slow(), id="long"), connection=connection, headers=headers)
        assert eventually(lambda: calls.started() == 1)
        assert session.delete().status == 204
        refused(connection.response(), 404, -32600, id="long")
    assert eventually(lambda: calls.cancelled() == 1)
