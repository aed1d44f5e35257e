"""`gudgeon run`: over stdio the process is the server; over HTTP it listens."""

import http.client
import json
import re
import signal
import subprocess
import threading
from urllib.parse import urlsplit

import pytest
from messages import Host

# Speaks the protocol without any library.
FOREIGN = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] == "initialize":
        answer["result"] = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                            "serverInfo": {"name": "foreign", "version": "1"}}
    elif message["method"] == "tools/call":
        params = message["params"]
        token = params.get("_meta", {}).get("progressToken")
        if token is not None:
            progress = {"progressToken": token, "progress": 1}
            print(json.dumps({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress}), flush=True)
        answer["result"] = {"content": [{"type": "text", "text": str(sum(params["arguments"].values()))}]}
    elif message["method"] == "tools/list":
        answer["result"] = {"tools": [{"name": "add", "inputSchema": {"type": "object"}}]}
    else:
        answer["error"] = {"code": -32601, "message": "unknown"}
    print(json.dumps(answer), flush=True)
"""


def url_of(process):
    """Reads standard error until the URL."""
    for line in process.stderr:
        found = re.search(r"http://\S+", line)
        if found:
            return found[0]
    raise AssertionError("no URL was printed")


@pytest.fixture
def foreign(gudgeon):
    file = gudgeon.folder / "foreign.py"
    file.write_text(FOREIGN)
    return file


def test_over_stdio_the_process_is_the_server(gudgeon, shelf):
    with Host(gudgeon.start("run", shelf)) as host:
        assert host.initialize()["result"]["serverInfo"]["name"] == "shelf"
        assert (
            host.request(1, "tools/call", name="add", arguments={"a": 1, "b": 2})["result"]["content"][0]["text"] == "3"
        )
        assert host.end()[0] == 0


def test_the_exit_code_is_the_servers(gudgeon):
    (gudgeon.folder / "seven.py").write_text("raise SystemExit(7)\n")
    assert gudgeon("run", "seven.py").code == 7


def test_a_folder_is_entered_first(gudgeon, shelf):
    project = gudgeon.home / "project"
    project.mkdir()
    (project / "module.py").write_text("import os\nraise SystemExit(os.getcwd())\n")
    outcome = gudgeon("run", "--directory", "project", "module:app")
    assert outcome.err == f"{project}\n"
    assert gudgeon("run", "--directory", "project", "module.py").err == f"{project}\n"
    outcome = gudgeon("run", "--directory", "gone", "module:app")
    assert outcome.code == 10 and outcome.err.startswith("error: --directory gone: ")


def test_ctrl_c_ends_gracefully(gudgeon, shelf):
    with Host(gudgeon.start("run", shelf)) as host:
        host.initialize()
        host.process.send_signal(signal.SIGINT)
        assert host.process.wait(timeout=60) == 0


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])
@pytest.mark.parametrize("command", ["run", "record", "dev"])
def test_http_serves_each_revision(gudgeon, shelf, command, revision):
    more = [gudgeon.folder / "t.jsonl"] if command == "record" else []
    process = gudgeon.start(command, shelf, *more, "--http", "http://127.0.0.1:0/mcp")
    try:
        url = url_of(process)
        outcome = gudgeon("call", "--revision", revision, url, "add", "a:=1", "b:=2")
        assert outcome == (0, "3\n", "")
        outcome = gudgeon("call", "--revision", revision, url, "wait", "seconds:=0.1")
        assert outcome.out == "done\n"
    finally:
        process.send_signal(signal.SIGTERM)
        code = process.wait(timeout=60)
        process.communicate()
    assert code == (0 if command == "run" else 143)


def test_a_server_of_another_library_is_served_over_http(gudgeon, foreign):
    process = gudgeon.start("run", foreign, "--http", "http://127.0.0.1:0/mcp")
    try:
        url = url_of(process)
        for _ in range(2):
            assert gudgeon("call", url, "add", "a:=1", "b:=2").out == "3\n"
    finally:
        process.terminate()
        process.communicate(timeout=60)


def post(url, *headers):
    body = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
    words = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", url, "-d", body]
    words += ["-H", "Content-Type: application/json"]
    for header in headers:
        words += ["-H", header]
    return subprocess.run(words, capture_output=True, encoding="utf-8", timeout=60).stdout


def test_pages_and_other_hosts_are_rejected(gudgeon, foreign):
    process = gudgeon.start("run", foreign, "--http", "http://127.0.0.1:0/mcp")
    try:
        url = url_of(process)
        assert post(url) == "400"
        assert post(url, "Origin: https://example.org") == "403"
        assert post(url, "Host: example.org") == "403"
        assert post(url, "Mcp-Session-Id: unknown") == "404"
        assert post(url + "/other") == "404"
    finally:
        process.terminate()
        process.communicate(timeout=60)


@pytest.mark.parametrize("url", ["8000", "https://127.0.0.1/", "http://127.0.0.1:x/", "http://0.0.0.0:0/mcp"])
def test_a_wrong_url_is_an_error_of_usage(gudgeon, foreign, url):
    outcome = gudgeon("run", foreign, "--http", url)
    assert outcome.code == 2 and "http://127.0.0.1:8000/mcp" in outcome.err


def test_help_has_examples_in_a_narrow_terminal(gudgeon):
    for command in ("run", "dev", "record", "replay"):
        outcome = gudgeon(command, "--help", COLUMNS="20")
        assert outcome.code == 0 and f"gudgeon {command} " in outcome.out and "Examples:" in outcome.out


def test_the_log_is_json(gudgeon, shelf, foreign):
    for file in (shelf, foreign):
        process = gudgeon.start("run", file, "--http", "http://127.0.0.1:0/mcp", "--log-format", "json")
        try:
            started = json.loads(process.stderr.readline())
            assert (started["level"], started["fields"]["event"]) == ("info", "server.started")
            assert gudgeon("call", started["fields"]["url"], "add", "a:=1", "b:=2").out == "3\n"
        finally:
            process.terminate()
            rest = process.communicate(timeout=60)[1]
        for line in rest.splitlines():
            assert json.loads(line)["message"]


CRASHING = """
from gudgeon import Server
app = Server("shelf")

@app.tool
def crash() -> None:
    raise ValueError("x" * 100)

@app.tool
async def crash_in_loop() -> None:
    raise ValueError("x" * 100)
"""


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_a_json_log_that_nobody_reads_stops_no_call_and_says_how_much_it_lost(gudgeon, tmp_path, transport):
    calls = 1_300  # their messages exceed a pipe and the queue
    file = tmp_path / "crashing.py"
    file.write_text(CRASHING)
    at = ["--http", "http://127.0.0.1:0/mcp"] if transport == "http" else []
    process = gudgeon.start("run", file, *at, "--log-format", "json")
    stop = threading.Timer(120, process.kill)
    stop.start()
    try:
        ask = over_http(json.loads(process.stderr.readline())["fields"]["url"]) if at else over_stdio(process)
        for number in range(calls):
            name = "crash_in_loop" if number % 2 else "crash"
            assert ask(
                {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": name, "_meta": META}}
            )
        # The queue is written once somebody reads. Each line is complete.
        lines = (json.loads(line) for line in process.stderr)
        lost = next(line for line in lines if "dropped, because standard error was not read" in line["message"])
        assert re.match(r"\d+ log messages were dropped", lost["message"])
    finally:
        stop.cancel()
        process.kill()
        process.communicate()


META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


def over_http(url):
    """Returns a function that sends a call and returns whether the tool failed."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=60)

    def ask(request):
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": "tools/call",
            "Mcp-Name": request["params"]["name"],
        }
        connection.request("POST", parts.path, json.dumps(request), headers)
        return json.loads(connection.getresponse().read())["result"]["isError"]

    return ask


def over_stdio(process):
    def ask(request):
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())["result"]["isError"]

    return ask


def test_a_wrong_format_is_an_error_of_usage(gudgeon, shelf):
    outcome = gudgeon("run", shelf, "--log-format", "xml")
    assert outcome.code == 2 and "text, json" in outcome.err
