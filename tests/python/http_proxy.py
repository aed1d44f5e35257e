"""An HTTP proxy of a few lines that leads every host to one server, for tests of the client."""

import socket
import threading

VARIABLES = [
    *("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"),
    *("no_proxy", "NO_PROXY", "REQUEST_METHOD"),
]


class Proxy:
    """`with Proxy(port) as proxy`: the heads of requests in `proxy.heads`. With `says` it answers every request so."""

    def __init__(self, port=None, *, says=None):
        self.heads = []
        self.says = says
        self.target = port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self):
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *exc):
        # Closing alone would not wake the thread that accepts.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        with client:
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                byte = client.recv(1)
                if not byte:
                    return
                head += byte
            self.heads.append(head.decode())
            if self.says is not None:
                client.sendall(self.says)
                return
            with socket.create_connection(("127.0.0.1", self.target)) as server:
                if head.startswith(b"CONNECT "):
                    client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                else:
                    server.sendall(head)
                threading.Thread(target=_copy, args=(server, client), daemon=True).start()
                _copy(client, server)


def _copy(source, sink):
    try:
        while piece := source.recv(65536):
            sink.sendall(piece)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass
