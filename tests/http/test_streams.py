"""Legacy streams: every message on one of them, resumed where it broke off, and only that one."""

import time

import pytest
import speak
import wire
from servers import eventually
from speak import Session, message, refused

PROGRESS = {"name": "test_tool_with_progress", "arguments": {}, "_meta": {"progressToken": "t"}}
CHANGED = "notifications/tools/list_changed"


def change_tools(server):
    speak.call_modern(server, "test_trigger_tool_change", {})


def read_until_quiet(stream, seconds=0.5):
    """The messages that come until none does for so long."""
    found = []
    try:
        while True:
            found.append(stream.message(within=seconds))
    except (TimeoutError, wire.Gone):
        return found


# ── the GET stream ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("accept", ["application/json", "text/html"])
def test_who_takes_no_stream_gets_406(server, accept):
    with Session(server) as session:
        connection, head = session.get(Accept=accept)
        with connection:
            head.body = connection.body()
            refused(head, 406)


def test_a_get_stream_says_what_it_is(server):
    with Session(server) as session:
        connection, head = session.get()
        with connection:
            assert (head.status, head.type, head.header("x-accel-buffering")) == (200, "text/event-stream", "no")


def test_a_change_comes_exactly_once_with_two_streams_open(server):
    # "The server MUST send each of its JSON-RPC messages on only one of the connected streams"
    with Session(server) as session, session.stream() as one, session.stream() as other:
        for _ in range(3):
            change_tools(server)
            found = eventually(lambda: read_until_quiet(one, 0.3) + read_until_quiet(other, 0.3))
            assert [it["method"] for it in found] == [CHANGED]


def test_each_session_is_told_of_a_change(server):
    with Session(server) as one, Session(server) as other, one.stream() as first, other.stream() as second:
        change_tools(server)
        for stream in (first, second):
            assert stream.message(within=3)["method"] == CHANGED


def test_a_closed_stream_gives_way_to_the_next(server):
    with Session(server) as session:
        first = session.stream()
        second = session.stream()
        before = server.sockets_at_rest()
        first.close()
        with second:
            assert eventually(lambda: server.sockets() < before)
            change_tools(server)
            assert second.message(within=3)["method"] == CHANGED


def test_no_response_comes_on_the_get_stream(server):
    # "The server MUST NOT send a JSON-RPC response on the stream unless resuming"
    with Session(server) as session, session.stream() as stream:
        session.ask("tools/list")
        answer = session.post(message("tools/call", PROGRESS))
        assert len(speak.messages_of(answer)) == 4
        assert read_until_quiet(stream, 0.4) == []


def test_updates_of_a_resource_come_after_subscribing_and_not_after_unsubscribing(server):
    uri = "test://watched-resource"
    with Session(server) as session, session.stream() as stream, Session(server) as other, other.stream() as quiet:
        touch = {"name": "test_touch_resource", "arguments": {"uri": uri}}
        speak.ask_modern(server, "tools/call", touch)
        assert read_until_quiet(stream, 0.3) == []
        assert session.ask("resources/subscribe", {"uri": uri})["result"] == {}
        speak.ask_modern(server, "tools/call", touch)
        found = read_until_quiet(stream)
        assert [(it["method"], it["params"]["uri"]) for it in found] == [("notifications/resources/updated", uri)]
        speak.ask_modern(server, "tools/call", {**touch, "arguments": {"uri": uri + "-other"}})
        assert session.ask("resources/unsubscribe", {"uri": uri})["result"] == {}
        speak.ask_modern(server, "tools/call", touch)
        assert read_until_quiet(stream, 0.3) == []
        assert read_until_quiet(quiet, 0.1) == []


def test_a_question_comes_on_one_stream_and_its_answer_is_taken(server):
    with Session(server) as session, session.stream() as stream:
        params = {"name": "test_elicitation", "arguments": {"message": "Who?"}}
        connection, head = session.start("tools/call", params, id="asking")
        with connection:
            assert head.type == "text/event-stream"
            question = connection.message()
            assert question["method"] == "elicitation/create" and question["params"]["message"] == "Who?"
            assert read_until_quiet(stream, 0.2) == []
            content = {"username": "ann", "email": "ann@example.com"}
            answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": content}}
            posted = session.post(answer)
            assert (posted.status, posted.body) == (202, b"")
            done = connection.message()
            assert done["id"] == "asking" and "ann@example.com" in speak.text_of(done)
            # A second answer answers nothing any more.
            assert session.post(answer).status == 202
            assert connection.event() is None


def test_a_question_to_who_takes_no_stream_there_comes_on_the_get_stream(server):
    with Session(server) as session, session.stream() as stream, server.connect() as connection:
        params = {"name": "test_elicitation", "arguments": {"message": "Who?"}}
        asked = message("tools/call", params, id="asking")
        session.send(asked, connection=connection, headers={"Accept": "application/json"})
        question = stream.message(within=3)
        assert question["method"] == "elicitation/create"
        answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}}
        assert session.post(answer).status == 202
        assert "decline" in speak.text_of(connection.response().json())


def test_resumed_streams_count_and_calls_do_not(start):
    server = start(max_streams=2)
    with Session(server) as session:
        broken = []
        before = server.sockets_at_rest()
        for _ in range(3):
            with session.stream() as stream:
                change_tools(server)
                event = stream.event()
                while not event.data:
                    event = stream.event()
                broken.append(event.id)
            assert eventually(lambda: server.sockets() <= before)
        calls = [server.connect() for _ in range(3)]
        for connection in calls:
            session.send(message("tools/call", {"name": "test_slow", "arguments": {"ms": 500}}), connection=connection)
        opened = [session.get(event) for event in broken]
        assert sorted(head.status for _, head in opened) == [200, 200, 503]
        for connection in calls:
            assert speak.text_of(speak.reply(connection.response())) == "Took 500 ms"
        for connection, _ in opened:
            connection.close()


# ── resuming ────────────────────────────────────────────────────────────────────────────────────────


def ids_of(events):
    return [event.id for event in events if event.id]


def test_event_ids_are_unique_in_a_session(server):
    # "the ID MUST be globally unique across all streams within that session"
    with Session(server) as session, session.stream() as stream:
        found = []
        for _ in range(3):
            connection, _ = session.start("tools/call", PROGRESS)
            with connection:
                found += ids_of(connection.events())
            change_tools(server)
            event = stream.event()
            while not event.data:
                found += ids_of([event])
                event = stream.event()
            found += ids_of([event])
        assert len(found) >= 3 * 5 and len(found) == len(set(found)), found


def test_a_broken_stream_is_resumed_where_it_broke_off_and_nothing_else_comes(server):
    # "The server MUST NOT replay messages that would have been delivered on a different stream."
    with Session(server) as session:
        connection, _ = session.start("tools/call", PROGRESS, id="mine")
        other, _ = session.start("tools/call", PROGRESS, id="other")
        with other:
            event = connection.event()
            while not event.data:
                event = connection.event()
            assert event.json()["params"]["progress"] == 0
            connection.abort()
            other.events()
        change_tools(server)
        time.sleep(0.2)
        for _ in range(2):  # what was replayed once can be replayed again
            with session.stream(event.id) as resumed:
                messages = resumed.messages()
            assert [it["params"]["progress"] for it in messages[:-1]] == [50, 100]
            assert messages[-1]["id"] == "mine" and speak.text_of(messages[-1])


def test_a_stream_is_resumed_while_its_call_still_runs(server):
    with Session(server) as session:
        connection, _ = session.start("tools/call", {**PROGRESS}, id="going")
        event = connection.event()
        assert event.id and event.data == ""
        connection.abort()
        with session.stream(event.id) as resumed:
            messages = resumed.messages()
        assert [it["params"]["progress"] for it in messages[:-1]] == [0, 50, 100]
        assert messages[-1]["id"] == "going"


def test_nothing_is_left_after_the_last_event(server):
    with Session(server) as session:
        connection, _ = session.start("tools/call", PROGRESS)
        with connection:
            last = ids_of(connection.events())[-1]
        connection, head = session.get(last)
        with connection:
            assert head.status in (200, 204, 400)
            if head.status == 200:
                assert [event for event in connection.events() if event.data] == []


def test_a_handler_closes_its_stream_and_is_polled(server):
    # "If the server does close the connection prior to terminating the SSE stream, it SHOULD send ... retry"
    with Session(server) as session:
        connection, head = session.start("tools/call", {"name": "test_reconnection", "arguments": {}}, id="back")
        with connection:
            assert head.type == "text/event-stream"
            events = connection.events()
        assert [event for event in events if event.data] == []
        assert events[0].id and any(event.retry is not None for event in events)
        with session.stream(ids_of(events)[-1]) as resumed:
            assert speak.text_of(resumed.message(within=3)) == "Reconnection test completed"
            assert resumed.event() is None


def test_messages_of_a_broken_get_stream_are_replayed(server):
    with Session(server) as session:
        stream = session.stream()
        change_tools(server)
        event = stream.event()
        while not event.data:
            event = stream.event()
        stream.abort()
        time.sleep(0.2)
        change_tools(server)
        time.sleep(0.1)
        with session.stream(event.id) as resumed:
            assert [it["method"] for it in read_until_quiet(resumed)] == [CHANGED]


def test_an_event_id_of_another_session_is_worth_nothing(server):
    with Session(server) as one, Session(server) as other:
        connection, _ = one.start("tools/call", PROGRESS, id="secret")
        with connection:
            first = ids_of(connection.events())[0]
        connection, head = other.get(first)
        with connection:
            if head.status == 200:
                # The id may happen to be one of this session's own.
                assert read_until_quiet(connection, 0.3) == []
            else:
                head.body = connection.body()
                refused(head, 400)


def test_without_an_event_store_there_are_no_event_ids(start):
    server = start(event_store=False)
    with Session(server) as session:
        connection, _ = session.start("tools/call", PROGRESS)
        with connection:
            events = connection.events()
        assert ids_of(events) == []
        assert len([event for event in events if event.data]) == 4
