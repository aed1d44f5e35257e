"""Runs client programs, and kills their child processes, also those in other process groups, by searching /proc."""

import contextlib
import os
import signal
import subprocess
from pathlib import Path

SECONDS = 30  # for a client program and the server that it started


def run(command, cwd):
    """Returns status, stdout and stderr; processes that hang or outlive the program are killed and reported."""
    pipe = subprocess.PIPE
    child = subprocess.Popen(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe)
    try:
        # Servers inherit stderr, so this also waits for a server that outlives its client.
        out, err = child.communicate(timeout=SECONDS)
        status = f"exit {child.returncode}"
    except subprocess.TimeoutExpired:
        ended = child.poll() is not None
        status = f"exit {child.returncode}, but its server is still running" if ended else f"killed after {SECONDS} s"
        for pid in under(child.pid) | with_stderr(child.stderr):
            kill(pid)
        out, err = child.communicate()
    return status, out.decode(errors="replace"), err.decode(errors="replace")


def last_words(err):
    """Returns the line with the error, or else the last line."""
    lines = [line.strip() for line in err.splitlines() if line.strip()]
    errors = [line for line in lines if "rror:" in line or "Error" in line]
    return next(iter([*errors[-1:], *lines[-1:]]), "")[:400]


def under(pid):
    """Returns the process and all its descendants."""
    children = {}
    for each in _all():
        with contextlib.suppress(OSError, IndexError):
            parent = int((each / "stat").read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(each.name))
    found, todo = set(), [pid]
    while todo:
        found.add(one := todo.pop())
        todo += children.get(one, [])
    return found


def with_stderr(pipe):
    """Returns the processes whose stderr is the other end of this pipe, orphans included."""
    wanted = f"pipe:[{os.fstat(pipe.fileno()).st_ino}]"
    found = set()
    for each in _all():
        with contextlib.suppress(OSError):
            if os.readlink(each / "fd/2") == wanted:
                found.add(int(each.name))
    return found


def kill(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _all():
    return Path("/proc").glob("[0-9]*")
