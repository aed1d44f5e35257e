"""Named connections: a background process that starts once, heals, and ends by itself."""

import json
import os
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from background import ERAS, connect, eventually, is_background, processes


@pytest.mark.parametrize("era", ERAS, ids=["modern", "legacy"])
def test_the_server_keeps_its_state(gudgeon, run, shop, era):
    connected = connect(gudgeon, shop, *era)
    assert "shop 2.0" in connected.out
    assert [gudgeon("call", "shop", "count").out for _ in range(3)] == ["1\n", "2\n", "3\n"]
    assert "order" in gudgeon("list", "shop").out
    assert " ms" in gudgeon("ping", "shop").out
    failed = gudgeon("call", "shop", "refuse")
    assert failed.code == 1 and "the shop is closed" in failed.err
    unknown = gudgeon("call", "shop", "nothing")
    assert unknown.code in (6, 8) and "nothing" in unknown.err


def test_connections_are_listed_and_ended(gudgeon, run, shop):
    assert gudgeon("connections", "--json").json == {"connections": []}
    connect(gudgeon, shop)
    (listed,) = gudgeon("connections", "--json").json["connections"]
    assert (listed["name"], listed["isConnected"], listed["server"]["name"]) == ("shop", True, "shop")
    assert "shop.py" in gudgeon("connections").out
    again = gudgeon("connect", "shop", "--", sys.executable, shop, "other")
    assert again.code == 2 and "gudgeon disconnect shop" in again.err
    server = int(gudgeon("call", "shop", "process").out)
    assert gudgeon("disconnect", "shop").code == 0
    eventually(lambda: not Path(f"/proc/{server}").exists() and not processes(run))
    assert gudgeon("disconnect", "shop").code == 8
    assert gudgeon("call", "shop", "count").code == 2


def test_files_are_private(gudgeon, run, shop):
    connect(gudgeon, shop)
    assert run.stat().st_mode & 0o777 == 0o700
    for path in run.iterdir():
        assert path.stat().st_mode & 0o777 == 0o600, path


def test_a_killed_background_process_is_started_again(gudgeon, run, shop):
    connect(gudgeon, shop)
    assert gudgeon("call", "shop", "count").out == "1\n"
    (first,) = processes(run)
    os.kill(first, signal.SIGKILL)
    eventually(lambda: not is_background(first))
    # The server ended with it, so that it counts from the start.
    assert gudgeon("call", "shop", "count") == (0, "1\n", "")
    (second,) = processes(run)
    assert second != first


@pytest.mark.parametrize("era", ERAS, ids=["modern", "legacy"])
def test_a_killed_server_is_started_again(gudgeon, run, shop, era):
    connect(gudgeon, shop, *era)
    server = int(gudgeon("call", "shop", "process").out)
    os.kill(server, signal.SIGKILL)
    eventually(lambda: not Path(f"/proc/{server}").exists())

    def answers():
        outcome = gudgeon("call", "shop", "process")
        return outcome.code == 0 and int(outcome.out) != server

    eventually(answers)


def test_twenty_commands_at_once_start_one_process(gudgeon, run, shop):
    connect(gudgeon, shop)
    os.kill(processes(run)[0], signal.SIGKILL)
    with ThreadPoolExecutor(20) as pool:
        outcomes = list(pool.map(lambda _: gudgeon("call", "shop", "count"), range(20)))
    assert [outcome.err for outcome in outcomes] == [""] * 20
    assert sorted(int(outcome.out) for outcome in outcomes) == list(range(1, 21))
    assert len(processes(run)) == 1


def test_a_second_background_process_ends_at_once(gudgeon, run, shop):
    connect(gudgeon, shop)
    before = processes(run)
    assert gudgeon("background") == (0, "", "")
    assert processes(run) == before


def test_an_idle_process_ends_and_the_next_command_starts_one(gudgeon, run, shop):
    process = gudgeon.start("background", "--idle", "4")
    eventually((run / "background.sock").exists)
    connect(gudgeon, shop)
    assert gudgeon("call", "shop", "count").out == "1\n"
    assert process.wait(60) == 0
    process.communicate()
    (listed,) = gudgeon("connections", "--json").json["connections"]
    assert listed["isConnected"] is False
    assert gudgeon("call", "shop", "count").out == "1\n"


def test_a_stale_socket_is_replaced(gudgeon, run, shop):
    run.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(run / "background.sock"))
    os.chmod(run / "background.sock", 0o600)
    connect(gudgeon, shop)
    assert gudgeon("call", "shop", "count").out == "1\n"


def test_a_folder_or_socket_that_others_can_use_is_refused(gudgeon, run, shop):
    run.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as open_to_all:
        open_to_all.bind(str(run / "background.sock"))
        os.chmod(run / "background.sock", 0o666)
        refused = gudgeon("connect", "shop", "--", sys.executable, shop)
    assert refused.code == 10 and "mode 666" in refused.err
    (run / "background.sock").unlink()
    os.chmod(run, 0o777)
    refused = gudgeon("connect", "shop", "--", sys.executable, shop)
    assert refused.code == 10 and "mode 777" in refused.err and "chmod 700" in refused.err


def test_another_program_at_the_socket_is_an_error(gudgeon, run, shop):
    run.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(run / "background.sock"))
        os.chmod(run / "background.sock", 0o600)
        other.listen()
        command = gudgeon.start("connect", "shop", "--", sys.executable, shop)
        peer, _ = other.accept()
        peer.sendall(b"220 mail\n")
        _, err = command.communicate(timeout=60)
        peer.close()
    assert command.returncode == 3 and "another program" in err


def test_a_read_only_home_is_an_error_with_a_fix(gudgeon, shop):
    refused = gudgeon("connect", "shop", "--", sys.executable, shop, HOME="/proc")
    assert refused.code == 10
    assert "/proc/.local/state/gudgeon/run" in refused.err and "XDG_RUNTIME_DIR" in refused.err
    # Commands that need no background process work.
    assert gudgeon("call", "--", sys.executable, shop, HOME="/proc").code == 2
    assert gudgeon("call", "count", "--", sys.executable, shop, HOME="/proc").out == "1\n"


def test_a_path_that_is_too_long_for_a_socket_is_an_error_with_a_fix(gudgeon, tmp_path, shop):
    folder = tmp_path / ("x" * 100)
    folder.mkdir()
    refused = gudgeon("connect", "shop", "--", sys.executable, shop, XDG_RUNTIME_DIR=str(folder))
    assert refused.code == 10 and "too long" in refused.err and "XDG_RUNTIME_DIR" in refused.err


def test_broken_definitions_are_not_overwritten(gudgeon, run, shop):
    connect(gudgeon, shop)
    broken = '{"version": 1,\n "connections": ['
    (run / "connections.json").write_text(broken)
    refused = gudgeon("connect", "other", "--", sys.executable, shop)
    assert refused.code == 10 and "connections.json:2:" in refused.err
    assert (run / "connections.json").read_text() == broken


@pytest.mark.parametrize("name", ["a/b", "a.py", "", "-", "x" * 65])
def test_a_wrong_name_is_an_error_of_usage(gudgeon, run, shop, name):
    assert gudgeon("connect", name, "--", sys.executable, shop).code == 2


def test_a_server_that_can_not_start_is_no_connection(gudgeon, run):
    refused = gudgeon("connect", "gone", "--", "no-such-program")
    assert refused.code == 3 and "no-such-program" in refused.err
    assert gudgeon("connections", "--json").json == {"connections": []}


def test_the_environment_has_only_what_is_needed(gudgeon, run, shop):
    outcome = gudgeon("connect", "shop", "--", sys.executable, shop, API_SECRET="s3cret")
    assert outcome.code == 0, outcome.err
    (process,) = processes(run)
    environment = Path(f"/proc/{process}/environ").read_bytes()
    assert b"s3cret" not in environment and b"PATH=" in environment
    assert "s3cret" not in (run / "connections.json").read_text()
    server = int(gudgeon("call", "shop", "process").out)
    assert b"s3cret" not in Path(f"/proc/{server}/environ").read_bytes()


def test_no_file_has_the_environment_and_the_next_command_brings_it(gudgeon, run, shop):
    # The server of a file gets the environment of the command for which it starts.
    connected = gudgeon("connect", "shop", shop, SHOP_KEY="s3cret")
    assert connected.code == 0, connected.err
    assert gudgeon("call", "shop", "variable", "name=SHOP_KEY").out == "s3cret\n"
    files = [file for file in run.iterdir() if file.is_file()]
    assert {"background.log", "connections.json"} <= {file.name for file in files}
    assert [file.name for file in files if b"s3cret" in file.read_bytes()] == []
    for value in ("other", "unset"):
        (process,) = processes(run)
        os.kill(process, signal.SIGKILL)
        eventually(lambda process=process: not is_background(process))
        brought = {} if value == "unset" else {"SHOP_KEY": value}
        assert gudgeon("call", "shop", "variable", "name=SHOP_KEY", **brought).out == f"{value}\n"
        # Other commands use the connection as it is.
        assert gudgeon("call", "shop", "variable", "name=SHOP_KEY", SHOP_KEY="late").out == f"{value}\n"


def test_references_of_a_configuration_are_kept_as_references(gudgeon, run, shop):
    entry = {"command": sys.executable, "args": [str(shop)], "env": {"KEY": "${env:SHOP_KEY}"}}
    python_path = {"PYTHONPATH": gudgeon.environment.get("PYTHONPATH", "")}
    entry["env"].update(python_path)
    config = gudgeon.folder / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"shop": entry}}))
    # The name of the connection may be that of the server.
    connected = gudgeon("connect", "shop", "shop", "--config", "mcp.json", SHOP_KEY="s3cret")
    assert connected.code == 0, connected.err
    assert gudgeon("call", "shop", "variable", "name=KEY").out == "s3cret\n"
    assert "s3cret" not in (run / "connections.json").read_text()
    (process,) = processes(run)
    os.kill(process, signal.SIGKILL)
    eventually(lambda: not is_background(process))
    missing = gudgeon("call", "shop", "variable", "name=KEY")
    assert missing.code == 10 and "SHOP_KEY is not set" in missing.err
    assert gudgeon("call", "shop", "variable", "name=KEY", SHOP_KEY="other").out == "other\n"


def test_a_file_is_found_from_every_folder(gudgeon, run, desk):
    (gudgeon.folder / "own.py").write_text(desk.read_text())
    assert gudgeon("connect", "desk", "own.py").code == 0
    assert "own.py" in gudgeon("connections").out
    (process,) = processes(run)
    os.kill(process, signal.SIGKILL)
    eventually(lambda: not is_background(process))
    (gudgeon.folder / "other").mkdir()
    gudgeon.folder = gudgeon.folder / "other"
    # The command itself stays where it is.
    assert gudgeon("call", "desk", "pictures", "--save", "saved").code == 0
    assert len(list((gudgeon.folder / "saved").iterdir())) == 3


def test_a_folder_that_is_gone_is_named(gudgeon, run, shop):
    home = gudgeon.folder
    gudgeon.folder = home / "project"
    gudgeon.folder.mkdir()
    connect(gudgeon, shop)
    gudgeon.folder.rmdir()
    gudgeon.folder = home
    assert gudgeon("call", "shop", "count").out == "1\n"
    (process,) = processes(run)
    os.kill(process, signal.SIGKILL)
    eventually(lambda: not is_background(process))
    refused = gudgeon("call", "shop", "count")
    assert refused.code == 10 and str(home / "project") in refused.err


def test_headers_are_not_shown(gudgeon, run):
    refused = gudgeon("connect", "web", "http://127.0.0.1:9/mcp", "--header", "X-Key: s3cret")
    assert refused.code == 3
    assert "s3cret" not in refused.err + (run / "background.log").read_text()


# Questions


def ids(gudgeon):
    return [question["id"] for question in gudgeon("questions", "--json").json["questions"]]


@pytest.mark.parametrize("era", ERAS, ids=["modern", "legacy"])
def test_a_call_asks_and_goes_on(gudgeon, run, shop, era):
    connect(gudgeon, shop, *era)
    asked = gudgeon("call", "shop", "order", "title=Dune")
    assert asked.code == 20 and "How many copies of Dune?" in asked.out
    (first,) = ids(gudgeon)
    assert first in asked.out
    # Other calls go on meanwhile.
    assert gudgeon("call", "shop", "count").out == "1\n"
    again = gudgeon("answer", first, "value=2", "--json")
    assert again.code == 20
    second = again.json["question"]["id"]
    assert again.json["question"]["params"]["message"] == "Order 2?"
    assert gudgeon("answer", second, "value=yes") == (0, "ordered 2 of Dune\n", "")
    assert ids(gudgeon) == []


@pytest.mark.parametrize("era", ERAS, ids=["modern", "legacy"])
def test_calls_get_their_own_questions(gudgeon, run, shop, era):
    connect(gudgeon, shop, *era)
    titles = ["Dune", "Emma", "Ulysses"]
    # Before 2026-07-28 a question does not say which call asks, so one call asks after the other.
    with ThreadPoolExecutor(1 if era else 3) as pool:
        asked = list(pool.map(lambda title: gudgeon("call", "shop", "order", f"title={title}", "--json"), titles))
    questions = [outcome.json["question"] for outcome in asked]
    # Each question names its call's title and is answered with its own number.
    for number, (title, question) in enumerate(zip(titles, questions, strict=True)):
        assert question["params"]["message"] == f"How many copies of {title}?"
        again = gudgeon("answer", question["id"], f"value={number}", "--json").json["question"]
        assert again["params"]["message"] == f"Order {number}?"
        done = gudgeon("answer", again["id"], "value=yes")
        assert done == (0, f"ordered {number} of {title}\n", "")


def test_wrong_answers_change_nothing(gudgeon, run, shop):
    connect(gudgeon, shop)
    question = gudgeon("call", "shop", "order", "title=Dune", "--json").json["question"]["id"]
    for words, problem in [
        (
            ["value=two"],
            "field 'value': expected an integer, got \"two\"\n  hint: the form says: value  integer, required",
        ),
        (["value:=1.5"], "field 'value': "),
        (["value=1", "value=2"], "field 'value': is given twice"),
        ([], "field 'value' is missing\n  hint: the form says: value  integer, required"),
        (["copies=2"], "no field 'copies'\n  hint: its fields are value"),
        (["--result", "{"], "not valid JSON"),
    ]:
        refused = gudgeon("answer", question, *words)
        assert refused.code == 2 and problem in refused.err, refused
    assert gudgeon("answer", question, "value=2").code == 20
    twice = gudgeon("answer", question, "value=2")
    assert twice.code == 8 and "answered already" in twice.err
    unknown = gudgeon("answer", "00000000", "value=2")
    assert unknown.code == 8 and "gudgeon questions" in unknown.err


@pytest.mark.parametrize("option", ["--decline", "--cancel"])
def test_a_question_can_be_declined(gudgeon, run, shop, option):
    connect(gudgeon, shop)
    question = gudgeon("call", "shop", "order", "title=Dune", "--json").json["question"]["id"]
    assert gudgeon("answer", question, option).code == 1
    assert ids(gudgeon) == []


@pytest.mark.parametrize("era", ERAS, ids=["modern", "legacy"])
def test_sampling_is_answered_with_a_text(gudgeon, run, shop, era):
    connect(gudgeon, shop, *era)
    question = gudgeon("call", "shop", "summarize", "text=Dune", "--json").json["question"]
    assert question["method"] == "sampling/createMessage"
    assert gudgeon("answer", question["id"], "words=sand").code == 2
    assert gudgeon("answer", question["id"], "--decline").code == 2
    assert gudgeon("answer", question["id"], "text=sand").out == "summary: sand\n"


def test_a_detached_call_needs_no_name(gudgeon, run, shop):
    asked = gudgeon("call", "--detach", "order", "title=Dune", "--json", "--", sys.executable, shop)
    assert asked.code == 20, asked.err
    second = gudgeon("answer", asked.json["question"]["id"], "value=1", "--json").json["question"]
    assert gudgeon("answer", second["id"], "value=yes").out == "ordered 1 of Dune\n"
    assert gudgeon("call", "--detach", "count", "--", sys.executable, shop).out == "1\n"
    # Nothing is left to keep.
    eventually(lambda: not processes(run))


def test_questions_expire_and_are_bounded(gudgeon, run, shop):
    process = gudgeon.start("background", "--question-time", "8", "--questions", "1")
    eventually((run / "background.sock").exists)
    connect(gudgeon, shop)
    question = gudgeon("call", "shop", "order", "title=Dune", "--json").json["question"]
    assert question["expiresInSeconds"] <= 8
    refused = gudgeon("call", "shop", "order", "title=Emma")
    assert refused.code != 20 and refused.code != 0
    eventually(lambda: ids(gudgeon) == [])
    late = gudgeon("answer", question["id"], "value=1")
    assert late.code == 8 and "expired" in late.err
    process.terminate()
    process.communicate(timeout=60)


def test_the_end_of_a_command_cancels_its_call(gudgeon, run, desk):
    connect(gudgeon, desk, name="desk")
    record = gudgeon.folder / "record"
    command = gudgeon.start("call", "desk", "work", f"path={record}")
    eventually(lambda: record.exists() and record.read_text() == "begun")
    assert command.poll() is None
    command.kill()
    command.communicate()
    eventually(lambda: record.read_text() == "cancelled")
    assert gudgeon("call", "desk", "search", "title=Emma").json["title"] == "Emma"


def test_a_closed_output_is_no_panic(gudgeon, run, shop):
    connect(gudgeon, shop)
    reader, writer = os.pipe()
    os.close(reader)
    environment = {**gudgeon.environment}
    done = subprocess.run(
        gudgeon.words("list", "shop", "--json"), stdout=writer, stderr=subprocess.PIPE, env=environment, timeout=60
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")
