"""The command in a terminal: a pty with a size, whose other end is read and typed on."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

DEADLINE = 60


class Terminal:
    """The command in a terminal of its own."""

    def __init__(self, command, *words, columns=80, **environment):
        self.seen = ""
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.master = master

        def lead():
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen(
            command.words(*words),
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=command.folder,
            env={**command.environment, "TERM": "xterm", **environment},
            preexec_fn=lead,
        )
        os.close(slave)

    def read_until(self, text):
        """Reads until the text was shown; returns everything that was shown before its end."""
        deadline = time.monotonic() + DEADLINE
        while (at := self.seen.find(text)) < 0:
            assert self._read(deadline), f"{text!r} is not in {self.seen!r}"
        shown, self.seen = self.seen[: at + len(text)], self.seen[at + len(text) :]
        return shown

    def type(self, text):
        os.write(self.master, text.encode())

    def finish(self):
        """Waits for the end; returns the exit code and what was shown since the last `read_until`."""
        deadline = time.monotonic() + DEADLINE
        while self._read(deadline):
            pass
        code = self.process.wait(timeout=DEADLINE)
        os.close(self.master)
        return code, self.seen

    def _read(self, deadline):
        ready, _, _ = select.select([self.master], [], [], max(0, deadline - time.monotonic()))
        if not ready:
            self.process.send_signal(signal.SIGKILL)
            raise AssertionError(f"nothing more is shown after {self.seen!r}")
        try:
            data = os.read(self.master, 65536)
        except OSError:  # the program has ended
            return False
        self.seen += data.decode(errors="replace").replace("\r\n", "\n")
        return bool(data)


def without_styles(text):
    """Removes the sequences that the program itself uses: styles, and those of the progress bar."""
    return re.sub(r"\x1b\[[0-9;]*[mKGA]", "", text)
