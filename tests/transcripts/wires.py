"""The fixture servers over the transports of transcripts: each sends frames and returns the received ones."""

import contextlib
import json
import queue
import threading
import time
from collections.abc import Iterator
from typing import Any

import servers
import wire as http
from peer import PATIENCE, SERVERS, Peer
from ports import reserve_port
from websocket import TEXT, WebSocket, frame

# The idle timeout of a session that a transcript waits for, and the duration of that wait.
IDLE, LONGER = 3.0, 5.0
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


WIRES = {"stdio": Stdio, "websocket": OverWebSocket, "sse": OverSse, "http": OverHttp}


def pass_time() -> None:
    """Waits until an idle session has expired."""
    time.sleep(LONGER)
