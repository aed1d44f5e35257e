"""The two older descriptions of the protocol on every server and mount; word for word: tests/transcripts/dialects."""

import pytest
import servers
import speak
from speak import message, notification
from websocket import WebSocket

CALL = {"name": "test_simple_text", "arguments": {}}
TEXT = {"content": [{"type": "text", "text": "This is a simple text response for testing."}], "isError": False}


@pytest.fixture
def shelf(start, kind):
    """A server that speaks both."""
    serve = [str(servers.SERVE), *servers.KINDS[kind], "--http", "127.0.0.1:0"]
    return start(command=[*serve, "--dialects", "0.7,bare"])


def post(server, path, body, **headers):
    with server.connect() as connection:
        speak.post(connection, path, body, headers)
        return connection.response()


def test_every_post_of_0_7_stands_alone(shelf):
    began = post(shelf, shelf.path, message("initialize"))
    assert (began.status, began.header("mcp-session-id")) == (200, None)
    assert began.json()["result"]["version"] == "0.7.0"
    assert post(shelf, shelf.path, message("call_tool", CALL)).json()["result"] == TEXT
    assert "arguments" in post(shelf, shelf.path, message("tools/list")).json()["result"]["tools"][0]
    unknown = post(shelf, shelf.path, message("call_tool", {"name": "nothing"}))
    assert (unknown.status, unknown.json()["error"]["code"]) == (200, 4001)
    unknown = post(shelf, shelf.path, message("no/such/method"))
    assert (unknown.status, unknown.json()["error"]["code"]) == (200, -32601)


def test_a_session_of_0_7_over_the_pair(shelf):
    with shelf.connect() as stream:
        stream.request("GET", "/sse", {"Accept": "text/event-stream"})
        stream.head(to="GET")
        address = stream.event().data

        def ask(method, params=None):
            assert post(shelf, address, message(method, params)).status == 202
            return stream.message()

        assert ask("call_tool", CALL)["error"]["code"] == 1001
        assert ask("initialize", {"version": "0.4.0"})["result"]["version"] == "0.4.0"
        assert ask("call_tool", CALL)["result"] == TEXT


def test_a_bare_session(shelf):
    params = {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": speak.CLIENT}
    began = post(shelf, shelf.path, message("initialize", params))
    session = {"Mcp-Session-Id": began.header("mcp-session-id")}
    assert post(shelf, shelf.path, notification("initialized"), **session).status == 202
    assert post(shelf, shelf.path, message("ping"), **session).json()["result"] == {"status": "ok"}


@pytest.mark.native
def test_a_session_of_0_7_over_a_websocket(shelf):
    with WebSocket(shelf) as socket:
        assert socket.ask(message("call_tool", CALL))["error"]["code"] == 1001
        assert socket.ask(message("initialize"))["result"]["version"] == "0.7.0"
        assert socket.ask(message("call_tool", CALL))["result"] == TEXT
