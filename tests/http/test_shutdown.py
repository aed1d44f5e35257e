"""SIGTERM and Ctrl-C: nothing new is taken, what is in flight is answered, streams end properly, the exit is clean."""

import signal
import time

import pytest
import servers
import speak
from ports import reserve_port
from speak import PREFIX

pytestmark = pytest.mark.native
SIGNALS = [signal.SIGTERM, signal.SIGINT]
IN_FLIGHT = 50


def send_calls(server, era, ms, count=IN_FLIGHT, tool="test_slow"):
    call = {"name": tool, "arguments": {"ms": ms}}
    session = speak.Session(server) if era == "legacy" else None
    connections = []
    for number in range(count):
        connection = server.connect()
        if session:
            session.send(speak.message("tools/call", call, id=f"c{number}"), connection=connection)
        else:
            speak.send_modern(connection, server, "tools/call", call, id=f"c{number}")
        connections.append(connection)
    return connections


def calls_in_flight(server, era, ms, count=IN_FLIGHT):
    """Returns connections whose calls have started, as the keep-alive of their streams tells."""
    connections = send_calls(server, era, ms, count)
    for connection in connections:
        assert connection.head().type == "text/event-stream"
    return connections


def refuses_connections(server, within):
    until = time.monotonic() + within
    while time.monotonic() < until:
        try:
            with server.connect(timeout=0.5) as connection:
                if connection.ends(0.2):
                    return True
        except OSError:
            return True
        time.sleep(0.02)
    return False


def ended_well(server, within):
    assert server.wait(within) == 0, server.said()
    assert server.surprises() == [], server.said()


@pytest.mark.parametrize("number", SIGNALS, ids=lambda it: it.name)
def test_50_calls_in_flight_are_answered(start, era, number):
    server = start(keep_alive=0.3)
    connections = calls_in_flight(server, era, 5000)
    server.signal(number)
    assert refuses_connections(server, within=4)
    for number, connection in enumerate(connections):
        with connection:
            said = connection.messages()[-1]
            assert (said["id"], speak.text_of(said)) == (f"c{number}", "Took 5000 ms")
    ended_well(server, 20)


@pytest.mark.parametrize("number", SIGNALS, ids=lambda it: it.name)
def test_listen_streams_end_with_their_result_and_get_streams_end(start, number):
    # "it SHOULD respond to the original subscriptions/listen request with a completion result" [Graceful Closure]
    server = start()
    with speak.listen(server, {"toolsListChanged": True}, id="l") as stream, speak.Session(server) as session:
        assert stream.message()["method"] == "notifications/subscriptions/acknowledged"
        with session.stream() as get:
            server.signal(number)
            (last,) = stream.messages()
            assert last["id"] == "l"
            assert last["result"]["resultType"] == "complete"
            assert last["result"]["_meta"][PREFIX + "subscriptionId"] == "l"
            assert get.ends(5)
    ended_well(server, 20)


def test_idle_connections_and_sessions_do_not_hold_the_end_up(start):
    server = start()
    with server.connect(), speak.Session(server) as session:
        assert session.ask("ping")["result"] == {}
        began = time.monotonic()
        server.signal(signal.SIGTERM)
        ended_well(server, 20)
        assert time.monotonic() - began < 5


def test_calls_that_outlast_the_grace_are_cut_off(start, era):
    server = start(shutdown_grace=0.5, keep_alive=0.3)
    connections = calls_in_flight(server, era, 60_000, count=5)
    began = time.monotonic()
    server.signal(signal.SIGTERM)
    ended_well(server, 20)
    assert 0.4 < time.monotonic() - began < 8
    for connection in connections:
        assert connection.ends(2)
        connection.close()


def test_a_second_signal_does_not_wait(start):
    server = start(shutdown_grace=30.0, keep_alive=0.3)
    connections = calls_in_flight(server, "modern", 60_000, count=1)
    server.signal(signal.SIGINT)
    assert refuses_connections(server, within=10)
    server.signal(signal.SIGINT)
    server.wait(20)
    assert server.surprises() == [], server.said()
    for connection in connections:
        connection.close()


# ── `app.run(url)`, which takes the signals itself ──────────────────────────────────────────────────

RUNNING = servers.ROOT / "tests/http/running"
PROGRAMS = {
    "python": [str(servers.ROOT / ".venv/bin/python"), str(RUNNING / "server.py")],
    "node": ["node", str(RUNNING / "server.mjs")],
}


@pytest.mark.parametrize("number", SIGNALS, ids=lambda it: it.name)
@pytest.mark.parametrize("language, tool", [("python", "slow"), ("python", "slow_thread"), ("node", "slow")])
def test_run_answers_what_is_in_flight_and_returns(language, tool, era, number):
    url = f"http://127.0.0.1:{reserve_port()}/mcp"
    with servers.Server(language, command=[*PROGRAMS[language], url]) as server:
        # A thread sleeps for one call at a time.
        count, ms = (4, 300) if tool == "slow_thread" else (IN_FLIGHT, 1000)
        connections = send_calls(server, era, ms, count, tool)
        assert servers.eventually(lambda: server.said().count("started") >= count), server.said()
        server.signal(number)
        for connection in connections:
            with connection:
                assert speak.text_of(speak.reply(connection.response())) == f"Took {ms} ms"
        ended_well(server, 20)
