"""Notifications of servers of all three languages over stdio: to clients that do not read, and at the end."""

import json
import signal
from typing import Any

import pytest
from peer import SERVERS, Peer

from test_bad_input import MODERN, call, opened, request

pytestmark = [pytest.mark.io, pytest.mark.parametrize("server", SERVERS)]


def listen(id: Any) -> dict[str, Any]:
    return request(id, "subscriptions/listen", notifications={"toolsListChanged": True}, _meta=MODERN)


def parsed(lines: list[bytes]) -> list[Any]:
    return [json.loads(line) for line in lines]


def assert_ended(lines: list[Any], id: Any) -> None:
    assert [(line["id"], line["result"]["resultType"]) for line in lines] == [(id, "complete")]
    assert lines[0]["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == id


def test_a_subscription_ends_with_its_result_when_the_input_does(server: str) -> None:
    with Peer(server) as peer:
        assert peer.ask(listen("a"))["method"] == "notifications/subscriptions/acknowledged"
        assert_ended(parsed(peer.end()), "a")


def test_a_subscription_ends_with_its_result_when_the_server_is_told_to(server: str) -> None:
    with Peer(server) as peer:
        assert peer.ask(listen(7))["method"] == "notifications/subscriptions/acknowledged"
        peer.signal(signal.SIGTERM)
        assert_ended(parsed(peer.last()), 7)


def test_a_flood_of_log_messages_is_cut(server: str) -> None:
    with opened(server) as peer:
        calls = 3_000
        # The fixture's `say` logs once a call: all at once, so that the answers come while the bucket is empty.
        peer.send(*(call(id, "say", level="error", text="x") for id in range(1, calls + 1)))
        logged, answered, left_out = 0, 0, 0
        while answered < calls or logged + left_out < calls:
            message = peer.receive()
            if "id" in message:
                answered += 1
            elif message["params"].get("logger") == "fixture":
                logged += 1
            else:
                left_out += int(message["params"]["data"].split()[0])
        assert logged + left_out == calls and left_out > 0, (logged, left_out)
