"""A server process in which callgrind counts instructions, from the moment that counting is switched on."""

import os
import re
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

import valgrind
from client import PATIENCE, Wrong

ROOT = Path(__file__).resolve().parents[2]
# The number of threads that servers start depends on the number of processors.
PROCESSORS = 2
PASSED_ON = ("HOME", "LANG", "PATH")


class Counted:
    """A server process under callgrind. Until counting starts it has about a fifth of its speed, then a fiftieth."""

    def __init__(self, command: Sequence[str | Path], environment: Mapping[str, str]) -> None:
        program, self.vgdb, needed = valgrind.find()
        self.folder = tempfile.TemporaryDirectory(prefix="counts")
        self.out = Path(self.folder.name) / "out"
        self.pipes = f"--vgdb-prefix={self.folder.name}/vgdb"
        flags = ["--quiet", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={self.out}", self.pipes]
        usual = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        self.dumps = 0
        self.process = subprocess.Popen(
            [program, *flags, *command],
            cwd=ROOT,
            env={**usual, **needed, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=_schedule_evenly,
        )
        # Reads from the server end with it.
        self.watchdog = threading.Timer(PATIENCE, self.process.kill)
        self.watchdog.start()

    def __enter__(self) -> "Counted":
        return self

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.watchdog.cancel()
        self.process.kill()
        stderr = self.process.communicate()[1]
        self.folder.cleanup()
        if error:
            error.args = (f"{error}\n{stderr.decode(errors='replace')[-2000:]}",)

    def url(self) -> str:
        """Waits until the server has written its URL to stderr; returns it."""
        assert self.process.stderr
        for line in self.process.stderr:
            if line.startswith(b"http://"):
                return line.decode().strip()
        raise Wrong("the server ended before it listened")

    def start(self) -> None:
        """Switches counting on."""
        self._command("instrumentation", "on")

    def take(self) -> int:
        """Returns the number of instructions of all threads since the last call, or since counting was switched on."""
        self._command("dump")
        self.dumps += 1
        # The total is at the end of the file.
        found = re.findall(r"^(?:summary|totals): (\d+)$", Path(f"{self.out}.{self.dumps}").read_text(), re.M)
        return int(found[-1])

    def _command(self, *words: str) -> None:
        command = [str(self.vgdb), self.pipes, f"--pid={self.process.pid}", *words]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=PATIENCE)
        if done.returncode:
            raise Wrong(f"vgdb {' '.join(words)} failed with status {done.returncode}: {done.stderr}")


def _schedule_evenly() -> None:
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:PROCESSORS])
    # A thread that wakes another up goes on until it waits itself. Otherwise the kernel lets the woken one run first in
    # some calls, at a random point; those over HTTP then differ by 6 %.
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
