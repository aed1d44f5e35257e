"""Listening server processes, each shared by many clients in turn."""

import contextlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

import expect
import processes
from ports import reserve_port
from programs import ROOT

HERE = Path(__file__).resolve().parent
READY_WITHIN = 60
ENDS_WITHIN = 10


class SharedServer:
    """A server that starts when its first client asks for its address. `how` is its entry in `servers.json`."""

    def __init__(self, how, is_ours):
        self.how = how
        self.is_ours = is_ours
        self.process = None

    def url(self, transport):
        """Returns the address for a transport. Raises OSError if the server does not listen there."""
        if self.process is None:
            self._start()
        url = self.urls[transport]
        end = time.monotonic() + READY_WITHIN
        while time.monotonic() < end and self.process.poll() is None:
            with contextlib.suppress(OSError), _dial(url):
                return url
            time.sleep(0.02)
        raise OSError(f"the server does not listen at {url}: {self._last_words()}")

    def close(self):
        """Stops the server; returns what is wrong with its end, or None."""
        if self.process is None:
            return None
        process, self.process = self.process, None
        process.send_signal(signal.SIGTERM)
        try:
            status = process.wait(ENDS_WITHIN)
        except subprocess.TimeoutExpired:
            for pid in processes.under(process.pid):
                processes.kill(pid)
            process.wait()
            wrong = f"killed {ENDS_WITHIN} s after SIGTERM"
        else:
            wrong = f"exit {status} after SIGTERM" if status else None
        words = self._last_words()
        self.folder.cleanup()
        # Servers of other projects end as they like.
        return f"{wrong}: {words}" if wrong and self.is_ours else None

    def _start(self):
        self.folder = tempfile.TemporaryDirectory(prefix="interop-")
        self.fill = {"dir": data_in(self.folder.name), "port": str(reserve_port()), "other_port": str(reserve_port())}
        self.urls = expect.fill(self.how["urls"], self.fill)
        self.log = Path(self.folder.name) / "server.log"
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                expect.fill(self.how["command"], self.fill),
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def _last_words(self):
        return processes.last_words(self.log.read_text(errors="replace").splitlines())


def data_in(folder):
    """Creates a folder for a server to work on."""
    data = Path(folder).resolve() / "data"
    data.mkdir()
    shutil.copy(HERE / "rust/src/pixel.png", data)
    return str(data)


def _dial(url):
    if url.startswith("unix:"):
        wire = socket.socket(socket.AF_UNIX)
        wire.connect(url.removeprefix("unix:"))
        return wire
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname, parts.port), timeout=1)
