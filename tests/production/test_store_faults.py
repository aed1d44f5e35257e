"""Servers whose store fails, or that are killed: calls go on, no event is lost, and what needs a store that is away is
refused within a deadline.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
import speak
import wire
from redis_server import Redis
from shelf_replicas import Replica, running

from eventually import eventually

FAULTS: dict[str, tuple[Callable[[Redis], None], Callable[[Redis], None]]] = {
    "stands still": (Redis.pause, Redis.go_on),
    "is away": (Redis.stop, Redis.start),
    "is full": (Redis.fill, Redis.empty),
}


class At:
    """A replica as `speak` takes a server."""

    path = "/mcp"

    def __init__(self, replica: Replica) -> None:
        self.port = replica.port

    def connect(self) -> wire.Connection:
        return wire.Connection(("127.0.0.1", self.port))


class Held:
    """A call whose handler reports progress, waits for a file, and reports progress again."""

    def __init__(self, session: speak.Session, name: str) -> None:
        self.connection = session.server.connect()
        call = {"name": "held", "arguments": {"name": name}, "_meta": {"progressToken": name}}
        session.send(speak.message("tools/call", call), connection=self.connection)
        assert self.connection.head().status == 200
        while not (event := self.connection.event()).data:
            pass
        self.first = event.id

    def rest(self) -> list[dict]:
        return list(self.connection.messages())


def resume(session: speak.Session, at: At, event: str) -> wire.Connection:
    connection = at.connect()
    headers = session.headers(Accept="text/event-stream", Last_Event_ID=event)
    connection.request("GET", at.path, headers)
    return connection


@pytest.mark.parametrize("fault", FAULTS)
def test_calls_go_on_and_what_needs_the_store_is_refused(fault: str, tmp_path: Path) -> None:
    fail, heal = FAULTS[fault]
    with Redis(tmp_path) as redis, running(2, tmp_path, store=redis.url) as replicas:
        one, two = map(At, replicas)
        with speak.Session(one) as session:
            held = Held(session, "first")
            fail(redis)
            with two.connect() as connection:
                session.send(
                    speak.message("tools/call", {"name": "echo", "arguments": {"text": "a"}}), connection=connection
                )
                assert speak.text_of(speak.reply(connection.response())) == "a"
            assert speak.text_of(speak.reply(speak.call_modern(two, "echo", {"text": "b"}))) == "b"
            if fault != "is full":
                with resume(session, two, held.first) as connection:
                    refused = connection.response()
                assert (refused.status, refused.header("retry-after")) == (503, "1"), refused
            assert session.ask("resources/subscribe", {"uri": "shelf://top"})["result"] == {}
            (tmp_path / "first").touch()
            told, result = held.rest()
            assert told["params"]["progress"] == 2 and speak.text_of(result) == "first"
            heal(redis)
            # The handler of this one does not wait.
            (tmp_path / "second").touch()
            eventually(lambda: can_be_resumed(session, two))


def can_be_resumed(session: speak.Session, at: At) -> bool:
    held = Held(session, "second")
    whole = held.rest()
    with resume(session, at, held.first) as connection:
        return connection.head().status == 200 and list(connection.messages()) == whole


def test_each_event_that_was_sent_can_be_resumed_after_although_its_process_was_killed_at_once(tmp_path: Path) -> None:
    with Redis(tmp_path) as redis, running(2, tmp_path, store=redis.url) as replicas:
        killed, other = replicas
        for _ in range(5):
            with speak.Session(At(other)) as session:
                connection = At(killed).connect()
                call = {"name": "held", "arguments": {"name": "never"}, "_meta": {"progressToken": 1}}
                session.send(speak.message("tools/call", call), connection=connection)
                assert connection.head().status == 200
                event = connection.event()
                killed.kill()
                with connection, resume(session, At(other), event.id) as resumed:
                    assert resumed.head().status == 200
            killed.start()
