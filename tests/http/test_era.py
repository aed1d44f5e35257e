"""The era is decided for each request, before anything else, and errors are found in a fixed order."""

import pytest
import speak
from speak import LATEST_LEGACY, MODERN, PREFIX, ask_modern, refused

MISMATCH, CAPABILITY, VERSION, PARAMS, NO_METHOD = -32020, -32021, -32022, -32602, -32601


# ── both at once ────────────────────────────────────────────────────────────────────────────────────


def test_both_eras_take_turns_on_one_connection(server):
    with server.connect() as connection:
        session = speak.Session(server, connection=connection)
        for _ in range(3):
            modern = ask_modern(server, "server/discover", connection=connection)
            assert modern.header("mcp-session-id") is None
            assert MODERN in speak.reply(modern)["result"]["supportedVersions"]
            legacy = session.call("test_simple_text")
            assert "resultType" not in legacy["result"]
            assert (
                speak.reply(speak.call_modern(server, "test_simple_text", connection=connection))["result"][
                    "resultType"
                ]
                == "complete"
            )
        assert session.ask("ping")["result"] == {}


def test_two_sessions_and_modern_calls_on_one_connection_keep_apart(server):
    # "no reliance on earlier requests of a connection" [Statelessness]
    with server.connect() as connection:
        older = speak.Session(server, "2025-03-26", connection=connection)
        newer = speak.Session(server, LATEST_LEGACY, connection=connection)
        assert (older.version, newer.version) == ("2025-03-26", LATEST_LEGACY)
        assert isinstance(older.post([speak.message("ping"), speak.message("ping")]).json(), list)
        refused(newer.post([speak.message("ping")]), 400, -32600)


def test_a_modern_request_needs_no_earlier_one(server):
    assert speak.text_of(speak.reply(speak.call_modern(server, "test_simple_text")))


def test_mcp_method_alone_does_not_make_a_request_modern(server):
    params = {"protocolVersion": LATEST_LEGACY, "capabilities": {}, "clientInfo": speak.CLIENT}
    for headers in ({"Mcp-Method": "initialize", "MCP-Protocol-Version": LATEST_LEGACY}, {"Mcp-Method": "initialize"}):
        with server.connect() as connection:
            speak.post(connection, server.path, speak.message("initialize", params), headers)
            answer = connection.response()
            assert speak.reply(answer)["result"]["protocolVersion"] == LATEST_LEGACY
            assert answer.header("mcp-session-id")


@pytest.mark.parametrize(
    "method",
    ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "unknown/method"],
)
def test_methods_that_the_modern_era_has_not_are_404(server, method):
    # "If the server does not implement the requested RPC method, it MUST respond with 404 Not Found and -32601"
    params = {
        "protocolVersion": LATEST_LEGACY,
        "capabilities": {},
        "clientInfo": speak.CLIENT,
        "level": "info",
        "uri": "test://a",
    }
    refused(ask_modern(server, method, params, id="m"), 404, NO_METHOD, id="m")


def test_modern_methods_without_meta_are_refused_as_such(server):
    # `server/discover` with the header, but without what `_meta` must say
    for missing in ("protocolVersion", "clientCapabilities"):
        meta = speak.meta()
        del meta[PREFIX + missing]
        refused(ask_modern(server, "server/discover", {"_meta": meta}, id=3), 400, PARAMS, id=3)
    refused(ask_modern(server, "server/discover", {"_meta": {}}, id=3), 400, PARAMS, id=3)
    meta = speak.meta()
    del meta[PREFIX + "clientInfo"]
    assert ask_modern(server, "server/discover", {"_meta": meta}).status == 200


def test_a_modern_request_has_no_session_and_no_event_id(server):
    # "An Mcp-Session-Id header on a request: ignore it, and do not mint or echo session IDs. Last-Event-ID: ignore it"
    answer = ask_modern(server, "tools/list", headers={"Mcp-Session-Id": "nobody", "Last-Event-ID": "5"})
    assert answer.status == 200
    assert answer.header("mcp-session-id") is None
    with speak.Session(server) as session:
        answer = ask_modern(server, "tools/list", headers={"Mcp-Session-Id": session.id})
        assert answer.header("mcp-session-id") is None
        assert speak.reply(answer)["result"]["resultType"] == "complete"


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_get_and_delete_with_a_modern_version_have_nothing_to_give(server, method):
    # 405 from a server that knows no sessions; one that does misses the session's id.
    with server.connect() as connection:
        answer = connection.ask(method, server.path, {"MCP-Protocol-Version": MODERN, "Accept": "text/event-stream"})
        assert answer.status in (400, 405)
        refused(answer, answer.status)


# ── the order of checks: the first failure is reported ───────────────────────────────────────────────


def test_parsing_comes_before_the_era(server):
    with server.connect() as connection:
        speak.post(connection, server.path, b"{", {"MCP-Protocol-Version": "v999.0.0"})
        refused(connection.response(), 400, -32700)


def test_required_meta_comes_before_headers(server):
    meta = speak.meta()
    del meta[PREFIX + "clientCapabilities"]
    refused(ask_modern(server, "tools/list", {"_meta": meta}, headers={"Mcp-Method": "prompts/list"}), 400, PARAMS)


def test_a_mismatch_comes_before_version_support(server):
    meta = speak.meta("v999.0.0")
    answer = ask_modern(server, "server/discover", {"_meta": meta}, headers={"MCP-Protocol-Version": MODERN}, id=5)
    refused(answer, 400, MISMATCH, id=5)
    answer = ask_modern(server, "server/discover", headers={"MCP-Protocol-Version": "v999.0.0"}, id=5)
    refused(answer, 400, MISMATCH, id=5)


@pytest.mark.parametrize("version", ["v999.0.0", "2027-01-01", "1900-01-01", ""])
def test_an_unsupported_version_is_told_what_is_supported(server, version):
    answer = ask_modern(server, "server/discover", version=version, id=6)
    if not version:
        assert answer.status == 400
        return
    error = refused(answer, 400, VERSION, id=6)
    assert error["data"]["requested"] == version
    known = speak.reply(ask_modern(server, "server/discover"))["result"]["supportedVersions"]
    assert error["data"]["supported"] and set(error["data"]["supported"]) <= set(known)


def test_version_support_comes_before_the_method(server):
    refused(ask_modern(server, "unknown/method", version="v999.0.0"), 400, VERSION)


def test_the_method_comes_before_the_name(server):
    refused(ask_modern(server, "unknown/method", {"name": "a"}, headers={"Mcp-Name": "b"}), 404, NO_METHOD)


def test_the_name_comes_before_the_capability(server):
    for name in ("wrong", None):
        answer = speak.call_modern(server, "test_missing_capability", capabilities={}, headers={"Mcp-Name": name})
        refused(answer, 400, MISMATCH)


def test_a_capability_that_a_handler_misses_is_still_400_in_json(server):
    answer = speak.call_modern(server, "test_missing_capability", {}, capabilities={}, id="c")
    assert refused(answer, 400, CAPABILITY, id="c")["data"]["requiredCapabilities"] == {"sampling": {}}


def test_a_missing_version_header_is_a_mismatch(server):
    # "A required standard header (MCP-Protocol-Version, Mcp-Method, Mcp-Name) is missing." [Server Validation]
    refused(ask_modern(server, "tools/list", headers={"MCP-Protocol-Version": None}, id=8), 400, MISMATCH, id=8)


# ── legacy versions ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("version", speak.LEGACY)
def test_every_legacy_version_is_negotiated(server, version):
    with speak.Session(server, version) as session:
        assert session.version == version
        assert speak.text_of(session.call("test_simple_text"))
        assert session.ask("ping") == {"jsonrpc": "2.0", "id": session_last(session), "result": {}}


def session_last(session):
    """The id of the request that was made last."""
    return next(speak.numbers) - 1


@pytest.mark.parametrize("version", ["1.0", "2030-01-01", "", MODERN])
def test_another_version_is_countered_with_the_latest_legacy_one(server, version):
    # "Otherwise, the server MUST respond with another protocol version it supports. This SHOULD be the latest"
    with speak.Session(server, version) as session:
        assert session.version == LATEST_LEGACY


@pytest.mark.parametrize("version", ["bogus", "2025-11-26", "v999.0.0", "2025-11-25, 2025-11-25"])
def test_an_unsupported_version_header_in_a_session_is_400(server, version):
    # "If the server receives a request with an invalid or unsupported MCP-Protocol-Version, it MUST respond with 400"
    with speak.Session(server) as session:
        refused(session.post(speak.message("tools/list"), headers={"MCP-Protocol-Version": version}), 400)
        assert session.ask("ping")["result"] == {}


def test_a_session_needs_no_version_header(server):
    # 2025-06-18 introduced it; before it "the server SHOULD assume protocol version 2025-03-26" or what was negotiated
    for version in speak.LEGACY:
        with speak.Session(server, version) as session:
            answer = session.post(speak.message("tools/list"), headers={"MCP-Protocol-Version": None})
            assert speak.reply(answer)["result"]["tools"]


def test_a_legacy_wire_shows_nothing_modern(server):
    with speak.Session(server) as session:
        for method in ("tools/list", "resources/list", "prompts/list"):
            result = session.ask(method)["result"]
            assert not {"resultType", "ttlMs", "cacheScope"} & set(result)
        assert session.ask("logging/setLevel", {"level": "info"})["result"] == {}
        for method in ("server/discover", "subscriptions/listen"):  # modern by name, and then without its `_meta`
            assert session.ask(method, {"notifications": {}})["error"]["code"] in (-32601, -32602)


def test_the_log_level_is_kept_to(server):
    # "logging/setLevel filtering by level, -32602 for an invalid level"
    with speak.Session(server) as session:
        assert session.ask("logging/setLevel", {"level": "loud"})["error"]["code"] == PARAMS
        for level, count in (("error", 0), ("debug", 3)):
            assert session.ask("logging/setLevel", {"level": level})["result"] == {}
            answer = session.post(speak.message("tools/call", {"name": "test_tool_with_logging", "arguments": {}}))
            logs = [it for it in speak.messages_of(answer) if it.get("method") == "notifications/message"]
            assert len(logs) == count


def test_modern_logs_come_only_where_a_level_was_asked_for_and_from_that_level_on(server):
    # "Logging: level threshold when _meta.logLevel is set, delivery on that request's stream only (M)"
    for level, count in ((None, 0), ("error", 0), ("debug", 3)):
        more = {PREFIX + "logLevel": level} if level else {}
        answer = speak.call_modern(server, "test_tool_with_logging", {}, meta_more=more)
        logs = [it for it in speak.messages_of(answer) if it.get("method") == "notifications/message"]
        assert len(logs) == count
    answer = speak.call_modern(server, "test_tool_with_logging", {}, meta_more={PREFIX + "logLevel": "loud"})
    refused(answer, 400, PARAMS)
