"""`Host` and `Origin` of each request reach the check, and so do the options that let pages in. The check itself is
tested in core/src/http/guard/tests.rs and core/tests/sans_io/endpoint_guards.rs.
"""

import json

import pytest
import speak
from servers import NATIVE, Server
from speak import refused

EVIL = "http://evil.example.com"
APP = "https://app.example"


def ask(server, method="POST", target=None, **headers):
    """Sends a request with these headers (`_` for `-`); its first line names `target`, by default the path."""
    target = target or server.path
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    with server.connect() as connection:
        if method == "POST":
            given, body = speak.modern("server/discover")
            speak.post(connection, target, body, {**given, **headers})
        else:
            connection.request(method, target, {"Accept": "text/event-stream", **headers})
        return connection.response(to=method)


def forbidden(answer, status, setting):
    """Checks that the answer names the setting as it is spelled in the server's language."""
    assert answer.header("access-control-allow-origin") is None
    text = refused(answer, status)
    first, *rest = setting.split("_")
    assert setting in text or first + "".join(map(str.title, rest)) in text, text
    json.loads(text)


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE", "OPTIONS"])
def test_a_foreign_page_is_refused(server, method):
    forbidden(ask(server, method, Origin=EVIL), 403, "allowed_origins")
    forbidden(ask(server, method, Origin="null"), 403, "allowed_origins")
    forbidden(ask(server, method, Host="evil.example.com"), 421, "allowed_hosts")


def test_the_host_of_a_request_line_in_absolute_form_is_checked_as_well(server):
    own, evil = f"127.0.0.1:{server.port}", "evil.example.com"
    for method in ("POST", "GET"):
        for named, host in ((evil, own), (own, evil), (evil, evil)):
            answer = ask(server, method, target=f"http://{named}{server.path}", Host=host)
            forbidden(answer, 421, "allowed_hosts")
    assert ask(server, target=f"http://{own}{server.path}", Host=own).status == 200


def test_a_foreign_page_is_told_so_however_long_its_body_is(server):
    own = f"127.0.0.1:{server.port}"
    for host, origin, status, setting in (
        (own, EVIL, 403, "allowed_origins"),
        ("evil.example.com", f"http://{own}", 421, "allowed_hosts"),
    ):
        with server.connect() as connection:
            try:
                speak.post(connection, server.path, b" " * ((4 << 20) + 1), {"Origin": origin, "Host": host})
            except (ConnectionResetError, BrokenPipeError):
                pass  # the answer is there all the same
            forbidden(connection.response(), status, setting)


def test_our_own_pages_may(server):
    for host in (f"127.0.0.1:{server.port}", f"LocalHost:{server.port}", f"[::1]:{server.port}"):
        for more in ({}, {"Origin": f"http://{host}"}):
            answer = ask(server, Host=host, **more)
            assert answer.status == 200, host
            assert not [name for name, _ in answer.fields if name.startswith("access-control")]


@pytest.fixture(scope="module")
def public(kind):
    """A server that lets hosts and pages in."""
    options = {
        "allowed_hosts": ["mcp.example", "*.mcp.example"],
        "allowed_origins": ["https://*.page.example"],
        "public_url": "https://public.example/shelf/mcp",
    }
    with Server(kind, **options, cors=[APP]) as server:
        yield server


def test_the_options_let_hosts_and_pages_in(public):
    for host in ("mcp.example:443", "a.mcp.example", "PUBLIC.example", f"localhost:{public.port}"):
        assert ask(public, Host=host).status == 200, host
        for origin in ("https://a.page.example", "https://public.example", APP):
            assert ask(public, Host=host, Origin=origin).status == 200, origin
    forbidden(ask(public, Host="other.example"), 421, "allowed_hosts")
    forbidden(ask(public, Host="mcp.example", Origin="https://page.example"), 403, "allowed_origins")


def words(value):
    return {word.strip().lower() for word in (value or "").split(",")}


def test_with_cors_a_page_may_ask_call_and_read(public):
    asked = "content-type, mcp-protocol-version, mcp-session-id, mcp-method, mcp-param-region, last-event-id"
    preflight = {"Access_Control_Request_Method": "POST", "Access_Control_Request_Headers": asked}
    answer = ask(public, "OPTIONS", Origin=APP, **preflight)
    assert (answer.status, answer.body) == (204, b"")
    assert answer.header("access-control-allow-origin") == APP
    assert {"post", "get", "delete"} <= words(answer.header("access-control-allow-methods"))
    assert words(asked) <= words(answer.header("access-control-allow-headers"))
    forbidden(ask(public, "OPTIONS", Origin=EVIL, **preflight), 403, "allowed_origins")
    stream = speak.call_modern(
        public, "test_tool_with_progress", {}, headers={"Origin": APP}, meta_more={"progressToken": 1}
    )
    assert stream.type == "text/event-stream"
    for answer in (ask(public, Origin=APP), ask(public, "PUT", Origin=APP), ask(public, "GET", Origin=APP), stream):
        assert answer.header("access-control-allow-origin") == APP, answer
        assert "origin" in words(answer.header("vary"))
        assert "mcp-session-id" in words(answer.header("access-control-expose-headers"))


@pytest.mark.only(*NATIVE)
def test_listening_for_everybody_is_warned_about_once(start):
    server, local = start(host="0.0.0.0", cors=True), start()
    name = f"tools.example:{server.port}"
    assert ask(server, Host=name).status == 200
    assert ask(server, Host=name, Origin=EVIL).header("access-control-allow-origin") == "*"
    speak.serves(local)
    for listener, count in ((server, 1), (local, 0)):
        listener.stop()
        assert listener.said().count("all requests are accepted") == count, listener.said()


@pytest.mark.only("rust")
def test_listening_for_everybody_a_name_must_be_configured_before_its_pages_may_call(start):
    server = start(host="0.0.0.0")
    name, address = f"tools.example:{server.port}", f"127.0.0.1:{server.port}"
    assert ask(server, Host=name).status == 200
    assert ask(server, Host=address, Origin=f"http://{address}").status == 200
    # DNS rebinding: the page's name means this machine for now.
    forbidden(ask(server, Host=name, Origin=f"http://{name}"), 403, "public_url")
    named = start(host="0.0.0.0", public_url="https://tools.example/mcp")
    assert ask(named, Host="tools.example", Origin="https://tools.example").status == 200
    forbidden(ask(named, Host="other.example"), 421, "allowed_hosts")
