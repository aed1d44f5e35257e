"""Heads and bodies pass every server and mount as they were sent. What is decided about them is tested without one, in
core/tests/sans_io/endpoint_*.rs.
"""

import itertools

import pytest
import speak
from servers import base64_of, eventually
from speak import ask_modern, call_modern, message, modern, refused

MAX_BODY = 4 << 20
MISMATCH = -32020
TOOL = "test_simple_text"


def encoded(text):
    return f"=?base64?{base64_of(text)}?="


def test_both_eras_take_turns_on_one_connection(server):
    with server.connect() as connection:
        session = speak.Session(server, "2025-03-26", connection=connection)
        for _ in range(2):
            answer = call_modern(server, TOOL, id="one", connection=connection)
            assert (answer.status, answer.type, answer.json()["id"]) == (200, "application/json", "one")
            assert speak.text_of(answer.json())
            assert b"\n" not in answer.body.strip() and b'": ' not in answer.body
            assert not {name for name, _ in answer.fields} & {"mcp-session-id", "x-powered-by", "set-cookie"}
            assert speak.text_of(session.call(TOOL))
            assert isinstance(session.post([message("ping"), message("ping")]).json(), list)
        deleted = session.delete()
        assert (deleted.status, deleted.body) == (204, b"")
        refused(session.post(message("ping")), 404, -32600)


def test_headers_arrive_as_they_were_sent(server):
    def call(arguments=None, **headers):
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return call_modern(server, TOOL if arguments is None else "test_x_mcp_header", arguments, headers=named)

    for answer in (
        call(mCp_NaMe=f"  {TOOL}\t"),
        call(Mcp_Name=encoded(TOOL)),
        call({"region": "Größe"}, Mcp_Param_Region=encoded("Größe")),
        call({"priority": 42}, Mcp_Param_Priority="42.0"),
        call(Mcp_Param_Nobody="x"),
    ):
        assert answer.status == 200 and speak.text_of(speak.reply(answer))
    for answer in (
        call(Mcp_Name=None),
        call(Mcp_Name=""),
        call(Mcp_Name=TOOL.upper()),
        call(Mcp_Name=[TOOL, "other"]),
        call(Mcp_Method=["tools/call", "tools/list"]),
        call({"region": "Größe"}, Mcp_Param_Region="Größe"),
        call({"region": "a"}, Mcp_Param_Region=["a", "b"]),
        call({"urgent": True}),
    ):
        refused(answer, 400, MISMATCH)


def test_a_refusal_is_json_and_the_connection_goes_on(server):
    headers, body = modern("tools/list")
    with server.connect() as connection:

        def post(body, **more):
            speak.post(connection, server.path, body, {**headers, **more})
            return connection.response()

        refused(post(b"{"), 400, -32700)
        refused(post(b'{"jsonrpc":"2.0","id":"\xc3"}'), 400, -32700)
        refused(post(body, **{"Content-Type": "text/plain"}), 415)
        refused(post(body, **{"Content-Type": None}), 415)
        refused(post(body, Accept="text/html"), 406)
        refused(ask_modern(server, "unknown/method", connection=connection, id="m"), 404, -32601, id="m")
        assert post(body, Accept=None).status == 200


def test_an_error_shows_nothing_of_the_program(server):
    for answer in (call_modern(server, "test_error_handling", {}), call_modern(server, "test_slow", {"ms": "soon"})):
        assert (answer.status, answer.type) == (200, "application/json")
        assert answer.json()["result"]["isError"]
        assert not speak.INSIDES.search(answer.body.decode())
    missing = ask_modern(server, "resources/read", {"uri": "test://nowhere"})
    assert refused(missing, 400, -32602)["data"]["uri"] == "test://nowhere"


@pytest.mark.parametrize("method", ["HEAD", "PUT", "OPTIONS"])
def test_other_methods(server, method):
    with server.connect() as connection:
        answer = connection.ask(method, server.path, {"Accept": speak.BOTH})
        assert answer.status == (204 if method == "OPTIONS" else 405)
        assert {"POST", "GET", "DELETE"} <= {allowed.strip() for allowed in answer.header("allow").split(",")}
        assert bool(answer.body) == (method == "PUT")
        # The connection is at the beginning of the next response.
        assert ask_modern(server, "tools/list", connection=connection).status == 200


@pytest.mark.parametrize("pieces", [1, 7, 10_000])
def test_a_body_in_chunks(server, pieces):
    with server.connect() as connection:
        connection.send(speak.chunked(server, pieces) + speak.request(server, id=10))
        assert [speak.reply(connection.response())["id"] for _ in range(2)] == [9, 10]


def test_a_body_that_comes_later_than_its_head(server):
    data = speak.request(server, id=1)
    head = data.index(b"\r\n\r\n") + 4
    with server.connect() as connection:
        for start, end in itertools.pairwise((0, head - 2, head, head + 10, len(data))):
            connection.send(data[start:end])
            assert eventually(connection.is_read)
        assert speak.reply(connection.response())["id"] == 1


def test_a_body_of_the_maximum_size_is_taken_and_one_byte_more_is_413(server):
    for size in (MAX_BODY, MAX_BODY + 1):
        headers, body = modern("tools/list", meta_more={"example.com/pad": ""})
        body["params"]["_meta"]["example.com/pad"] = "x" * (size - len(speak.json.dumps(body)))
        with server.connect() as connection:
            try:
                speak.post(connection, server.path, body, headers)
            except (ConnectionResetError, BrokenPipeError):
                pass  # the answer is there all the same
            answer = connection.response()
            if size == MAX_BODY:
                assert speak.reply(answer)["result"]["tools"]
                continue
            assert "max_body" in refused(answer, 413) or "maxBody" in answer.body.decode()
            if answer.header("connection") == "close":
                assert connection.ends()
            else:
                assert ask_modern(server, "tools/list", connection=connection).status == 200


@pytest.mark.parametrize("leave", ["close", "abort"])
@pytest.mark.parametrize("framing", [{"Content-Length": "1000"}, {"Transfer-Encoding": "chunked"}], ids=str)
def test_a_client_that_leaves_amid_its_body_is_no_surprise(server, framing, leave):
    before = server.surprises()
    with server.connect() as connection:
        headers = {**modern("tools/list")[0], "Content-Type": "application/json", "Accept": speak.BOTH, **framing}
        connection.request("POST", server.path, headers)
        connection.send(b"5\r\n[1,2,\r\n")
        assert eventually(connection.is_read)
        getattr(connection, leave)()
    assert server.has_no_connections()
    speak.serves(server)
    assert server.surprises() == before, server.said()


@pytest.mark.parametrize("target", ["{path}?{long}", "{path}/{long}"])
def test_a_target_without_end_is_served_or_refused(server, target):
    headers, body = modern("tools/list")
    before = server.surprises()
    for length in (20_000, 65_000, 70_000, 200_000):
        with server.connect() as connection:
            speak.post(connection, target.format(path=server.path, long="x" * length), body, headers)
            assert connection.response().status in (200, 400, 404, 414, 431)
    speak.serves(server)
    assert server.surprises() == before, server.said()
