"""Invalid requests are refused with a code and a status, show no internals, and harm no other client."""

import json

import pytest
import servers
import speak
from speak import LATEST_LEGACY, modern, refused

NESTED = 100_000


@pytest.fixture
def send(server, era):
    """Sends a body as it stands in either era, with the headers such a client sends; the response."""

    def send(body, headers=None):
        with server.connect() as connection:
            if era == "modern":
                given = modern("tools/list")[0]
            else:
                given = speak.Session(server, connection=connection).headers()
            given = {name: value for name, value in given.items() if name.lower() not in map(str.lower, headers or {})}
            speak.post(connection, server.path, body, {**given, **(headers or {})})
            return connection.response()

    yield send
    works(server)


def works(server):
    answer = speak.reply(speak.call_modern(server, "test_simple_text"))
    assert speak.text_of(answer) == "This is a simple text response for testing."


def listing(era):
    return modern("tools/list")[1] if era == "modern" else speak.message("tools/list")


# ── media types ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("type", ["text/plain", "application/jsonx", "application/x-www-form-urlencoded", "json", None])
def test_a_wrong_content_type_is_415(send, era, type):
    refused(send(listing(era), {"Content-Type": type}), 415)


@pytest.mark.parametrize(
    "type", ["application/json; charset=utf-8", "Application/JSON", 'application/json;charset="UTF-8"']
)
def test_a_right_content_type_however_spelled(send, era, type):
    assert speak.reply(send(listing(era), {"Content-Type": type}))["result"]["tools"]


# ── bodies ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"{",
        b'{"jsonrpc":"2.0"',
        b"nonsense",
        b'{"a":1}{"b":2}',
        b"\xff\xfe",
        b'{"jsonrpc":"2.0","id":"\xc3"}',
        b"\0",
    ],
    ids=["empty", "blank", "cut", "cut-later", "words", "two", "utf-16", "half a character", "nul"],
)
def test_a_body_that_is_no_json_is_400_with_32700(send, body):
    refused(send(body), 400, -32700)


@pytest.mark.parametrize("body", [b"1", b'"initialize"', b"null", b"true", b"{}", b'{"jsonrpc":"2.0"}', b'{"id":1}'])
def test_json_that_is_no_message_is_400_with_32600(send, body):
    refused(send(body), 400, -32600)


@pytest.mark.parametrize(
    "wrong",
    [{"jsonrpc": "1.0"}, {"jsonrpc": None}, {"id": None}, {"id": {"a": 1}}, {"id": [1]}, {"id": True}, {"method": 7}],
    ids=str,
)
def test_a_malformed_request_is_400_with_32600(send, era, wrong):
    # "IDs MUST be a string or integer, and MUST NOT be null" [Base protocol/Messages]
    refused(send({**listing(era), **wrong}), 400, -32600)


@pytest.mark.parametrize("params", [7, "x", None, [1]], ids=str)
def test_params_that_are_no_object_are_refused(send, era, params):
    answer = send({**listing(era), "params": params})
    assert answer.status == 400 or era == "legacy"
    assert speak.reply(answer)["error"]["code"] in (-32600, -32602)


@pytest.mark.parametrize("opening, closing", [("[", "]"), ('{"a":', "}")], ids=["arrays", "objects"])
@pytest.mark.parametrize("closed", [True, False], ids=["closed", "open"])
def test_100_000_nested_brackets(send, opening, closing, closed):
    answer = send((opening * NESTED + ("1" + closing * NESTED if closed else "")).encode())
    assert answer.status == 400
    assert answer.json()["error"]["code"] in (-32700, -32600)


def test_100_000_nested_brackets_among_a_tools_arguments(send, era):
    body = listing(era)
    body["method"], body["params"]["name"], body["params"]["arguments"] = (
        "tools/call",
        "test_simple_text",
        {"deep": "@"},
    )
    deep = json.dumps(body).replace('"@"', "[" * NESTED + "]" * NESTED).encode()
    headers = {"Mcp-Method": "tools/call", "Mcp-Name": "test_simple_text"} if era == "modern" else {}
    answer = send(deep, headers)
    assert answer.status in (200, 400)
    said = speak.reply(answer)
    assert "error" in said or said["result"]["isError"]


# ── sizes ───────────────────────────────────────────────────────────────────────────────────────────


def padded(era, size):
    """A tools/list of exactly that many bytes."""
    body = listing(era)
    body["params"].setdefault("_meta", {})["example.com/pad"] = ""
    body["params"]["_meta"]["example.com/pad"] = "x" * (size - len(json.dumps(body)))
    return body


def test_a_body_of_4_MiB_is_taken(send, era):
    assert speak.reply(send(padded(era, 4 << 20)))["result"]["tools"]


def test_a_body_of_one_byte_more_is_413_and_the_connection_is_usable_or_ends(server, era):
    with server.connect() as connection:
        headers = modern("tools/list")[0] if era == "modern" else speak.Session(server, connection=connection).headers()
        try:
            speak.post(connection, server.path, padded(era, (4 << 20) + 1), headers)
        except (ConnectionResetError, BrokenPipeError):
            pass  # the answer is there all the same
        answer = connection.response()
        assert "max_body" in refused(answer, 413) or "maxBody" in answer.body.decode()
        if answer.header("connection") == "close":
            assert connection.ends(5)
        else:
            assert speak.reply(speak.ask_modern(server, "tools/list", connection=connection))["result"]["tools"]
    works(server)


@pytest.mark.native
def test_a_body_that_only_claims_to_be_vast_is_413_at_once(server):
    with server.connect() as connection:
        headers = {"Content-Type": "application/json", "Accept": speak.BOTH, "Content-Length": "999999999999"}
        connection.request("POST", server.path, headers)
        refused(connection.response(), 413)
    works(server)


@pytest.mark.parametrize("leave", ["close", "abort"])
@pytest.mark.parametrize("framing", [{"Content-Length": "1000"}, {"Transfer-Encoding": "chunked"}], ids=str)
def test_who_leaves_amid_the_body_is_no_surprise(server, framing, leave):
    before = server.surprises()
    with server.connect() as connection:
        headers = {**modern("tools/list")[0], "Content-Type": "application/json", "Accept": speak.BOTH, **framing}
        connection.request("POST", server.path, headers)
        connection.send(b"5\r\n[1,2,\r\n")
        works(server)  # by then it was read
        getattr(connection, leave)()
    works(server)
    assert server.surprises() == before, server.said()


# ── methods and paths ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("method", ["PUT", "PATCH", "HEAD", "PROPFIND"])
def test_other_methods_are_405_and_told_which_are_allowed(server, method):
    with server.connect() as connection:
        answer = connection.ask(method, server.path, {"Accept": speak.BOTH})
        refused(answer, 405)
        assert {"POST", "GET", "DELETE"} <= {it.strip() for it in answer.header("allow").split(",")}
        if method == "HEAD":
            assert answer.body == b""
        assert speak.reply(speak.ask_modern(server, "tools/list", connection=connection))["result"]["tools"]


def test_options_without_cors_names_the_methods_and_allows_no_origin(server):
    with server.connect() as connection:
        answer = connection.ask("OPTIONS", server.path)
        assert answer.status in (200, 204, 405)
        assert "POST" in answer.header("allow")
        assert not [name for name, _ in answer.fields if name.startswith("access-control")]


@pytest.mark.native
@pytest.mark.parametrize("path", ["/", "/mcpx", "/mcp/more", "/../mcp", "/%6dcp/..", "*"])
def test_another_path_is_404(server, path):
    headers, body = modern("tools/list")
    with server.connect() as connection:
        speak.post(connection, path, body, headers)
        answer = connection.response()
        assert answer.status in ((400, 404) if path == "*" else (404,))
        refused(answer, answer.status)


@pytest.mark.parametrize("length", [20_000, 65_000, 70_000, 200_000])
@pytest.mark.parametrize("target", ["{path}?{long}", "{path}/{long}"])
def test_a_target_without_end_is_served_or_refused(server, target, length):
    headers, body = modern("tools/list")
    before = server.surprises()
    with server.connect() as connection:
        speak.post(connection, target.format(path=server.path, long="x" * length), body, headers)
        assert connection.response().status in (200, 400, 404, 414, 431)
    works(server)
    assert server.surprises() == before, server.said()


# ── what an era does not have ───────────────────────────────────────────────────────────────────────


def test_a_posted_response_is_an_error_in_the_modern_era(server):
    # "The client MUST NOT send JSON-RPC responses" [2026-07-28, Sending Messages]
    headers = {"MCP-Protocol-Version": speak.MODERN}
    for answer in ({"result": {}}, {"error": {"code": 1, "message": "no"}}):
        with server.connect() as connection:
            speak.post(connection, server.path, {"jsonrpc": "2.0", "id": 1, **answer}, headers)
            refused(connection.response(), 400, -32600)
    works(server)


def test_a_posted_response_that_answers_nothing_is_taken_in_the_legacy_era(server):
    # "If the server accepts the input, the server MUST return HTTP status code 202 Accepted with no body."
    with speak.Session(server) as session:
        answer = session.post({"jsonrpc": "2.0", "id": "never-asked", "result": {}})
        assert (answer.status, answer.body) == (202, b"")
        assert session.ask("ping")["result"] == {}


@pytest.mark.parametrize("session_id", ["nobody", "00000000-0000-0000-0000-000000000000", "x" * 4000, "a b", ""])
def test_an_unknown_session_is_404(server, session_id):
    headers = {"Mcp-Session-Id": session_id, "MCP-Protocol-Version": LATEST_LEGACY}
    request = speak.message("tools/list")
    with server.connect() as connection:
        speak.post(connection, server.path, request, headers)
        answer = connection.response()
        refused(answer, 404 if session_id else answer.status, -32600, id=request["id"])
        assert answer.status in (400, 404)


@pytest.mark.parametrize(
    "event_id", ["never-issued", "99999999", "0", "-1", "a/b:c_1", "x" * 4000, "1-99999999999999999999"]
)
def test_an_event_id_that_was_never_issued_is_400(server, event_id):
    with speak.Session(server) as session:
        connection, head = session.get(event_id)
        with connection:
            head.body = connection.body() if head.status != 200 else b""
            refused(head, 400)
        assert session.ask("ping")["result"] == {}


# ── injection ───────────────────────────────────────────────────────────────────────────────────────

EVIL = "a\r\nX-Evil: 1\r\n\r\nHTTP/1.1 200 OK\r\n\r\ndata: evil\n\nevent: evil\u2028"


def unharmed(answer):
    assert answer.header("x-evil") is None
    for said in answer.body.decode().replace("\r\n", "\n").split("\n"):
        assert not said.startswith(("data: evil", "event: evil", "X-Evil"))
    return speak.reply(answer)


def test_header_injection_through_a_tools_name_and_arguments(server, era):
    encoded = "=?base64?" + servers.base64_of(EVIL) + "?="
    if era == "legacy":
        with speak.Session(server) as session:
            said = unharmed(session.post(speak.message("tools/call", {"name": EVIL, "arguments": {}})))
            assert said["error"]["code"] == -32602
            params = {"name": "test_x_mcp_header", "arguments": {"region": EVIL}}
            assert EVIL in speak.text_of(unharmed(session.post(speak.message("tools/call", params))))
        return
    said = unharmed(speak.call_modern(server, EVIL, {}, headers={"Mcp-Name": encoded}))
    assert said["error"]["code"] == -32602
    answer = speak.call_modern(server, "test_x_mcp_header", {"region": EVIL}, headers={"Mcp-Param-Region": encoded})
    assert EVIL in speak.text_of(unharmed(answer))


def test_injection_into_an_event_stream_through_an_id_and_a_progress_token(server, era):
    params = {"name": "test_tool_with_progress", "arguments": {}}
    if era == "modern":
        answer = speak.ask_modern(server, "tools/call", params, id=EVIL, meta_more={"progressToken": EVIL})
    else:
        with speak.Session(server) as session:
            answer = session.post(speak.message("tools/call", {**params, "_meta": {"progressToken": EVIL}}, id=EVIL))
    assert unharmed(answer)["id"] == EVIL
    tokens = {
        it["params"]["progressToken"]
        for it in speak.messages_of(answer)
        if "method" in it and "progress" in it["method"]
    }
    assert tokens == {EVIL}


# ── what errors show ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "method, params, code",
    [
        ("tools/call", {"name": "no_such_tool", "arguments": {}}, -32602),
        ("tools/call", {"name": "test_slow", "arguments": [1]}, -32602),
        ("tools/call", {"name": 7}, -32602),
        ("resources/read", {"uri": "test://nowhere"}, -32602),
        ("prompts/get", {"name": "no_such_prompt"}, -32602),
        ("prompts/get", {"name": "test_prompt_with_arguments", "arguments": {"arg1": "only"}}, -32602),
        ("tools/list", {"cursor": "garbage"}, -32602),
        (
            "completion/complete",
            {"ref": {"type": "ref/prompt", "name": "nobody"}, "argument": {"name": "a", "value": ""}},
            -32602,
        ),
    ],
    ids=lambda value: str(value)[:40],
)
def test_bad_params_are_32602_and_400_in_the_modern_era_and_200_in_the_legacy_one(server, era, method, params, code):
    if era == "modern":
        answer = speak.ask_modern(server, method, params, id="bad")
        # Without a name there is nothing that `Mcp-Name` could say.
        code = answer.json()["error"]["code"] if params.get("name") == 7 else code
        refused(answer, 400, code, id="bad")
        assert code in (-32602, -32020)
    else:
        with speak.Session(server) as session:
            answer = session.post(speak.message(method, params, id="bad"))
            code = -32002 if method == "resources/read" else code
            assert (answer.status, speak.reply(answer)["error"]["code"]) == (200, code)
            assert not speak.INSIDES.search(answer.body.decode())


def test_a_resource_that_is_not_there_is_named(server, era):
    # -32602 with data.uri from 2026-07-28 on; -32002 before ("Resource not found: -32002 in 2025-11-25 and older")
    if era == "modern":
        error = speak.ask_modern(server, "resources/read", {"uri": "test://gone"}).json()["error"]
        assert (error["code"], error["data"]["uri"]) == (-32602, "test://gone")
    else:
        with speak.Session(server) as session:
            error = session.ask("resources/read", {"uri": "test://gone"})["error"]
            assert (error["code"], error["data"]["uri"]) == (-32002, "test://gone")


def test_arguments_that_fail_the_schema_are_a_result_that_the_model_can_mend(server, era):
    if era == "modern":
        answer = speak.call_modern(server, "test_slow", {"ms": "soon"})
        assert answer.status == 200
        said = speak.reply(answer)
    else:
        with speak.Session(server) as session:
            said = session.call("test_slow", {"ms": "soon"})
    assert said["result"]["isError"]
    assert "ms" in said["result"]["content"][0]["text"]
    assert not speak.INSIDES.search(json.dumps(said))
