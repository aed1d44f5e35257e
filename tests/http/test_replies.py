"""JSON or an event stream, decided when the first thing is said; keep-alive on quiet ones; what notifications get."""

import time

import pytest
import speak
from speak import ask_modern, call_modern, refused

PROGRESS = {"name": "test_tool_with_progress", "arguments": {}}


def progress_of(messages):
    return [it["params"] for it in messages if it.get("method") == "notifications/progress"]


# ── modern ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_call_that_says_nothing_is_one_line_of_json(server):
    answer = call_modern(server, "test_simple_text", id="one")
    assert (answer.status, answer.type) == (200, "application/json")
    assert b"\n" not in answer.body.strip() and b'": ' not in answer.body
    said = answer.json()
    assert said["id"] == "one" and said["result"]["resultType"] == "complete"


def test_a_call_that_tells_its_progress_is_a_stream_that_ends_with_the_result(server):
    # "The final JSON-RPC response SHOULD terminate the stream." [Receiving Messages]
    with server.connect() as connection:
        speak.send_modern(connection, server, "tools/call", PROGRESS, id="p", meta_more={"progressToken": "t"})
        head = connection.head()
        assert (head.status, head.type) == (200, "text/event-stream")
        # "servers SHOULD include the X-Accel-Buffering: no header"
        assert head.header("x-accel-buffering") == "no"
        assert "no-cache" in head.header("cache-control") or "no-store" in head.header("cache-control")
        messages = connection.messages()
        told = progress_of(messages)
        assert [it["progressToken"] for it in told] == ["t"] * 3
        # "The progress value MUST increase with each notification"
        values = [it["progress"] for it in told]
        assert values == sorted(set(values))
        assert messages[-1]["id"] == "p" and "result" in messages[-1] and len(messages) == 4
        # The connection is whole afterwards.
        assert ask_modern(server, "tools/list", connection=connection).status == 200


def test_progress_comes_when_it_is_told_and_not_at_the_end(server):
    # The first message may be read late, so not each attempt has to succeed.
    for _ in range(3):
        with server.connect() as connection:
            speak.send_modern(connection, server, "tools/call", PROGRESS, meta_more={"progressToken": 1})
            connection.head()
            times = []
            for _ in range(4):
                connection.message()
                times.append(time.monotonic())
        if times[-1] - times[0] > 0.09:
            break
    assert times[-1] - times[0] > 0.09


def test_without_a_token_nothing_is_told(server, era):
    # "Progress: M only active tokens"
    if era == "modern":
        answer = ask_modern(server, "tools/call", PROGRESS)
        assert answer.type == "application/json"
    else:
        with speak.Session(server) as session:
            answer = session.post(speak.message("tools/call", PROGRESS))
    assert not progress_of(speak.messages_of(answer))


@pytest.mark.parametrize(
    "accept", ["application/json", "application/json;q=0.9", "application/*", "*/*, text/event-stream;q=0"]
)
def test_who_takes_json_only_gets_json_and_no_notifications(server, accept):
    answer = ask_modern(server, "tools/call", PROGRESS, headers={"Accept": accept}, meta_more={"progressToken": 1})
    assert (answer.status, answer.type) == (200, "application/json")
    assert answer.json()["result"]


@pytest.mark.parametrize("accept", ["text/event-stream", "application/json;q=0, text/event-stream"])
def test_who_takes_streams_only_gets_a_stream(server, accept):
    answer = call_modern(server, "test_simple_text", headers={"Accept": accept})
    assert (answer.status, answer.type) == (200, "text/event-stream")
    assert speak.text_of(speak.reply(answer))


@pytest.mark.parametrize(
    "accept", ["*/*", "text/event-stream, */*;q=0.1", "TEXT/EVENT-STREAM , Application/Json", None]
)
def test_who_takes_anything_is_served(server, accept):
    answer = ask_modern(server, "tools/call", PROGRESS, headers={"Accept": accept}, meta_more={"progressToken": 1})
    assert answer.status == 200 and speak.reply(answer)["result"]


@pytest.mark.parametrize("accept", ["text/html", "image/png, text/plain"])
def test_who_takes_neither_gets_406(server, era, accept):
    if era == "modern":
        refused(call_modern(server, "test_simple_text", headers={"Accept": accept}), 406)
    else:
        with speak.Session(server) as session:
            refused(session.post(speak.message("ping"), headers={"Accept": accept}), 406)


def test_listen_without_streams_is_406(server):
    params = {"notifications": {"toolsListChanged": True}}
    refused(ask_modern(server, "subscriptions/listen", params, headers={"Accept": "application/json"}), 406)


def test_an_error_of_a_handler_is_no_stream(server):
    answer = call_modern(server, "test_error_handling", {})
    assert (answer.status, answer.type) == (200, "application/json")
    assert answer.json()["result"]["isError"]


# ── quiet streams ───────────────────────────────────────────────────────────────────────────────────


def comments_of(connection, count):
    """Reads that many comments, which nothing else may interrupt."""
    for _ in range(count):
        event = connection.event(comments=True)
        assert event.comment is not None and event.data is None, event


def test_a_call_that_takes_long_becomes_a_stream_with_comments(server):
    # "servers are encouraged to periodically emit an SSE comment line"
    with server.connect() as connection:
        speak.send_modern(connection, server, "tools/call", {"name": "test_slow", "arguments": {"ms": 3000}}, id="s")
        head = connection.head()
        assert (head.type, head.header("x-accel-buffering")) == ("text/event-stream", "no")
        comments_of(connection, 2)
        assert connection.message()["id"] == "s"
        assert connection.event() is None


def test_a_call_that_takes_long_stays_json_for_who_takes_only_that(server):
    answer = call_modern(server, "test_slow", {"ms": 800}, headers={"Accept": "application/json"})
    assert answer.type == "application/json" and speak.text_of(answer.json())


def test_a_listen_stream_and_a_get_stream_are_kept_alive(server):
    with speak.listen(server, {"toolsListChanged": True}) as stream:
        assert stream.message()["method"] == "notifications/subscriptions/acknowledged"
        comments_of(stream, 2)
    with speak.Session(server) as session, session.stream() as stream:
        event = stream.event(comments=True)
        while event.comment is None:  # a priming event may come first
            event = stream.event(comments=True)
        comments_of(stream, 2)


# ── notifications ───────────────────────────────────────────────────────────────────────────────────


def test_a_notification_is_202_without_a_body(server, era):
    # "If the server accepts it, the server MUST return HTTP status code 202 Accepted with no body."
    for method in ("notifications/cancelled", "notifications/example"):
        body = speak.notification(method, {"requestId": "nobody"})
        if era == "modern":
            body["params"]["_meta"] = speak.meta()
            with server.connect() as connection:
                speak.post(connection, server.path, body, {"MCP-Protocol-Version": speak.MODERN, "Mcp-Method": method})
                answer = connection.response()
        else:
            with speak.Session(server) as session:
                answer = session.post(body)
        assert (answer.status, answer.body) == (202, b"")


@pytest.mark.parametrize(
    "headers, params, code",
    [
        ({"MCP-Protocol-Version": "v9"}, {}, -32022),
        ({}, {"_meta": {speak.PREFIX + "protocolVersion": "v9"}}, -32022),
        ({"MCP-Protocol-Version": "v9"}, {"_meta": {speak.PREFIX + "protocolVersion": speak.MODERN}}, -32020),
        ({"MCP-Protocol-Version": speak.MODERN, "Mcp-Method": "notifications/other"}, {}, -32020),
        ({"MCP-Protocol-Version": speak.MODERN}, {"_meta": {speak.PREFIX + "protocolVersion": 7}}, -32602),
        ({"MCP-Protocol-Version": speak.MODERN}, 7, -32602),
    ],
    ids=str,
)
def test_a_notification_that_cannot_be_accepted_is_an_error_without_an_id(server, headers, params, code):
    # "If the server cannot accept it, it MUST return an HTTP error status code" [Sending Messages]
    with server.connect() as connection:
        body = {**speak.notification("notifications/example"), "params": params}
        speak.post(connection, server.path, body, headers)
        answer = connection.response()
        refused(answer, 400, code)
        assert "id" not in answer.json()


def test_no_header_of_an_answer_tells_too_much(server):
    answer = call_modern(server, "test_simple_text")
    assert not [name for name, _ in answer.fields if name in ("x-powered-by", "set-cookie")]


# ── legacy ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_legacy_stream_begins_with_a_priming_event(server):
    # "The server SHOULD immediately send an SSE event consisting of an event ID and an empty data field"
    with speak.Session(server) as session:
        connection, head = session.start("tools/call", {**PROGRESS, "_meta": {"progressToken": "t"}}, id="p")
        with connection:
            assert (head.status, head.type) == (200, "text/event-stream")
            assert head.header("x-accel-buffering") == "no"
            events = connection.events()
        assert events[0].id and events[0].data == ""
        assert all(event.id for event in events)
        messages = [event.json() for event in events if event.data]
        assert [it["progress"] for it in progress_of(messages)] == [0, 50, 100]
        assert messages[-1]["id"] == "p" and len(messages) == 4


def test_a_legacy_client_that_takes_json_only_is_answered_in_json(server):
    with speak.Session(server) as session:
        answer = session.post(speak.message("tools/call", PROGRESS), headers={"Accept": "application/json"})
        assert answer.status in (200, 406)
        if answer.status == 200:
            assert answer.type == "application/json" and speak.text_of(answer.json())
