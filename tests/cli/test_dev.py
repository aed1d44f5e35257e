"""`gudgeon dev`: a server that starts again when its files change, in a session that goes on."""

import os
import re
import signal
import stat
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from background import eventually
from messages import META, Host
from terminal import Terminal
from test_run import FOREIGN, url_of

SERVER = """
from gudgeon import Context, Server
import asyncio
app = Server("shelf")
@app.tool
def old(a: int) -> int:
    return a
@app.tool
async def hang() -> str:
    await asyncio.sleep(1000)
    return "never"
@app.tool
async def ask(ctx: Context) -> str:
    return str(await ctx.elicit("Really?", bool))
"""


@pytest.fixture
def file(gudgeon):
    path = gudgeon.folder / "server.py"
    path.write_text(SERVER)
    return path


def change(file, before="old", after="new"):
    """Replaces the file as editors do."""
    changed = file.with_name(".changed")
    changed.write_text(file.read_text().replace(before, after))
    changed.rename(file)


def tools(host, number, **meta):
    params = {"_meta": meta} if meta else {}
    result = host.request(number, "tools/list", **params)
    return [tool["name"] for tool in result["result"]["tools"]]


def is_list_changed(message):
    return message.get("method") == "notifications/tools/list_changed"


def test_a_session_goes_on_after_a_change(gudgeon, file):
    with Host(gudgeon.start("dev", file)) as host:
        answer = host.initialize()
        assert answer["result"]["capabilities"]["tools"]["listChanged"] is True
        assert "old" in tools(host, 1)
        change(file)
        host.until(is_list_changed)
        assert "new" in tools(host, 2) and "old" not in tools(host, 3)
        code, errors = host.end()
        assert code == 0 and "server.py changed" in errors and "serves again" in errors


@pytest.mark.parametrize("command", ["dev", "run"])
def test_callers_see_the_errors_of_handlers_during_development_only(gudgeon, file, command):
    file.write_text(SERVER + '@app.tool\ndef fail() -> str:\n    raise ValueError("no shelf 12")\n')
    with Host(gudgeon.start(command, file)) as host:
        host.initialize()
        result = host.request(1, "tools/call", name="fail")["result"]
        assert result["isError"] and ("no shelf 12" in result["content"][0]["text"]) == (command == "dev")
        _, errors = host.end()
        assert "ValueError: no shelf 12" in errors and ("raise ToolError(text)" in errors) == (command == "run")


def test_the_log_level_of_the_client_goes_on_after_a_change(gudgeon, file):
    file.write_text(SERVER + '@app.tool\nasync def tell(ctx: Context) -> None:\n    ctx.debug("heard")\n')

    def logged(host, number):
        """Returns what the tool logs before its result."""
        host.send(id=number, method="tools/call", params={"name": "tell", "arguments": {}})
        message = host.until(
            lambda message: message.get("method") == "notifications/message" or message.get("id") == number
        )
        return message.get("params", {}).get("data")

    with Host(gudgeon.start("dev", file)) as host:
        host.initialize()
        host.request(1, "logging/setLevel", level="debug")
        assert logged(host, 2) == "heard"
        change(file)
        host.until(is_list_changed)
        assert logged(host, 3) == "heard"


def test_a_subscription_of_2026_07_28_goes_on_after_a_change(gudgeon, file):
    with Host(gudgeon.start("dev", file)) as host:
        listen = {"notifications": {"toolsListChanged": True}, "_meta": META}
        host.send(id="sub", method="subscriptions/listen", params=listen)
        host.until(lambda message: message.get("method") == "notifications/subscriptions/acknowledged")
        assert "old" in tools(host, 1, **META)
        change(file)
        # Not acknowledged a second time.
        message = host.receive()
        assert is_list_changed(message)
        assert message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == "sub"
        assert "new" in tools(host, 2, **META)


def test_a_call_in_progress_fails_with_the_reason(gudgeon, file):
    with Host(gudgeon.start("dev", file)) as host:
        host.initialize()
        host.send(id=7, method="tools/call", params={"name": "hang", "arguments": {}})
        assert "old" in tools(host, 1)
        change(file)
        answer = host.until(lambda message: message.get("id") == 7)
        assert "started again" in answer["error"]["message"] and "server.py" in answer["error"]["message"]


def test_an_error_in_the_file_is_reported_until_it_is_fixed(gudgeon, file):
    with Host(gudgeon.start("dev", file)) as host:
        host.initialize()
        change(file, "def old(", "def old((")
        for number in (1, 2):
            answer = host.request(number, "tools/list")
            while "error" not in answer:
                answer = host.request(number, "tools/list")
            message = answer["error"]["message"]
            if "started again" not in message:
                assert "does not start" in message and "SyntaxError" in message
        change(file, "def old((", "def new(")
        host.until(is_list_changed)
        assert "new" in tools(host, 3)


def test_a_file_that_is_broken_from_the_start_can_be_fixed(gudgeon, file):
    change(file, "def old(", "def old((")
    with Host(gudgeon.start("dev", file)) as host:
        client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
        assert "SyntaxError" in host.request(0, "initialize", **client)["error"]["message"]
        change(file, "def old((", "def old(")
        while "error" in host.request(1, "initialize", **client):
            pass
        host.send(method="notifications/initialized")
        assert "old" in tools(host, 2)


def test_a_question_is_withdrawn_and_its_late_answer_dropped(gudgeon, file):
    with Host(gudgeon.start("dev", file)) as host:
        client = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"elicitation": {}},
            "clientInfo": META["io.modelcontextprotocol/clientInfo"],
        }
        host.request(0, "initialize", **client)
        host.send(method="notifications/initialized")
        host.send(id=1, method="tools/call", params={"name": "ask", "arguments": {}})
        question = host.until(lambda message: message.get("method") == "elicitation/create")
        change(file)
        withdrawn = host.until(lambda message: message.get("method") == "notifications/cancelled")
        assert withdrawn["params"]["requestId"] == question["id"]
        host.send(id=question["id"], result={"action": "decline"})
        assert "new" in tools(host, 2)
        # An answer in time reaches the new process.
        host.send(id=3, method="tools/call", params={"name": "ask", "arguments": {}})
        question = host.until(lambda message: message.get("method") == "elicitation/create")
        host.send(id=question["id"], result={"action": "accept", "content": {"value": True}})
        assert host.until(lambda message: message.get("id") == 3)["result"]["content"][0]["text"]


def test_a_server_that_was_killed_starts_again_with_the_next_request(gudgeon, file):
    change(file, "    return a\n", "    import os\n    return os.getpid()\n")
    with Host(gudgeon.start("dev", file)) as host:
        host.initialize()
        call = {"name": "old", "arguments": {"a": 1}}
        process = int(host.request(1, "tools/call", **call)["result"]["content"][0]["text"])
        os.kill(process, signal.SIGKILL)
        other = host.request(2, "tools/call", **call)
        if "error" in other:
            assert "exit code 137" in other["error"]["message"]
            other = host.request(3, "tools/call", **call)
        assert int(other["result"]["content"][0]["text"]) != process


def test_imported_files_count_and_other_files_do_not(gudgeon, file):
    lib = gudgeon.folder / "lib"
    lib.mkdir()
    (lib / "words.py").write_text("WORD = 'old'\n")
    (lib / "__init__.py").write_text("")
    ignored = gudgeon.folder / "node_modules"
    ignored.mkdir()
    file.write_text(SERVER.replace("-> int:\n    return a", "-> str:\n    from lib.words import WORD\n    return WORD"))
    with Host(gudgeon.start("dev", file)) as host:
        host.initialize()
        tools(host, 1)
        (ignored / "x.js").write_text("1")
        (gudgeon.folder / "data.json").write_text("{}")
        (lib / "words.py").write_text("WORD = 'new'\n")
        host.until(is_list_changed)
        answer = host.request(2, "tools/call", name="old", arguments={"a": 1})
        assert answer["result"]["content"][0]["text"] == "new"
        errors = host.end()[1]
        assert "words.py changed" in errors and "x.js" not in errors and "data.json" not in errors


def test_a_command_and_watched_paths(gudgeon):
    file = gudgeon.folder / "foreign.py"
    file.write_text(FOREIGN)
    data = gudgeon.folder / "data"
    data.mkdir()
    words = ["dev", "--watch", data, "--", sys.executable, file]
    with Host(gudgeon.start(*words)) as host:
        host.initialize()
        (data / "books.json").write_text("{}")
        host.until(is_list_changed)


def test_over_http_a_session_goes_on(gudgeon, file):
    process = gudgeon.start("dev", file, "--http", "http://127.0.0.1:0/mcp")
    try:
        url = url_of(process)
        assert gudgeon("call", url, "old", "a:=1").out == "1\n"
        change(file)
        while "starts again" not in process.stderr.readline():
            pass
        # The connection of requests without a session starts again first, and may fail one of them.
        while (outcome := gudgeon("call", url, "new", "a:=1")).code != 0:
            assert "again" in outcome.err or "new" in outcome.err
        assert outcome.out == "1\n"
    finally:
        process.terminate()
        process.communicate(timeout=60)


@pytest.fixture
def browser(gudgeon):
    """A program in the place of the browser. It writes its argument to the file whose path is returned."""
    program = gudgeon.folder / "browser"
    program.write_text('#!/bin/sh\necho "$1" > "$0.part" && mv "$0.part" "$0.url"\n')
    program.chmod(0o755)
    gudgeon.environment["BROWSER"] = str(program)
    return gudgeon.folder / "browser.url"


DEV_HTTP = ["--http", "http://127.0.0.1:0/mcp"]


def test_a_terminal_opens_the_inspector_for_the_server(gudgeon, file, browser):
    terminal = Terminal(gudgeon, "dev", file, *DEV_HTTP)
    url = re.search(r"http://\S+/mcp", terminal.read_until("/mcp\n"))[0]
    shown = terminal.read_until("?token=") + terminal.read_until("\n")
    page = re.search(r"http://127\.0\.0\.1:\d+/\S+", shown)[0]
    eventually(browser.exists)
    # Every user can read the arguments of the browser's process.
    (redirect,) = map(Path, browser.read_text().splitlines())
    assert "token" not in redirect.name and stat.S_IMODE(redirect.stat().st_mode) == 0o600
    assert f'content="0; url={page}"' in redirect.read_text()
    with urllib.request.urlopen(page) as answer:
        assert answer.status == 200 and b"<title>" in answer.read()
    # The token was for the browser, once.
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(page)
    assert gudgeon("call", url, "old", "a:=1").out == "1\n"
    terminal.type("\x03")
    assert terminal.finish()[0] == 130
    assert not redirect.exists()


def test_a_browser_that_is_missing_does_not_end_the_server(gudgeon, file):
    terminal = Terminal(gudgeon, "dev", file, *DEV_HTTP, BROWSER="/nowhere/browser")
    url = re.search(r"http://\S+/mcp", terminal.read_until("/mcp\n"))[0]
    shown = terminal.read_until("open the URL yourself")
    assert "/nowhere/browser" in shown and "?token=" in shown
    assert gudgeon("call", url, "old", "a:=1").out == "1\n"
    terminal.type("\x03")
    assert terminal.finish()[0] == 130


def test_without_a_terminal_or_on_request_no_page_is_opened(gudgeon, file, browser):
    process = gudgeon.start("dev", file, *DEV_HTTP)
    try:
        assert gudgeon("call", url_of(process), "old", "a:=1").out == "1\n"
    finally:
        process.terminate()
        out, _ = process.communicate(timeout=60)
    assert out == ""
    terminal = Terminal(gudgeon, "dev", "--no-inspect", file, *DEV_HTTP)
    url = re.search(r"http://\S+/mcp", terminal.read_until("/mcp\n"))[0]
    assert gudgeon("call", url, "old", "a:=1").out == "1\n"
    terminal.type("\x03")
    code, shown = terminal.finish()
    assert code == 130 and "token=" not in shown
    assert not browser.exists()


def test_no_process_is_left_when_it_is_killed(gudgeon, file):
    change(file, "    return a\n", "    import os\n    return os.getpid()\n")
    with Host(gudgeon.start("dev", file)) as host:
        host.initialize()
        call = {"name": "old", "arguments": {"a": 1}}
        process = int(host.request(1, "tools/call", **call)["result"]["content"][0]["text"])
        host.process.kill()
        host.process.wait()
        # The end of its input ends the server; its parent is gone, so that it can't be waited for.
        while os.path.exists(f"/proc/{process}/exe"):
            pass


def test_wrong_arguments_are_errors_of_usage(gudgeon, file):
    for words in ([], ["missing.py"], [file, "--", "x"], [file, "--watch", "missing"]):
        outcome = gudgeon("dev", *words)
        assert outcome.code == 2 and "hint:" in outcome.err, outcome
