"""A client over Streamable HTTP without any library: `http_client.py URL REVISION [DEFECT…]` lists a server's tools.

It is correct but for the defects, whose names are the ids of the checks that must find them.
"""

import base64
import contextlib
import http.client
import json
import sys
import time
from urllib.parse import urlsplit

MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
url, revision, *defects = sys.argv[1:]
place = urlsplit(url)


def bad(name):
    return name in defects


class Lost(Exception):
    """The server has ended the session."""


class Client:
    def __init__(self):
        self.session = None
        self.sent = 0

    def exchange(self, method, body=None, **headers):
        """Sends a request; returns the response, whose body is not read yet."""
        accept = "text/event-stream" if method == "GET" else "application/json, text/event-stream"
        headers = {"Accept": "*/*" if bad("client-http.accept") else accept, **headers}
        if body is not None:
            headers["Content-Type"] = "text/plain" if bad("client-http.content-type") else "application/json"
            body = json.dumps(body).encode()
        if self.session and not (bad("client-http.session") and method == "DELETE"):
            headers["Mcp-Session-Id"] = self.session
        if self.session and revision >= "2025-06-18" and not bad("client-http.version"):
            headers["MCP-Protocol-Version"] = revision
        connection = http.client.HTTPConnection(place.hostname, place.port, timeout=60)
        connection.request(method, place.path, body, headers)
        response = connection.getresponse()
        if response.status == 404 and self.session:
            raise Lost
        return response

    def notify(self, method, **params):
        message = {"jsonrpc": "2.0", "method": method} | ({"params": params} if params else {})
        self.exchange("POST", message).read()

    def request(self, method, **params):
        """Returns the result of a request."""
        self.sent += 0 if bad("client.ids") and method == "tools/list" else 1
        message = {"jsonrpc": "2.0", "id": self.sent, "method": method, "params": params}
        headers = self.repeated(message) if revision == MODERN else {}
        response = self.exchange("POST", message, **headers)
        if method == "initialize":
            self.session = response.headers["Mcp-Session-Id"]
        if response.headers["Content-Type"] == "text/event-stream":
            result = self.read(response)
            return self.request(method, **params) if result is None else result
        text = response.read()
        return json.loads(text).get("result") if text else {}

    def repeated(self, message):
        """Adds the members of 2026-07-28; returns the headers that repeat parts of the message."""
        params, method = message["params"], message["method"]
        params["_meta"] = {META + "protocolVersion": MODERN, META + "clientCapabilities": {}}
        headers = {"Mcp-Method": "none" if bad("client-http.method") else method, "MCP-Protocol-Version": MODERN}
        if bad("client-http.version"):
            headers["MCP-Protocol-Version"] = "2025-11-25"
        if method == "tools/call":
            headers["Mcp-Name"] = "none" if bad("client-http.name") else params["name"]
            value = params["arguments"]["region"]
            encoded = f"=?base64?{base64.b64encode(value.encode()).decode()}?="
            if not bad("client-http.param"):
                headers["Mcp-Param-Region"] = encoded
        return headers

    def read(self, response):
        """Reads a stream until the result, and resumes it if it ends before; returns the result, or None."""
        event, retry = {}, 0
        for line in response:
            name, _, value = line.decode().rstrip("\r\n").partition(": ")
            if name:
                event[name] = value
                continue
            retry = int(event.get("retry", retry))
            last = event.get("id")
            message = json.loads(event["data"]) if event.get("data") else {}
            event = {}
            if "result" in message:
                return message["result"]
            if "method" in message:
                self.answer(message)
        if bad("client-http.resumes"):
            return None
        time.sleep(0 if bad("client-http.retry") else retry / 1000)
        return self.read(self.exchange("GET", **{"Last-Event-ID": last}))

    def answer(self, message):
        response = {"jsonrpc": "2.0", "id": message["id"]}
        if message["method"] == "ping":
            response["result"] = {"pong": 1} if bad("client.ping") else {}
        else:
            response["error"] = {"code": -32600 if bad("client.unknown-request") else -32601, "message": "unknown"}
        self.exchange("POST", response).read()

    def open(self):
        self.session = None
        info = {"name": "c", "version": "1"}
        self.request("initialize", protocolVersion=revision, capabilities={}, clientInfo=info)
        self.notify("notifications/initialized")

    def page(self, **params):
        try:
            return self.request("tools/list", **params)
        except Lost:
            if bad("client-http.renews"):
                return {}
            self.session = None
            self.open()
            return self.request("tools/list", **params)


def main():
    client = Client()
    if bad("client.connects"):
        return
    if revision == MODERN:
        client.request("server/discover")
    else:
        client.open()
    if bad("client.cancels-own"):
        client.notify("notifications/cancelled", requestId=99)
    if bad("client-http.single-message"):
        client.exchange("POST", [{"jsonrpc": "2.0", "id": "batch", "method": "ping"}]).read()
    page = client.page()
    while "nextCursor" in page:
        page = client.page(cursor=page["nextCursor"])
    if revision == MODERN:
        client.request("tools/call", name="probe_first", arguments={"region": "ü"})
        if bad("client-http.cancels"):
            client.notify("notifications/cancelled", requestId=client.sent)
        if bad("client.no-responses"):
            client.exchange("POST", {"jsonrpc": "2.0", "id": "nobody", "result": {}}).read()
    elif not bad("client-http.deletes") and client.session:
        with contextlib.suppress(Lost):
            client.exchange("DELETE").read()


main()
