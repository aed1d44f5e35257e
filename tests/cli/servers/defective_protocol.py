"""The protocol of the defective server: what it answers to each message, in all revisions."""

import json
import os

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
        return [answer for answer in map(self.answer, batch) if answer is not None]

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
        if uri not in [resource["uri"] for resource in RESOURCES]:
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
    """Returns the value of a string; of two equal keys, the last counts."""
    try:
        return json.loads(text), None
    except ValueError:
        return None, {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "broken"}}
