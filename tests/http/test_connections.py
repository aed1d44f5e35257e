"""Connections: slow peers, many peers, and no descriptors left."""

import contextlib
import os
import resource
import select
import time

import pytest
import speak
import wire
from servers import Server, eventually
from speak import request, serves_at_once

pytestmark = pytest.mark.native


# ── slow ones ───────────────────────────────────────────────────────────────────────────────────────


def dribble(server, data, every, patience):
    """Sends a byte at a time until the server has had enough; how long that took, None when it never had."""
    with server.connect() as slow:
        start = time.monotonic()
        for byte in data:
            try:
                slow.send(bytes([byte]))
            except OSError:
                return time.monotonic() - start
            if not slow.is_quiet(every):
                with slow.patience(patience):
                    if slow.ends(patience):
                        return time.monotonic() - start
            serves_at_once(server)
            if time.monotonic() - start > patience:
                return None
    return None


def test_a_head_that_comes_a_byte_at_a_time_holds_nobody_up_and_is_cut_off(brisk):
    took = dribble(brisk, request(brisk), 0.1, 6)
    assert took is not None and took < 4


def test_a_body_that_comes_a_byte_at_a_time_holds_nobody_up_and_is_cut_off(brisk):
    whole = request(brisk)
    at = whole.index(b"\r\n\r\n") + 4
    with brisk.connect() as slow:
        slow.send(whole[:at])
        began = time.monotonic()
        for byte in whole[at:]:
            try:
                slow.send(bytes([byte]))
            except OSError:
                break
            if not slow.is_quiet(0.2):
                break
            serves_at_once(brisk)
            assert time.monotonic() - began < 12, "a body that takes for ever is waited for"
        assert slow.ends(5)


def test_a_body_that_stops_coming_is_given_up(brisk):
    with brisk.connect() as slow:
        slow.send(request(brisk)[:-10])
        assert slow.ends(8)
    serves_at_once(brisk)


def send(connection, body):
    """Sends a body, of which a server that refuses it reads only what comes within a second."""
    with contextlib.suppress(OSError):
        connection.send(body)


def test_half_sent_bodies_hold_little_memory_and_leave_room_to_others(start):
    server = start()
    before = server.resident()
    whole = request(server, meta_more={"example.com/pad": "x" * (4_000_000)})
    open_ones = []
    try:
        for _ in range(150):  # 600 MB
            open_ones.append(server.connect())
            send(open_ones[-1], whole[:-10])
        assert server.resident() < before + (350 << 20)
        serves_at_once(server)

        def refused():
            return len(select.select([one.socket for one in open_ones], [], [], 0)[0])

        # The sockets take all of it before the server has read it.
        assert eventually(lambda: refused() >= 110, within=20), f"{refused()} of 150 are refused"
        # Bodies that arrived at the same moment may both have been refused and have left room for one.
        for _ in range(5):
            open_ones.append(server.connect())
            send(open_ones[-1], whole[:-10])
            if not open_ones[-1].is_quiet(2):
                break
        assert server.resident() < before + (350 << 20)
        with server.connect(source="127.0.0.2") as other:
            send(other, whole)
            assert other.response().status == 200
        with server.connect() as one_more:
            send(one_more, whole)
            answer = one_more.response()
            assert (answer.status, answer.header("retry-after")) == (503, "1")
    finally:
        for connection in open_ones:
            connection.close()

    def has_room():
        with server.connect() as again:
            send(again, whole)
            return again.response().status == 200

    assert eventually(has_room, within=10)


def test_a_reader_that_takes_a_byte_a_second_holds_nobody_up_and_is_cut_off(brisk):
    before = brisk.sockets_at_rest()
    with brisk.connect(receive_buffer=4096) as slow:
        slow.socket.settimeout(0.2)
        one = request(brisk)
        try:
            for _ in range(3000):  # some 30 MB of answers, which nobody fetches
                slow.send(one)
        except OSError:
            pass  # it no longer reads: as it should
        assert brisk.resident() < 400 << 20
        slow.socket.settimeout(5)
        for _ in range(4):
            slow.socket.recv(1)
            serves_at_once(brisk)
            time.sleep(1)
        assert eventually(lambda: brisk.sockets() <= before, within=10), "the reader is waited for"
    serves_at_once(brisk)


def test_1000_idle_connections_hold_nobody_up_and_are_ended(start):
    server = start(header_timeout=30.0, idle_timeout=30.0)
    before = server.sockets_at_rest()
    idle = []
    try:
        for number in range(1000):
            idle.append(server.connect())
            if number % 2:  # half of them have asked something before
                idle[-1].send(request(server))
                assert idle[-1].response().status == 200
        serves_at_once(server)
        assert server.sockets() >= before + 900
        assert eventually(lambda: server.sockets() <= before, within=60), "idle connections stay"
    finally:
        for connection in idle:
            connection.close()


def test_a_connection_at_work_is_not_idle(brisk):
    with brisk.connect() as connection:
        answer = speak.call_modern(brisk, "test_slow", {"ms": 2500}, connection=connection)
        assert speak.text_of(speak.reply(answer))
    with speak.listen(brisk, {"toolsListChanged": True}) as stream:
        assert stream.message()["method"] == "notifications/subscriptions/acknowledged"
        assert stream.no_message(2.5)
        speak.call_modern(brisk, "test_trigger_tool_change", {})
        assert stream.message()["method"] == "notifications/tools/list_changed"


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


def test_a_subscription_after_other_requests_on_its_connection_is_kept(server):
    with server.connect() as connection:
        for _ in range(2):
            assert speak.reply(speak.ask_modern(server, "tools/list", connection=connection))["result"]["tools"]
        speak.listen(server, {"toolsListChanged": True}, connection=connection)
        assert connection.message()["method"] == "notifications/subscriptions/acknowledged"
        speak.call_modern(server, "test_trigger_tool_change", {})
        assert connection.message()["method"] == "notifications/tools/list_changed"


def test_a_subscription_whose_body_waits_for_100_continue_is_kept(server):
    params = {"notifications": {"toolsListChanged": True}}
    whole = request(server, "subscriptions/listen", params, headers={"Expect": "100-continue"})
    at = whole.index(b"\r\n\r\n") + 4
    with server.connect() as connection:
        connection.send(whole[:at])
        assert connection.head(interim=True).status == 100
        connection.send(whole[at:])
        assert connection.head().status == 200
        assert connection.message()["method"] == "notifications/subscriptions/acknowledged"
        speak.call_modern(server, "test_trigger_tool_change", {})
        assert connection.message()["method"] == "notifications/tools/list_changed"


# ── many connections ────────────────────────────────────────────────────────────────────────────────


def test_connections_of_one_address_leave_room_to_others(kind):
    with Server(kind, files=256) as server:
        serves_at_once(server)
        connections = [server.connect() for _ in range(220)]
        first, last = connections[0], connections[-1]
        assert last.ends()
        assert speak.ask_modern(server, "tools/list", connection=first).status == 200
        with server.connect(source="127.0.0.2") as other:
            assert speak.ask_modern(server, "tools/list", connection=other).status == 200
        # A Rust program chooses where its events go.
        refusals = lambda: server.said().count("closing new connections of a client")  # noqa: E731
        if kind != "rust":
            assert eventually(lambda: refusals() == 1), server.said()
        assert refusals() == (kind != "rust")
        for connection in connections:
            connection.close()

        def has_room():
            try:
                return speak.ask_modern(server, "tools/list").status == 200
            except wire.Gone:
                return False

        assert eventually(has_room)


# ── no descriptors left ─────────────────────────────────────────────────────────────────────────────


def test_a_server_without_free_descriptors_logs_it_once_and_recovers(kind):
    with Server(kind) as server:
        # An asynchronous tool is answered once Python's event loop has all its descriptors.
        assert speak.reply(speak.call_modern(server, "test_slow", {"ms": 1}))["result"]
        pid = server.process.pid
        used = len(os.listdir(f"/proc/{pid}/fd"))
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (used + 8, used + 8))
        connections = [server.connect() for _ in range(40)]
        # A Rust program chooses where its events go.
        problems = lambda: server.said().count("connections can't be accepted at the moment")  # noqa: E731
        if kind != "rust":
            eventually(lambda: problems() == 1, within=5)
        time.sleep(0.5)
        assert problems() == (kind != "rust"), server.said()
        for connection in connections:
            connection.close()
        eventually(lambda: speak.ask_modern(server, "tools/list").status == 200, within=5)
