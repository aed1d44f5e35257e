"""The certificates that the command trusts, and the one that it shows."""

import contextlib
import http.server
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

SERVER = """
import sys
from gudgeon import Server

app = Server("safe")

@app.tool
def add(a: int, b: int) -> int:
    return a + b

app.run("https://localhost:0/mcp", tls=(sys.argv[1], sys.argv[2]))
"""


def made(folder: Path, name: str) -> tuple[Path, Path]:
    """Returns the files of a certificate that signs itself, and of its key."""
    certificate, key = folder / f"{name}.pem", folder / f"{name}-key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-days", "2", "-subj", f"/CN={name}", "-addext", "subjectAltName=DNS:localhost"]
    command += ["-addext", "basicConstraints=critical,CA:FALSE"]
    subprocess.run([*command, "-out", certificate, "-keyout", key], check=True, capture_output=True)
    return certificate, key


@pytest.fixture(scope="module")
def localhost(tmp_path_factory) -> tuple[Path, Path]:
    return made(tmp_path_factory.mktemp("trust"), "localhost")


@pytest.fixture
def safe(localhost) -> Iterator[str]:
    """The URL of a server over https."""
    process = subprocess.Popen([sys.executable, "-c", SERVER, *localhost], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    line = next(line for line in process.stderr if "https://" in line)
    yield "https://" + line.split("https://", 1)[1].split()[0]
    process.terminate()
    process.wait()


def test_a_certificate_is_trusted_if_its_file_is_named(gudgeon, safe, localhost):
    refused = gudgeon("call", safe, "add", "a=1", "b=2")
    assert refused.code == 3 and "certificate" in refused.err, refused
    assert gudgeon("call", "--ca", localhost[0], safe, "add", "a=1", "b=2").out == "3\n"


def test_a_certificate_of_another_is_not_trusted(gudgeon, safe, tmp_path):
    other, _ = made(tmp_path, "other")
    refused = gudgeon("call", "--ca", other, safe, "add", "a=1", "b=2")
    assert refused.code == 3 and "certificate" in refused.err, refused


@contextlib.contextmanager
def demanding(localhost, trusted: Path) -> Iterator[tuple[str, list[bool]]]:
    """A server that lets only clients with this certificate send requests, and whether they did."""
    asked: list[bool] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(True)
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            pass

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*localhost)
    context.load_verify_locations(trusted)
    context.verify_mode = ssl.CERT_REQUIRED
    server = http.server.ThreadingHTTPServer(("localhost", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"https://localhost:{server.server_port}/mcp", asked
    server.shutdown()


def test_a_certificate_is_shown(gudgeon, localhost, tmp_path):
    own = made(tmp_path, "caller")
    with demanding(localhost, own[0]) as (url, asked):
        assert gudgeon("list", "--ca", localhost[0], url).code == 3
        assert not asked, "without a certificate no request arrives"
        gudgeon("list", "--ca", localhost[0], "--certificate", own[0], "--certificate-key", own[1], url)
        assert asked


@pytest.mark.parametrize("words", [["--ca", "x.pem"], ["--certificate", "x.pem", "--certificate-key", "y.pem"]])
def test_certificates_are_for_urls(gudgeon, shelf, words):
    refused = gudgeon("list", *words, shelf)
    assert refused.code == 2 and f"{words[0]} is for URLs" in refused.err, refused


def test_a_certificate_needs_its_key(gudgeon, safe, localhost):
    refused = gudgeon("list", "--certificate", localhost[0], safe)
    assert refused.code == 2 and "--certificate-key" in refused.err, refused
