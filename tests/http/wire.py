"""A minimal HTTP/1.1 client: sends raw bytes and parses responses strictly, so that tests see what a peer would see."""

import fcntl
import json
import re
import select
import socket
import ssl
import struct
import termios
import time
from dataclasses import dataclass, field
from pathlib import Path

TIMEOUT = 30.0
BLANK_LINE = re.compile(rb"(?:\r\n|\n|\r(?!\n)){2}")


class Gone(Exception):
    """The server closed the connection before the expected data was complete."""


class Malformed(Exception):
    """The received data is not HTTP/1.1 or not an event stream."""


@dataclass
class Response:
    status: int
    reason: str
    fields: list[tuple[str, str]]
    body: bytes = b""

    def header(self, name):
        """Returns the value of a header, or None; a repeated header is an error."""
        values = [value for key, value in self.fields if key == name.lower()]
        if len(values) > 1:
            raise Malformed(f"{name} came {len(values)} times: {values}")
        return values[0] if values else None

    @property
    def type(self):
        return (self.header("content-type") or "").partition(";")[0].strip()

    def json(self):
        return json.loads(self.body)


@dataclass
class Event:
    """An event; a block of comments only has `comment`, and a block with only `retry` has just that."""

    data: str | None = None
    event: str = "message"
    id: str | None = None
    retry: int | None = None
    comment: str | None = None
    lines: list[str] = field(default_factory=list)

    def json(self):
        return json.loads(self.data)


def request_bytes(method, path, headers=None, body=None, *, host="127.0.0.1"):
    """Returns a request's bytes; a header with the value None is left out, one with a list is repeated."""
    if isinstance(body, (dict, list)):
        body = json.dumps(body, ensure_ascii=False).encode()
    given = {"Host": host}
    if body is not None:
        given["Content-Length"] = str(len(body))
    names = {name.lower(): name for name in given}
    for name, value in (headers or {}).items():
        given.pop(names.get(name.lower(), name), None)
        given[name] = value
    lines = [f"{method} {path} HTTP/1.1"]
    for name, value in given.items():
        if value is not None:
            lines += [f"{name}: {entry}" for entry in (value if isinstance(value, list) else [value])]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + (body or b"")


def is_ready(file, event, seconds):
    """Waits for a file to be readable or writable; `select` takes no descriptor above 1,023."""
    poll = select.poll()
    poll.register(file, event)
    return bool(poll.poll(max(0, seconds) * 1000))


class Connection:
    def __init__(
        self, address, *, tls=None, name=None, timeout=TIMEOUT, receive_buffer=None, source=None, preamble=b""
    ):
        """`preamble`: bytes that are sent before everything else, the TLS handshake included."""
        self.address = address
        self.timeout = timeout
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(timeout)
        if source:
            self.socket.bind((source, 0))
        self.socket.connect(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.sendall(preamble)
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_hostname=name or address[0])
        self.buffer = b""
        self._body = Counted(0)
        # Of an event stream: what belongs to no event yet, and how much of it has no end of an event.
        self._text, self._searched = bytearray(), 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def widen(self):
        """Lifts the limit of the receive buffer, for what is read from now on."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)

    def abort(self):
        """Resets the connection, as happens when the process is killed."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.socket.close()

    # ── out ─────────────────────────────────────────────────────────────────────────────────────────

    def send(self, data):
        self.socket.sendall(data)

    def request(self, method, path, headers=None, body=None):
        host, port = self.address[:2]
        host = f"[{host}]" if ":" in host else host
        self.send(request_bytes(method, path, headers, body, host=f"{host}:{port}"))

    def ask(self, method, path, headers=None, body=None):
        """Sends a request; returns the complete response."""
        self.request(method, path, headers, body)
        return self.response(to=method)

    # ── in ──────────────────────────────────────────────────────────────────────────────────────────

    def _fill(self):
        try:
            data = self.socket.recv(65536)
        except (ConnectionResetError, ssl.SSLEOFError):
            data = b""
        if not data:
            raise Gone(f"the connection ended; unread: {self.buffer[:200]!r}")
        self.buffer += data

    def _line(self):
        while b"\n" not in self.buffer:
            self._fill()
        line, _, self.buffer = self.buffer.partition(b"\n")
        if not line.endswith(b"\r"):
            raise Malformed(f"a line of the head that does not end with CRLF: {line!r}")
        return line[:-1].decode("latin-1")

    def head(self, *, to="POST", interim=False):
        """Reads the next response's head; 1xx responses are skipped unless `interim`."""
        while True:
            version, _, rest = self._line().partition(" ")
            status, _, reason = rest.partition(" ")
            if version != "HTTP/1.1" or len(status) != 3 or not status.isdigit():
                raise Malformed(f"not a status line: {version} {rest}")
            response = Response(int(status), reason, [])
            while line := self._line():
                name, colon, value = line.partition(":")
                if not colon or not name or name != name.strip():
                    raise Malformed(f"not a header line: {line!r}")
                response.fields.append((name.lower(), value.strip()))
            if interim or response.status >= 200:
                break
        self._body = self._framing(response, to)
        self._text, self._searched = bytearray(), 0
        return response

    def _framing(self, response, to):
        length, coding = response.header("content-length"), response.header("transfer-encoding")
        if to == "HEAD" or response.status in (204, 304) or response.status < 200:
            return Counted(0)
        if coding is not None:
            if coding.lower() != "chunked" or length is not None:
                raise Malformed(f"transfer-encoding {coding!r} with content-length {length!r}")
            return Chunked()
        return ToTheEnd() if length is None else Counted(int(length))

    def response(self, *, to="POST"):
        response = self.head(to=to)
        response.body = self.body()
        return response

    def body(self):
        """Reads the rest of the body."""
        return b"".join(iter(lambda: self._body.read(self), b""))

    def piece(self):
        """Reads the next bytes of the body, b"" at its end. A timeout loses no data."""
        return self._body.read(self)

    def event(self, *, comments=False):
        """Reads the next event, None at the end of the stream. Lines end with LF, CR or CRLF, as in the standard."""
        while True:
            # A CR at the end may be the first half of a line's end.
            end = None if self._text.endswith(b"\r") else BLANK_LINE.search(self._text, self._searched)
            if end:
                block = bytes(self._text[: end.start()])
                del self._text[: end.end()]
                self._searched = 0
                event = parse_event(block.replace(b"\r\n", b"\n").replace(b"\r", b"\n").decode())
                if comments or event.comment is None:
                    return event
                continue
            self._searched = max(0, len(self._text) - 3)
            if not (piece := self.piece()):
                if self._text.strip():
                    raise Malformed(f"the stream ended inside an event: {bytes(self._text)!r}")
                return None
            self._text += piece

    def events(self):
        """Reads all events until the end of the stream."""
        return list(iter(self.event, None))

    def message(self, within=TIMEOUT):
        """Reads the next JSON-RPC message of an event stream; priming events and comments are skipped."""
        until = time.monotonic() + within
        while (left := until - time.monotonic()) > 0:
            with self.patience(left):
                event = self.event(comments=True)
            if event is None:
                raise Gone("the event stream ended")
            if event.data:
                return event.json()
        raise TimeoutError(f"no message within {within} s")

    def messages(self):
        """Reads all JSON-RPC messages until the end of the stream."""
        return [event.json() for event in self.events() if event.data]

    def is_read(self):
        """Returns whether the server has read everything that was sent to it."""
        sent = struct.unpack("i", fcntl.ioctl(self.socket, termios.TIOCOUTQ, b"\0\0\0\0"))[0]
        ours, theirs = (f":{address[1]:04X}" for address in (self.socket.getsockname(), self.address))
        lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        peers = [words for words in lines if words[1].endswith(theirs) and words[2].endswith(ours)]
        return sent == 0 and all(words[4].endswith(":00000000") for words in peers)

    def segments(self):
        """Returns the number of received TCP segments that carry data."""
        info = self.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        # Linux' `struct tcp_info`: 8 bytes, 24 numbers of 4 bytes, 4 of 8, then among others of 4 `tcpi_data_segs_in`.
        return struct.unpack_from("=I", info, 8 + 24 * 4 + 4 * 8 + 4 * 4)[0]

    # ── silence and ends ────────────────────────────────────────────────────────────────────────────

    def patience(self, seconds):
        return _Patience(self.socket, seconds)

    def is_quiet(self, seconds):
        """Returns whether no data arrives for so long; the end of the connection counts as data."""
        return not self.buffer and not is_ready(self.socket, select.POLLIN, seconds)

    def ends(self, within=TIMEOUT):
        """Returns whether the server closes the connection in that time; received data is discarded."""
        until = time.monotonic() + within
        while (left := until - time.monotonic()) > 0:
            self.socket.settimeout(left)
            try:
                if not self.socket.recv(65536):
                    return True
            except TimeoutError:
                return False
            except (ConnectionError, ssl.SSLError):
                return True
        return False


class Counted:
    def __init__(self, left):
        self.left = left

    def read(self, connection):
        if not self.left:
            return b""
        if not connection.buffer:
            connection._fill()
        piece, connection.buffer = connection.buffer[: self.left], connection.buffer[self.left :]
        self.left -= len(piece)
        return piece


class Chunked:
    """A chunked body. `at` is the part that the next byte belongs to: size, chunk, line end, or trailer."""

    def __init__(self):
        self.at, self.chunk = "size", Counted(0)

    def read(self, connection):
        while self.at != "end":
            if self.at == "size":
                size = int(connection._line().partition(";")[0], 16)
                self.at, self.chunk = ("chunk", Counted(size)) if size else ("last", self.chunk)
            elif self.at == "chunk":
                if piece := self.chunk.read(connection):
                    return piece
                self.at = "after"
            else:
                if connection._line():
                    raise Malformed("a chunk that is longer than it says, or a trailer")
                self.at = "size" if self.at == "after" else "end"
        return b""


class ToTheEnd:
    def read(self, connection):
        if not connection.buffer:
            try:
                connection._fill()
            except Gone:
                return b""
        piece, connection.buffer = connection.buffer, b""
        return piece


class _Patience:
    """A temporary change of the timeout."""

    def __init__(self, of, seconds):
        self.of, self.seconds = of, seconds

    def __enter__(self):
        self.before = self.of.gettimeout()
        self.of.settimeout(self.seconds)

    def __exit__(self, *_):
        if self.of.fileno() >= 0:
            self.of.settimeout(self.before)


def parse_event(block):
    event = Event(lines=block.split("\n"))
    data, said = [], False
    for line in event.lines:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not name:
            event.comment = value
            continue
        said = True
        match name:
            case "data":
                data.append(value)
            case "event":
                event.event = value
            case "id":
                event.id = value
            case "retry":
                event.retry = int(value)
            case _:
                raise Malformed(f"an unknown field: {line!r}")
    if said:
        event.comment = None
    if data:
        event.data = "\n".join(data)
    return event
