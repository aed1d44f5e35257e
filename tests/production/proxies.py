"""nginx and HAProxy, run with the configuration files of the documentation.

A file is taken from its page as it stands; only addresses, ports and paths are replaced.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import ssl
import subprocess
from pathlib import Path

import proxy_programs
import pytest
import wire
from debian_packages import Missing
from ports import reserve_port
from shelf_replicas import Replica
from snippets import SNIPPETS

from eventually import eventually

# The address of a server behind the proxy, behind the words that introduce it.
BACKEND = re.compile(r"(?<=server )(?:[\w-]+ )?(?:\d+\.){3}\d+:\d+\b")
HOST = "shelf.example.com"


def block(document: str, name: str) -> str:
    """Returns the block of a page that is the file with this name."""
    (code,) = [snippet.code for snippet in SNIPPETS if (snippet.document, snippet.name) == (document, name)]
    return code


def program(name: str) -> proxy_programs.ProxyProgram:
    """Returns a program, or skips the test with the reason why there is none."""
    try:
        return proxy_programs.find(name)
    except Missing as reason:
        pytest.skip(str(reason))


class Connection(wire.Connection):
    """A connection whose requests name the public host."""

    def request(self, method: str, path: str, headers: dict | None = None, body: object = None) -> None:
        self.send(wire.request_bytes(method, path, headers, body, host=HOST))


class Proxy:
    """A proxy in front of servers. `speak` takes it for a server."""

    path = "/mcp"

    def __init__(self, folder: Path, certificate: list[str] | None, public_port: int | None = None) -> None:
        self.folder = folder
        self.port = public_port or reserve_port()
        self.address = ("127.0.0.1", self.port)
        self.certificate = certificate
        self.tls = ssl.create_default_context(cafile=certificate[0]) if certificate else None
        self.log = folder / f"{type(self).__name__.lower()}.log"

    @property
    def url(self) -> str:
        return f"http{'s' if self.tls else ''}://localhost:{self.port}/mcp"

    def connect(self, **options: object) -> Connection:
        return Connection(self.address, tls=self.tls, name="localhost", **options)

    def run(self, command: list[object], environment: dict[str, str], check: list[object]) -> None:
        checked = subprocess.run(check, env={**os.environ, **environment}, capture_output=True, text=True)
        said = checked.stdout + checked.stderr
        assert checked.returncode == 0 and "warn" not in said.lower(), said
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, **environment},
            )
        eventually(self.listens)

    def listens(self) -> bool:
        assert self.process.poll() is None, self.said()
        with contextlib.suppress(OSError), socket.create_connection(self.address):
            return True
        return False

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class Nginx(Proxy):
    """nginx with a file for `conf.d`, or with a file for its main level if that has a block `stream`."""

    def __init__(
        self, text: str, replicas: list[Replica], folder: Path, certificate: list[str] | None, **options: object
    ) -> None:
        found = program("nginx")
        super().__init__(folder, certificate, **options)
        text = with_backends(text, replicas)
        text, ports = re.subn(r"listen \d+", f"listen 127.0.0.1:{self.port}", text)
        assert ports == 1, text
        for named, path in (("shelf.pem", 0), ("shelf.key", 1)):
            text = text.replace(f"/etc/nginx/{named}", certificate[path] if certificate else "")
        modules = ""
        if text.startswith("stream {"):
            modules = f"load_module {self._stream_module()};\n"
        else:
            kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
            paths = "".join(f"    {kind}_temp_path {folder}/{kind};\n" for kind in kinds)
            text = f"http {{\n{paths}    access_log {folder}/access.log;\n{text}\n}}\n"
        # One process: `master_process off` would leave no one to shut it down.
        main = f"{modules}daemon off;\npid {folder}/nginx.pid;\nworker_processes 1;\nerror_log {self.log};\n"
        # nginx started by root would work as another user, who can't enter the test's folder.
        main += "user root;\n" if os.geteuid() == 0 else ""
        file = folder / "nginx.conf"
        file.write_text(f"{main}events {{}}\n{text}")
        command = [found.program, "-p", folder, "-c", file, "-e", self.log]
        self.run(command, found.environment, [*command, "-q", "-t"])

    @staticmethod
    def _stream_module() -> Path:
        try:
            return proxy_programs.stream_module()
        except Missing as reason:
            pytest.skip(str(reason))

    def stop(self) -> None:
        super().stop()
        # What nginx finds wrong by itself; the ends of servers are the subject of tests.
        assert not re.search(r"\[(?:emerg|alert|crit)\]", self.said()), self.said()


class HAProxy(Proxy):
    """HAProxy with a complete file."""

    def __init__(
        self, text: str, replicas: list[Replica], folder: Path, certificate: list[str] | None, **options: object
    ) -> None:
        found = program("haproxy")
        super().__init__(folder, certificate, **options)
        text = with_backends(text, replicas)
        text, ports = re.subn(r"bind :\d+", f"bind 127.0.0.1:{self.port}", text)
        assert ports == 1, text
        if certificate:
            both = folder / "both.pem"
            both.write_text("".join(Path(path).read_text() for path in certificate))
            text = text.replace("/etc/haproxy/shelf.pem", str(both))
        file = folder / "haproxy.cfg"
        file.write_text(text)
        command = [found.program, "-f", file]
        self.run([*command, "-db"], found.environment, [*command, "-c"])


def with_backends(text: str, replicas: list[Replica]) -> str:
    """Returns a configuration with the addresses of these servers. Its last server stands for further ones."""
    lines = [line for line in text.splitlines(keepends=True) if BACKEND.search(line)]
    assert len(lines) <= len(replicas), text
    for number in range(len(lines), len(replicas)):
        text = text.replace(lines[-1], lines[-1] + re.sub(r"server [a-z]+ ", f"server number-{number} ", lines[-1]), 1)
    addresses = iter(replicas)

    def backend(found: re.Match[str]) -> str:
        name, _, _ = found[0].rpartition(" ")
        return f"{name} 127.0.0.1:{next(addresses).port}".strip()

    return BACKEND.sub(backend, text)


def without_tls(text: str) -> str:
    """Returns a configuration for clients that trust no certificate of the tests."""
    text = re.sub(r"^ *ssl_certificate.*\n", "", text, flags=re.M)
    return re.sub(r"(listen \d+) ssl;", r"\1;", re.sub(r"(bind :\d+) ssl crt \S+", r"\1", text))
