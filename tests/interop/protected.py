"""Clients sign in at protected servers: official clients at ours, native and mounted, and our clients at official ones.

This project's servers use the authorization server of `gudgeon.testing.auth`; the other servers have their own.
"""

import contextlib
import re
import signal
import subprocess
import tempfile
import time
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import processes
from ports import reserve_port
from programs import ROOT, RUST
from shared_server import ENDS_WITHIN, READY_WITHIN

HERE = "tests/interop/protected"
SERVE = "tests/conformance/serve"
OUR_SERVERS = {
    "python": [SERVE, "python"],
    "python asgi": [SERVE, "python", "--mount", "asgi"],
    "node": [SERVE, "node"],
    "node fetch": [SERVE, "node", "--mount", "fetch"],
    "node http": [SERVE, "node", "--mount", "node"],
    "rust": [SERVE, "rust"],
    "rust tower": [SERVE, "rust", "--mount", "tower"],
}
OTHER_SERVERS = {
    "fastmcp": [".interop/fastmcp/bin/python", f"{HERE}/fastmcp_server.py"],
    "ts 1": ["node", f"{HERE}/ts1_server.mjs"],
}
OUR_CLIENTS = {
    "python": [".venv/bin/python", f"{HERE}/ours.py"],
    "python sync": [".venv/bin/python", f"{HERE}/ours_sync.py"],
    "node": ["node", f"{HERE}/ours.mjs"],
    "rust": [f"{RUST}/interop-sign-in"],
}
OTHER_CLIENTS = {
    "mcp 2": [".interop/py2/bin/python", f"{HERE}/mcp2.py"],
    "fastmcp": [".interop/fastmcp/bin/python", f"{HERE}/fastmcp_client.py"],
    "ts 1": ["node", f"{HERE}/ts.mjs", "1"],
    "ts 2": ["node", f"{HERE}/ts.mjs", "2"],
    "rmcp": [".interop/rmcp/debug/interop-rmcp"],
}
# Our clients at our servers, each once with and once without an OAuth proxy: the same core is at both ends.
OURS = {
    False: {"python": "node", "python sync": "rust", "node": "python", "rust": "node fetch"},
    True: {"python": "rust", "python sync": "node", "node": "rust tower", "rust": "python asgi"},
}
#: The redirect URL of our OAuth proxies, at any port.
PROXY_CALLBACK = "http://127.0.0.1/mcp/oauth/callback"
#: The tool that is called, and its result.
TOOLS = {
    "ours": ("test_simple_text", "This is a simple text response for testing."),
    "official": ("greet", "hello"),
}
#: A whole line: a path of which only the beginning is written would be served as well, under another redirect URL.
READY = re.compile(r"(http://127\.0\.0\.1:[1-9]\d*/\S+)\n")


class Cell:
    """A client that signs in at a server."""

    def __init__(self, client, command, server):
        self.title = f"{client}, signing in → {server.title}"
        self.command = command
        self.server = server
        self.failures = {}

    @property
    def shared_by(self):
        return self.server.title

    def new_server(self):
        return self.server

    def meet(self, program, server):
        try:
            url = server.url()
        except OSError as problem:
            self.failures["sign-in"] = str(problem)
            return
        tool, text = TOOLS[server.side]
        lines, problem = program.perform({"url": url, "tool": tool})
        if problem:
            self.failures["sign-in"] = f"{problem}; at {url}: {server.last_words()}"
        elif len(lines) != 1 or lines[0].get("text") != text or not lines[0].get("tools"):
            self.failures["sign-in"] = f"got {lines}"

    @property
    def total(self):
        return len(self.failures.keys() | {"sign-in"})

    def report(self, details=False):
        return list(self.failures.values())


class Server:
    """A protected server, which starts when its first client asks for its address."""

    def __init__(self, side, name, command, protection):
        self.side = side
        self.title = f"{side} {name}, {protection}"
        self.command = command
        self.process = None

    def url(self):
        """Returns the address. Raises OSError if requests without a token are not refused there with a challenge."""
        if self.process is None:
            self._start()
        if self.address is None:
            address = self._announced()
            if refusal := _refusal(address):
                raise OSError(f"without a token: {refusal}")
            self.address = address
        return self.address

    def last_words(self):
        """Returns the end of what the server has printed."""
        self.log.seek(0)
        return processes.last_words(self.log.read().splitlines())

    def close(self):
        if self.process is None:
            return
        process, self.process = self.process, None
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(ENDS_WITHIN)
        for pid in processes.under(process.pid):
            processes.kill(pid)
        process.wait()
        self.log.close()

    def _start(self):
        self.address, command, null = None, self.command, subprocess.DEVNULL
        if self.side == "official":
            port = reserve_port()
            self.known, command = f"http://127.0.0.1:{port}/mcp", [*command, str(port)]
        self.log = tempfile.TemporaryFile("w+")  # noqa: SIM115, `close` does
        self.process = subprocess.Popen(command, cwd=ROOT, stdin=null, stdout=null, stderr=self.log)

    def _announced(self):
        """Returns the URL that a server of this project prints on stderr."""
        if self.side == "official":
            return self.known
        end = time.monotonic() + READY_WITHIN
        while time.monotonic() < end and self.process.poll() is None:
            self.log.seek(0)
            if found := READY.search(self.log.read()):
                return found[1]
            time.sleep(0.02)
        raise OSError("the server does not listen")


@contextlib.contextmanager
def provider():
    """Runs the authorization server for the servers of this project; yields its issuer."""
    from gudgeon.testing.auth import AuthorizationServer

    proxy = {"client_id": "proxy", "client_secret": "s3cret", "redirect_uris": [PROXY_CALLBACK]}
    with AuthorizationServer(clients=[proxy]) as running:
        yield running.issuer


def cells(issuer):
    """Returns all cells; `issuer` is the URL of the authorization server."""
    for is_proxied, ours in OURS.items():
        option, protection = ("--proxy", "with an OAuth proxy") if is_proxied else ("--issuer", "protected")
        for name, command in OUR_SERVERS.items():
            server = Server("ours", name, [*command, "--http", "127.0.0.1:0", option, issuer], protection)
            for client, program in OTHER_CLIENTS.items():
                yield Cell(client, program, server)
            for client, program in OUR_CLIENTS.items():
                if ours[client] == name:
                    yield Cell(client, program, server)
    for name, command in OTHER_SERVERS.items():
        server = Server("official", name, command, "protected")
        for client, program in OUR_CLIENTS.items():
            yield Cell(client, program, server)


def _refusal(url):
    """Returns what a server does with a request without a token, if it is not 401 with a challenge."""
    end = time.monotonic() + READY_WITHIN
    request = Request(url, b"{}", {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"})
    while True:
        try:
            with urlopen(request, timeout=5) as answer:
                return f"status {answer.status}"
        except HTTPError as error:
            challenge = error.headers["WWW-Authenticate"] or ""
            is_right = error.code == 401 and "resource_metadata=" in challenge
            return None if is_right else f"status {error.code}, {challenge!r}"
        except OSError as error:
            if time.monotonic() > end:
                return str(error)
            time.sleep(0.02)
