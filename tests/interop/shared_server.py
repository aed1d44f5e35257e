"""Listening server processes, each shared by many clients in turn."""

import contextlib
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

import expect
import processes
from pairs import ROOT, data_in, lacking
from ports import reserve_port

READY_WITHIN = 20
ENDS_WITHIN = 10


def serve_all(pairs):
    """Starts the server that these pairs share, runs each client against it, and stops it."""
    how = pairs[0].serves
    if missing := lacking(how["command"][0]):
        for pair in pairs:
            pair.fail_all(missing)
        return
    with tempfile.TemporaryDirectory(prefix="interop-") as folder:
        fill = {"dir": data_in(folder), "port": str(reserve_port()), "other_port": str(reserve_port())}
        urls = expect.fill(how["urls"], fill)
        log = Path(folder) / "server.log"
        with log.open("wb") as output:
            server = subprocess.Popen(
                expect.fill(how["command"], fill),
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        try:
            for pair in pairs:
                if not _listens(urls[pair.transport], server):
                    words = processes.last_words(log.read_text(errors="replace"))
                    pair.fail_all(f"the server does not listen at {urls[pair.transport]}: {words}")
                    continue
                pair.meet([urls[pair.transport]], fill)
        finally:
            wrong = _end(server)
        if wrong and pairs[-1].column.startswith("ours"):
            words = processes.last_words(log.read_text(errors="replace"))
            pairs[-1].failures["server"] = f"{wrong} after SIGTERM: {words}"


def _listens(url, server):
    end = time.monotonic() + READY_WITHIN
    while time.monotonic() < end and server.poll() is None:
        with contextlib.suppress(OSError), _dial(url):
            return True
        time.sleep(0.05)
    return False


def _dial(url):
    if url.startswith("unix:"):
        wire = socket.socket(socket.AF_UNIX)
        wire.connect(url.removeprefix("unix:"))
        return wire
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname, parts.port), timeout=1)


def _end(server):
    """Stops the server; returns the problem with its exit, if any."""
    server.send_signal(signal.SIGTERM)
    try:
        status = server.wait(ENDS_WITHIN)
    except subprocess.TimeoutExpired:
        for pid in processes.under(server.pid):
            processes.kill(pid)
        server.wait()
        return f"killed {ENDS_WITHIN} s"
    return None if status == 0 else f"exit {status}"
