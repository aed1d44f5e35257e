"""A server's questions: answered by arguments, in the terminal, by a command for the model, or declined."""

import json

import pytest
from terminal import Terminal

REVISIONS = ["2025-11-25", "2026-07-28"]
PARIS = json.dumps({"role": "assistant", "model": "m", "content": {"type": "text", "text": "Paris"}})


@pytest.mark.parametrize("revision", REVISIONS)
def test_without_a_terminal_a_question_is_declined_with_a_hint(gudgeon, desk, revision):
    outcome = gudgeon("call", desk, "order", "--revision", revision)
    assert (outcome.code, outcome.out) == (9, "")
    assert "What shall it be?" in outcome.err and "--answer name=" in outcome.err
    page = gudgeon("call", desk, "visit", "--revision", revision)
    assert page.code == 9 and "https://desk.example/sign-in?code=42" in page.err


@pytest.mark.parametrize("revision", REVISIONS)
def test_arguments_fill_in_a_form(gudgeon, desk, revision):
    words = ["call", desk, "order", "--revision", revision]
    assert gudgeon(*words, "--answer", "name=Lamp").out == "1 red Lamp\n"
    assert gudgeon(*words, "--answer", "name=5", "--answer", "count=2", "--answer", "color=green").out == "2 green 5\n"
    (gudgeon.folder / "answers.json").write_text('{"name": "Lamp", "count": 3}', encoding="utf-8")
    assert gudgeon(*words, "--answers", "@answers.json", "--answer", "count=4").out == "4 red Lamp\n"
    assert gudgeon(*words, "--answers", "@-", text='{"name": "Desk"}').out == "1 red Desk\n"


def test_an_answer_that_does_not_fit_is_named(gudgeon, desk):
    for answer, part in [("count=x", "expected an integer"), ("color=blue", "one of"), ("count:=true", "count")]:
        outcome = gudgeon("call", desk, "order", "--answer", "name=Lamp", "--answer", answer)
        assert outcome.code == 2 and part in outcome.err and "the server's form says: " in outcome.err


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_form_is_filled_in_field_by_field(gudgeon, desk, revision):
    terminal = Terminal(gudgeon, "call", desk, "order", "--revision", revision)
    shown = terminal.read_until("name (string, required): ")
    assert "The server asks: What shall it be?" in shown and ":decline" in shown
    terminal.type("Lamp\n")
    terminal.read_until("count (integer, default 1): ")
    terminal.type("many\n")
    assert "expected an integer" in terminal.read_until("count (integer, default 1): ")
    terminal.type("2\n")
    assert "1) red\n  2) green" in terminal.read_until('color (1-2, default "red"): ')
    terminal.type("3\n")
    assert "not among the choices" in terminal.read_until('color (1-2, default "red"): ')
    terminal.type("2\n")
    terminal.read_until("2 green Lamp")
    assert terminal.finish()[0] == 0


def test_defaults_are_accepted_and_given_fields_are_not_asked(gudgeon, desk):
    terminal = Terminal(gudgeon, "call", desk, "order", "--answer", "count=7")
    terminal.read_until("name (string, required): ")
    terminal.type("Lamp\n")
    terminal.read_until("color")
    terminal.read_until(": ")
    terminal.type("\n")
    terminal.read_until("7 red Lamp")
    assert terminal.finish()[0] == 0


def test_yes_is_a_boolean(gudgeon, desk):
    terminal = Terminal(gudgeon, "call", desk, "confirm")
    terminal.read_until("value (boolean, required): ")
    terminal.type("yes\n")
    terminal.read_until("\nyes\n")
    assert terminal.finish()[0] == 0


@pytest.mark.parametrize("typed", [":decline\n", ":cancel\n", "\x04"], ids=["decline", "cancel", "ctrl-d"])
def test_a_user_declines_or_cancels(gudgeon, desk, typed):
    terminal = Terminal(gudgeon, "call", desk, "order")
    terminal.read_until("name (string, required): ")
    terminal.type(typed)
    code, shown = terminal.finish()
    assert code == 9 and "What shall it be?" in shown


def test_a_page_is_opened_in_the_browser(gudgeon, desk):
    browser = gudgeon.folder / "browser"
    browser.write_text('#!/bin/sh\necho "$1" > "$0.url"\n')
    browser.chmod(0o755)
    terminal = Terminal(gudgeon, "call", desk, "visit", BROWSER=str(browser))
    assert "https://desk.example/sign-in?code=42" in terminal.read_until("Open it in a browser? [y/n] ")
    terminal.type("y\n")
    terminal.read_until("visited")
    assert terminal.finish()[0] == 0
    # The browser is a process of its own and may be slower.
    opened = gudgeon.folder / "browser.url"
    while not (opened.exists() and opened.read_text()):
        pass
    assert opened.read_text() == "https://desk.example/sign-in?code=42\n"
    terminal = Terminal(gudgeon, "call", desk, "visit", BROWSER=str(browser))
    terminal.read_until("Open it in a browser? [y/n] ")
    terminal.type("n\n")
    assert terminal.finish()[0] == 9


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_command_answers_for_the_model(gudgeon, desk, revision):
    words = ["call", desk, "think", "--revision", revision]
    outcome = gudgeon(*words, "--sample", f"cat > request.json; echo '{PARIS}'")
    assert outcome == (0, "Paris\n", "")
    request = json.loads((gudgeon.folder / "request.json").read_text())
    assert request["messages"][0]["content"]["text"] == "What is the capital of France?"


@pytest.mark.parametrize(
    ("command", "part"),
    [("echo Paris", "must print the result"), ("exit 3", "exit status: 3"), ("no-such-program", "127")],
)
def test_a_command_that_gives_no_answer_is_named(gudgeon, desk, command, part):
    outcome = gudgeon("call", desk, "think", "--sample", command)
    assert (outcome.code, outcome.out) == (2, "") and f'"{command}"' in outcome.err and part in outcome.err


def test_without_a_command_the_model_can_not_be_asked(gudgeon, desk):
    outcome = gudgeon("call", desk, "think")
    assert outcome.code == 6 and "--sample COMMAND" in outcome.err
    assert gudgeon("call", desk, "think", "--revision", "2025-11-25").code == 1


def test_roots_are_folders(gudgeon, desk):
    (gudgeon.folder / "my books").mkdir()
    outcome = gudgeon("call", desk, "where", "--root", "my books", "--root", "file:///srv")
    assert outcome.json == [f"file://{gudgeon.folder}/my%20books", "file:///srv"]
    assert "--root FOLDER" in gudgeon("call", desk, "where").err
    assert gudgeon("call", desk, "where", "--root", "nowhere").code == 10


@pytest.mark.parametrize("revision", REVISIONS)
def test_log_messages_go_to_standard_error(gudgeon, desk, revision):
    words = ["call", desk, "log", "--revision", revision]
    normal = gudgeon(*words)
    assert normal.out == "logged\n"
    assert normal.err.startswith("[info] opened a drawer\n[warning] it is ")
    assert gudgeon(*words, "--log-level", "debug").err.startswith("[debug] found the desk\n")
    assert "[info]" not in gudgeon(*words, "--log-level", "warning").err
    assert gudgeon(*words, "--quiet") == (0, "logged\n", "")
    assert gudgeon(*words, "--log-level", "loud").code == 2
