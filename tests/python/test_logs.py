"""Events of the core reach `logging`, with their fields, from every thread and until the process ends."""

import json
import logging
import re
import subprocess
import sys
import textwrap
import threading

import pytest

from eventually import eventually
from gudgeon import Command, SyncClient
from serverproc import MODERN

pytestmark = pytest.mark.io

# Answers what a client asks at the start, and sends a malformed notification before each response.
SERVER = """
import json, sys
for line in sys.stdin:
    frame = json.loads(line)
    if "id" not in frame:
        continue
    print(json.dumps({"jsonrpc": "2.0", "method": 3}), flush=True)
    reply = {"jsonrpc": "2.0", "id": frame["id"]}
    if frame["method"] == "initialize":
        info = {"name": "odd", "version": "1"}
        reply["result"] = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": info}
    else:
        reply["result"] = {}
    print(json.dumps(reply), flush=True)
"""
CONNECT = f"""
import sys
from gudgeon import Command, SyncClient
SERVER = {SERVER!r}
def connect():
    with SyncClient(Command(sys.executable, "-c", SERVER), revision="2025-06-18") as client:
        client.ping()
"""


def run(program):
    script = CONNECT + textwrap.dedent(program)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_an_event_has_the_level_the_part_of_the_core_and_its_fields(caplog):
    with caplog.at_level(logging.DEBUG, "gudgeon"):
        with SyncClient(Command(sys.executable, "-c", SERVER), revision="2025-06-18") as client:
            client.ping()
        found = lambda: [record for record in caplog.records if record.name == "gudgeon.session"]  # noqa: E731
        eventually(found)
    record = found()[0]
    assert record.levelno == logging.WARNING
    assert record.getMessage().startswith("dropped a malformed frame of the server (problem=")
    assert isinstance(record.fields["problem"], str)


def test_events_just_before_the_end_of_the_process_are_logged():
    stderr = run("""
        import logging
        logging.basicConfig(format="%(levelname)s %(name)s %(message)s")
        connect()
    """)
    assert stderr.count("WARNING gudgeon.session dropped a malformed frame of the server") == 2


def test_without_logging_warnings_go_to_stderr():
    stderr = run("connect()\nassert 'logging' not in sys.modules")
    assert stderr.count("gudgeon.session: dropped a malformed frame of the server") == 2


def test_a_level_hides_events():
    stderr = run("""
        import logging
        logging.getLogger("gudgeon.session").setLevel(logging.ERROR)
        connect()
    """)
    assert stderr == ""


def test_a_forked_process_logs_its_own_events():
    stderr = run("""
        import logging, os
        logging.basicConfig(format="%(process)d %(message)s")
        connect()
        child = os.fork()
        if child:
            assert os.waitpid(child, 0)[1] == 0
            print("child", child, file=sys.stderr)
        else:
            connect()
    """)
    child = stderr.strip().splitlines()[-1].split()[1]
    lines = [line for line in stderr.splitlines() if "dropped a malformed frame" in line]
    assert len(lines) == 4, stderr
    assert len([line for line in lines if line.startswith(f"{child} ")]) == 2


def test_a_process_forked_during_the_first_event_of_its_parent_ends():
    stderr = run("""
        import logging, os, time

        class Slow:
            def find_spec(self, name, path, target=None):
                if name == "gudgeon._call.log":
                    time.sleep(1)

        sys.meta_path.insert(0, Slow())
        logging.basicConfig(format="%(process)d %(message)s")
        connect()
        child = os.fork()
        if child:
            assert os.waitpid(child, 0)[1] == 0
        else:
            connect()
    """)
    assert stderr.count("dropped a malformed frame") == 4, stderr


@pytest.mark.parametrize(
    ("setup", "kind"),
    [("", "def"), ("", "async def"), ("import logging", "def"), ("import logging; logging.basicConfig()", "def")],
)
def test_calls_that_fail_are_answered_although_nobody_reads_stderr(kind, setup):
    calls = 1_300  # their messages exceed a pipe and the queue
    program = f"""
{setup}
from gudgeon import Server
app = Server("t")

@app.tool
{kind} fail() -> None:
    raise RuntimeError("x" * 100)

app.run()
"""
    command = [sys.executable, "-c", program]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as server:
        stop = threading.Timer(60, server.kill)
        stop.start()
        params = {"name": "fail", "_meta": MODERN}
        for first in range(0, calls, 100):
            for number in range(first, first + 100):
                request = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
                server.stdin.write(json.dumps(request).encode() + b"\n")
            server.stdin.flush()
            for _ in range(100):
                assert json.loads(server.stdout.readline())["result"]["isError"]
        # The queue is written once the host reads.
        errors = b""
        while b"dropped, because standard error was not read" not in errors:
            read = server.stderr.read1()
            assert read, errors[-1000:]
            errors += read
        server.stdin.close()
        assert server.wait(60) == 0
        stop.cancel()
    assert 200 < errors.count(b"RuntimeError: xxx") < calls
    assert re.search(rb"\d+ log messages were dropped", errors)


def test_a_process_ends_although_nobody_reads_stderr():
    program = """
import logging
from gudgeon import Server
logging.basicConfig()
app = Server("t")

@app.tool
def fail() -> None:
    raise RuntimeError("x" * 10_000)

app.run()
"""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", program], stdin=pipe, stdout=pipe, stderr=pipe) as server:
        request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "fail", "_meta": MODERN}}
        for _ in range(50):
            server.stdin.write(json.dumps(request).encode() + b"\n")
        server.stdin.close()
        assert len(server.stdout.readlines()) == 50
        assert server.wait(60) == 0
