"""Connections: slow peers, many peers, and no descriptors left.

The servers of all languages share this code, so one of them is tested, except for what it logs in each.
"""

import contextlib
import os
import resource
import select

import pytest
import speak
import wire
from servers import NATIVE, Server, eventually, is_logged
from speak import request, serves

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
CHANGED = "notifications/tools/list_changed"


# ── slow ones ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.only("rust")
def test_half_a_head_half_a_body_and_unread_answers_hold_nobody_up(start):
    server = start(header_timeout=600.0, idle_timeout=600.0, body_timeout=600.0)
    whole = request(server)
    with server.connect() as head, server.connect() as body, server.connect(receive_buffer=4096) as deaf:
        head.send(whole[:100])
        body.send(whole[:-10])
        deaf.socket.settimeout(0.2)
        with contextlib.suppress(OSError):  # it no longer reads: as it should
            for _ in range(3000):  # some 30 MB of answers, which nobody fetches
                deaf.send(whole)
        assert server.resident() < 400 << 20
        deaf.socket.settimeout(wire.TIMEOUT)
        for _ in range(4):
            deaf.socket.recv(1)
            serves(server)
        head.send(whole[100:])
        body.send(whole[-10:])
        assert head.response().status == body.response().status == 200


def dribble(connection, data):
    """Sends ten bytes a second until the server ends the connection; returns whether that was before the last byte."""
    for byte in data:
        try:
            connection.send(bytes([byte]))
        except OSError:
            return True
        if wire.is_ready(connection.socket, select.POLLIN, 0.1):
            return connection.ends()
    return False


@pytest.mark.only("rust")
@pytest.mark.parametrize("part", ["head", "body"])
def test_what_comes_a_byte_at_a_time_is_cut_off(brisk, part):
    whole = request(brisk, meta_more={"example.com/pad": "x" * 200})
    start = 0 if part == "head" else whole.index(b"\r\n\r\n") + 4
    with brisk.connect() as slow:
        slow.send(whole[:start])
        assert dribble(slow, whole[start:])
    serves(brisk)


@pytest.mark.only("rust")
def test_whoever_stops_is_cut_off(brisk):
    whole = request(brisk)
    connections = []
    for data in (whole, whole[:-10], whole[:100], b""):
        connections.append(brisk.connect())
        connections[-1].send(data)
    assert connections[0].response().status == 200
    with brisk.connect(receive_buffer=4096) as deaf:
        deaf.socket.settimeout(0.2)
        with contextlib.suppress(OSError):
            for _ in range(3000):
                deaf.send(whole)
        for connection in connections:
            with connection:
                assert connection.ends()
        assert brisk.has_no_connections(), "the reader is waited for"
    serves(brisk)


@pytest.mark.only("rust")
def test_a_connection_at_work_is_not_idle(brisk):
    with speak.listen(brisk, {"toolsListChanged": True}) as stream, brisk.connect() as connection:
        assert stream.message()["method"] == ACKNOWLEDGED
        headers = {"Accept": "application/json"}  # without comments
        answer = speak.call_modern(brisk, "test_slow", {"ms": 2000}, connection=connection, headers=headers)
        assert speak.text_of(speak.reply(answer))
        speak.call_modern(brisk, "test_trigger_tool_change", {})
        assert stream.message()["method"] == CHANGED


@pytest.mark.only("rust")
def test_half_sent_bodies_hold_little_memory_and_leave_room_to_others(start):
    server = start()
    before = server.resident()
    whole = request(server, meta_more={"example.com/pad": "x" * (4_000_000)})

    def send(connection, body):
        """Sends a body, of which a server that refuses it reads only what comes within a second."""
        with contextlib.suppress(OSError):
            connection.send(body)

    with contextlib.ExitStack() as stack:
        open_ones = []
        for _ in range(100):  # 400 MB
            open_ones.append(stack.enter_context(server.connect()))
            send(open_ones[-1], whole[:-10])
        assert server.resident() < before + (350 << 20)
        serves(server)

        def refused():
            return len(select.select([one.socket for one in open_ones], [], [], 0)[0])

        # The sockets take all of it before the server has read it.
        assert eventually(lambda: refused() >= 60), f"{refused()} of 100 are refused"

        def is_full():
            # Bodies that arrived at the same moment may both have been refused and have left room for one.
            with server.connect() as one_more:
                send(one_more, whole)
                answer = one_more.response()
            if answer.status == 503:
                assert answer.header("retry-after") == "1"
                return True
            open_ones.append(stack.enter_context(server.connect()))
            send(open_ones[-1], whole[:-10])
            return False

        assert eventually(is_full)
        assert server.resident() < before + (350 << 20)
        with server.connect(source="127.0.0.2") as other:
            send(other, whole)
            assert other.response().status == 200

    def has_room():
        with server.connect() as again:
            send(again, whole)
            return again.response().status == 200

    assert eventually(has_room)


# ── subscriptions ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.only("rust")
def test_a_subscription_costs_at_most_18_kB(start):
    server = start()

    def open_streams(count):
        return [speak.listen(server, {"toolsListChanged": True}) for _ in range(count)]

    opened = open_streams(200)
    try:
        before = server.resident()
        opened += open_streams(1000)
        assert server.resident() < before + 1000 * 18_000
    finally:
        for stream in opened:
            stream.close()


@pytest.mark.only("rust")
def test_a_subscription_after_other_requests_on_its_connection_is_kept(server):
    with server.connect() as connection:
        for _ in range(2):
            assert speak.reply(speak.ask_modern(server, "tools/list", connection=connection))["result"]["tools"]
        speak.listen(server, {"toolsListChanged": True}, connection=connection)
        assert connection.message()["method"] == ACKNOWLEDGED
        speak.call_modern(server, "test_trigger_tool_change", {})
        assert connection.message()["method"] == CHANGED


@pytest.mark.only("rust")
def test_a_subscription_whose_body_waits_for_100_continue_is_kept(server):
    params = {"notifications": {"toolsListChanged": True}}
    whole = request(server, "subscriptions/listen", params, headers={"Expect": "100-continue"})
    at = whole.index(b"\r\n\r\n") + 4
    with server.connect() as connection:
        connection.send(whole[:at])
        assert connection.head(interim=True).status == 100
        connection.send(whole[at:])
        assert connection.head().status == 200
        assert connection.message()["method"] == ACKNOWLEDGED
        speak.call_modern(server, "test_trigger_tool_change", {})
        assert connection.message()["method"] == CHANGED


# ── many connections ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.only("rust")
def test_1000_idle_connections_hold_nobody_up(start):
    server = start(header_timeout=600.0, idle_timeout=600.0)
    with contextlib.ExitStack() as stack:
        for number in range(1000):
            connection = stack.enter_context(server.connect())
            if number % 2:  # half of them have asked something before
                connection.send(request(server))
                assert connection.response().status == 200
        serves(server)
        # The server may close the connection of the last request a moment after its client.
        assert eventually(lambda: server.connections() == 1000)
    assert server.has_no_connections()


@pytest.mark.only(*NATIVE)
def test_connections_of_one_address_leave_room_to_others(kind):
    with Server(kind, files=256, health="/healthz", ready="/readyz", metrics="/metrics") as server:
        serves(server)
        connections = [server.connect() for _ in range(220)]
        first, last = connections[0], connections[-1]
        assert last.ends()
        assert speak.ask_modern(server, "tools/list", connection=first).status == 200
        with server.connect(source="127.0.0.2") as other:
            assert speak.ask_modern(server, "tools/list", connection=other).status == 200
        for path in ("/healthz", "/readyz", "/metrics"):
            # A probe has a connection of its own, and the client still has those that it was given.
            with server.connect(source="127.0.0.3") as probe:
                assert probe.ask("GET", path, {"Host": "10.0.0.7"}).status == 200
            assert first.ask("GET", path, {"Host": "10.0.0.7"}).status == 200
        for connection in connections:
            connection.close()

        def has_room():
            try:
                return speak.ask_modern(server, "tools/list").status == 200
            except wire.Gone:
                return False

        assert eventually(has_room)
        assert eventually(lambda: is_logged(server, "closing new connections of a client"))


# ── no descriptors left ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.only(*NATIVE)
def test_a_server_without_free_descriptors_logs_it_once_and_recovers(kind):
    problem = "connections can't be accepted at the moment"
    with Server(kind) as server:
        # An asynchronous tool is answered once Python's event loop has all its descriptors.
        assert speak.reply(speak.call_modern(server, "test_slow", {"ms": 1}))["result"]
        assert server.has_no_connections()
        pid = server.process.pid
        used = len(os.listdir(f"/proc/{pid}/fd"))
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (used + 8, used + 8))
        connections = [server.connect() for _ in range(40)]
        assert eventually(lambda: server.connections() == 8)
        if kind != "rust":
            assert eventually(lambda: problem in server.said()), server.said()
        for number in range(3):
            connections[number].close()
            # The next one is accepted, and the one after it fails again.
            answer = speak.ask_modern(server, "tools/list", connection=connections[8 + number])
            assert answer.status == 200
        for connection in connections:
            connection.close()
        assert eventually(lambda: speak.ask_modern(server, "tools/list").status == 200)
        assert eventually(lambda: is_logged(server, problem))
