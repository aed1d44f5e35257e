"""Finds what a client program started, also where it gave it a session of its own. Looks in /proc."""

import contextlib
import os
import signal
from pathlib import Path


def under(pid):
    """The process and all that descends from it."""
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
    """The processes whose stderr is the other end of this pipe: orphans too."""
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
