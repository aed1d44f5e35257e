"""The defective server over HTTP: Streamable HTTP at /mcp, and HTTP+SSE of 2024-11-05 at /sse."""

import base64
import contextlib
import json
import queue
import sys
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from defective_protocol import LEGACY, META, Connection, Listening, parse


class Endpoint(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    sessions: dict = {}
    streams: dict = {}
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
        if not host.startswith(("127.0.0.1:", "localhost:")) and not self.bad("http.host"):
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
        if self.is_foreign():
            return
        if self.path == "/sse":
            return self.open_stream()
        self.reply(404 if self.bad("http.get") else 405)

    def do_DELETE(self):
        if not self.is_foreign() and self.session() is not None:
            self.sessions.pop(self.headers["Mcp-Session-Id"])
            self.reply(200)

    def do_POST(self):
        text = self.rfile.read(int(self.headers["Content-Length"]))
        if self.is_foreign():
            return
        if self.path.startswith("/messages?"):
            return self.post_to_stream(text)
        if self.path != "/mcp":
            return self.reply(405)
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
        messages = [message for message in messages if message is not None]
        if len(messages) == 1:
            kind = "text/plain" if self.bad("http.media-type") else "application/json"
            return self.reply(status, messages[0], kind, **headers)
        body = "".join(f"data: {json.dumps(message)}\n\n" for message in messages).encode()
        return self.reply(200, body, "text/event-stream", **headers)

    def open_stream(self):
        """Serves the events of HTTP+SSE until the client leaves."""
        key, events = str(uuid.uuid4()), queue.Queue()
        host = f"http://localhost:{self.server.server_port}" if self.bad("sse.endpoint-origin") else ""
        if not self.bad("sse.endpoint"):
            events.put(("endpoint", f"{host}/messages?session={key}"))
        name = "reply" if self.bad("sse.events") else "message"
        connection = Connection(self.defects, lambda message: events.put((name, json.dumps(message))))
        self.streams[key] = connection
        self.begin_events()
        with contextlib.suppress(OSError):
            while True:
                event, data = events.get()
                self.wfile.write(f"event: {event}\ndata: {data}\n\n".encode())
                self.wfile.flush()

    def post_to_stream(self, text):
        connection = self.streams[self.path.partition("=")[2]]
        message, broken = parse(text)
        if broken is not None:
            response = None if self.bad("messages.parse-error") else broken
        else:
            response = connection.answer(message)
        self.reply(202)
        if response is not None:
            connection.send(response)

    def begin_events(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        if not self.bad("http.buffering"):
            self.send_header("X-Accel-Buffering", "no")
        self.end_headers()

    def stream(self, messages):
        self.begin_events()
        self.wfile.write("".join(f"data: {json.dumps(message)}\n\n" for message in messages).encode())
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
