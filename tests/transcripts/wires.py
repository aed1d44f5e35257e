"""The fixture servers over the transports of transcripts: each sends frames and returns the received ones."""

import contextlib
import json
import queue
import socket
import threading
from collections.abc import Iterator
from typing import Any

import server as fixture
import servers
import wire as http
from peer import PATIENCE, SERVERS, Peer
from ports import reserve_port
from websocket import TEXT, WebSocket, frame

from gudgeon._serving.serve import on_descriptors, serve_blocking

JSON = {"Content-Type": "application/json"}
BOTH = {**JSON, "Accept": "application/json, text/event-stream"}


class Stdio:
    """A server process over stdio, which must send nothing more before it exits."""

    def __init__(self, server: str, options: list[str]) -> None:
        self._peer = Peer(server, *options)
        self.send, self.receive = self._peer.send, self._peer.receive

    def close(self) -> None:
        assert self._peer.end() == []

    def kill(self) -> None:
        self._peer.__exit__()


class Memory:
    """The fixture in Python in this process, which must send nothing more before it ends."""

    def __init__(self, server: str, options: list[str]) -> None:
        assert server == "python"
        self._socket, theirs = socket.socketpair()
        app, number = fixture.fixture(options), theirs.fileno()

        def serve() -> None:
            with theirs:
                serve_blocking(app, on_descriptors(number, number), grace=0)

        self._serving = threading.Thread(target=serve, daemon=True)
        self._serving.start()
        self._socket.settimeout(PATIENCE)
        self._frames = self._socket.makefile("rb")

    def send(self, message: bytes) -> None:
        self._socket.sendall(message + b"\n")

    def receive(self) -> Any:
        return json.loads(self._frames.readline())

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_WR)
        self._serving.join(PATIENCE)
        assert not self._serving.is_alive()
        # Records of the log may keep the server's end open.
        self._socket.settimeout(0)
        assert not self._frames.read()

    def kill(self) -> None:
        self._frames.close()
        self._socket.close()
        self._serving.join(PATIENCE)


class Listening:
    """A listening server, connected by one of its transports."""

    path = "/mcp"
    # Sent at the end; any response has this id.
    last_question = b'{"jsonrpc":"2.0","id":"the end","method":"ping"}'

    def __init__(self, server: str, options: list[str]) -> None:
        url = f"http://127.0.0.1:{reserve_port()}/mcp"
        self.server = servers.Server(server, command=[*SERVERS[server], *options, "--listen", url])
        self._heard: queue.Queue[Any] = queue.Queue()
        self._failures: list[Exception] = []
        self._connections: list[http.Connection] = []
        try:
            self.open()
        except BaseException:
            self.kill()
            raise

    def open(self) -> None:
        """Performs the transport's handshake, if it has one."""

    def send(self, message: bytes) -> None:
        raise NotImplementedError

    def connect(self, **options: Any) -> http.Connection:
        connection = self.server.connect(timeout=PATIENCE, **options)
        self._connections.append(connection)
        return connection

    def read(self, messages: Iterator[Any]) -> None:
        """Reads the messages in a thread until they end."""

        def read() -> None:
            try:
                for message in messages:
                    self._heard.put(message)
            except (http.Gone, OSError, ValueError) as error:
                self._failures.append(error)

        threading.Thread(target=read, daemon=True).start()

    def receive(self) -> Any:
        try:
            return self._heard.get(timeout=PATIENCE)
        except queue.Empty:
            raise AssertionError(f"no frame in {PATIENCE:.0f} s; {self._failures}; {self.server.said()}") from None

    def nothing_more(self) -> None:
        """Checks that the response to a last request is the only remaining message."""
        self.send(self.last_question)
        last = self.receive()
        assert isinstance(last, dict) and last.get("id") == "the end", f"nobody expected {last}"

    def close(self) -> None:
        self.nothing_more()
        self._hang_up()
        self.server.stop()
        assert self.server.process.returncode == 0, self.server.said()

    def _hang_up(self) -> None:
        for connection in self._connections:
            with contextlib.suppress(OSError):
                connection.socket.shutdown(2)

    def kill(self) -> None:
        self._hang_up()
        self.server.kill()


class OverWebSocket(Listening):
    def open(self) -> None:
        self._socket = WebSocket(self)
        assert self._socket.head.status == 101, self._socket.head
        self.read(iter(self._socket.message, None))

    def send(self, message: bytes) -> None:
        self._socket.connection.send(frame(TEXT, message))


class OverSse(Listening):
    """HTTP+SSE, the transport of 2024-11-05."""

    def open(self) -> None:
        stream = self.connect()
        stream.request("GET", "/sse", {"Accept": "text/event-stream"})
        assert stream.head(to="GET").status == 200
        first = stream.event()
        assert first is not None and first.event == "endpoint" and first.data
        self._address = first.data
        self.read(event.json() for event in iter(stream.event, None) if event.data)

    def send(self, message: bytes) -> None:
        posting = self.connect()
        response = posting.ask("POST", self._address, JSON, message)
        if response.status == 400:
            # The answer to what is no JSON comes in the response, since it belongs to no request on the stream.
            self.read(iter([json.loads(response.body)]))
        else:
            assert response.status == 202
        posting.close()


class OverHttp(Listening):
    """POSTs, and the stream of a session after it was opened."""

    # With a version header a ping requires a session.
    last_question = b'{"jsonrpc":"2.0","id":"the end","method":"list_tools"}'
    session: str | None = None
    header: tuple[str, str] | None = None

    def send(self, message: bytes) -> None:
        """Sends a message and waits for the response head, which arrives at the latest with a keep-alive comment."""
        posting = self.connect()
        headers = dict([self.header] if self.header else [])
        posting.request("POST", self.path, {**BOTH, **headers, "Mcp-Session-Id": self.session}, message)
        response = posting.head()
        self.read(iter([]) if response.status == 202 else self._answers(posting, response))
        if self.session is None and (session := response.header("mcp-session-id")):
            self.session = session
            stream = self.connect()
            stream.request("GET", self.path, {"Accept": "text/event-stream", "Mcp-Session-Id": session})
            assert stream.head(to="GET").status == 200
            self.read(event.json() for event in iter(stream.event, None) if event.data)

    @staticmethod
    def _answers(posting: http.Connection, response: http.Response) -> Iterator[Any]:
        if response.type == "text/event-stream":
            yield from (event.json() for event in iter(posting.event, None) if event.data)
        else:
            yield json.loads(posting.body())


WIRES = {"memory": Memory, "stdio": Stdio, "websocket": OverWebSocket, "sse": OverSse, "http": OverHttp}
