"""Terminals: control characters of servers, narrow windows, images, progress, Ctrl-C, and pipes that close early."""

import json
import os
import re
import subprocess
import sys
import time
import unicodedata

import pytest
from terminal import Terminal, without_styles

EVIL = [r"\u{1b}[2J", r"\u{1b}]0;owned", r"\u{7}", r"\u{202e}", r"\u{9b}31m"]


def is_harmless(text):
    """Returns whether a string has no control characters but newlines and tabs."""
    return all(character in "\n\t" or unicodedata.category(character) not in ("Cc", "Cf") for character in text)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["call", "{desk}", "evil"], 0),
        (["call", "{desk}", "evil_error"], 1),
        (["call", "{desk}", "log"], 0),
        (["list", "{desk}"], 0),
        (["list", "{desk}", "--long"], 0),
        (["call", "{desk}", "work", "path=record", "seconds=0"], 0),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else None,
)
def test_a_terminal_gets_no_control_character_of_a_server(gudgeon, desk, words, code):
    terminal = Terminal(gudgeon, *(word.format(desk=desk) for word in words), columns=200)
    ended, shown = terminal.finish()
    assert ended == code, shown
    assert is_harmless(without_styles(shown).replace("\r", "")), shown
    if "work" not in words:
        assert all(escape in shown for escape in EVIL)


def test_json_on_a_terminal_has_escapes(gudgeon, desk):
    code, shown = Terminal(gudgeon, "call", desk, "evil", "--json").finish()
    assert code == 0 and is_harmless(shown)
    assert all(escape in shown for escape in [r"\u001b[2J", r"\u202e", r"\u009b31m"])


def test_a_pipe_gets_the_text_as_it_is(gudgeon, desk):
    assert "\x1b[2J" in gudgeon("call", desk, "evil").out


@pytest.mark.parametrize("words", [["list"], ["list", "--long"]], ids=" ".join)
def test_lists_fit_into_20_columns(gudgeon, desk, words):
    code, shown = Terminal(gudgeon, *words, desk, columns=20).finish()
    assert code == 0
    lines = shown.splitlines()
    assert [line for line in lines if len(line) > 20] == []
    assert lines[:3] == (
        ["Tools", "search", "  Find books."] if words == ["list"] else ["Tools", "search", "  Find books. The"]
    )


def test_everything_else_works_in_20_columns(gudgeon, desk):
    terminal = Terminal(gudgeon, "call", desk, "order", columns=20)
    terminal.read_until("name (string, required): ")
    terminal.type("Lamp\n\n\n")
    terminal.read_until("1 red Lamp")
    assert terminal.finish()[0] == 0
    terminal = Terminal(gudgeon, "call", desk, "work", "path=record", "seconds=0", columns=20)
    assert "done" in terminal.read_until("done") and terminal.finish()[0] == 0
    for words, code in [(["call", desk, "search", "limit=x"], 2), (["--help"], 0), (["call", "--help"], 0)]:
        assert Terminal(gudgeon, *words, columns=20).finish()[0] == code


def test_progress_is_shown_on_a_terminal_only(gudgeon, shelf):
    terminal = Terminal(gudgeon, "call", shelf, "wait", "seconds=2")
    assert "%" in terminal.read_until("step ")
    assert terminal.finish()[0] == 0
    assert gudgeon("call", shelf, "wait", "seconds=0.1") == (0, "done\n", "")


@pytest.mark.parametrize(
    ("environment", "beginning"),
    [
        ({"KITTY_WINDOW_ID": "1"}, "\x1b_Gf=100,a=T,m=0;iVBOR"),
        ({"TERM_PROGRAM": "iTerm.app"}, "\x1b]1337;File=inline=1;size=70;preserveAspectRatio=1:iVBOR"),
        ({"TERM_PROGRAM": "iTerm.app", "TMUX": "x"}, "[image, image/png, 70 B; --save FOLDER saves it]"),
        ({}, "[image, image/png, 70 B; --save FOLDER saves it]"),
    ],
    ids=["kitty", "iterm", "tmux", "other"],
)
def test_images_are_shown_by_terminals_that_can(gudgeon, desk, environment, beginning):
    code, shown = Terminal(gudgeon, "call", desk, "pictures", **environment).finish()
    assert code == 0 and beginning in shown


def test_no_color_and_dumb_terminals_get_no_styles(gudgeon, desk):
    for environment, has_styles in [({"NO_COLOR": ""}, True), ({}, False), ({"NO_COLOR": "", "TERM": "dumb"}, False)]:
        _, shown = Terminal(gudgeon, "list", desk, **environment).finish()
        assert ("\x1b[1mTools\x1b[0m" in shown) == has_styles


def test_json_of_a_result_is_laid_out_on_a_terminal(gudgeon, desk):
    code, shown = Terminal(gudgeon, "call", desk, "search", "title=Emma").finish()
    assert code == 0 and shown.startswith('{\n  "title": "Emma",\n')


@pytest.fixture
def lasting(gudgeon, desk):
    """The desk behind a program that passes its messages on, as the words behind the arguments of a command.

    A server that the command starts has seconds to answer the first request, and one second to end a call that was
    cancelled, which is too short on a busy machine. This one runs before, and does not see the end of its input.
    """
    requests, answers = gudgeon.folder / "requests", gudgeon.folder / "answers"
    for path in (requests, answers):
        os.mkfifo(path)
    # Opened for both, so that nobody waits for the other side, and the input does not end.
    with requests.open("r+b", buffering=0) as input, answers.open("r+b", buffering=0) as output:
        server = subprocess.Popen([sys.executable, desk], stdin=input, stdout=output, env=gudgeon.environment)
        input.write(b'{"jsonrpc":"2.0","id":0,"method":"ping"}\n')
        assert json.loads(output.readline())["id"] == 0
        yield ["--", "sh", "-c", f"cat {answers} & trap '' TERM; exec cat > {requests}"]
        server.kill()
        server.wait()


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_ctrl_c_cancels_the_call(gudgeon, lasting, revision):
    record = gudgeon.folder / "record"
    terminal = Terminal(gudgeon, "call", "work", f"path={record}", "--revision", revision, *lasting)
    terminal.read_until("at work")
    wait_for(record, "begun")
    terminal.type("\x03")
    code, _ = terminal.finish()
    assert code == 130
    wait_for(record, "cancelled")


def test_ctrl_c_ends_a_command_that_is_connecting_or_asking(gudgeon, desk, odd):
    terminal = Terminal(gudgeon, "call", desk, "order")
    terminal.read_until("name (string, required): ")
    terminal.type("\x03")
    assert terminal.finish()[0] == 130
    record = gudgeon.folder / "begun"
    words = ["--", "sh", "-c", f"echo begun > {record}; exec sleep 600"]
    terminal = Terminal(gudgeon, "list", *words)
    wait_for(record, "begun\n")
    terminal.type("\x03")
    assert terminal.finish()[0] == 130


def wait_for(path, content):
    deadline = time.monotonic() + 60
    while not (path.exists() and path.read_text() == content):
        assert time.monotonic() < deadline, path.exists() and path.read_text()
        time.sleep(0.01)


@pytest.mark.parametrize("words", [["list"], ["list", "--json"], ["list", "--long"]], ids=" ".join)
def test_a_pipe_that_is_closed_early_ends_the_command_in_silence(gudgeon, desk, words):
    reader, writer = os.pipe()
    # Before the start: a list that is written earlier would find room in the pipe.
    os.close(reader)
    process = subprocess.Popen(
        gudgeon.words(*words, desk),
        stdin=subprocess.DEVNULL,
        stdout=writer,
        stderr=subprocess.PIPE,
        env=gudgeon.environment,
        cwd=gudgeon.folder,
    )
    os.close(writer)
    error = process.stderr.read().decode()
    process.stderr.close()
    assert process.wait(timeout=60) == 141
    assert error == ""


def test_help_has_examples(gudgeon):
    commands = re.findall(r"^  ([a-z]+)  ", gudgeon("--help").out, re.M)
    assert {"list", "call", "read", "prompt", "complete", "listen", "ping"} <= set(commands)
    for command in ["list", "call", "read", "prompt", "complete", "listen", "ping"]:
        outcome = gudgeon(command, "--help")
        assert outcome.code == 0 and f"Examples:\n  gudgeon {command} " in outcome.out
