"""`subscriptions/listen`: the modern era's stream of changes."""

import time

import pytest
import speak
from servers import eventually
from speak import PREFIX, call_modern, listen, refused

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
EVERYTHING = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}


def acknowledged(stream, id="listen-1"):
    first = stream.message(within=3)
    assert first["method"] == ACKNOWLEDGED
    assert first["params"]["_meta"][PREFIX + "subscriptionId"] == id
    return first["params"]["notifications"]


@pytest.mark.parametrize("id", ["listen-1", "", 7, 0, -1, 9007199254740993], ids=str)
def test_every_message_carries_the_id_of_the_request(server, id):
    # "The value is the JSON-RPC ID of the subscriptions/listen request."
    with listen(server, {"toolsListChanged": True}, id=id) as stream:
        assert acknowledged(stream, id) == {"toolsListChanged": True}
        call_modern(server, "test_trigger_tool_change", {})
        change = stream.message(within=3)
        assert change["method"] == "notifications/tools/list_changed"
        assert change["params"]["_meta"][PREFIX + "subscriptionId"] == id
        assert "id" not in change


def test_only_what_was_asked_for_comes(server):
    # "The server MUST NOT send notification types the client has not explicitly requested."
    with listen(server, {"promptsListChanged": True, "toolsListChanged": False}) as stream:
        assert acknowledged(stream) == {"promptsListChanged": True}
        call_modern(server, "test_trigger_tool_change", {})
        call_modern(server, "test_touch_resource", {"uri": "test://watched-resource"})
        call_modern(server, "test_trigger_prompt_change", {})
        assert stream.message(within=3)["method"] == "notifications/prompts/list_changed"
        assert stream.no_message(0.3)


def test_a_resources_updates_come_for_the_uris_asked_for(server):
    one, other = "test://watched-resource", "test://static-text"
    with listen(server, {"resourceSubscriptions": [one]}) as stream:
        assert acknowledged(stream) == {"resourceSubscriptions": [one]}
        for uri in (other, one):
            call_modern(server, "test_touch_resource", {"uri": uri})
        update = stream.message(within=3)
        assert (update["method"], update["params"]["uri"]) == ("notifications/resources/updated", one)
        assert stream.no_message(0.2)


def test_types_that_nobody_knows_are_left_out_of_the_acknowledgement(server):
    # "Notification types the server does not support are omitted."
    with listen(server, {**EVERYTHING, "moonPhaseChanged": True}) as stream:
        agreed = acknowledged(stream)
        assert "moonPhaseChanged" not in agreed
        assert agreed["toolsListChanged"] and agreed["promptsListChanged"]


def test_listening_for_nothing_is_acknowledged(server):
    with listen(server, {}) as stream:
        assert acknowledged(stream) == {}
        call_modern(server, "test_trigger_tool_change", {})
        assert stream.no_message(0.3)


def test_several_subscriptions_keep_apart(server):
    # "A client MAY have multiple active subscriptions concurrently"
    with (
        listen(server, {"toolsListChanged": True}, id="a") as tools,
        listen(server, {"promptsListChanged": True}, id="b") as prompts,
        listen(server, EVERYTHING, id="a") as both,  # ids are unique by stream, not by server
    ):
        for stream, id in ((tools, "a"), (prompts, "b"), (both, "a")):
            acknowledged(stream, id)
        call_modern(server, "test_trigger_tool_change", {})
        call_modern(server, "test_trigger_prompt_change", {})
        told = [stream.message(within=3) for stream in (tools, prompts, both, both)]
        ids = [it["params"]["_meta"][PREFIX + "subscriptionId"] for it in told]
        assert ids == ["a", "b", "a", "a"]
        methods = [it["method"] for it in told]
        assert methods[:2] == ["notifications/tools/list_changed", "notifications/prompts/list_changed"]
        assert sorted(methods[2:]) == ["notifications/prompts/list_changed", "notifications/tools/list_changed"]
        assert tools.no_message(0.2) and prompts.no_message(0.1)


def test_what_belongs_to_a_request_never_comes_on_a_listen_stream(server):
    # "Request-scoped notifications like notifications/progress ... are not delivered on the listen stream"
    with listen(server, EVERYTHING) as stream:
        acknowledged(stream)
        answer = call_modern(server, "test_tool_with_progress", {}, meta_more={"progressToken": 1})
        assert len(speak.messages_of(answer)) == 4
        call_modern(server, "test_tool_with_logging", {}, meta_more={PREFIX + "logLevel": "debug"})
        assert stream.no_message(0.3)


@pytest.mark.parametrize(
    "wanted", [7, [], "tools", {"toolsListChanged": "yes"}, {"resourceSubscriptions": "a"}], ids=str
)
def test_a_filter_of_the_wrong_shape_is_32602(server, wanted):
    refused(speak.ask_modern(server, "subscriptions/listen", {"notifications": wanted}), 400, -32602)


def test_lists_do_not_vary_by_who_listens(server):
    # "lists MUST NOT vary per connection or as side effect" [Statelessness]
    before = [it["name"] for it in speak.reply(speak.ask_modern(server, "tools/list"))["result"]["tools"]]
    with listen(server, EVERYTHING) as stream:
        acknowledged(stream)
        after = [it["name"] for it in speak.reply(speak.ask_modern(server, "tools/list"))["result"]["tools"]]
    assert before == after


def test_streams_that_are_left_are_let_go(server):
    before = server.sockets_at_rest()
    streams = [listen(server, EVERYTHING, id=n) for n in range(50)]
    for stream in streams:
        stream.abort()
    assert eventually(lambda: server.sockets() <= before + 2)
    time.sleep(0.1)
    assert call_modern(server, "test_trigger_tool_change", {}).status == 200


def test_who_does_not_read_is_told_that_its_subscription_ended(server):
    # Cancellation: "A server MUST send notifications/cancelled referencing a subscriptions/listen request ID when it
    # tears down that subscription stream". Long URIs, so that what sockets hold is soon full.
    uris = [f"test://{number}/{'x' * 60_000}" for number in range(50)]
    with server.connect(receive_buffer=4096) as slow:
        listen(server, {"resourceSubscriptions": uris}, id="slow", connection=slow)
        acknowledged(slow, "slow")
        with server.connect() as brisk:
            for _ in range(8):
                for uri in uris:
                    # A notifier of changes never waits for listeners.
                    text = call_modern(server, "test_touch_resource", {"uri": uri}, connection=brisk).json()
                    assert "error" not in text, text
        told = list(slow.messages())
    assert len(told) < 8 * len(uris), "not all of it was kept"
    last = told.pop()
    assert last["method"] == "notifications/cancelled", last["method"]
    assert last["params"]["requestId"] == "slow"
    assert last["params"]["_meta"][PREFIX + "subscriptionId"] == "slow"
    assert "unread" in last["params"]["reason"]
    assert {it["method"] for it in told} == {"notifications/resources/updated"}
