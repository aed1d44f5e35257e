"""The background process of a test's command, and the connections that it keeps."""

import sys
import time
from pathlib import Path

ERAS = [[], ["--revision", "2025-06-18"]]


def processes(run):
    """The background processes that the log names and that are still there."""
    log = run / "background.log"
    lines = log.read_text().splitlines() if log.exists() else []
    ids = {int(line.split()[2]) for line in lines if line.split()[1:2] == ["process"]}
    return [process for process in ids if is_background(process)]


def is_background(process):
    try:
        return b"background" in Path(f"/proc/{process}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False


def eventually(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def connect(gudgeon, shop, *options, name="shop"):
    outcome = gudgeon("connect", name, *options, "--", sys.executable, shop)
    assert outcome.code == 0, outcome.err
    return outcome
