"""Clients sign in at protected servers: official clients at ours, native and mounted, and our clients at all of them.

This project's servers use the authorization server of `gudgeon.testing.auth`; the other servers have their own.
"""

import contextlib
import json
import re
import signal
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import processes
from pairs import ROOT
from ports import reserve_port

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
    "rust": ["target/release/interop-sign-in"],
}
OTHER_CLIENTS = {
    "mcp 2": [".interop/py2/bin/python", f"{HERE}/mcp2.py"],
    "fastmcp": [".interop/fastmcp/bin/python", f"{HERE}/fastmcp_client.py"],
    "ts 1": ["node", f"{HERE}/ts.mjs", "1"],
    "ts 2": ["node", f"{HERE}/ts.mjs", "2"],
    "rmcp": [".interop/rmcp/debug/interop-rmcp"],
}
#: The redirect URL of our OAuth proxies, at any port.
PROXY_CALLBACK = "http://127.0.0.1/mcp/oauth/callback"
#: The tool that is called, and its result.
OURS = ("test_simple_text", "This is a simple text response for testing.")
OTHERS = ("greet", "hello")
READY = re.compile(r"http://127\.0\.0\.1:[1-9]\d*/\S+")
READY_WITHIN = 20
ENDS_WITHIN = 10


class Cell:
    """A client that signs in at a server."""

    def __init__(self, client, server):
        self.title = f"{client}, signing in → {server}"
        self.failures = []
        self.total = 1

    def meet(self, command, url, tool, text):
        status, out, err = processes.run([*command, url, tool], cwd=ROOT)
        try:
            got = json.loads(out)
        except ValueError:
            self.failures.append(f"{status}: {processes.last_words(err)}")
            return
        if status != "exit 0" or got["text"] != text or not got["tools"]:
            self.failures.append(f"{status}: {got}")


def run(chosen):
    """Runs the cells whose title contains each of the texts. Returns all of these."""
    from gudgeon.testing.auth import AuthorizationServer

    clients = {**OTHER_CLIENTS, **OUR_CLIENTS}
    proxy = {"client_id": "proxy", "client_secret": "s3cret", "redirect_uris": [PROXY_CALLBACK]}
    with AuthorizationServer(clients=[proxy]) as provider, ThreadPoolExecutor(3) as pool:
        ours = [
            pool.submit(_serve, name, command, clients, OURS, chosen, provider.issuer, proxied)
            for name, command in OUR_SERVERS.items()
            for proxied in (False, True)
        ]
        others = [
            pool.submit(_serve, name, command, OUR_CLIENTS, OTHERS, chosen) for name, command in OTHER_SERVERS.items()
        ]
        return [cell for done in [*ours, *others] for cell in done.result()]


def _serve(name, command, clients, tool, chosen, issuer=None, proxied=False):
    """Starts a server, runs each client against it, and stops it."""
    side = "ours" if issuer else "official"
    kind = "with an OAuth proxy" if proxied else "protected"
    cells = {client: Cell(client, f"{side} {name}, {kind}") for client in clients}
    cells = {client: cell for client, cell in cells.items() if all(text in cell.title for text in chosen)}
    if not cells:
        return []
    if issuer:
        command, url = [*command, "--http", "127.0.0.1:0", "--proxy" if proxied else "--issuer", issuer], None
    else:
        port = reserve_port()
        command, url = [*command, str(port)], f"http://127.0.0.1:{port}/mcp"
    with tempfile.TemporaryFile("w+") as log:
        null = subprocess.DEVNULL
        server = subprocess.Popen(command, cwd=ROOT, stdin=null, stdout=null, stderr=log)
        try:
            _meet_all(cells, clients, tool, url or _announced(server, log))
        finally:
            server.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.wait(ENDS_WITHIN)
            for pid in processes.under(server.pid):
                processes.kill(pid)
            server.wait()
    return list(cells.values())


def _meet_all(cells, clients, tool, url):
    refusal = _refusal(url) if url else "the server does not listen"
    for client, cell in cells.items():
        if refusal:
            cell.failures.append(f"without a token: {refusal}")
        else:
            cell.meet(clients[client], url, *tool)


def _announced(server, log):
    """Returns the URL that a server prints on stderr; None if it prints none."""
    end = time.monotonic() + READY_WITHIN
    while time.monotonic() < end and server.poll() is None:
        log.seek(0)
        if found := READY.search(log.read()):
            return found[0]
        time.sleep(0.05)
    return None


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
            time.sleep(0.05)
