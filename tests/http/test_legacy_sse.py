"""The pair of endpoints of 2024-11-05: a stream that names where to post, and what is posted there."""

import speak
from servers import eventually
from speak import message, notification, refused


class Pair:
    def __init__(self, server, version="2024-11-05", **headers):
        self.server = server
        self.stream = server.connect()
        self.stream.request("GET", "/sse", {"Accept": "text/event-stream", **headers})
        self.head = self.stream.head(to="GET")
        assert (self.head.status, self.head.type) == (200, "text/event-stream")
        # "the server MUST send an endpoint event containing a URI for the client to use" when a client connects
        first = self.stream.event()
        assert first.event == "endpoint", first
        self.endpoint = first.data
        params = {"protocolVersion": version, "capabilities": {}, "clientInfo": speak.CLIENT}
        self.result = self.ask("initialize", params)["result"]
        assert self.result["protocolVersion"] == version
        assert self.post(notification("notifications/initialized")).status == 202

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stream.close()

    def post(self, body, **headers):
        with self.server.connect() as connection:
            speak.post(connection, self.endpoint, body, headers)
            return connection.response()

    def ask(self, method, params=None):
        asked = message(method, params)
        assert self.post(asked).status == 202
        while "method" in (said := self.stream.message(within=5)):
            pass
        assert said["id"] == asked["id"]
        return said


def test_a_conversation(server):
    with Pair(server) as pair:
        assert pair.head.header("x-accel-buffering") == "no"
        assert pair.endpoint.startswith("/") and len(pair.endpoint) > 20
        assert speak.text_of(pair.ask("tools/call", {"name": "test_simple_text", "arguments": {}}))
        assert pair.ask("nobody/knows")["error"]["code"] == -32601
        asked = message(
            "tools/call", {"name": "test_tool_with_progress", "arguments": {}, "_meta": {"progressToken": 5}}
        )
        assert pair.post(asked).status == 202
        said = [pair.stream.message() for _ in range(4)]
        assert [it["params"]["progress"] for it in said[:3]] == [0, 50, 100]
        assert said[3]["id"] == asked["id"]


def test_every_revision_up_to_the_last_with_a_handshake(server):
    for version in speak.LEGACY:
        with Pair(server, version) as pair:
            assert pair.ask("ping")["result"] == {}


def test_answers_come_as_messages(server):
    with Pair(server) as pair:
        pair.post(message("ping", id=1))
        event = pair.stream.event()
        assert event.event == "message" and event.json()["result"] == {}


def test_a_question_is_asked_on_the_stream_and_answered_by_a_post(server):
    with Pair(server, "2025-11-25") as pair:
        pass
    capabilities = {"elicitation": {}}
    pair = Pair.__new__(Pair)
    pair.server, pair.stream = server, server.connect()
    with pair:
        pair.stream.request("GET", "/sse", {"Accept": "text/event-stream"})
        pair.stream.head(to="GET")
        pair.endpoint = pair.stream.event().data
        pair.ask(
            "initialize", {"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": speak.CLIENT}
        )
        pair.post(notification("notifications/initialized"))
        pair.post(message("tools/call", {"name": "test_elicitation", "arguments": {"message": "Who?"}}, id="asking"))
        question = pair.stream.message(within=5)
        assert question["method"] == "elicitation/create"
        pair.post({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}})
        assert "decline" in speak.text_of(pair.stream.message(within=5))


def test_changes_come_unasked(server):
    with Pair(server) as pair:
        speak.call_modern(server, "test_trigger_tool_change", {})
        assert pair.stream.message(within=3)["method"] == "notifications/tools/list_changed"


def test_batches(server):
    with Pair(server) as pair:
        assert pair.post([message("ping", id=1), message("ping", id=2)]).status == 202
        said = pair.stream.message()
        assert [it["id"] for it in said] == [1, 2]


def test_two_pairs_keep_apart(server):
    with Pair(server) as one, Pair(server) as other:
        assert one.endpoint != other.endpoint
        one.post(message("ping", id="for one"))
        assert one.stream.message(within=3)["id"] == "for one"
        assert other.stream.no_message(0.2)


def test_the_origin_is_checked(server):
    # "Servers MUST validate the Origin header on all incoming connections"
    with server.connect() as connection:
        connection.request("GET", "/sse", {"Accept": "text/event-stream", "Origin": "http://evil.example.com"})
        head = connection.head(to="GET")
        head.body = connection.body()
        refused(head, 403)
    with Pair(server) as pair:
        refused(pair.post(message("ping"), Origin="http://evil.example.com"), 403)
        refused(pair.post(message("ping"), Host="evil.example.com"), 421)
        assert pair.ask("ping")["result"] == {}


def test_what_is_posted_badly(server):
    with Pair(server) as pair:
        refused(pair.post(b"{"), 400, -32700)
        refused(pair.post(message("ping"), **{"Content-Type": "text/plain"}), 415)
        with server.connect() as connection:
            speak.post(connection, "/sse?session_id=nobody", message("ping"))
            refused(connection.response(), 404)
        with server.connect() as connection:
            speak.post(connection, "/sse", message("ping"))
            answer = connection.response()
            assert answer.status in (400, 404, 405)
            refused(answer, answer.status)
        assert pair.ask("ping")["result"] == {}


def test_its_session_is_not_there_for_the_other_endpoint(server):
    # Answers would come on the stream of the pair, and nothing here.
    with Pair(server) as pair, server.connect() as connection:
        headers = {"Mcp-Session-Id": pair.endpoint.partition("session_id=")[2], "Accept": speak.BOTH}
        speak.post(connection, server.path, message("ping"), headers)
        refused(connection.response(), 404)
        for method in ("GET", "DELETE"):
            refused(connection.ask(method, server.path, headers), 404)
        assert pair.ask("ping")["result"] == {}


def test_with_its_stream_a_session_is_gone(server):
    with Pair(server) as pair:
        endpoint = pair.endpoint

    def gone():
        with server.connect() as connection:
            speak.post(connection, endpoint, message("ping"))
            return connection.response().status == 404

    assert eventually(gone)


def test_the_pair_is_there_by_option_only(start):
    server = start(legacy_sse=False)
    with server.connect() as connection:
        connection.request("GET", "/sse", {"Accept": "text/event-stream"})
        assert connection.head(to="GET").status in (404, 400, 405)
