"""Finds and kills the processes that a program has started, also those in other process groups, by searching /proc."""

import contextlib
import os
import signal
from pathlib import Path


def last_words(lines):
    """Returns the line with the error, or else the last line."""
    lines = [line.strip() for line in lines if line and line.strip()]
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
