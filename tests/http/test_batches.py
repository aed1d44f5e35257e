"""Batches: 2024-11-05 and 2025-03-26 have them, no other revision does."""

import pytest
import speak
from speak import Session, message, notification, refused

WITH = ("2024-11-05", "2025-03-26")
WITHOUT = ("2025-06-18", "2025-11-25")


@pytest.fixture(params=WITH)
def session(server, request):
    with Session(server, request.param) as session:
        yield session


def test_a_batch_is_one_array_in_the_order_given(session):
    slow = message("tools/call", {"name": "test_slow", "arguments": {"ms": 150}}, id="slow")
    batch = [slow, notification("notifications/example"), message("ping", id=2), message("nobody/knows", id="x")]
    answer = session.post(batch)
    assert answer.status == 200
    found = speak.messages_of(answer)
    assert [it["id"] for it in found] == ["slow", 2, "x"]
    assert speak.text_of(found[0]) == "Took 150 ms"
    assert (found[1]["result"], found[2]["error"]["code"]) == ({}, -32601)
    if answer.type == "application/json":
        assert isinstance(answer.json(), list)


def test_progress_comes_before_the_array(session):
    call = {"name": "test_tool_with_progress", "arguments": {}, "_meta": {"progressToken": "t"}}
    found = speak.messages_of(session.post([message("tools/call", call, id=1), message("ping", id=2)]))
    assert [it["params"]["progress"] for it in found[:-2]] == [0, 50, 100]
    assert [it["id"] for it in found[-2:]] == [1, 2]


def test_notifications_and_responses_alone_are_202(session):
    for batch in (
        [notification("notifications/example")] * 3,
        [{"jsonrpc": "2.0", "id": "never-asked", "result": {}}, notification("notifications/example")],
    ):
        answer = session.post(batch)
        assert (answer.status, answer.body) == (202, b"")


def test_an_empty_batch_is_32600(session):
    refused(session.post([]), 400, -32600)


def test_a_batch_of_more_than_1000_is_32600(session):
    assert len(speak.messages_of(session.post([message("ping") for _ in range(1000)]))) == 1000
    refused(session.post([message("ping") for _ in range(1001)]), 400, -32600)


def test_a_member_that_is_no_message_has_its_error_in_the_array(session):
    found = speak.messages_of(session.post([7, message("ping", id=1)]))
    assert sorted("error" in it for it in found) == [False, True]


def test_initialize_is_never_in_a_batch(server):
    # "The initialize request MUST NOT be part of a JSON-RPC batch"
    params = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": speak.CLIENT}
    with server.connect() as connection:
        speak.post(connection, server.path, [message("initialize", params), message("ping")])
        answer = connection.response()
        assert answer.header("mcp-session-id") is None
        refused(answer, 400, -32600)
    with Session(server, "2025-03-26") as session:
        assert -32600 in [
            it["error"]["code"]
            for it in speak.messages_of(session.post([message("initialize", params)]))
            if "error" in it
        ]
        assert session.ask("ping")["result"] == {}


@pytest.mark.parametrize("version", WITHOUT)
def test_later_sessions_take_no_batch(server, version):
    with Session(server, version) as session:
        refused(session.post([message("ping")]), 400, -32600)
        assert session.ask("ping")["result"] == {}


def test_the_modern_era_takes_no_batch(server):
    # "The body of the HTTP POST MUST be a single JSON-RPC request or notification."
    headers, body = speak.modern("tools/list")
    for batch in ([body], [body, body], []):
        with server.connect() as connection:
            speak.post(connection, server.path, batch, headers)
            assert "2026-07-28 does not support batches" in refused(connection.response(), 400, -32600)["message"]
