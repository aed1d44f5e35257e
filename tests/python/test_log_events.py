"""Events of a server reach `logging` as records with fields, or standard error as JSON, whatever a log handler does."""

import asyncio
import http.client
import json
import logging
import os
import re
import subprocess
import sys
from urllib.parse import urlsplit

import pytest

from eventually import eventually as eventually_in
from gudgeon import McpError, Server, SyncClient
from gudgeon.middleware import Logging, Timing

pytestmark = pytest.mark.io


def refused(url, host="evil.example"):
    """Sends a request for another host. Returns the status."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc)
    connection.request("POST", "/mcp", "{}", {"Host": host, "Authorization": "Bearer a-secret"})
    status = connection.getresponse().status
    connection.close()
    return status


def eventually(what):
    """Waits until an event has come, which takes milliseconds."""
    eventually_in(what, seconds=10)


def named(records, name):
    return [record for record in records if getattr(record, "mcp_event", None) == name]


async def test_a_refused_request_is_a_record_with_fields(caplog):
    with caplog.at_level(logging.INFO, "gudgeon"):
        async with Server("shelf").listen("http://127.0.0.1:0/mcp") as listening:
            for _ in range(3):
                assert await asyncio.to_thread(refused, listening.url) == 421
            eventually(lambda: named(caplog.records, "http.refused"))
            url = listening.url
        eventually(lambda: named(caplog.records, "server.stopped"))
    (record,) = named(caplog.records, "http.refused")
    assert (record.name, record.levelno) == ("gudgeon.http", logging.INFO)
    assert (record.mcp_status, record.mcp_reason, record.mcp_remote) == (421, "host", "127.0.0.1")
    assert record.fields["event"] == "http.refused"
    assert record.getMessage().startswith(
        'refused a request with status 421: the request is for the host "evil.example"'
    )
    (started,) = named(caplog.records, "server.started")
    assert (started.mcp_server, started.mcp_url, started.getMessage()) == ("shelf", url, f"shelf serves {url}")
    assert "a-secret" not in caplog.text


def test_middleware_logs_events_with_fields(caplog):
    app = Server("shelf")

    @app.tool
    def open(title: str) -> str:
        return f"open {title}"

    app.middleware(Timing())
    app.middleware(Logging(params=True), on="tools/call")
    with caplog.at_level(logging.INFO, "gudgeon"), SyncClient(app) as client:
        client.call_tool("open", {"title": "x"})
        with pytest.raises(McpError):
            client.call_tool("nil")
    received, failed = named(caplog.records, "request.received")
    assert (received.name, received.levelno, received.mcp_tool) == ("gudgeon.request", logging.INFO, "open")
    assert received.getMessage().startswith("tools/call open {") and "'title': 'x'" in received.getMessage()
    assert failed.mcp_tool == "nil"
    outcomes = [(record.mcp_tool, record.mcp_outcome) for record in named(caplog.records, "request.done")]
    assert outcomes == [("open", "ok"), ("nil", "error")]
    (timed,) = [record for record in named(caplog.records, "request.timed") if record.fields.get("tool") == "open"]
    assert timed.mcp_method == "tools/call" and timed.mcp_request_id == received.mcp_request_id
    assert isinstance(timed.mcp_duration_ms, int)


def test_a_handler_of_the_log_that_raises_does_not_fail_a_call(caplog, capsys):
    class Raising(logging.Handler):
        def handle(self, record):
            raise RuntimeError("disk full")

    app = Server("shelf")
    app.tool(lambda: "open", name="open")
    app.middleware(Logging(), on="tools/call")
    log, handler = logging.getLogger("gudgeon.request"), Raising()
    log.addHandler(handler)
    try:
        with caplog.at_level(logging.INFO, "gudgeon"), SyncClient(app) as client:
            assert client.call_tool("open").text == "open"
    finally:
        log.removeHandler(handler)
    assert "RuntimeError: disk full" in capsys.readouterr().err


def test_an_exception_of_a_handler_has_the_fields_of_its_event(caplog):
    app = Server("shelf")

    @app.tool
    def crash() -> None:
        raise ValueError("no row")

    with SyncClient(app) as client:
        client.call_tool("crash", raise_on_error=False)
        eventually(lambda: named(caplog.records, "call.failed"))
    (record,) = named(caplog.records, "call.failed")
    assert (record.mcp_tool, record.levelno) == ("crash", logging.ERROR)
    assert record.mcp_reference in record.getMessage() and record.exc_info[0] is ValueError


PROGRAM = """
import logging
from gudgeon import Server
{setup}
app = Server("shelf")

@app.tool
def crash() -> None:
    raise ValueError("no row")

app.run("http://127.0.0.1:0/mcp")
"""


def start(setup="", **environment):
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(setup=setup)],
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env={**os.environ, **environment},
    )


def end(process):
    process.terminate()
    try:
        return process.communicate(timeout=20)[1]
    finally:
        process.kill()


@pytest.mark.parametrize("setup", ["", "logging.basicConfig(level=logging.DEBUG)"])
def test_each_line_is_a_json_object(setup):
    process = start(setup, GUDGEON_LOG_FORMAT="json")
    try:
        started = json.loads(process.stderr.readline())
        assert started["fields"]["event"] == "server.started"
        url = started["fields"]["url"]
        assert refused(url) == 421
        with SyncClient(url) as client:
            client.call_tool("crash", raise_on_error=False)
    finally:
        rest = end(process)
    lines = [json.loads(line) for line in rest.splitlines()]
    by_event = {line["fields"]["event"]: line for line in lines if "fields" in line}
    assert by_event["http.refused"]["level"] == "info" and by_event["http.refused"]["logger"] == "gudgeon.http"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", by_event["http.refused"]["time"])
    assert "ValueError: no row" in by_event["call.failed"]["exception"]
    assert by_event["server.stopped"]["message"] == f"shelf has stopped serving {url}"


def test_an_unknown_format_is_named():
    done = subprocess.run(
        [sys.executable, "-c", "from gudgeon import Server; Server('a')"],
        capture_output=True,
        text=True,
        env={**os.environ, "GUDGEON_LOG_FORMAT": "xml"},
    )
    assert done.returncode == 1
    assert "GUDGEON_LOG_FORMAT: 'xml' is not a format; set it to json or text" in done.stderr


BLOCKING = """
import threading

class Blocking(logging.Handler):
    def emit(self, record):
        threading.Event().wait()

class Raising(logging.Handler):
    def handle(self, record):
        raise RuntimeError("disk full")

log = logging.getLogger("gudgeon.{logger}")
log.setLevel(logging.DEBUG)
log.addHandler({kind}())
"""


@pytest.mark.parametrize("kind", ["Blocking", "Raising"])
def test_a_handler_of_the_log_that_blocks_or_raises_does_not_stop_the_server(kind):
    process = start(BLOCKING.format(kind=kind, logger="http"))
    try:
        url = next(found[0] for line in process.stderr if (found := re.search(r"http://\S+", line)))
        assert [refused(url) for _ in range(5)] == [421] * 5
        with SyncClient(url) as client:
            assert client.call_tool("crash", raise_on_error=False).is_error
    finally:
        process.kill()
        process.communicate()
