"""Clients against programs: how they start, fall back, fail, die and are ended."""

import asyncio
import contextlib
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from gudgeon import Client, Command, McpError, SyncClient, SyncClientGroup, UrlElicitationRequired
from gudgeon.errors import CallTimeout, ConnectFailed, ConnectionLost, Declined, NotSupported, ProtocolError
from gudgeon.types import ElicitRequest, SampleResult
from serverproc import is_alive

pytestmark = pytest.mark.io

FAKE = str(Path(__file__).with_name("fake_server.py"))


def fake(mode="legacy", **env):
    return Command(sys.executable, FAKE, mode, env=env)


def test_a_modern_client_falls_back_to_what_the_server_speaks():
    with SyncClient(fake()) as client:
        assert client.revision == "2025-11-25" and client.server.name == "fake"
        assert [tool.name for tool in client.list_tools()] == ["echo", "slow", "patient", "typed"]
        assert client.call_tool("echo", {"a": 1}).data == '{"a": 1}'
        assert client.call_tool("echo", {"a": 1}, returns=dict[str, int]).data == {"a": 1}


def test_a_server_that_dies_of_the_probe_is_started_afresh():
    with SyncClient(fake("dies_of_probe")) as client:
        assert client.revision == "2025-11-25"
        assert client.call_tool("echo", {}).text == "{}"


LEAVES_A_CHILD = """
import os, runpy, sys, time
child = os.fork()
if child == 0:
    for stream in (0, 1, 2):
        os.close(stream)
    time.sleep(600)
    os._exit(0)
open(sys.argv[2], "w").write(str(child))
sys.argv[1:] = ["legacy"]
runpy.run_path(os.environ["SERVER"])
"""


def test_what_an_exited_server_left_in_its_group_is_ended(tmp_path):
    pid = tmp_path / "pid"
    command = Command(sys.executable, "-c", LEAVES_A_CHILD, "-", str(pid), env={"SERVER": FAKE})
    with SyncClient(command) as client:
        assert client.call_tool("echo", {}).text == "{}"
    until = time.monotonic() + 60
    while is_alive(int(pid.read_text())):
        assert time.monotonic() < until, "it lives on"
        time.sleep(0.05)


PRINTS_ENV = """
import os
from gudgeon import Server
app = Server("env")
app.tool(lambda: sorted(os.environ), name="names")
app.run()
"""


@pytest.mark.parametrize("form", ["words", "command", "entry", "group"])
def test_a_server_inherits_few_variables(form, monkeypatch):
    monkeypatch.setenv("GUDGEON_SECRET", "1")
    monkeypatch.setenv("TERM", "dumb")
    words = [sys.executable, "-c", PRINTS_ENV]
    entry = {"command": words[0], "args": words[1:]}

    def names(env):
        if form == "group":
            servers = {"a": entry if env is None else {**entry, "env": env}}
            with SyncClientGroup({"mcpServers": servers}) as group:
                return group.call_tool("a_names").data
        target = {"words": words, "command": Command(*words, env=env), "entry": {**entry, "env": env}}[form]
        with SyncClient(target) as client:
            return client.call_tool("names").data

    names_of_default = names(None)
    assert {"PATH", "TERM"} <= set(names_of_default)
    # Python itself may set the locale.
    assert set(names_of_default) <= {"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LC_CTYPE"}
    if form != "words":
        assert set(names({"SHELF": "oak"})) - set(names_of_default) == {"SHELF"}
        assert "GUDGEON_SECRET" in names("inherit")


def test_an_environment_is_a_mapping_or_inherited():
    with pytest.raises(TypeError, match='must be a mapping of strings, or "inherit"'):
        Command("a", env="PATH")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match='must be a mapping of strings, or "inherit"'):
        SyncClient({"command": "a", "env": "PATH"})


def test_a_revision_can_be_pinned():
    with SyncClient(fake(), revision=["2024-11-05", "2025-03-26"]) as client:
        assert client.revision == "2025-03-26"


def test_text_that_is_json_becomes_the_type_asked_for():
    with SyncClient(fake()) as client:
        assert client.call_tool("echo", {"a": 1}, returns=dict[str, int]).data == {"a": 1}
        assert client.call_tool("echo", {"1": 2}, returns=dict[int, int]).data == {1: 2}
        with pytest.raises(McpError, match="not an int"):
            client.call_tool("log", {}, returns=int)


def test_a_command_that_is_not_there():
    with pytest.raises(ConnectFailed) as caught, SyncClient(["gudgeon-no-such-program", "a"]):
        pass
    error = caught.value
    assert error.target == "gudgeon-no-such-program a" and error.phase == "connect" and error.hint
    assert str(error).count("gudgeon-no-such-program a") == 1 and "\n" not in str(error)


def test_a_server_that_dies_at_the_start_shows_its_status_and_last_lines():
    with pytest.raises(ConnectFailed) as caught, SyncClient(fake("crash")):
        pass
    error = caught.value
    assert error.exit_status == 3
    assert error.stderr == "Traceback: no such module"
    assert str(error).count("no such module") == 1 and "status 3" in str(error)


def test_a_silent_server_is_a_timeout():
    with pytest.raises(ConnectFailed) as caught, SyncClient(fake("mute"), revision="2025-11-25", timeout=0.3):
        pass
    assert isinstance(caught.value, TimeoutError)


def test_a_server_that_refuses():
    with pytest.raises(ConnectFailed, match="no room") as caught, SyncClient(fake("refuses")):
        pass
    assert caught.value.code == -32000


def test_no_common_revision():
    with pytest.raises(NotSupported, match="2030-01-01"), SyncClient(fake("future")):
        pass


def test_a_server_that_dies_in_the_middle():
    with SyncClient(fake()) as client:
        with pytest.raises(ConnectionLost) as caught:
            client.call_tool("die", {})
        assert "status 7" in str(caught.value) and "the last line of all" in str(caught.value)
        with pytest.raises(ConnectionLost):
            client.list_tools()
        assert client.connect() is client, "a lost connection is made anew"
        assert client.call_tool("echo", {"a": 1}).text == '{"a": 1}'


async def test_connect_after_the_server_died_connects_again():
    async with Client(fake()) as client:
        pid = (await client.call_tool("pid", {})).text
        await client.connect()
        assert (await client.call_tool("pid", {})).text == pid, "connected already"
        with pytest.raises(ConnectionLost):
            await client.call_tool("die", {})
        await client.connect()
        assert (await client.call_tool("pid", {})).text != pid


def open_files():
    """The files that this process has open, as links, of which both ends of a pipe have the same."""
    links = set()
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            links.add(os.readlink(f"/proc/self/fd/{name}"))
    return links


def test_a_server_that_left_meanwhile_is_restarted_before_the_call():
    back = []
    command = Command(sys.executable, FAKE, "legacy", restart=True)
    with SyncClient(command, on_reconnect=back.append) as client:
        pid = int(client.call_tool("pid", {}).text)
        pipes = {os.readlink(f"/proc/{pid}/fd/{descriptor}") for descriptor in (0, 1)}
        assert pipes <= open_files()
        os.kill(pid, signal.SIGKILL)
        # Until the client has noticed its end, and closed its ends of the pipes.
        deadline = time.monotonic() + 60
        while pipes & open_files():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert int(client.call_tool("pid", {}).text) != pid
        (made,) = back
        assert isinstance(made.reason, ConnectionLost) and "signal 9" in str(made.reason) and made.attempt == 1


async def test_what_is_safe_is_repeated_and_nothing_else(tmp_path):
    def logged(name):
        log = tmp_path / name
        return log, Command(sys.executable, FAKE, "legacy", restart=True, env={"FAKE_LOG": str(log)})

    async def lose(client, log, call):
        pid = int((await client.call_tool("pid", {})).text)
        before = log.read_text().count("\n")
        waiting = asyncio.ensure_future(call())
        while log.read_text().count("\n") == before:
            await asyncio.sleep(0.01)
        os.kill(pid, signal.SIGKILL)
        return await waiting

    log, command = logged("one")
    async with Client(command) as client:
        await client.list_tools()
        with pytest.raises(ConnectionLost, match="signal 9"):
            await lose(client, log, lambda: client.call_tool("steps", {"steps": 1, "pause": 600}))
        again = await lose(client, log, lambda: client.call_tool("patient", {}))
        assert again.text == "patience"
    log, command = logged("other")
    async with Client(command, retry="never") as client:
        await client.list_tools()
        with pytest.raises(ConnectionLost):
            await lose(client, log, lambda: client.call_tool("patient", {}))


def test_a_server_is_restarted_where_that_is_wanted():
    command = Command(sys.executable, FAKE, "legacy", restart=True)
    back = []
    with SyncClient(command, on_reconnect=back.append) as client:
        client.list_tools()
        with pytest.raises(ConnectionLost):
            client.call_tool("die", {})
        assert client.call_tool("echo", {"a": 1}).text == '{"a": 1}'
        assert len(back) == 1


@pytest.mark.parametrize("answers", [True, False])
def test_a_slow_callback_does_not_keep_a_blocking_client_from_its_result_or_its_time_limit(answers):
    seen = []

    def on_log(message):
        seen.append(message.data)
        time.sleep(0.01)

    with SyncClient(fake(), timeout=60 if answers else 1, connect_timeout=60, on_log=on_log) as client:
        if answers:
            assert client.call_tool("flood", {"messages": 2_000, "answers": True}).text == "flooded"
        else:
            with pytest.raises(CallTimeout):
                client.call_tool("flood", {"messages": 2_000, "answers": False})
    # In their order, and far from all of them: 20 s of callbacks.
    assert seen == list(range(len(seen))) and len(seen) < 1_500


@pytest.mark.parametrize("answers", [True, False])
async def test_a_slow_callback_does_not_keep_an_event_loop_from_results_and_other_tasks(answers):
    seen = []

    def on_log(message):
        seen.append(message.data)
        time.sleep(0.01)

    async with Client(fake(), timeout=60 if answers else 1, connect_timeout=60, on_log=on_log) as client:
        call = asyncio.create_task(client.call_tool("flood", {"messages": 2_000, "answers": answers}))
        while not seen:
            await asyncio.sleep(0)
        assert len(seen) < 1_000, "the loop runs other tasks between callbacks"
        if answers:
            assert (await call).text == "flooded"
        else:
            with pytest.raises(CallTimeout):
                await call
    assert seen == list(range(len(seen))) and len(seen) < 1_500


def test_messages_before_a_result_are_delivered_before_it():
    seen = []
    with SyncClient(fake(), on_log=lambda message: seen.append(message.data)) as client:
        client.call_tool("flood", {"messages": 100, "answers": True})
        assert seen == list(range(100))


def test_all_pages_of_a_list_share_one_time_limit():
    with SyncClient(fake("endless"), timeout=0.5, connect_timeout=60) as client:
        with pytest.raises(CallTimeout, match="not all pages"):
            client.list_tools()


def test_a_form_whose_check_takes_long_does_not_stall_other_clients():
    # Each pattern reads the whole text, and all of them match.
    patterns = [{"pattern": f"^(a|b|c{n})*[^{chr(100 + n % 20)}]*b$"} for n in range(800)]
    field = {"type": "string", "allOf": patterns, "default": "ab" * 300_000}
    params = {"message": "Which?", "requestedSchema": {"type": "object", "properties": {"v": field}}}
    answers = []
    with SyncClient(fake(), on_elicit=lambda _: {}) as client, SyncClient(fake()) as other:

        def call():
            asking = {"method": "elicitation/create", "params": params}
            answers.append(json.loads(client.call_tool("ask", asking).text))

        calling = threading.Thread(target=call)
        start = time.monotonic()
        calling.start()
        pings = [0.0]
        while calling.is_alive():
            pings.append(other.ping())
        assert max(pings) * 2 < time.monotonic() - start
    assert answers[0]["action"] == "accept" and len(answers[0]["content"]["v"]) == 600_000


async def test_a_cancelled_task_tells_the_server(tmp_path):
    log = tmp_path / "log"
    async with Client(fake(FAKE_LOG=str(log))) as client:
        call = asyncio.ensure_future(client.call_tool("slow"))
        while '"slow"' not in log.read_text():
            await asyncio.sleep(0.01)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert (await client.call_tool("count", {})).text == "1"
    frames = [json.loads(line) for line in log.read_text().splitlines()]
    call_id = next(frame["id"] for frame in frames if frame.get("params", {}).get("name") == "slow")
    cancelled = next(frame for frame in frames if frame["method"] == "notifications/cancelled")
    assert cancelled["params"]["requestId"] == call_id


async def test_questions_of_a_legacy_server_are_answered_on_the_loop():
    asked = []

    async def on_elicit(request):
        await asyncio.sleep(0)
        asked.append(request)
        return {"Sure?": True, "No?": Declined(), "Two?": {"a": 1, "b": 2}}[request.message]

    def on_sample(request):
        return SampleResult(f"you said {request.messages[0].text}", model="m")

    form = {"type": "object", "properties": {"value": {"type": "boolean"}}}
    two = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
    async with Client(fake(), on_elicit=on_elicit, on_sample=on_sample, roots=["file:///srv"]) as client:

        async def ask(method, **params):
            return json.loads((await client.call_tool("ask", {"method": method, "params": params})).text)

        elicit = "elicitation/create"
        assert await ask(elicit, message="Sure?", requestedSchema=form) == {
            "action": "accept",
            "content": {"value": True},
        }
        assert await ask(elicit, message="No?", requestedSchema=form) == {"action": "decline"}
        assert (await ask(elicit, message="Two?", requestedSchema=two))["content"] == {"a": 1, "b": 2}
        message = {"role": "user", "content": {"type": "text", "text": "hi"}}
        sampled = await ask("sampling/createMessage", messages=[message], maxTokens=9)
        assert sampled["content"] == {"type": "text", "text": "you said hi"}
        assert await ask("roots/list") == {"roots": [{"uri": "file:///srv"}]}
        client.set_roots(["file:///other"])
        assert await ask("roots/list") == {"roots": [{"uri": "file:///other"}]}
        assert (await ask(elicit, message="Unknown?", requestedSchema=form))["code"] == -32603
    assert isinstance(asked[0], ElicitRequest) and asked[0].mode == "form"


def test_questions_are_answered_on_the_thread_that_waits():
    import threading

    where = []

    def on_elicit(request):
        where.append(threading.current_thread())
        return "text"

    form = {"type": "object", "properties": {"value": {"type": "string"}}}
    with SyncClient(fake(), on_elicit=on_elicit, roots=lambda: ["file:///a"]) as client:
        params = {"message": "Which?", "requestedSchema": form}
        answer = client.call_tool("ask", {"method": "elicitation/create", "params": params}).text
        assert json.loads(answer) == {"action": "accept", "content": {"value": "text"}}
        assert json.loads(client.call_tool("ask", {"method": "roots/list", "params": {}}).text)["roots"] == [
            {"uri": "file:///a"}
        ]
        refused = json.loads(client.call_tool("ask", {"method": "sampling/createMessage", "params": {}}).text)
        assert refused["code"] == -32601
    assert where == [threading.current_thread()]


async def test_changes_are_notified():
    changed = []
    async with Client(fake(), on_list_changed=changed.append) as client:
        async with client.subscribe("fake://a", tools=True) as changes:
            await client.call_tool("change", {})
            seen = [await anext(changes), await anext(changes)]
        assert [(change.kind, change.uri) for change in seen] == [("tools", None), ("updated", "fake://a")]
        with pytest.raises(NotSupported, match=r"prompts\.listChanged"):
            async with client.subscribe(prompts=True):
                pass
    assert [change.kind for change in changed] == ["tools"]
    with pytest.raises(ValueError):
        client.subscribe()


def test_changes_are_notified_without_a_loop():
    with SyncClient(fake()) as client, client.subscribe("fake://a") as changes:
        client.call_tool("change", {})
        assert next(changes).uri == "fake://a"
        with pytest.raises(ConnectionLost):
            client.call_tool("die", {})
        with pytest.raises(ConnectionLost):
            next(changes)


def test_answers_that_can_not_be_read_are_the_servers_fault():
    with SyncClient(fake()) as client:
        with pytest.raises(McpError) as odd:
            client.call_tool("odd", {})
        assert not isinstance(odd.value, ProtocolError) and odd.value.code is None
        with pytest.raises(UrlElicitationRequired) as caught:
            client.call_tool("url", {})
        assert caught.value.elicitations[0].url == "https://example.org/in"


def test_arguments_are_checked_where_that_is_wanted():
    with SyncClient(fake(), validate=True) as client, pytest.raises(ValueError, match="typed"):
        client.call_tool("typed", {"n": "x"})


def test_a_host_s_entry_and_a_path_reach_the_same(tmp_path):
    entry = {"command": sys.executable, "args": [FAKE, "legacy"]}
    with SyncClient(entry) as client:
        assert client.server.name == "fake"
    script = tmp_path / "server.py"
    script.write_text(Path(FAKE).read_text().replace("sys.argv[1]", "'legacy'"))
    with SyncClient(script) as client:
        assert client.server.name == "fake"


def test_a_server_that_stays_is_ended():
    client = SyncClient(fake("stubborn"))
    client.connect()
    start = time.monotonic()
    client.close()
    assert time.monotonic() - start < 60


def test_closing_while_calls_are_under_way(tmp_path):
    log = tmp_path / "log"

    async def main():
        client = await Client(fake(FAKE_LOG=str(log))).connect()
        call = asyncio.ensure_future(client.call_tool("slow"))
        while '"slow"' not in log.read_text():
            await asyncio.sleep(0.01)
        await client.close()
        with pytest.raises(ConnectionLost, match="closed"):
            await call

    asyncio.run(main())


def test_a_client_goes_on_on_another_loop():
    client = Client(fake())
    asyncio.run(client.connect())

    async def use():
        result = await client.call_tool("log", {})
        await client.close()
        return result.text

    assert asyncio.run(use()) == "logged"


def test_errors_have_one_base():
    assert issubclass(ConnectFailed, McpError) and issubclass(CallTimeout, TimeoutError)
