"""A client before 2026-07-28 that opens a connection for each request, so that each may go to another worker."""

import http.client
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
CAPABILITIES = {"elicitation": {}, "roots": {}}


class WorkerClient:
    """One session. Errors are assertions, because each answer is known."""

    def __init__(self, url: str, revision: str) -> None:
        self._url = urlsplit(url)
        self._headers = dict(HEADERS)
        self._ids = iter(range(10**9))
        params = {
            "protocolVersion": revision,
            "capabilities": CAPABILITIES,
            "clientInfo": {"name": "c", "version": "1"},
        }
        connection, response = self._open("POST", self._message("initialize", params))
        assert response.status == 200, response.read()
        assert json.loads(response.read())["result"]["protocolVersion"] == revision
        session = response.headers["Mcp-Session-Id"]
        connection.close()
        self._headers |= {"Mcp-Session-Id": session, "MCP-Protocol-Version": revision}
        self.say("notifications/initialized")

    def request(self, method: str, params: dict[str, Any] | None = None) -> Any:
        """Sends a request and answers its questions; returns its result."""
        connection, response = self._open("POST", self._message(method, params or {}))
        assert response.status == 200, response.read()
        for message in _messages(response):
            if message.get("method") == "elicitation/create":
                content = {"action": "accept", "content": {"value": message["params"]["message"]}}
                self._post({"jsonrpc": "2.0", "id": message["id"], "result": content})
            elif "method" not in message:
                connection.close()
                return message["result"]
        raise AssertionError("the answer ended too early")

    def call(self, tool: str, **arguments: Any) -> str:
        result = self.request("tools/call", {"name": tool, "arguments": arguments})
        assert not result.get("isError"), result
        return str(result["content"][0]["text"])

    def start(self, tool: str) -> tuple[int, http.client.HTTPConnection]:
        """Calls a tool, and returns its request id without waiting for its answer."""
        message = self._message("tools/call", {"name": tool, "arguments": {}})
        connection = self._connection()
        connection.request("POST", self._url.path, json.dumps(message), self._headers)
        return message["id"], connection

    def say(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Sends a notification."""
        self._post({"jsonrpc": "2.0", "method": method, "params": params or {}})

    def listen(self) -> Iterator[Any]:
        """Opens the stream of the session; returns what comes on it."""
        _, response = self._open("GET", None)
        assert response.status == 200, response.read()
        return _messages(response)

    def end(self) -> None:
        connection, response = self._open("DELETE", None)
        assert response.status == 204, response.read()
        connection.close()

    def status_of_ping(self) -> int:
        connection, response = self._open("POST", self._message("ping", {}))
        connection.close()
        return response.status

    def _message(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params}

    def _post(self, message: dict[str, Any]) -> None:
        connection, response = self._open("POST", message)
        assert response.status == 202, response.read()
        connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        assert self._url.hostname
        return http.client.HTTPConnection(self._url.hostname, self._url.port, timeout=60)

    def _open(self, method: str, message: Any) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        connection = self._connection()
        body = None if message is None else json.dumps(message)
        connection.request(method, self._url.path, body, self._headers)
        return connection, connection.getresponse()


def _messages(response: http.client.HTTPResponse) -> Iterator[Any]:
    if response.headers["Content-Type"] == "application/json":
        yield json.loads(response.read())
        return
    for line in iter(response.readline, b""):
        if line.startswith(b"data:") and line[5:].strip():
            yield json.loads(line[5:])
