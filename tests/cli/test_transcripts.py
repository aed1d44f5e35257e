"""`gudgeon record` and `gudgeon replay`."""

import json
import os
import sys

import pytest
from messages import ASKING, META, Host, lines
from test_run import url_of


@pytest.fixture
def recorded(gudgeon, shelf):
    """The transcript of a session with calls, in 2025-11-25."""
    file = gudgeon.folder / "session.jsonl"
    with Host(gudgeon.start("record", shelf, file)) as host:
        host.initialize()
        host.request(1, "tools/list")
        call = {"name": "wait", "arguments": {"seconds": 0.01}, "_meta": {"progressToken": "p"}}
        host.request(2, "tools/call", **call)
        host.request(3, "tools/call", name="add", arguments={"a": 1, "b": 2})
        host.request(4, "tools/call", name="add", arguments={"a": 2, "b": 2})
        assert host.end()[0] == 0
    return file


def test_a_recording_has_a_header_and_each_message(recorded):
    header, *messages = lines(recorded)
    assert (
        header["transcript"] == 1 and header["program"].startswith("gudgeon ") and header["target"].endswith("shelf.py")
    )
    assert {message["from"] for message in messages} == {"client", "server"}
    assert [
        message["message"]["id"] for message in messages if message["from"] == "client" and "id" in message["message"]
    ] == [
        0,
        1,
        2,
        3,
        4,
    ]
    assert sum(message["message"].get("method") == "notifications/progress" for message in messages) == 10
    times = [message["time"] for message in messages]
    assert times == sorted(times)


def record(gudgeon, *words):
    """Records a server until it ends; returns its output and its exit code."""
    # The input stays open: after its end, a server has 2 s, in which a slow machine may not have started it.
    with gudgeon.start("record", *words) as process:
        return process.stdout.read(), process.wait(60)


def test_garbage_is_recorded_as_text_and_passed_on(gudgeon):
    (gudgeon.folder / "garbage.py").write_text("print('hello <b>')\n")
    output, _ = record(gudgeon, "session.jsonl", "--", sys.executable, "garbage.py", "--token=s3cret")
    assert output == "hello <b>\n"
    header, line = lines(gudgeon.folder / "session.jsonl")
    assert line["text"] == "hello <b>" and "message" not in line
    assert "s3cret" not in json.dumps(header)


def test_the_exit_code_of_a_recorded_server_is_passed_on(gudgeon):
    assert record(gudgeon, "session.jsonl", "--", sys.executable, "-c", "raise SystemExit(7)") == ("", 7)
    outcome = gudgeon("record", "session.jsonl", "--", "no-such-program")
    assert outcome.code == 3 and "no-such-program" in outcome.err


def test_a_recording_is_continued_and_other_files_are_kept(gudgeon, shelf, recorded):
    before = recorded.read_text()
    with Host(gudgeon.start("record", shelf, recorded)) as host:
        host.initialize()
        host.end()
    assert recorded.read_text().startswith(before)
    assert sum("transcript" in line for line in lines(recorded)) == 2
    other = gudgeon.folder / "notes.txt"
    other.write_text("mine\n")
    outcome = gudgeon("record", shelf, other)
    assert outcome.code == 10 and "not a transcript" in outcome.err and other.read_text() == "mine\n"


def test_a_folder_that_is_missing_or_read_only_is_an_error(gudgeon, shelf):
    outcome = gudgeon("record", shelf, "missing/session.jsonl")
    assert outcome.code == 10 and "missing/session.jsonl" in outcome.err
    # Also for root, who may write everywhere else.
    outcome = gudgeon("record", shelf, "/proc/session.jsonl")
    assert outcome.code == 10 and "/proc/session.jsonl" in outcome.err


@pytest.mark.parametrize("command", ["record", "dev"])
def test_a_killed_command_leaves_no_server(gudgeon, command):
    file = gudgeon.folder / "server.py"
    file.write_text(ASKING.replace("return a + b", "import os\n    return os.getpid()"))
    more = ["session.jsonl"] if command == "record" else []
    with Host(gudgeon.start(command, file, *more)) as host:
        host.initialize()
        call = {"name": "add", "arguments": {"a": 1, "b": 2}}
        process = int(host.request(1, "tools/call", **call)["result"]["content"][0]["text"])
        host.process.kill()
        host.process.wait()
        while os.path.exists(f"/proc/{process}/exe"):
            pass


def test_a_replayed_server_answers_as_recorded(gudgeon, recorded):
    with Host(gudgeon.start("replay", recorded)) as host:
        assert host.initialize()["result"]["serverInfo"]["name"] == "shelf"
        for number, b in (("x", 2), ("y", 2), ("z", 1)):
            answer = host.request(number, "tools/call", name="add", arguments={"b": 2, "a": b})
            assert answer["result"]["content"][0]["text"] == str(b + 2)
        call = {"name": "wait", "arguments": {"seconds": 0.01}, "_meta": {"progressToken": 99}}
        host.send(id=7, method="tools/call", params=call)
        steps = [host.receive() for _ in range(11)]
        assert [step["params"]["progress"] for step in steps[:10]] == list(range(10))
        assert {step["params"]["progressToken"] for step in steps[:10]} == {99} and steps[10]["id"] == 7
        assert host.request(8, "ping")["result"] == {}
        assert host.end()[0] == 0


def test_an_unknown_request_names_the_nearest_one(gudgeon, recorded):
    with Host(gudgeon.start("replay", recorded)) as host:
        host.initialize()
        answer = host.request(1, "tools/call", name="add", arguments={"a": 1, "b": 5})
        assert answer["error"]["code"] == -32602
        assert "params.arguments.b: 2 recorded, 5 now" in answer["error"]["message"]
        assert "line " in answer["error"]["message"]
        answer = host.request(2, "prompts/list")
        assert answer["error"] == {"code": -32601, "message": "no prompts/list was recorded"}


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-06-18"])
def test_what_our_client_recorded_is_replayed_to_it(gudgeon, shelf, revision):
    command = [gudgeon.words()[0]]
    words = ["call", "--revision", revision, "add", "a:=1", "b:=2", "--", *command]
    assert gudgeon(*words, "record", shelf, "session.jsonl").out == "3\n"
    assert gudgeon(*words, "replay", "session.jsonl").out == "3\n"
    words[5] = "b:=3"
    outcome = gudgeon(*words, "replay", "session.jsonl")
    assert outcome.code == 6 and "2 recorded, 3 now" in outcome.err


def test_a_replay_over_http(gudgeon, shelf, recorded):
    process = gudgeon.start("replay", recorded, "--http", "http://127.0.0.1:0/mcp")
    try:
        outcome = gudgeon("call", "--revision", "2025-11-25", url_of(process), "add", "a:=1", "b:=2")
        assert outcome.out == "3\n", outcome.err
    finally:
        process.terminate()
        process.communicate(timeout=60)


def test_questions_are_recorded_and_replayed(gudgeon):
    (gudgeon.folder / "server.py").write_text(ASKING)
    client = {
        "protocolVersion": "2025-11-25",
        "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "c", "version": "1"},
    }

    def session(*words):
        with Host(gudgeon.start(*words)) as host:
            host.request("i", "initialize", **client)
            host.send(method="notifications/initialized")
            host.send(id="q", method="tools/call", params={"name": "ask", "arguments": {}})
            question = host.until(lambda message: message.get("method") == "elicitation/create")
            host.send(id=question["id"], result={"action": "accept", "content": {"value": True}})
            answer = host.until(lambda message: message.get("id") == "q")
            host.end()
            return question["params"], answer

    first = session("record", "server.py", "session.jsonl")
    assert session("replay", "session.jsonl") == first
    outcome = gudgeon("replay", "session.jsonl", "--client", "server.py")
    assert outcome.code == 0 and ", 0 differences" in outcome.out


def test_rounds_of_2026_07_28_are_replayed_to_a_server(gudgeon):
    (gudgeon.folder / "server.py").write_text(ASKING)
    meta = {**META, "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}}
    with Host(gudgeon.start("record", "server.py", "session.jsonl")) as host:
        call = {"name": "ask", "arguments": {}, "_meta": meta}
        asked = host.request(1, "tools/call", **call)["result"]
        assert asked["resultType"] == "input_required"
        (key,) = asked["inputRequests"]
        answers = {key: {"action": "accept", "content": {"value": True}}}
        done = host.request(2, "tools/call", **call, inputResponses=answers, requestState=asked["requestState"])
        assert done["result"]["resultType"] == "complete"
        host.end()
    outcome = gudgeon("replay", "session.jsonl", "--client", "server.py")
    assert (outcome.code, outcome.out) == (0, "2 messages compared, 0 differences\n")


def test_a_server_is_compared_with_the_recorded_one(gudgeon, shelf, recorded):
    same = gudgeon("replay", recorded, "--client", shelf)
    assert same.code == 0 and same.out.endswith(", 0 differences\n")
    changed = gudgeon.folder / "changed.py"
    changed.write_text(
        shelf.read_text().replace("return a + b", "return a * b").replace('"step {step}"', '"no {step}"')
    )
    outcome = gudgeon("replay", recorded, "--client", "--json", "--", sys.executable, changed)
    assert outcome.code == 1
    found = outcome.json["differences"]
    assert {"line": 17, "of": "tools/call add", "difference": 'result.content[0].text: "3" recorded, "2" now'} in [
        {**difference, "line": 17} for difference in found
    ]
    assert any(
        difference["of"] == "notifications/progress" and "missing now" in difference["difference"]
        for difference in found
    )
    assert any(
        difference["of"] == "notifications/progress" and "not recorded" in difference["difference"]
        for difference in found
    )


def test_a_server_that_ends_or_does_not_answer_differs(gudgeon, recorded):
    ended = gudgeon("replay", recorded, "--client", "--", sys.executable, "-c", "pass")
    assert ended.code == 1 and "the server has ended" in ended.out
    silent = gudgeon("replay", recorded, "--timeout", "0.2", "--client", "--", "sleep", "1000")
    assert silent.code == 1 and "no answer within 0.2 s" in silent.out


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", "no messages"),
        ("hello\n", "line 1: this is not a transcript"),
        ('{"transcript":2}\n', "line 1: version 2"),
        ('{"transcript":1}\n{"from":"client","message":{}}\n{"from":"client","mess', "line 3: EOF"),
        ('{"transcript":1}\n{"from":"nobody","message":{}}\n', "line 2: unknown variant"),
        ('{"transcript":1}\n{"from":"client","connection":5,"message":{}}\n', "line 2: connection 5"),
    ],
)
def test_a_broken_transcript_names_the_line(gudgeon, text, wanted):
    (gudgeon.folder / "broken.jsonl").write_text(text)
    for more in ([], ["--client", "--", "true"]):
        outcome = gudgeon("replay", "broken.jsonl", *more)
        assert outcome.code == 10 and wanted in outcome.err and outcome.out == "", outcome


def test_wrong_arguments_are_errors_of_usage(gudgeon, recorded):
    assert gudgeon("replay", "missing.jsonl").code == 10
    for words in (["record", "x.jsonl"], ["replay", recorded, "--client"], ["replay", recorded, "--", "true"]):
        outcome = gudgeon(*words)
        assert outcome.code == 2, outcome


def test_a_configured_server_is_recorded_in_its_folder_with_its_variables(gudgeon):
    (gudgeon.home / "shop").mkdir()
    (gudgeon.home / "shop/say.py").write_text("import os; print(os.path.basename(os.getcwd()), os.environ['KEY'])\n")
    entry = {"command": sys.executable, "args": ["say.py"], "cwd": str(gudgeon.home / "shop"), "env": {"KEY": "k3y"}}
    (gudgeon.home / ".cursor").mkdir()
    (gudgeon.home / ".cursor/mcp.json").write_text(json.dumps({"mcpServers": {"shop": entry}}))
    output, _ = record(gudgeon, "shop", "session.jsonl")
    assert output == "shop k3y\n"
    header, line = lines(gudgeon.folder / "session.jsonl")
    assert line["text"] == "shop k3y" and "k3y" not in json.dumps(header)
