"""TLS by option: the same server behind a certificate.

The servers of all languages share this code, so one of them is tested, and that the option reaches it in the others.
"""

import ssl

import pytest
import servers
import speak
import wire

rust_only = pytest.mark.only("rust")
native = pytest.mark.only(*servers.NATIVE)


@pytest.fixture
def secure(start, certificate):
    return start(tls=certificate, keep_alive=0.3)


def connect(server, certificate, **options):
    context = ssl.create_default_context(cafile=certificate[0])
    for name, value in options.items():
        setattr(context, name, value)
    return wire.Connection(server.address, tls=context, name="localhost")


@native
def test_both_eras_over_tls(secure, certificate):
    with connect(secure, certificate) as connection:
        assert speak.text_of(speak.reply(speak.call_modern(secure, "test_simple_text", connection=connection)))
        answer = speak.call_modern(
            secure, "test_tool_with_progress", {}, connection=connection, meta_more={"progressToken": 1}
        )
        assert len(speak.messages_of(answer)) == 4
        session = speak.Session(secure, connection=connection)
        assert session.ask("ping")["result"] == {}


@rust_only
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_versions_of_tls(secure, certificate, version):
    with connect(secure, certificate, maximum_version=version, minimum_version=version) as connection:
        assert connection.socket.version() == version.name.replace("_", ".")
        assert speak.ask_modern(secure, "tools/list", connection=connection).status == 200


@rust_only
def test_an_https_origin_of_our_own_may(secure, certificate):
    with connect(secure, certificate) as connection:
        headers = {"Origin": f"https://localhost:{secure.port}", "Host": f"localhost:{secure.port}"}
        assert speak.ask_modern(secure, "tools/list", connection=connection, headers=headers).status == 200
        headers = {"Origin": "https://evil.example.com"}
        speak.refused(speak.ask_modern(secure, "tools/list", connection=connection, headers=headers), 403)


@rust_only
def test_plain_http_is_not_answered_as_if_it_were_tls(secure, certificate):
    with secure.connect() as plain:
        headers, body = speak.modern("tools/list")
        speak.post(plain, secure.path, body, headers)
        try:
            got = plain.socket.recv(1000)
        except OSError:
            got = b""
        assert not got.startswith(b"HTTP/1.1 200")
    with connect(secure, certificate) as connection:
        assert speak.ask_modern(secure, "tools/list", connection=connection).status == 200


@rust_only
def test_a_handshake_that_never_ends_holds_nobody_up(start, certificate):
    server = start(tls=certificate, header_timeout=5.0)
    with server.connect() as silent:
        with connect(server, certificate) as connection:
            assert speak.ask_modern(server, "tools/list", connection=connection).status == 200
        assert silent.ends()


@native
def test_certificates_that_are_not_there_are_told(kind, certificate):
    with pytest.raises(servers.DidNotStart) as told:
        servers.Server(kind, tls=["/nowhere/cert.pem", certificate[1]])
    assert "/nowhere/cert.pem" in str(told.value)
