"""A server of all revisions without any library, correct but for the defects that its arguments name.

The name of a defect is the id of the check that must find it. `defective.py [DEFECT…]` serves over stdio,
`defective.py http PORT [DEFECT…]` at http://127.0.0.1:PORT/mcp.
"""

import base64
import contextlib
import json
import os
import sys
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LEGACY = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
INFO = {"name": "defective", "version": "1.0"}
CACHEABLE = {
    "server/discover",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
}
TOOLS = [
    {
        "name": "echo",
        "description": "Return the text.",
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
        "outputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
        "annotations": {"readOnlyHint": True},
    },
    {"name": "wipe", "inputSchema": {"type": "object", "properties": {}}},
]
RESOURCES = [{"uri": "defective://a", "name": "a"}, {"uri": "defective://b", "name": "b"}]
TEMPLATES = [{"uriTemplate": "defective://{name}", "name": "any"}]
PROMPTS = [{"name": "hello"}, {"name": "greet", "arguments": [{"name": "name", "required": True}]}]
LISTS = {
    "tools/list": ("tools", TOOLS),
    "resources/list": ("resources", RESOURCES),
    "resources/templates/list": ("resourceTemplates", TEMPLATES),
    "prompts/list": ("prompts", PROMPTS),
}
LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]


class Refused(Exception):
    """A JSON-RPC error, and its HTTP status for requests of 2026-07-28."""

    def __init__(self, code, message="refused", data=None, status=200):
        super().__init__(message)
        self.error = {"code": code, "message": message} | ({"data": data} if data is not None else {})
        self.status = status


class Connection:
    """One stream, one session, or one HTTP request of 2026-07-28."""

    def __init__(self, defects, send=lambda message: None):
        self.defects = set(defects)
        self.send = send
        self.version = None
        self.count = 0

    def bad(self, name):
        return name in self.defects

    def answer(self, message):
        """Returns the response to any value, or None."""
        if isinstance(message, list):
            return self.answer_batch(message)
        known = isinstance(message, dict) and message.get("jsonrpc") == "2.0"
        request = known and isinstance(message.get("method"), str)
        if known and ("result" in message or "error" in message):
            return self.result(message, {}) if self.bad("messages.unknown-response") else None
        if not request:
            if self.bad("messages.invalid-request"):
                return None
            if self.bad("messages.survives"):
                os._exit(1)
            return self.failed(message if isinstance(message, dict) else {}, Refused(-32600, status=400))
        if "id" not in message:
            return self.notified(message)
        try:
            return self.result(message, self.handle(message))
        except Refused as refused:
            return self.failed(message, refused)

    def answer_batch(self, batch):
        refuses = self.version is None or self.version not in ("2024-11-05", "2025-03-26")
        if self.bad("batches.refuses"):
            refuses = False
        if self.bad("batches.accepts") or refuses:
            return self.failed({}, Refused(-32600, status=400))
        return [it for it in map(self.answer, batch) if it is not None]

    def notified(self, message):
        if self.bad("messages.notification") and message["method"] == "notifications/doctor":
            return self.failed({"id": None}, Refused(-32601))
        if message["method"] == "notifications/cancelled":
            if self.bad("cancellation.unknown") and message["params"]["requestId"] == "never-sent":
                return self.failed({"id": None}, Refused(-32602))
            if self.bad("cancellation.listen") and message["params"]["requestId"] != "never-sent":
                return self.result({"id": message["params"]["requestId"]}, {})
        return None

    def result(self, message, result):
        key = message.get("id")
        if self.bad("messages.huge-id") and isinstance(key, int):
            key = int(float(key))
        if self.bad("messages.string-id") and isinstance(key, str):
            return self.failed(message, Refused(-32600))
        if self.version == MODERN:
            if not self.bad("messages.result-type"):
                result = {"resultType": "complete", **result}
            if not self.bad("handshake.server-info"):
                result.setdefault("_meta", {})[META + "serverInfo"] = INFO
        response = {"jsonrpc": "2.0", "id": key, "result": result}
        if self.bad("messages.response-id") and message.get("method") == "tools/list":
            self.send(response)
        if self.bad("messages.valid") and message.get("method") == "ping":
            del response["jsonrpc"]
        return response

    def failed(self, message, refused):
        self.status = refused.status
        key = message.get("id")
        return {"jsonrpc": "2.0", "id": key if isinstance(key, (str, int)) else None, "error": refused.error}

    def handle(self, message):
        method, params = message["method"], message.get("params") or {}
        meta = params.get("_meta") or {}
        if self.version in (None, MODERN) and (META + "protocolVersion" in meta or method == "server/discover"):
            self.check_envelope(meta)
        if method == "initialize":
            return self.initialize(params)
        if method == "server/discover":
            return self.discover(meta)
        if method == "ping" and self.version != MODERN:
            return {"pong": True} if self.bad("ping.empty") else {}
        if method == "doctor/unknown" and self.bad("messages.unknown-method"):
            raise Refused(-32602)
        if method in LISTS:
            return self.list(method, params)
        handler = {
            "tools/call": self.call,
            "resources/read": self.read,
            "prompts/get": self.prompt,
            "completion/complete": self.complete,
            "logging/setLevel": self.level,
            "subscriptions/listen": self.listen,
            "resources/subscribe": self.subscribe,
            "resources/unsubscribe": self.subscribe,
        }.get(method)
        if handler is None:
            raise Refused(-32601, status=404)
        return handler(params, message)

    def check_envelope(self, meta):
        version = meta.get(META + "protocolVersion")
        if (not version or META + "clientCapabilities" not in meta) and not self.bad("handshake.meta"):
            raise Refused(-32602, status=400)
        if version != MODERN:
            data = {} if self.bad("handshake.unsupported-version") else {"supported": [MODERN], "requested": version}
            raise Refused(-32022, data=data, status=400)
        self.version = MODERN

    def capabilities(self):
        found = {
            "tools": {"listChanged": True},
            "resources": {"subscribe": True},
            "prompts": {},
            "logging": {},
            "completions": {},
        }
        if self.bad("capabilities.undeclared"):
            del found["prompts"]
        if self.bad("capabilities.logging"):
            del found["logging"]
        return found

    def initialize(self, params):
        version = params["protocolVersion"]
        if version not in LEGACY and self.bad("handshake.unknown-version"):
            raise Refused(-32602)
        self.version = version if version in LEGACY else LEGACY[-1]
        info = {} if self.bad("handshake.result") else INFO
        return {"protocolVersion": self.version, "capabilities": self.capabilities(), "serverInfo": info}

    def discover(self, meta):
        if meta.get(META + "logLevel") not in (None, *LEVELS) and not self.bad("logging.bad-meta-level"):
            raise Refused(-32602)
        versions = [*LEGACY, MODERN]
        if self.bad("handshake.discover"):
            versions.pop()
        found = {"supportedVersions": versions, "capabilities": self.capabilities()}
        if self.bad("handshake.discover-result"):
            found["capabilities"]["tools"] = True
        return found if self.bad("handshake.discover-cache") else self.cached(found)

    def cached(self, result):
        return {**result, "ttlMs": 0, "cacheScope": "public"} if self.version == MODERN else result

    def list(self, method, params):
        if method == "resources/templates/list" and self.bad("capabilities.templates"):
            raise Refused(-32601, status=404)
        if method == "prompts/list" and self.bad("capabilities.declared"):
            raise Refused(-32601, status=404)
        name, items = LISTS[method]
        items = json.loads(json.dumps(items))
        start = params.get("cursor", "0")
        if start not in map(str, range(len(items))):
            if not self.bad("pagination.bad-cursor"):
                raise Refused(-32602)
            start = "0"
        at = int(start)
        page = {name: self.changed(method, items)[at : at + 1]}
        if at + 1 < len(items):
            page["nextCursor"] = start if self.bad("pagination.ends") else str(at + 1)
        elif self.bad("pagination.next-cursor"):
            page["nextCursor"] = None
        page = self.cached(page)
        if at and self.bad("lists.cache-scope") and "cacheScope" in page:
            page["cacheScope"] = "private"
        if self.bad("lists.cache"):
            page.pop("ttlMs", None)
        return page

    def changed(self, method, items):
        """Applies the defects of listed items."""
        first = items[0]
        if method == "tools/list":
            wipe = items[1]
            if self.bad("tools.shape"):
                first["description"] = 7
            if self.bad("tools.names"):
                wipe["name"] = "wipe everything"
            if self.bad("tools.unique"):
                wipe["name"] = "echo"
            if self.bad("tools.input-schema"):
                wipe["inputSchema"]["properties"] = {"a": {"type": "strnig"}}
            if self.bad("tools.output-schema"):
                wipe["outputSchema"] = {"type": "object", "properties": {"a": {"pattern": "("}}}
            if self.bad("tools.x-mcp-header"):
                wipe["inputSchema"]["properties"] = {"a": {"type": "string", "x-mcp-header": "a b"}}
            if self.bad("hosts.tools"):
                wipe["inputSchema"]["properties"] = {"a": {"type": "array"}}
            if self.bad("tools.order"):
                self.count += 1
                items[:] = items if self.count < 3 else items[::-1]
        elif method == "resources/list" and self.bad("resources.shape"):
            first["name"] = None
        elif method == "resources/templates/list" and self.bad("resources.template-shape"):
            del first["name"]
        elif method == "prompts/list" and self.bad("prompts.shape"):
            first["arguments"] = [{}]
        return items

    def call(self, params, message):
        name, arguments = params.get("name"), params.get("arguments", {})
        if name is None:
            raise Refused(-32603 if self.bad("messages.invalid-params") else -32602)
        if name == "gudgeon_doctor_unknown" and self.bad("tools.unknown"):
            return {"content": [{"type": "text", "text": "unknown"}], "isError": True}
        if name != "echo":
            raise Refused(-32602)
        token = (params.get("_meta") or {}).get("progressToken")
        if "text" not in arguments and not self.bad("tools.validates"):
            return {"content": [{"type": "text", "text": "text is missing"}], "isError": True}
        if "text" in arguments:
            self.report(token)
            if self.bad("tools.answers"):
                raise Refused(-32603)
        text = arguments.get("text", "")
        structured = {} if self.bad("tools.structured") and "text" in arguments else {"text": text}
        result = {"content": [{"type": "text", "text": json.dumps(structured)}], "structuredContent": structured}
        if self.version < "2025-06-18":
            del result["structuredContent"]
        if self.bad("tools.content"):
            result["content"].append({"type": "image", "mimeType": "image/png", "data": "no base64"})
        if self.bad("tools.text-mirror"):
            result["content"] = []
        if self.bad("tools.result"):
            result["isError"] = "no"
        if self.bad("progress.stops") and "text" in arguments:
            self.send(self.result(message, result))
            self.progress(token, 9)
            raise Listening
        return result

    def report(self, token):
        """Sends the messages that belong to a call."""
        self.progress(token, 1)
        self.progress("nobody's" if self.bad("progress.token") else token, 1 if self.bad("progress.increases") else 2)
        log = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}
        if self.bad("capabilities.logging") or self.bad("logging.unasked"):
            self.send(log)
        if self.bad("capabilities.client") or self.bad("messages.no-requests"):
            self.send({"jsonrpc": "2.0", "id": "s1", "method": "roots/list"})
        if self.bad("stdio.stdout"):
            print("echo was called", flush=True)

    def progress(self, token, value):
        params = {"progressToken": token, "progress": value}
        self.send({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})

    def read(self, params, message):
        uri = params["uri"]
        if uri not in [it["uri"] for it in RESOURCES]:
            if self.bad("resources.empty"):
                return self.cached({"contents": []})
            old = self.bad("messages.reserved-codes") or self.version != MODERN
            raise Refused(-32603 if self.bad("resources.not-found") else -32002 if old else -32602)
        if self.bad("resources.reads"):
            raise Refused(-32603)
        contents = {"uri": uri} | ({} if self.bad("resources.contents") else {"text": uri})
        found = {"contents": [contents]}
        return found if self.bad("resources.cache") else self.cached(found)

    def subscribe(self, params, message):
        if self.version == MODERN or self.bad("resources.subscribe"):
            raise Refused(-32601, status=404)
        return {}

    def prompt(self, params, message):
        name, arguments = params["name"], params.get("arguments", {})
        if name not in ("hello", "greet"):
            raise Refused(0 if self.bad("prompts.unknown") else -32602)
        if name == "greet" and "name" not in arguments:
            raise Refused(0 if self.bad("prompts.missing-argument") else -32602)
        content = {"type": "smell" if self.bad("prompts.content") else "text", "text": "hello"}
        return {"messages": [{"role": "system" if self.bad("prompts.result") else "user", "content": content}]}

    def complete(self, params, message):
        if params["ref"].get("name") not in ("hello", "greet") and not self.bad("completion.unknown"):
            raise Refused(-32602)
        return {"completion": {"values": ["x"] * (101 if self.bad("completion.result") else 3)}}

    def level(self, params, message):
        if self.version == MODERN or self.bad("logging.set-level"):
            raise Refused(-32601, status=404)
        if params["level"] not in LEVELS and not self.bad("logging.bad-level"):
            raise Refused(-32602)
        return {}

    def listen(self, params, message):
        if self.version != MODERN:
            raise Refused(-32601)
        key = "x" if self.bad("subscriptions.id") else message["id"]
        kind = "tools/list_changed" if self.bad("subscriptions.acknowledges") else "subscriptions/acknowledged"
        params = {"_meta": {META + "subscriptionId": key}, "notifications": {"toolsListChanged": True}}
        self.send({"jsonrpc": "2.0", "method": f"notifications/{kind}", "params": params})
        raise Listening


class Listening(Exception):
    """The request needs no answer now."""


def parse(text):
    """Returns the value of a text; of two equal keys, the last counts."""
    try:
        return json.loads(text), None
    except ValueError:
        return None, {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "broken"}}


def serve_stdio(defects):
    def send(message):
        if message is not None:
            print(json.dumps(message), flush=True)

    connection = Connection(defects, send)
    for line in sys.stdin:
        message, broken = parse(line)
        if broken is not None:
            if not connection.bad("messages.parse-error"):
                send(broken)
            continue
        if connection.bad("messages.duplicate-keys") and line.count('"jsonrpc"') == 2 and "duplicate" in line:
            continue
        if connection.bad("handshake.probe") and connection.version is None and "server/discover" in line:
            return
        with contextlib.suppress(Listening):
            send(None if message is None else connection.answer(message))
    if connection.bad("stdio.eof"):
        time.sleep(60)


class Endpoint(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    sessions: dict = {}
    defects: list = []

    def log_message(self, *_):
        pass

    def bad(self, name):
        return name in self.defects

    def reply(self, status, body=b"", kind="application/json", **headers):
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
        self.send_response(status)
        if body:
            self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, status, code=-32600, key=None):
        self.reply(status, {"jsonrpc": "2.0", "id": key, "error": {"code": code, "message": "refused"}})

    def is_foreign(self):
        origin, host = self.headers.get("Origin"), self.headers.get("Host", "")
        if origin and "127.0.0.1" not in origin and not self.bad("http.origin"):
            self.refuse(400 if self.bad("http.origin-status") else 403)
            return True
        if "127.0.0.1" not in host and not self.bad("http.host"):
            self.refuse(403)
            return True
        return False

    def session(self):
        """Returns the session of a request, or answers it."""
        key = self.headers.get("Mcp-Session-Id")
        if key in self.sessions:
            return self.sessions[key]
        if key is None:
            self.refuse(422 if self.bad("http.session-missing") else 400)
        elif key.startswith("0000"):
            self.refuse(400 if self.bad("http.session-unknown") else 404)
        else:
            self.refuse(400 if self.bad("http.session-ended") else 404)
        return None

    def do_GET(self):
        if not self.is_foreign():
            self.reply(404 if self.bad("http.get") else 405)

    def do_DELETE(self):
        if not self.is_foreign() and self.session() is not None:
            self.sessions.pop(self.headers["Mcp-Session-Id"])
            self.reply(200)

    def do_POST(self):
        text = self.rfile.read(int(self.headers["Content-Length"]))
        if self.is_foreign():
            return
        message, broken = parse(text)
        if broken is not None:
            return self.reply(500) if self.bad("messages.parse-error") else self.reply(400, broken)
        params = message.get("params") if isinstance(message, dict) else None
        meta = (params or {}).get("_meta") or {}
        if META + "protocolVersion" in meta or META + "clientCapabilities" in meta:
            return self.modern(message, meta)
        if isinstance(message, dict) and message.get("method") == "initialize":
            return self.open(message)
        connection = self.session()
        if connection is None:
            return None
        version = self.headers.get("MCP-Protocol-Version")
        if version not in (None, *LEGACY) and not self.bad("http.unknown-version"):
            return self.refuse(400)
        messages = []
        connection.send = messages.append
        response = connection.answer(message)
        if response is None and not messages:
            return self.reply(200 if self.bad("http.notification") else 202, b"")
        self.respond([*messages, response], 200 if "id" in message else 400)
        return None

    def open(self, message):
        connection = Connection(self.defects)
        response = connection.answer(message)
        key = str(uuid.uuid4())
        if self.bad("http.session-id-secure"):
            key = str(len(self.sessions))
        if self.bad("http.session-id"):
            key = f"session {key}"
        self.sessions[key] = connection
        self.reply(200, response, Mcp_Session_Id=key)

    def modern(self, message, meta):
        key = message.get("id")
        name = (
            (message["params"].get("name") or message["params"].get("uri"))
            if message["method"]
            in (
                "tools/call",
                "prompts/get",
                "resources/read",
            )
            else None
        )
        given = self.headers.get("Mcp-Name")
        if given and given.startswith("=?base64?") and not self.bad("headers.encoded"):
            given = base64.b64decode(given[9:-2]).decode()
        wrong = {
            "headers.version": self.headers.get("MCP-Protocol-Version") != meta.get(META + "protocolVersion"),
            "headers.method": self.headers.get("Mcp-Method") != message["method"],
            "headers.name": name is not None and given != name,
        }
        if any(found and not self.bad(check) for check, found in wrong.items()):
            return self.refuse(400, -32020, key)
        messages = []
        connection = Connection(self.defects, messages.append)
        connection.status = 200
        try:
            response = connection.answer(message)
        except Listening:
            return self.stream(messages)
        if self.bad("handshake.meta") and META + "clientCapabilities" not in meta:
            connection.status = 200
        is_unknown = message["method"] == "doctor/unknown" and self.bad("messages.unknown-method")
        status = 200 if is_unknown else connection.status
        headers = {"Mcp_Session_Id": "x"} if self.bad("http.no-session") else {}
        self.respond([*messages, response], status, **headers)
        return None

    def respond(self, messages, status, **headers):
        messages = [it for it in messages if it is not None]
        if len(messages) == 1:
            kind = "text/plain" if self.bad("http.media-type") else "application/json"
            return self.reply(status, messages[0], kind, **headers)
        body = "".join(f"data: {json.dumps(it)}\n\n" for it in messages).encode()
        return self.reply(200, body, "text/event-stream", **headers)

    def stream(self, messages):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        if not self.bad("http.buffering"):
            self.send_header("X-Accel-Buffering", "no")
        self.end_headers()
        self.wfile.write("".join(f"data: {json.dumps(it)}\n\n" for it in messages).encode())
        self.wfile.flush()
        with contextlib.suppress(OSError):
            self.rfile.read(1)
        self.close_connection = True


def serve_http(port, defects):
    Endpoint.defects = defects
    server = ThreadingHTTPServer(("127.0.0.1", port), Endpoint)
    server.daemon_threads = True
    print(f"http://127.0.0.1:{server.server_port}/mcp", flush=True)
    threading.Thread(target=lambda: (sys.stdin.read(), server.shutdown()), daemon=True).start()
    server.serve_forever()


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if arguments[:1] == ["http"]:
        serve_http(int(arguments[1]), arguments[2:])
    else:
        serve_stdio(arguments)
