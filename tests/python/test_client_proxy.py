"""Proxies that `os.environ` names, also while the program runs; the rules are tested in Rust."""

import asyncio
import subprocess
import sys

import pytest

from gudgeon import Client, ClientGroup, Server, SyncClient
from gudgeon.errors import ConnectFailed
from http_mock import Mock
from http_proxy import VARIABLES, Proxy

pytestmark = pytest.mark.io


@pytest.fixture(autouse=True)
def _without_proxies(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def port_of(url):
    return int(url.split(":")[2].split("/")[0])


def test_assignments_to_the_environment_count_from_the_next_connect_on(monkeypatch):
    with Mock(is_modern=True) as mock, Proxy(port_of(mock.url)) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.replace("//", "//me:pass%21@"))
        client = SyncClient("http://shelf.example/mcp")
        with client:
            assert client.call_tool("echo").text == "done"
            monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
            assert client.call_tool("echo").text == "done"
        assert proxy.heads[0].startswith("POST http://shelf.example/mcp HTTP/1.1\r\n")
        assert "proxy-authorization: Basic bWU6cGFzcyE=\r\n" in proxy.heads[0]
        with pytest.raises(ConnectFailed, match=r"127\.0\.0\.1:1 \(http_proxy\) can't be reached"), client:
            pass
        monkeypatch.delenv("http_proxy")
        monkeypatch.setenv("ALL_PROXY", proxy.url)
        with client:
            assert client.call_tool("echo").text == "done"


@pytest.mark.parametrize("scheme", ["http", "ws"])
def test_asyncio_clients_and_groups_use_the_proxy(monkeypatch, scheme):
    app = Server("shelf")
    app.tool(lambda: "ok", name="tidy")

    async def main():
        async with app.listen("http://127.0.0.1:0/mcp", allowed_hosts=["*"]) as listening:
            with Proxy(port_of(listening.url)) as proxy:
                monkeypatch.setenv("ALL_PROXY", proxy.url)
                url = f"{scheme}://shelf.example/mcp"
                async with Client(url) as client, ClientGroup({"a": url}) as group:
                    tools = [*await client.list_tools(), *await group.list_tools()]
                return [tool.name for tool in tools], proxy.heads

    names, heads = asyncio.run(main())
    assert names == ["tidy", "a_tidy"]
    starts = {"http": "POST http://shelf.example/mcp ", "ws": "CONNECT shelf.example:80 "}
    assert heads and all(head.startswith(starts[scheme]) for head in heads)


def test_a_refusal_names_the_proxy_and_no_password(monkeypatch):
    refusal = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"
    with Proxy(says=refusal) as proxy:
        for url in ("https://shelf.example/mcp", "wss://shelf.example/mcp", "http://shelf.example/mcp"):
            monkeypatch.setenv("ALL_PROXY", proxy.url.replace("//", "//me:secret@"))
            client = SyncClient(url, headers={"Authorization": "Bearer for-the-server"})
            with pytest.raises(ConnectFailed) as caught, client:
                pass
            text = f"{caught.value} {caught.value!r} {caught.value.hint} {client!r}"
            assert f"{proxy.url} (ALL_PROXY)" in text
            assert "HTTP 407" in text and "check the user and the password" in text
            assert "secret" not in text
            monkeypatch.setenv("ALL_PROXY", proxy.url)
            with pytest.raises(ConnectFailed, match="user:password@host:port"), client:
                pass
    tunnels = [head for head in proxy.heads if head.startswith("CONNECT ")]
    assert len(tunnels) == 4 and not any("for-the-server" in head for head in tunnels)


def test_a_proxy_of_another_kind_is_refused_by_its_variable(monkeypatch):
    monkeypatch.setenv("https_proxy", "socks5://me:secret@127.0.0.1:1080")
    with pytest.raises(ConnectFailed, match='https_proxy: .*"socks5" is not supported.* http and https') as caught:
        with SyncClient("https://shelf.example/mcp"):
            pass
    assert "secret" not in str(caught.value)


def test_loopback_addresses_and_listed_hosts_need_no_proxy(monkeypatch):
    with Mock(is_modern=True) as mock, Proxy(says=b"") as proxy:
        monkeypatch.setenv("ALL_PROXY", proxy.url)
        with SyncClient(mock.url) as client:
            assert client.call_tool("echo").text == "done"
        if sys.platform == "linux":
            # Leads to this machine, but is not a loopback address.
            url = mock.url.replace("127.0.0.1", "0.0.0.0")
            with pytest.raises(ConnectFailed, match="goes through the proxy"), SyncClient(url):
                pass
            seen = len(proxy.heads)
            for listed in ("*", "0.0.0.0", "a.example, 0.0.0.0/8"):
                monkeypatch.setenv("NO_PROXY", listed)
                with SyncClient(url) as client:
                    assert client.call_tool("echo").text == "done"
            assert len(proxy.heads) == seen == 1


def test_a_process_that_is_started_with_a_proxy_uses_it():
    script = (
        "import sys, gudgeon\nwith gudgeon.SyncClient(sys.argv[1]) as client:\n    print(client.call_tool('echo').text)"
    )
    with Mock(is_modern=False) as mock, Proxy(port_of(mock.url)) as proxy:
        ran = subprocess.run(
            [sys.executable, "-c", script, "http://shelf.example/mcp"],
            env={"PATH": "", "HTTP_PROXY": proxy.url},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (ran.stdout, ran.returncode) == ("done\n", 0), ran.stderr
        # Under CGI, a header of the request could have set the variable.
        ran = subprocess.run(
            [sys.executable, "-c", script, "http://0.0.0.0:1/mcp"],
            env={"PATH": "", "HTTP_PROXY": proxy.url, "REQUEST_METHOD": "GET"},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert ran.returncode == 1 and "ConnectFailed" in ran.stderr
        assert "HTTP_PROXY" not in ran.stderr
