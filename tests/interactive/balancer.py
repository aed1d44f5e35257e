"""An HTTP load balancer that decides which server process receives the answers to a question."""

import http.client
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PASSED_ON = ("content-type", "mcp-session-id", "allow")


class Balancer:
    """A balancer; `choose(body)` returns the port of the process that gets a POST."""

    def __init__(self, choose):
        outer = self
        self.choose, self.lock = choose, threading.Lock()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                with outer.lock:
                    port = outer.choose(body)
                self.pass_on(port, body)

            def do_GET(self):
                self.send_response(405)
                self.send_header("content-length", "0")
                self.end_headers()

            do_DELETE = do_GET

            def pass_on(self, port, body):
                headers = {name: value for name, value in self.headers.items() if name.lower() != "host"}
                backend = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                backend.request("POST", self.path, body, headers)
                answer = backend.getresponse()
                content = answer.read()
                backend.close()
                self.send_response(answer.status)
                for name in PASSED_ON:
                    if value := answer.headers.get(name):
                        self.send_header(name, value)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/mcp"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
