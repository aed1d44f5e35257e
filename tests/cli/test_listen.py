"""`gudgeon listen` prints changes and log messages until Ctrl-C; calls over HTTP."""

import json
import signal
import subprocess
import sys
import time

import pytest
from background import eventually


@pytest.fixture
def server(gudgeon, desk):
    """The desk at an address."""
    process = subprocess.Popen(
        [sys.executable, desk, "http://127.0.0.1:0/mcp"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env=gudgeon.environment,
    )
    url = next(word for line in process.stderr for word in line.split() if word.startswith("http://"))
    yield url.rstrip("/.,")
    process.kill()
    process.communicate()


def listening(gudgeon, *words):
    process = gudgeon.start("listen", *words)
    assert process.stderr.readline() == "listening; Ctrl-C ends it\n"
    return process


def end(process):
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    return out


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_changes_are_printed_as_they_come(gudgeon, server, revision):
    process = listening(gudgeon, server, "--tools", "desk://lamp", "--revision", revision)
    assert gudgeon("call", server, "grow").out == "grown\n"
    lines = {process.stdout.readline() for _ in range(2)}
    assert lines == {"tools changed\n", "desk://lamp was updated\n"}
    assert end(process) == ""


def test_json_is_one_object_a_line(gudgeon, server):
    process = listening(gudgeon, server, "--json")
    assert gudgeon("call", server, "grow").code == 0
    assert json.loads(process.stdout.readline()) == {"event": "listChanged", "list": "tools"}
    end(process)


def test_a_server_without_announcements_can_not_be_listened_to(gudgeon, odd):
    outcome = gudgeon("listen", *odd("plain"))
    assert (outcome.code, outcome.out) == (7, "") and "neither changes nor log messages" in outcome.err
    named = gudgeon("listen", "--tools", *odd("plain"))
    assert (named.code, named.out) == (7, "")


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_ctrl_c_cancels_a_call_over_http(gudgeon, server, revision):
    record = gudgeon.folder / "record"
    words = ["call", server, "work", f"path={record}", "--revision", revision, "--log-level", "debug"]
    process = gudgeon.start(*words)
    while not (record.exists() and record.read_text() == "begun"):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130
    process.communicate()
    eventually(lambda: record.read_text() == "cancelled")


def test_calls_over_http_are_like_those_over_stdio(gudgeon, server):
    for revision in ["2025-03-26", "2025-11-25", "2026-07-28"]:
        outcome = gudgeon("call", server, "search", "title=Emma", "limit=2", "--revision", revision)
        assert outcome.code == 0 and outcome.json["limit"] == 2
        assert (
            gudgeon("call", server, "order", "--answer", "name=Lamp", "--revision", "2025-11-25").out == "1 red Lamp\n"
        )
