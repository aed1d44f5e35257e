"""Origin and Host are checked on every request, and a page of another origin gets in only where it was let in."""

import json

import pytest
import speak
from speak import refused

EVIL = "http://evil.example.com"


def ask(server, method="POST", era="modern", target=None, **headers):
    """A request of that method with these headers (`_` for `-`), as a client of that era would make it. Its first line
    names `target`, by default the path.
    """
    target = target or server.path
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    if era == "modern":
        given, body = speak.modern("server/discover")
    else:
        params = {"protocolVersion": speak.LATEST_LEGACY, "capabilities": {}, "clientInfo": speak.CLIENT}
        given, body = {}, speak.message("initialize", params)
    with server.connect() as connection:
        if method == "POST":
            speak.post(connection, target, body, {**given, **headers})
        else:
            connection.request(method, target, {"Accept": "text/event-stream", **headers})
        return connection.response(to=method)


def forbidden(answer, status, setting):
    assert answer.header("access-control-allow-origin") is None
    text = refused(answer, status)
    assert setting in text or "".join([setting.split("_")[0], *map(str.title, setting.split("_")[1:])]) in text, text
    json.loads(text)
    return answer


# ── attacks ─────────────────────────────────────────────────────────────────────────────────────────

ORIGINS = [
    EVIL,
    "https://evil.example.com:8443",
    "null",
    "http://127.0.0.1.evil.example.com",
    "http://localhost.evil.example.com",
    "http://evil.example.com#127.0.0.1",
    "http://127.0.0.1@evil.example.com",
    "file://",
    "nonsense",
    "",
]


@pytest.mark.parametrize("origin", ORIGINS)
def test_an_origin_that_was_not_let_in_is_403(server, era, origin):
    # "If the Origin header is present and invalid, servers MUST respond with HTTP 403 Forbidden."
    answer = forbidden(ask(server, era=era, Origin=origin), 403, "allowed_origins")
    assert answer.header("mcp-session-id") is None


@pytest.mark.parametrize("method", ["GET", "DELETE", "OPTIONS"])
def test_the_origin_is_checked_on_every_connection(server, method):
    forbidden(ask(server, method, Origin=EVIL, Access_Control_Request_Method="POST"), 403, "allowed_origins")


def test_a_forbidden_origin_reaches_no_session_and_no_body(server):
    with speak.Session(server) as session:
        refused(session.post(speak.message("ping"), headers={"Origin": EVIL}), 403)
        connection, head = session.get(Origin=EVIL)
        with connection:
            assert head.status == 403
        refused(session.post(b"{", headers={"Origin": EVIL}), 403)
        refused(session.connection.ask("DELETE", server.path, session.headers(Origin=EVIL)), 403)
        assert session.ask("ping")["result"] == {}


def test_a_forbidden_origin_is_told_that_however_long_its_body_is(server):
    for host, origin, status, setting in (
        (f"127.0.0.1:{server.port}", EVIL, 403, "allowed_origins"),
        ("evil.example.com", f"http://127.0.0.1:{server.port}", 421, "allowed_hosts"),
    ):
        with server.connect() as connection:
            try:
                speak.post(connection, server.path, b" " * ((4 << 20) + 1), {"Origin": origin, "Host": host})
            except (ConnectionResetError, BrokenPipeError):
                pass  # the answer is there all the same
            forbidden(connection.response(), status, setting)


@pytest.mark.parametrize(
    "host",
    [
        "evil.example.com",
        "evil.example.com:80",
        "127.0.0.1.evil.example.com",
        "localhost.evil.example.com",
        "0x7f.1",
        "a b",
    ],
)
def test_a_host_that_is_not_ours_is_421(server, era, host):
    answer = ask(server, era=era, Host=host)
    if host == "a b" and answer.status == 400:
        return  # no host at all, which a layer below refuses
    forbidden(answer, 421, "allowed_hosts")


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_the_host_is_checked_on_every_request(server, method):
    forbidden(ask(server, method, Host="evil.example.com"), 421, "allowed_hosts")


@pytest.mark.parametrize("method", ["POST", "GET"])
def test_the_host_of_a_request_line_in_absolute_form_is_checked_as_well(server, method):
    own = f"127.0.0.1:{server.port}"
    for named, host in (("evil.example.com", own), (own, "evil.example.com"), ("evil.example.com", "evil.example.com")):
        answer = ask(server, method, target=f"http://{named}{server.path}", Host=host)
        forbidden(answer, 421, "allowed_hosts")
    assert ask(server, target=f"http://{own}{server.path}", Host=own).status == 200


# ── who may ─────────────────────────────────────────────────────────────────────────────────────────


def test_our_own_pages_may_however_they_are_spelled(server, era):
    port = server.port
    for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"LocalHost:{port}", f"[::1]:{port}"):
        assert ask(server, era=era, Host=host).status == 200, host
        assert ask(server, era=era, Host=host, Origin=f"http://{host}").status == 200, host
    assert ask(server, era=era, Origin=f"HTTP://LOCALHOST:{port}").status == 200


def test_without_an_origin_a_request_passes(server, era):
    assert ask(server, era=era).status == 200


def test_what_the_options_let_in(start):
    server = start(allowed_origins=["https://App.Example"], allowed_hosts=["mcp.example", "other.example:9000"])
    for host in ("mcp.example", "MCP.example", "mcp.example:443", "other.example:9000"):
        assert ask(server, Host=host).status == 200, host
    for origin in ("https://app.example", "HTTPS://APP.EXAMPLE", "https://app.example:443"):
        assert ask(server, Origin=origin, Host="mcp.example").status == 200, origin
    for origin in ("http://app.example", "https://app.example:8443", "https://sub.app.example"):
        forbidden(ask(server, Origin=origin, Host="mcp.example"), 403, "allowed_origins")
    forbidden(ask(server, Host="other.example:9001"), 421, "allowed_hosts")


def test_hosts_and_origins_may_be_patterns(start):
    server = start(allowed_hosts=["*.mcp.example"], allowed_origins=["https://*.app.example"])
    assert ask(server, Host="a.mcp.example").status == 200
    assert ask(server, Host="a.mcp.example", Origin="https://b.app.example").status == 200
    forbidden(ask(server, Host="mcp.example"), 421, "allowed_hosts")
    forbidden(ask(server, Host="a.mcp.example", Origin="http://b.app.example"), 403, "allowed_origins")


def test_any_host_and_any_origin(start):
    server = start(allowed_hosts=["*"], allowed_origins=["*"])
    assert ask(server, Host="any.example", Origin="https://other.example").status == 200
    forbidden(ask(server, Host="any.example", Origin="null"), 403, "allowed_origins")


def test_the_public_url_lets_its_host_and_origin_in(start):
    server = start(public_url="https://mcp.example/shelf/mcp")
    assert ask(server, Host="mcp.example").status == 200
    assert ask(server, Host="MCP.example:443").status == 200
    assert ask(server, Host="mcp.example", Origin="https://mcp.example").status == 200
    forbidden(ask(server, Host="evil.example.com"), 421, "allowed_hosts")
    forbidden(ask(server, Host="mcp.example", Origin="http://mcp.example"), 403, "allowed_origins")


@pytest.mark.native
def test_listening_for_everybody_without_auth_is_warned_about_once(start):
    server = start(host="0.0.0.0")
    assert speak.reply(ask(server))["result"]
    assert speak.reply(ask(server))["result"]
    server.stop()
    warned = [line for line in server.stderr if "all requests are accepted" in line]
    assert len(warned) == 1, server.said()


@pytest.mark.native
def test_listening_for_everybody_a_name_must_be_configured_before_its_pages_may_call(start, era):
    server = start(host="0.0.0.0")
    name, address = f"tools.example:{server.port}", f"127.0.0.1:{server.port}"
    assert ask(server, era=era, Host=name).status == 200
    assert ask(server, era=era, Host=address, Origin=f"http://{address}").status == 200
    # DNS rebinding: the page's name means this machine for now.
    answer = forbidden(ask(server, era=era, Host=name, Origin=f"http://{name}"), 403, "public_url")
    assert answer.header("mcp-session-id") is None
    named = start(host="0.0.0.0", public_url="https://tools.example/mcp")
    assert ask(named, era=era, Host="tools.example", Origin="https://tools.example").status == 200
    forbidden(ask(named, era=era, Host="other.example"), 421, "allowed_hosts")


@pytest.mark.native
def test_listening_at_home_is_not_warned_about(start):
    server = start()
    assert speak.reply(ask(server))["result"]
    server.stop()
    assert "all requests are accepted" not in server.said()


# ── CORS ────────────────────────────────────────────────────────────────────────────────────────────

APP = "https://app.example"
ASKED = "content-type, mcp-protocol-version, mcp-session-id, mcp-method, mcp-name, mcp-param-region, last-event-id"
PREFLIGHT = {"Access_Control_Request_Method": "POST", "Access_Control_Request_Headers": ASKED + ", authorization"}


def words(value):
    return {it.strip().lower() for it in (value or "").split(",")}


def test_without_cors_no_header_of_it_is_sent(server, era):
    for answer in (ask(server, era=era), ask(server, era=era, Origin=f"http://127.0.0.1:{server.port}")):
        assert answer.status == 200
        assert not [name for name, _ in answer.fields if name.startswith("access-control")]


def test_with_cors_a_preflight_is_answered(start):
    server = start(cors=[APP])
    answer = ask(server, "OPTIONS", Origin=APP, **PREFLIGHT)
    assert answer.status in (200, 204) and answer.body == b""
    assert answer.header("access-control-allow-origin") == APP
    assert {"post", "get", "delete"} <= words(answer.header("access-control-allow-methods"))
    allowed = words(answer.header("access-control-allow-headers"))
    assert words(PREFLIGHT["Access_Control_Request_Headers"]) <= allowed, allowed
    assert "origin" in words(answer.header("vary"))
    forbidden(ask(server, "OPTIONS", Origin=EVIL, **PREFLIGHT), 403, "allowed_origins")


def test_with_cors_answers_can_be_read_by_the_page(start, era):
    server = start(cors=[APP])
    for answer in (ask(server, era=era, Origin=APP), ask(server, "PUT", Origin=APP), ask(server, "GET", Origin=APP)):
        assert answer.header("access-control-allow-origin") == APP, answer
        assert "origin" in words(answer.header("vary"))
        assert "mcp-session-id" in words(answer.header("access-control-expose-headers"))
    assert ask(server, era=era).status == 200
    forbidden(ask(server, era=era, Origin=EVIL), 403, "allowed_origins")


def test_a_stream_can_be_read_by_the_page(start):
    server = start(cors=[APP])
    answer = speak.call_modern(
        server, "test_tool_with_progress", {}, headers={"Origin": APP}, meta_more={"progressToken": 1}
    )
    assert answer.type == "text/event-stream"
    assert answer.header("access-control-allow-origin") == APP


def test_cors_for_everybody(start):
    server = start(cors=True)
    answer = ask(server, Origin=EVIL)
    assert answer.status == 200
    assert answer.header("access-control-allow-origin") in ("*", EVIL)
    # Credentials are never shared with everybody.
    assert answer.header("access-control-allow-credentials") is None
