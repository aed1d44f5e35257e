"""SIGTERM and Ctrl-C: nothing new is taken, what is in flight is answered, streams end properly, the exit is clean."""

import signal

import pytest
import servers
import speak
from ports import reserve_port
from servers import eventually
from speak import PREFIX, Session, message

SIGNALS = pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
IN_FLIGHT = 50


def send_calls(server, ms, count=IN_FLIGHT, tool="test_slow"):
    """Sends calls of both eras, each on a connection of its own; returns the connections."""
    call = {"name": tool, "arguments": {"ms": ms}}
    session = Session(server)
    connections = []
    for number in range(count):
        connections.append(connection := server.connect())
        if number % 2:
            session.send(message("tools/call", call, id=number), connection=connection)
        else:
            speak.send_modern(connection, server, "tools/call", call, id=number)
    session.connection.close()
    return connections


def calls_in_flight(server, ms, count=IN_FLIGHT):
    """Returns connections whose calls have started."""
    connections = send_calls(server, ms, count)
    assert eventually(lambda: speak.started_so_far(server) == count)
    return connections


def are_answered(connections, ms):
    for number, connection in enumerate(connections):
        with connection:
            said = speak.reply(connection.response())
            assert (said["id"], speak.text_of(said)) == (number, f"Took {ms} ms")


def refuses_connections(server):
    """Returns whether a new connection is refused, or closed at once."""
    try:
        with server.connect(timeout=1) as connection:
            return connection.ends(1)
    except OSError:
        return True


def ended_well(server):
    assert server.wait(60) == 0, server.said()
    assert server.surprises() == [], server.said()


@SIGNALS
def test_calls_are_answered_and_streams_end(start, number):
    # "it SHOULD respond to the original subscriptions/listen request with a completion result" [Graceful Closure]
    # Idle connections do not hold the end up: it comes long before the grace is over.
    server = start(shutdown_grace=600.0)
    connections = calls_in_flight(server, 1000)
    with (
        Session(server) as session,
        session.stream() as get,
        speak.listen(server, {"toolsListChanged": True}, id="l") as stream,
        server.connect(),  # idle
    ):
        assert stream.message()["method"] == "notifications/subscriptions/acknowledged"
        server.signal(number)
        if server.kind in servers.NATIVE:
            # Hosts decide themselves when to close their socket.
            assert eventually(lambda: refuses_connections(server))
        are_answered(connections, 1000)
        (last,) = stream.messages()
        assert (last["id"], last["result"]["resultType"]) == ("l", "complete")
        assert last["result"]["_meta"][PREFIX + "subscriptionId"] == "l"
        assert get.messages() == []
    ended_well(server)


@pytest.mark.only("rust")
def test_calls_that_outlast_the_grace_are_cut_off(start):
    server = start(shutdown_grace=0.5)
    connections = calls_in_flight(server, 600_000, count=4)
    server.signal(signal.SIGTERM)
    ended_well(server)
    for connection in connections:
        assert connection.ends()
        connection.close()


@pytest.mark.only("rust")
def test_a_second_signal_does_not_wait(start):
    server = start(shutdown_grace=600.0)
    connections = calls_in_flight(server, 600_000, count=2)
    server.signal(signal.SIGINT)
    assert eventually(lambda: refuses_connections(server))
    server.signal(signal.SIGINT)
    server.wait(60)
    assert server.surprises() == [], server.said()
    for connection in connections:
        connection.close()


# ── the drain ───────────────────────────────────────────────────────────────────────────────────────


def readiness(server):
    with server.connect() as connection:
        return connection.ask("GET", "/readyz").status


@pytest.mark.only(*servers.NATIVE)
def test_a_server_that_drains_goes_on_until_a_second_signal(start):
    server = start(drain_delay=600.0, ready="/readyz")
    assert readiness(server) == 200
    with server.connect() as kept, server.connect() as idle:
        answer = speak.ask_modern(server, "tools/list", connection=kept)
        assert (answer.status, answer.header("connection")) == (200, None)
        server.signal(signal.SIGTERM)
        assert eventually(lambda: readiness(server) == 503)
        with server.connect() as fresh:
            for connection in (kept, fresh):
                answer = speak.call_modern(server, "test_simple_text", connection=connection)
                assert (answer.status, answer.header("connection")) == (200, "close")
                assert connection.ends()
        assert idle.is_quiet(0), "closed before the drain is over"
        server.signal(signal.SIGTERM)
        server.wait(60)
        assert idle.ends()
    assert server.surprises() == [], server.said()


@pytest.mark.only(*servers.NATIVE)
def test_the_shutdown_follows_the_drain(start):
    server = start(drain_delay=0.5, shutdown_grace=600.0)
    connections = calls_in_flight(server, 1000, count=4)
    with server.connect() as idle:
        server.signal(signal.SIGTERM)
        assert idle.ends()
        assert eventually(lambda: refuses_connections(server))
        are_answered(connections, 1000)
    ended_well(server)


# ── `app.run(url)`, which takes the signals itself ──────────────────────────────────────────────────

RUNNING = servers.ROOT / "tests/http/running"
PROGRAMS = {
    "python": [str(servers.ROOT / ".venv/bin/python"), str(RUNNING / "server.py")],
    "node": ["node", str(RUNNING / "server.mjs")],
}


@SIGNALS
@pytest.mark.parametrize("language, tool", [("python", "slow"), ("python", "slow_thread"), ("node", "slow")])
def test_run_answers_what_is_in_flight_and_returns(language, tool, number):
    url = f"http://127.0.0.1:{reserve_port()}/mcp"
    with servers.Server(language, command=[*PROGRAMS[language], url]) as server:
        # A thread sleeps for one call at a time.
        count, ms = (4, 300) if tool == "slow_thread" else (IN_FLIGHT, 1000)
        connections = send_calls(server, ms, count, tool)
        assert eventually(lambda: server.said().count("started") >= count), server.said()
        server.signal(number)
        are_answered(connections, ms)
        ended_well(server)
