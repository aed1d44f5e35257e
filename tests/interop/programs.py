"""Client programs: processes that perform one job after another, because starting one takes longer than most jobs."""

import contextlib
import json
import queue
import subprocess
import threading
import time
from pathlib import Path

import processes

ROOT = Path(__file__).resolve().parents[2]
# The folder of the programs in Rust, "${rust}" in commands.
RUST = "target/debug"
SECONDS = 60  # for a job, with the server that the program starts for it


class Program:
    """A client program. For each job, a JSON line on its standard input, it prints JSON lines and then
    `{"done": true}`, or false if the job failed. One that hangs or ends is started again for the next job.
    """

    def __init__(self, command, seconds=SECONDS):
        self.command = command
        self.seconds = seconds
        self.process = None

    def perform(self, job):
        """Returns the lines of a job, and its problem, or None."""
        if self.process is None:
            self._start()
        self.said.clear()
        lines, until = [], time.monotonic() + self.seconds
        try:
            self.process.stdin.write(json.dumps(job) + "\n")
            self.process.stdin.flush()
            while "done" not in (line := self._next(until)):
                lines.append(line)
            if not line["done"]:
                return lines, f"failed: {self._last_words()}"
            while self._others():
                if time.monotonic() > until:
                    raise TimeoutError("its server is still running")
                time.sleep(0.01)
        except (EOFError, OSError) as problem:
            return lines, self._broken(problem)
        return lines, None

    def close(self):
        """Ends the input of the program; returns what is wrong with its end, or None."""
        if self.process is None:
            return None
        process, self.process = self.process, None
        try:
            process.stdin.close()
            process.wait(self.seconds)
        except subprocess.TimeoutExpired:
            self._kill(process)
            return f"did not end within {self.seconds} s of its input"
        finally:
            self._join(process)
        return f"exit {process.returncode}: {processes.last_words(self.said)}" if process.returncode else None

    def _start(self):
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            self.command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe, encoding="utf-8", errors="replace"
        )
        self.lines, self.said = queue.SimpleQueue(), []
        self.readers = [
            threading.Thread(target=_read, args=(self.process.stdout, self.lines.put), daemon=True),
            threading.Thread(target=_read, args=(self.process.stderr, self.said.append), daemon=True),
        ]
        for reader in self.readers:
            reader.start()

    def _next(self, until):
        """Returns the next line of the output. Raises TimeoutError, and EOFError at its end."""
        try:
            text = self.lines.get(timeout=max(0, until - time.monotonic()))
        except queue.Empty:
            raise TimeoutError("it hangs") from None
        if text is None:
            raise EOFError
        with contextlib.suppress(ValueError):
            if isinstance(line := json.loads(text), dict):
                return line
        return {"unreadable": text[:200]}

    def _last_words(self):
        """Returns the end of stderr, which is read by another thread than stdout."""
        until = time.monotonic() + 1
        while not self.said and time.monotonic() < until:
            time.sleep(0.01)
        return processes.last_words(self.said)

    def _others(self):
        """Returns the processes that the program has started, or a process that it has started."""
        process = self.process
        return (processes.under(process.pid) | processes.with_stderr(process.stderr)) - {process.pid}

    def _broken(self, problem):
        """Ends the program; returns the description of what happened."""
        process, self.process = self.process, None
        hangs = isinstance(problem, TimeoutError)
        if not hangs:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(1)
        status = process.poll()
        self._kill(process)
        self._join(process)
        what = f"killed after {self.seconds} s, {problem}" if hangs else f"exit {status}"
        return f"{what}: {processes.last_words(self.said)}"

    def _kill(self, process):
        """Ends the process and those that it has started."""
        for pid in processes.under(process.pid) | processes.with_stderr(process.stderr):
            processes.kill(pid)
        process.wait()

    def _join(self, process):
        for reader in self.readers:
            reader.join(1)
        for pipe in (process.stdin, process.stdout, process.stderr):
            with contextlib.suppress(OSError):
                pipe.close()


def _read(stream, take):
    """Passes the lines of a stream on; of stdout also the end, which is None."""
    for line in stream:
        take(line)
    take(None)
