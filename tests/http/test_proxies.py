"""Servers behind proxies: whose forwarding headers count, and the PROXY protocol.

How headers are read is tested in the core; here, that each server and mount passes the address of the connection on.
"""

import contextlib
import socket
import ssl
import struct

import pytest
import servers
import speak
import wire

# `fetch` and tower do not know the address of a connection by themselves.
knows_addresses = pytest.mark.only(*servers.NATIVE, "asgi", "node-http")
native = pytest.mark.only(*servers.NATIVE)
SLOW = {"name": "test_slow", "arguments": {"ms": 600_000}}
BUSY = {"max_in_flight": 2, "keep_alive": 0.2}


def v1(address):
    return f"PROXY TCP4 {address} 127.0.0.1 56324 443\r\n".encode()


def v2(address):
    addresses = socket.inet_aton(address) + socket.inet_aton("127.0.0.1")
    return b"\r\n\r\n\0\r\nQUIT\n" + struct.pack("!BBH8sHH", 0x21, 0x11, 12, addresses, 56324, 443)


def clients_are_told_apart(server, connect, headers_of):
    """Returns whether the server tells two clients apart: one has all calls in flight, and the other has a share."""
    with connect("192.0.2.1") as first, connect("192.0.2.1") as second, connect("192.0.2.2") as other:
        for busy in (first, second):
            speak.send_modern(busy, server, "tools/call", SLOW, headers=headers_of("192.0.2.1"))
            # A comment has come, so the call runs.
            assert busy.head().status == 200
        headers = headers_of("192.0.2.2")
        status = speak.call_modern(server, "test_simple_text", connection=other, headers=headers).status
    assert status in (200, 503)
    return status == 200


def forwarded(address):
    # uvicorn itself reads X-Forwarded-For, but not this header.
    return {"Forwarded": f"for={address}"}


@knows_addresses
@pytest.mark.parametrize("trusted, expected", [(["127.0.0.0/8"], True), (["192.0.2.0/24"], False), (None, False)])
def test_the_client_is_the_one_that_a_trusted_proxy_names(start, trusted, expected):
    server = start(**BUSY, **({"trusted_proxies": trusted} if trusted else {}))
    assert clients_are_told_apart(server, lambda _: server.connect(), forwarded) is expected


@knows_addresses
def test_the_host_that_a_trusted_proxy_names_is_checked(start):
    server = start(trusted_proxies=["127.0.0.1"], allowed_hosts=["mcp.example"])
    for headers, status in [
        ({"Forwarded": "host=mcp.example"}, 200),
        ({"Forwarded": "host=evil.example"}, 421),
        ({"X-Forwarded-Host": "evil.example, mcp.example"}, 200),
        ({"X-Forwarded-Host": "evil.example"}, 421),
        ({"Forwarded": "nonsense", "X-Forwarded-Host": "evil.example"}, 200),
    ]:
        assert speak.ask_modern(server, "tools/list", headers=headers).status == status, headers


@pytest.mark.parametrize("header", ["Forwarded", "X-Forwarded-Host", "X-Forwarded-For", "X-Forwarded-Proto"])
def test_forged_headers_change_nothing(server, header):
    for value in ["host=evil.example;for=10.0.0.1;proto=https", "evil.example", '"', "x" * 4000]:
        assert speak.ask_modern(server, "tools/list", headers={header: value}).status == 200


@native
@pytest.mark.parametrize("header", [v1, v2])
def test_the_proxy_protocol_names_the_client_before_tls(start, certificate, header):
    server = start(**BUSY, tls=certificate, trusted_proxies=["127.0.0.1"], proxy_protocol=True)
    context = ssl.create_default_context(cafile=certificate[0])

    def connect(address):
        return wire.Connection(server.address, tls=context, name="localhost", preamble=header(address))

    assert clients_are_told_apart(server, connect, lambda _: {})


@native
def test_the_proxy_protocol_is_required_and_read_from_trusted_proxies_only(start):
    trusting = start(trusted_proxies=["127.0.0.1"], proxy_protocol=True)
    wary = start(trusted_proxies=["192.0.2.1"], proxy_protocol=True)
    for server, preamble in [(trusting, b""), (trusting, b"PROXY TCP4 nonsense\r\n"), (wary, v2("192.0.2.1"))]:
        with server.connect(preamble=preamble) as connection:
            with contextlib.suppress(OSError):  # it is closed already
                connection.send(speak.request(server))
            assert connection.ends()
    for preamble in [v1("192.0.2.1"), v2("192.0.2.1"), b"PROXY UNKNOWN\r\n"]:
        with trusting.connect(preamble=preamble) as connection:
            assert speak.ask_modern(trusting, "tools/list", connection=connection).status == 200


@native
def test_the_proxy_protocol_without_trusted_proxies_is_refused_with_the_fix(kind):
    with pytest.raises(servers.DidNotStart) as refused:
        servers.Server(kind, proxy_protocol=True)
    assert "trusted_proxies" in str(refused.value) or "trustedProxies" in str(refused.value)
