"""An HTTP server of a few lines that plays either era, for tests of the client."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

DISCOVERY = {
    "resultType": "complete",
    "supportedVersions": ["2026-07-28"],
    "capabilities": {"tools": {}},
    "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "mock", "version": "1"}},
}
INITIALIZED = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "mock", "version": "1"},
}
SCHEMA = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
TOOLS = {"resultType": "complete", "tools": [{"name": "echo", "inputSchema": SCHEMA}]}


class Mock:
    """`with Mock(is_modern=True) as mock`: requests as (method, headers, body) in `mock.seen`.

    Another `mock.session` is as a restart: it no longer knows the one before.
    """

    def __init__(self, *, is_modern, status=None, headers=()):
        self.seen = []
        self.session = "s-1"
        mock, refusal = self, headers

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                headers = {name.lower(): value for name, value in self.headers.items()}
                mock.seen.append((body.get("method"), headers, body))
                if status is not None:
                    return self.send(status, b"go away", "text/plain", refusal)
                if headers.get("mcp-session-id", mock.session) != mock.session:
                    return self.send(404, b"", "text/plain")
                self.reply(body)

            def do_GET(self):
                mock.seen.append(("GET", {name.lower(): value for name, value in self.headers.items()}, None))
                self.send(405, b"", "text/plain")

            def do_DELETE(self):
                mock.seen.append(("DELETE", {name.lower(): value for name, value in self.headers.items()}, None))
                self.send(200, b"", "text/plain")

            def reply(self, body):
                method = body["method"]
                if "id" not in body:
                    return self.send(202, b"", "text/plain")
                if is_modern != (method != "initialize") and method in ("initialize", "server/discover"):
                    return self.send(400, b"what?", "text/plain")
                results = {"server/discover": DISCOVERY, "initialize": INITIALIZED, "tools/list": TOOLS}
                said = {"resultType": "complete", "content": [{"type": "text", "text": "done"}]}
                answer = {"jsonrpc": "2.0", "id": body["id"], "result": results.get(method, said)}
                text = json.dumps(answer).encode()
                extra = {"Mcp-Session-Id": mock.session} if method == "initialize" else {}
                if method == "tools/call":
                    return self.send(200, b"data: " + text + b"\n\n", "text/event-stream")
                self.send(200, text, "application/json", extra)

            def send(self, status, body, kind, extra=()):
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                for name, value in dict(extra).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/mcp"

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *exc):
        self._server.shutdown()
        self._server.server_close()

    def methods(self):
        return [method for method, _, _ in self.seen]
