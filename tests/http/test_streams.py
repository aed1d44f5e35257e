"""Streams flow through every server and mount: each message when it is sent, comments while nothing is, and the end.
What comes on which stream is tested without a server, in core/tests/sans_io/endpoint_*.rs.
"""

import speak
from servers import eventually
from speak import PREFIX, Session, call_modern, listen, message, notification

CHANGED = "notifications/tools/list_changed"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
WHO = {"name": "test_elicitation", "arguments": {"message": "Who?"}}
ROUNDS = 4
PROGRESS = {"name": "test_tool_with_progress", "arguments": {}}


def change_tools(server):
    assert call_modern(server, "test_trigger_tool_change", {}).status == 200


def read_comments(stream, count):
    """Reads that many comments; a priming event may come before."""
    while count:
        event = stream.event(comments=True)
        assert not event.data, event
        count -= event.comment is not None


def is_stream(head):
    # "servers SHOULD include the X-Accel-Buffering: no header"
    is_unbuffered = head.header("x-accel-buffering") == "no" and "no-cache" in head.header("cache-control")
    return (head.status, head.type) == (200, "text/event-stream") and is_unbuffered


def test_progress_is_streamed_and_the_connection_goes_on(server):
    # "The final JSON-RPC response SHOULD terminate the stream." [Receiving Messages]
    with server.connect() as connection:
        for _ in range(2):
            speak.send_modern(connection, server, "tools/call", PROGRESS, id="p", meta_more={"progressToken": "t"})
            assert is_stream(connection.head())
            *told, last = connection.messages()
            seen = [(notice["params"]["progressToken"], notice["params"]["progress"]) for notice in told]
            assert seen == [("t", 0), ("t", 50), ("t", 100)]
            assert last["id"] == "p" and last["result"]["resultType"] == "complete"


def test_a_question_is_sent_at_once_and_answered_by_another_request(server):
    with Session(server) as session:
        connection, head = session.start("tools/call", WHO, id="asking")
        with connection:
            assert is_stream(head)
            # "The server SHOULD immediately send an SSE event consisting of an event ID and an empty data field"
            first = connection.event()
            assert first.id and first.data == ""
            question = connection.message()
            assert (question["method"], question["params"]["message"]) == ("elicitation/create", "Who?")
            read_comments(connection, 2)
            content = {"username": "ann", "email": "ann@example.com"}
            answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": content}}
            posted = session.post(answer)
            assert (posted.status, posted.body) == (202, b"")
            done = connection.message()
            assert done["id"] == "asking" and "ann@example.com" in speak.text_of(done)
            # A second answer answers nothing any more.
            assert session.post(answer).status == 202
            assert connection.event() is None


def test_a_subscription_is_acknowledged_kept_alive_and_told_of_changes(server):
    with listen(server, {"toolsListChanged": True}, id=7) as stream:
        first = stream.message()
        assert (first["method"], first["params"]["notifications"]) == (ACKNOWLEDGED, {"toolsListChanged": True})
        read_comments(stream, 2)
        for _ in range(2):
            change_tools(server)
            change = stream.message()
            assert (change["method"], change["params"]["_meta"][PREFIX + "subscriptionId"]) == (CHANGED, 7)


def test_a_get_stream_is_kept_alive_and_told_of_changes_until_its_session_ends(server):
    with Session(server) as session:
        connection, head = session.get()
        with connection:
            assert is_stream(head)
            read_comments(connection, 2)
            for _ in range(2):
                change_tools(server)
                assert connection.message()["method"] == CHANGED
            # A client that takes no stream there is asked on this one.
            with server.connect() as calling:
                asked = message("tools/call", WHO)
                session.send(asked, connection=calling, headers={"Accept": "application/json"})
                question = connection.message()
                answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}}
                assert session.post(answer).status == 202
                assert "decline" in speak.text_of(calling.response().json())
            assert session.delete().status == 204
            assert [event for event in connection.events() if event.data] == []


def test_a_closed_stream_gives_way_to_the_next(server):
    assert server.has_no_connections()
    with Session(server) as session:
        first, second = session.stream(), session.stream()
        open_ones = server.connections()
        first.close()
        with second:
            assert eventually(lambda: server.connections() == open_ones - 1)
            change_tools(server)
            assert second.message()["method"] == CHANGED


def test_a_broken_stream_is_resumed_while_its_call_still_runs(server):
    # "Disconnection SHOULD NOT be interpreted as the client cancelling its request."
    with Session(server) as session:
        connection, _ = session.start("tools/call", WHO, id="going")
        event = connection.event()
        assert event.id and event.data == ""
        connection.abort()
        with session.stream(event.id) as resumed:
            question = resumed.message()
            answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}}
            assert session.post(answer).status == 202
            (last,) = resumed.messages()
            assert last["id"] == "going" and "decline" in speak.text_of(last)
        # What was replayed once can be replayed again.
        with session.stream(event.id) as again:
            assert again.messages() == [question, last]


def test_a_stream_is_resumed_where_it_broke_off(server):
    with Session(server) as session:
        params = {**PROGRESS, "_meta": {"progressToken": "t"}}
        connection, _ = session.start("tools/call", params, id="mine")
        while not (event := connection.event()).data:
            pass
        connection.abort()
        with session.stream(event.id) as resumed:
            *told, last = resumed.messages()
        assert [notice["params"]["progress"] for notice in told] == [50, 100]
        assert last["id"] == "mine" and speak.text_of(last)


def test_a_handler_closes_its_stream_and_is_polled(server):
    # "If the server does close the connection prior to terminating the SSE stream, it SHOULD send ... retry"
    with Session(server) as session:
        connection, head = session.start("tools/call", {"name": "test_reconnection", "arguments": {}}, id="back")
        with connection:
            assert is_stream(head)
            events = connection.events()
        assert [event for event in events if event.data] == []
        assert events[0].id and any(event.retry is not None for event in events)
        with session.stream([event.id for event in events if event.id][-1]) as resumed:
            assert speak.text_of(resumed.message()) == "Reconnection test completed"
            assert resumed.event() is None


def test_the_pair_of_2024_11_05(server):
    capabilities = {"elicitation": {}}
    with server.connect() as stream:
        stream.request("GET", "/sse", {"Accept": "text/event-stream"})
        assert is_stream(stream.head(to="GET"))
        first = stream.event()
        assert first.event == "endpoint"

        def post(body):
            with server.connect() as connection:
                speak.post(connection, first.data, body)
                answer = connection.response()
            return answer.status, answer.body

        params = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": speak.CLIENT}
        assert post(message("initialize", params)) == (202, b"")
        began = stream.event()
        assert began.event == "message" and began.json()["result"]["protocolVersion"] == "2025-11-25"
        assert post(notification("notifications/initialized")) == (202, b"")
        change_tools(server)
        assert stream.message()["method"] == CHANGED
        assert post(message("tools/call", WHO, id="asking")) == (202, b"")
        question = stream.message()
        assert question["method"] == "elicitation/create"
        assert post({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}}) == (202, b"")
        assert "decline" in speak.text_of(stream.message())
    assert eventually(lambda: post(message("ping"))[0] == 404)


def test_streams_that_are_left_are_let_go(server):
    assert server.has_no_connections()
    streams = [listen(server, {"toolsListChanged": True}, id=number) for number in range(50)]
    assert eventually(lambda: server.connections() == 50)
    for stream in streams:
        stream.abort()
    assert server.has_no_connections()
    change_tools(server)


def test_a_subscriber_that_does_not_read_is_told_that_its_subscription_ended(server):
    # Cancellation: "A server MUST send notifications/cancelled referencing a subscriptions/listen request ID when it
    # tears down that subscription stream". Long URIs, so that what sockets hold is soon full.
    uris = [f"test://{number}/{'x' * 60_000}" for number in range(50)]
    with server.connect(receive_buffer=4096) as slow:
        listen(server, {"resourceSubscriptions": uris}, id="slow", connection=slow)
        assert slow.message()["method"] == ACKNOWLEDGED
        with server.connect() as brisk:
            for _ in range(ROUNDS):
                for uri in uris:
                    # A notifier of changes never waits for listeners.
                    text = call_modern(server, "test_touch_resource", {"uri": uri}, connection=brisk).json()
                    assert "error" not in text, text
        slow.widen()
        told = slow.messages()
    assert len(told) < ROUNDS * len(uris), "not all of it was kept"
    last = told.pop()
    assert last["method"] == "notifications/cancelled", last["method"]
    assert last["params"]["requestId"] == "slow"
    assert last["params"]["_meta"][PREFIX + "subscriptionId"] == "slow"
    assert "unread" in last["params"]["reason"]
    assert {notice["method"] for notice in told} == {"notifications/resources/updated"}
