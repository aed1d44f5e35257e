"""The client's targets on a network; what HTTP itself demands is tested in Rust."""

import asyncio
from pathlib import Path

import pytest
from ports import reserve_port

from gudgeon import Client, ClientGroup, SyncClient
from gudgeon.errors import AuthError, ConnectFailed, McpError
from gudgeon.types import Reconnected
from http_mock import Mock


@pytest.mark.io
def test_a_url_is_a_server_of_either_era():
    with Mock(is_modern=True) as mock, SyncClient(mock.url) as client:
        assert (client.revision, client.server.name, client.session_id) == ("2026-07-28", "mock", None)
        assert client.call_tool("echo", {"region": "eu"}).text == "done"
    assert mock.methods() == ["server/discover", "tools/list", "tools/call"]
    assert mock.seen[-1][1]["mcp-param-region"] == "eu"

    with Mock(is_modern=False) as mock:
        with SyncClient(mock.url) as client:
            assert (client.revision, client.session_id) == ("2025-11-25", "s-1")
            assert client.call_tool("echo").text == "done"
        assert mock.methods()[-1] == "DELETE"
        assert mock.methods().index("GET") < mock.methods().index("tools/call")


@pytest.mark.io
def test_on_reconnect_reports_a_new_session():
    back = []
    with Mock(is_modern=False) as mock, SyncClient(mock.url, on_reconnect=back.append) as client:
        client.call_tool("echo")
        assert back == []
        mock.session = "s-2"
        client.call_tool("echo")
        assert client.session_id == "s-2"
        (made,) = back
        assert isinstance(made, Reconnected) and (made.attempt, made.server) == (1, None)
        assert isinstance(made.reason, McpError) and client.server.name == "mock"
        assert made.to_dict() == {"attempt": 1, "reason": str(made.reason)}


@pytest.mark.io
def test_async_and_many_at_once():
    async def main(url):
        async with Client(url) as client:
            return await asyncio.gather(*(client.call_tool("echo") for _ in range(20)))

    with Mock(is_modern=False) as mock:
        assert [result.text for result in asyncio.run(main(mock.url))] == ["done"] * 20


@pytest.mark.io
def test_headers_of_the_options_and_of_an_entry_go_with_every_request():
    with Mock(is_modern=True) as mock:
        entry = {"type": "http", "url": mock.url, "headers": {"X-Tenant": "a", "Authorization": "old"}}
        with SyncClient(entry, headers={"Authorization": "Bearer secret"}) as client:
            client.list_tools()
        for _, headers, _ in mock.seen:
            assert (headers["authorization"], headers["x-tenant"]) == ("Bearer secret", "a")


@pytest.mark.io
def test_a_group_takes_urls():
    async def main(url):
        async with ClientGroup({"mcpServers": {"net": {"url": url}}}) as group:
            return [tool.name for tool in await group.list_tools()]

    with Mock(is_modern=True) as mock:
        assert asyncio.run(main(mock.url)) == ["net_echo"]


@pytest.mark.io
def test_credentials_that_are_missing_are_an_error_of_their_own():
    with Mock(is_modern=True, status=401) as mock, pytest.raises(AuthError) as caught, SyncClient(mock.url):
        pass
    assert "HTTP 401" in str(caught.value) and "go away" in str(caught.value)
    assert caught.value.target == mock.url


@pytest.mark.io
def test_errors_carry_the_status_and_the_credentials_that_are_asked_for():
    for status in (401, 403):
        with Mock(is_modern=True, status=status, headers={"WWW-Authenticate": 'Bearer scope="a"'}) as mock:
            with pytest.raises(AuthError) as caught, SyncClient(mock.url):
                pass
            assert (caught.value.status, caught.value.www_authenticate) == (status, 'Bearer scope="a"')
    with Mock(is_modern=True, status=503) as mock, pytest.raises(McpError) as refused, SyncClient(mock.url):
        pass
    assert refused.value.status == 503


@pytest.mark.io
def test_the_error_of_the_system_is_the_cause():
    port = reserve_port()
    for target, cause in (
        (f"http://127.0.0.1:{port}", ConnectionRefusedError),
        (f"tcp://127.0.0.1:{port}", ConnectionRefusedError),
        ("unix:/no/such/socket", FileNotFoundError),
        (["gudgeon-no-such-program"], FileNotFoundError),
    ):
        with pytest.raises(ConnectFailed) as caught, SyncClient(target):
            pass
        assert isinstance(caught.value.__cause__, cause)


@pytest.mark.io
def test_an_unreachable_server_is_reported_with_the_fix_and_without_the_query():
    port = reserve_port()
    for scheme in ("http", "ws", "tcp"):
        path = "" if scheme == "tcp" else "/mcp?key=secret"
        with pytest.raises(ConnectFailed) as caught, SyncClient(f"{scheme}://127.0.0.1:{port}{path}"):
            pass
        assert caught.value.phase == "connect"
        assert "is the server running?" in str(caught.value)
        assert "secret" not in str(caught.value) and "secret" not in repr(caught.value.target)


@pytest.mark.parametrize(
    ("target", "headers", "error", "fix"),
    [
        ("http://127.0.0.1:1/mcp", {"A": 1}, TypeError, 'the header "A" must be a string'),
        ("http://127.0.0.1:1/mcp", ["A"], TypeError, "mapping"),
        (["python"], {"A": "b"}, ValueError, "http, https, ws and wss"),
        ("tcp://127.0.0.1:1", {"A": "b"}, ValueError, "http, https, ws and wss"),
        ({"url": 1}, None, TypeError, "url must be a string, not a number"),
        ({"url": "http://a", "headers": {"A": [1]}}, None, TypeError, "headers.A must be a string"),
        ({"url": "nonsense"}, None, ValueError, "URL"),
    ],
)
def test_headers_and_entries_are_checked_at_once(target, headers, error, fix):
    with pytest.raises(error) as caught:
        Client(target, headers=headers)
    assert fix in str(caught.value)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"ca": 3}, TypeError, "ca= must be the path of a PEM file, or its bytes"),
        (
            {"certificate": b"secret"},
            TypeError,
            "certificate= must be two PEM files, each as path or bytes",
        ),
        ({"ca": b"secret"}, ValueError, "ca: the text can't be used: it has no certificate in PEM format"),
        ({"ca": Path("no/such.pem")}, ValueError, "ca: no/such.pem can't be used: No such file"),
        (
            {"certificate": ("no/such.pem", b"secret")},
            ValueError,
            "certificate: no/such.pem can't be used: No such file",
        ),
    ],
)
def test_certificates_that_can_not_be_used_are_refused_and_not_shown(options, error, message):
    with pytest.raises(error) as caught, SyncClient("https://127.0.0.1:1/mcp", **options):
        raise AssertionError("it connected")
    assert message in str(caught.value) and "secret" not in str(caught.value)


def test_a_header_that_can_not_be_sent_is_refused_without_its_value():
    with pytest.raises(ValueError) as caught, SyncClient("http://127.0.0.1:1/mcp", headers={"A": "secret\nB: c"}):
        pass
    assert "line end" in str(caught.value) and "secret" not in str(caught.value)


def test_a_url_without_its_port_says_so():
    with pytest.raises(ValueError, match="tcp://host:port"), SyncClient("tcp://127.0.0.1"):
        pass
