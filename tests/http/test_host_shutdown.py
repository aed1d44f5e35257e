"""SIGTERM and Ctrl-C with streams open and calls in flight: hosts of mounts end as properly as servers of their own."""

import signal

import pytest
import speak

IN_FLIGHT = 20


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda it: it.name)
def test_calls_are_answered_and_streams_that_only_listen_end(start, era, number):
    server = start(keep_alive=0.3)
    session = speak.Session(server) if era == "legacy" else None
    calls = []
    for id in range(IN_FLIGHT):
        call = {"name": "test_slow", "arguments": {"ms": 1200}}
        calls.append(connection := server.connect())
        if session:
            session.send(speak.message("tools/call", call, id=id), connection=connection)
        else:
            speak.send_modern(connection, server, "tools/call", call, id=id)
    for connection in calls:  # a comment has come, so that all of them run
        assert connection.head().type == "text/event-stream"
    standing = speak.listen(server, {"toolsListChanged": True}, id="l") if session is None else session.stream()
    if session is None:
        assert standing.message()["method"] == "notifications/subscriptions/acknowledged"
    server.signal(number)
    for connection in calls:
        with connection:
            assert speak.text_of(connection.messages()[-1]) == "Took 1200 ms"
    with standing:
        last = standing.messages()
    assert [it["result"]["resultType"] for it in last] == (["complete"] if session is None else [])
    if session:
        session.connection.close()
    assert server.wait(8) == 0, server.said()
    assert server.surprises() == [], server.said()
