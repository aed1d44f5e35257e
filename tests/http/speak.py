"""MCP over HTTP as clients of each era send it, and access to servers' responses."""

import itertools
import json
import re

import wire

MODERN = "2026-07-28"
LEGACY = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
LATEST_LEGACY = LEGACY[-1]
BOTH = "application/json, text/event-stream"
PREFIX = "io.modelcontextprotocol/"
CLIENT = {"name": "http-tests", "version": "1"}
CAPABILITIES = {"sampling": {}, "elicitation": {}, "roots": {"listChanged": True}}
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
# Details that an error must never show: paths and stack frames.
INSIDES = re.compile(
    r"/(?:work|home|usr|tmp|root|src|Users|rustc)/|\.(?:rs|py|pyi|m?[jt]s):\d|Traceback|panicked|    at "
)
numbers = itertools.count(100)


def meta(version=MODERN, capabilities=CAPABILITIES, **more):
    made = {f"{PREFIX}protocolVersion": version, f"{PREFIX}clientInfo": CLIENT}
    return {**made, f"{PREFIX}clientCapabilities": capabilities, **more}


def message(method, params=None, *, id=None):
    return {"jsonrpc": "2.0", "id": next(numbers) if id is None else id, "method": method, "params": params or {}}


def notification(method, params=None):
    return {"jsonrpc": "2.0", "method": method, "params": params or {}}


def post(connection, path, body, headers=None):
    """Sends a POST; headers with the value None are left out."""
    given = {"Content-Type": "application/json", "Accept": BOTH, **(headers or {})}
    connection.request("POST", path, given, body)


# ── modern ──────────────────────────────────────────────────────────────────────────────────────────


def modern(method, params=None, *, id=None, version=MODERN, capabilities=CAPABILITIES, headers=None, meta_more=None):
    """Returns the headers and the body of a modern request."""
    params = dict(params or {})
    params.setdefault("_meta", meta(version, capabilities, **(meta_more or {})))
    made = {"MCP-Protocol-Version": version, "Mcp-Method": method}
    if isinstance(name := params.get(NAMED.get(method)), str):
        made["Mcp-Name"] = name
    replaced = {name.lower() for name in headers or {}}
    made = {name: value for name, value in made.items() if name.lower() not in replaced}
    return {**made, **(headers or {})}, message(method, params, id=id)


def send_modern(connection, server, method, params=None, **options):
    """Sends a modern request; returns its body."""
    headers, body = modern(method, params, **options)
    post(connection, server.path, body, headers)
    return body


def ask_modern(server, method, params=None, *, connection=None, **options):
    """Sends a modern request, on a new connection by default; returns the complete response."""
    if connection:
        send_modern(connection, server, method, params, **options)
        return connection.response()
    with server.connect() as connection:
        return ask_modern(server, method, params, connection=connection, **options)


def call_modern(server, tool, arguments=None, **options):
    params = {"name": tool} if arguments is None else {"name": tool, "arguments": arguments}
    return ask_modern(server, "tools/call", params, **options)


def listen(server, wanted, *, id="listen-1", connection=None):
    """Opens a listen stream; returns its connection, which the caller closes."""
    connection = connection or server.connect()
    send_modern(connection, server, "subscriptions/listen", {"notifications": wanted}, id=id)
    head = connection.head()
    assert (head.status, head.type) == (200, "text/event-stream"), (head, connection.body())
    return connection


def request(server, method="tools/list", params=None, **options):
    """Returns the bytes of a modern request."""
    headers, body = modern(method, params, **options)
    headers = {"Content-Type": "application/json", "Accept": BOTH, **headers}
    return wire.request_bytes("POST", server.path, headers, body, host=f"127.0.0.1:{server.port}")


def chunked(server, pieces, id=9):
    """Returns the bytes of a modern request whose body comes in so many chunks."""
    headers, body = modern("tools/list", id=id)
    text = json.dumps(body).encode()
    step = -(-len(text) // pieces)
    chunks = [text[at : at + step] for at in range(0, len(text), step)]
    headers |= {"Content-Type": "application/json", "Accept": BOTH, "Transfer-Encoding": "chunked"}
    head = wire.request_bytes("POST", server.path, headers, host=f"127.0.0.1:{server.port}")
    return head + b"".join(b"%X;a=b\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"


def serves(server):
    """Asserts that a request on a new connection is answered."""
    assert reply(ask_modern(server, "tools/list"))["result"]["tools"]


# ── legacy ──────────────────────────────────────────────────────────────────────────────────────────


class Session:
    """A legacy session whose requests use `connection`."""

    def __init__(self, server, version=LATEST_LEGACY, *, connection=None, capabilities=CAPABILITIES):
        self.server, self.path = server, server.path
        self.connection = connection or server.connect()
        params = {"protocolVersion": version, "capabilities": capabilities, "clientInfo": CLIENT}
        post(self.connection, self.path, message("initialize", params))
        self.opened = self.connection.response()
        self.id = self.opened.header("mcp-session-id")
        assert self.opened.status == 200, self.opened
        self.result = reply(self.opened)["result"]
        self.version = self.result["protocolVersion"]
        assert self.post(notification("notifications/initialized")).status == 202

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()

    def headers(self, **more):
        named = {name.replace("_", "-"): value for name, value in more.items()}
        return {"Mcp-Session-Id": self.id, "MCP-Protocol-Version": self.version, **named}

    def send(self, body, *, connection=None, headers=None):
        post(connection or self.connection, self.path, body, {**self.headers(), **(headers or {})})

    def post(self, body, *, headers=None):
        """Sends a POST on the session's connection; returns the complete response."""
        self.send(body, headers=headers)
        return self.connection.response()

    def ask(self, method, params=None):
        """Sends a request; returns its JSON-RPC response."""
        return reply(self.post(message(method, params)))

    def call(self, tool, arguments=None, **params):
        return self.ask("tools/call", {"name": tool, "arguments": arguments or {}, **params})

    def start(self, method, params=None, *, id=None):
        """Sends a request on a new connection; returns the connection after reading the response head."""
        connection = self.server.connect()
        self.send(message(method, params, id=id), connection=connection)
        return connection, connection.head()

    def get(self, last_event_id=None, **headers):
        """Opens a GET stream; returns its connection and the response head."""
        connection = self.server.connect()
        given = {"Accept": "text/event-stream", **self.headers(), **headers}
        if last_event_id is not None:
            given["Last-Event-ID"] = last_event_id
        connection.request("GET", self.path, given)
        return connection, connection.head(to="GET")

    def stream(self, last_event_id=None):
        connection, head = self.get(last_event_id)
        assert (head.status, head.type) == (200, "text/event-stream"), (head, connection.body())
        return connection

    def delete(self):
        return self.connection.ask("DELETE", self.path, self.headers())


# ── answers ─────────────────────────────────────────────────────────────────────────────────────────


def messages_of(response):
    """Returns all JSON-RPC messages of a complete response, JSON or event stream; batches are split."""
    if response.type == "text/event-stream":
        blocks = response.body.decode().replace("\r\n", "\n").split("\n\n")
        lines = [line for block in blocks for line in block.split("\n") if line.startswith("data:")]
        found = [json.loads(line[5:]) for line in lines if line[5:].strip()]
    else:
        found = [response.json()] if response.body else []
    return [part for one in found for part in (one if isinstance(one, list) else [one])]


def reply(response):
    """Returns the only JSON-RPC response of an HTTP response."""
    found = [answer for answer in messages_of(response) if "result" in answer or "error" in answer]
    assert len(found) == 1, (response, found)
    return found[0]


def refused(response, status, code=None, *, id=None):
    """Asserts that a request was rejected with this status and code, without internal details in the response."""
    shown = f"{response.status} {response.fields} {response.body[:600]!r}"
    assert response.status == status, shown
    text = response.body.decode()
    assert not INSIDES.search(text), shown
    if code is None:
        return text
    assert response.type == "application/json", shown
    body = response.json()
    assert body["error"]["code"] == code, shown
    assert body["error"]["message"], shown
    if id is not None:
        assert body["id"] == id, shown
    return body["error"]


def text_of(result):
    """Returns the text of a successful tool result."""
    assert "error" not in result, result
    result = result["result"]
    assert not result.get("isError"), result
    return result["content"][0]["text"]


def started_so_far(server):
    """Returns the number of calls of `test_slow` that have started."""
    return _count(server, "test_started")


def cancelled_so_far(server):
    """Returns the number of calls of `test_slow` that were cancelled."""
    return _count(server, "test_cancelled")


def _count(server, tool):
    return int(re.search(r"\d+", text_of(reply(call_modern(server, tool, {}))))[0])
