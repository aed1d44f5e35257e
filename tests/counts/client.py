"""A client with one call in flight, over stdio or HTTP, in either era. The requests of a size have the same length."""

import http.client
import json
from subprocess import Popen
from typing import Any, Protocol
from urllib.parse import urlsplit

INFO = {"name": "counts", "version": "1"}
LEGACY = "2025-11-25"
MODERN = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": INFO,
    "io.modelcontextprotocol/clientCapabilities": {},
}
INITIALIZE = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": INFO}
# Seconds. The server runs many times slower than usual, beside other load.
PATIENCE = 300


class Wrong(Exception):
    """A server did not answer a request as expected."""


class Transport(Protocol):
    def send(self, message: dict[str, Any]) -> bytes:
        """Sends a message; returns the response to a request, and nothing for a notification."""


class Stdio:
    def __init__(self, process: "Popen[bytes]") -> None:
        assert process.stdin and process.stdout
        self.stdin, self.stdout = process.stdin, process.stdout

    def send(self, message: dict[str, Any]) -> bytes:
        self.stdin.write(json.dumps(message).encode() + b"\n")
        self.stdin.flush()
        return self.stdout.readline() if "id" in message else b""


class Http:
    """One connection, kept open."""

    def __init__(self, url: str) -> None:
        self.at = urlsplit(url)
        self.connection = http.client.HTTPConnection(self.at.netloc, timeout=PATIENCE)
        self.headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}

    def send(self, message: dict[str, Any]) -> bytes:
        params = message.get("params", {})
        headers = dict(self.headers)
        if "_meta" in params:
            headers |= {"MCP-Protocol-Version": MODERN, "Mcp-Method": message["method"], "Mcp-Name": params["name"]}
        # Head and body leave in one write, so that the server reads them alike each time.
        self.connection.request("POST", self.at.path, json.dumps(message).encode(), headers)
        response = self.connection.getresponse()
        if session := response.headers.get("Mcp-Session-Id"):
            self.headers |= {"MCP-Protocol-Version": LEGACY, "Mcp-Session-Id": session}
        return response.read()


class Client:
    def __init__(self, transport: Transport, era: str) -> None:
        self.transport = transport
        self.meta = {"_meta": META} if era == "modern" else {}
        # Ids have a fixed width.
        self.id = 1_000_000_000
        if era == "legacy":
            self._request("initialize", INITIALIZE)
            self.transport.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def echo(self, size: int, calls: int) -> None:
        """Makes calls with a string of `size` bytes, one after the other."""
        params = {"name": "echo", "arguments": {"text": "x" * size}, **self.meta}
        for _ in range(calls):
            self._request("tools/call", params)

    def _request(self, method: str, params: dict[str, Any]) -> None:
        self.id += 1
        response = self.transport.send({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params})
        if b'"result":' not in response or b'"isError":true' in response:
            raise Wrong(f"{method} was answered with {response[:500]!r}")
