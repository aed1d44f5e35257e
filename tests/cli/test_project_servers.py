"""A server of a project is used after the user has confirmed its file, which others may have written."""

import json
import sys

import pytest
from terminal import Terminal, without_styles

FILE = ".cursor/mcp.json"


@pytest.fixture
def project(gudgeon, shelf):
    """A project with a server of the same name as one of the user's own, and of one more."""
    own = gudgeon.home / FILE
    own.parent.mkdir()
    own.write_text(json.dumps({"mcpServers": {"mine": {"command": "true"}, "shelf": {"command": "false"}}}))
    folder = gudgeon.home / "cloned"
    file = folder / FILE
    file.parent.mkdir(parents=True)
    near = {
        "command": sys.executable,
        "args": [str(shelf), "--token", "s3cret"],
        "env": {"NODE_OPTIONS": "--require ./x.js", "API_KEY": "s3cret", "TOKEN": "${env:SECRET:-s3cret}"},
        "envFile": ".env",
        "cwd": "sub",
    }
    (folder / "sub").mkdir()
    (folder / ".env").write_text("A=b\n")
    far = {
        "url": "https://far.example#@near.example/mcp",
        "headers": {"A": "Bearer ${env:SECRET}", "B": "${OTHER:-s3cret}"},
    }
    off = {"command": "off", "disabled": True}
    file.write_text(json.dumps({"mcpServers": {"shelf": near, "far": far, "off": off, "odd\x1b[2J": {"args": []}}}))
    gudgeon.folder = folder
    return file


ADD = ("add", "a:=1", "b:=2")


def test_without_a_terminal_a_bare_name_is_refused(gudgeon, project):
    refused = gudgeon("call", "shelf", *ADD)
    assert refused.code == 2 and refused.out == ""
    assert f'the server "shelf" is configured by the project, in {project}, which you have not confirmed' in refused.err
    assert "give --yes or write cursor:shelf" in refused.err
    # A name that only a file of the user has needs no confirmation: this program ends at once.
    assert gudgeon("ping", "mine").code == 3


def test_a_name_with_its_host_is_used_and_confirms_nothing(gudgeon, project):
    assert gudgeon("call", "cursor:shelf", *ADD) == (0, "3\n", "")
    assert gudgeon("call", "shelf", *ADD).code == 2


def test_a_confirmation_is_kept_until_the_file_changes(gudgeon, project):
    assert gudgeon("call", "--yes", "shelf", *ADD) == (0, "3\n", "")
    assert gudgeon("call", "shelf", *ADD) == (0, "3\n", "")
    [kept] = (gudgeon.home / ".local/state/gudgeon/confirmed").iterdir()
    assert kept.stat().st_mode & 0o777 == 0o600
    text = project.read_text()
    project.write_text(text + "\n")
    assert gudgeon("call", "shelf", *ADD).code == 2
    project.write_text(text)
    assert gudgeon("call", "shelf", *ADD).code == 0
    # The same file in another project was confirmed by nobody.
    other = gudgeon.home / "other" / FILE
    other.parent.mkdir(parents=True)
    other.write_text(text)
    gudgeon.folder = gudgeon.home / "other"
    assert gudgeon("call", "shelf", *ADD).code == 2


@pytest.mark.parametrize("name", ["shelf", "cursor:shelf"])
def test_a_terminal_asks_once_and_shows_all_servers_of_the_file(gudgeon, project, shelf, name):
    declined = Terminal(gudgeon, "call", name, *ADD, columns=400)
    asked = without_styles(declined.read_until("[y/N] "))
    assert f"{project} belongs to a project and configures\n" in asked
    # Nothing is left out that looks like a secret: the author of the file chose what it looks like.
    assert f"  shelf  {sys.executable} {shelf} --token s3cret, which gets SECRET\n" in asked
    for detail in (
        "NODE_OPTIONS=--require ./x.js",
        "API_KEY=s3cret",
        "TOKEN=${env:SECRET:-s3cret}",
        "the variables in the file .env",
        "in the folder sub",
        "A: Bearer ${env:SECRET}",
    ):
        assert f"    {detail}\n" in asked
    assert "  far  https://far.example#@near.example/mcp, which gets OTHER, SECRET\n" in asked
    assert "  off  off\n" in asked, "it can be named although the host does not start it"
    assert "  odd\\u{1b}[2J  (wrong: " in asked and "\x1b[2J" not in asked
    declined.type("\n")
    code, shown = declined.finish()
    assert code == 9 and "declined; no server was started" in shown

    confirmed = Terminal(gudgeon, "call", name, *ADD)
    confirmed.read_until("[y/N] ")
    confirmed.type("y\n")
    code, shown = confirmed.finish()
    assert code == 0 and "3\n" in shown
    code, shown = Terminal(gudgeon, "call", name, *ADD).finish()
    assert (code, without_styles(shown)) == (0, "3\n")


def test_what_was_typed_before_the_question_is_no_answer(gudgeon, project):
    early = Terminal(gudgeon, "call", "shelf", *ADD)
    early.type("y\n")
    early.read_until("[y/N] ")
    early.type("n\n")
    code, shown = early.finish()
    assert code == 9 and "declined; no server was started" in shown


def test_a_confirmation_that_cannot_be_kept_is_reported(gudgeon, project):
    (gudgeon.home / ".local").write_text("a file where a folder should be")
    outcome = gudgeon("call", "--yes", "shelf", *ADD)
    assert (outcome.code, outcome.out) == (0, "3\n")
    assert "the confirmation is not kept: " in outcome.err


def test_every_command_that_takes_a_name_refuses(gudgeon, run, project, shelf):
    commands = [
        ("list", "shelf"),
        ("ping", "shelf"),
        ("read", "shelf", "x:y"),
        ("prompt", "shelf", "p"),
        ("complete", "shelf", "prompt", "p", "a="),
        ("listen", "shelf"),
        ("doctor", "shelf"),
        ("types", "shelf", "--python"),
        ("inspect", "shelf", "--no-open"),
        ("connect", "c", "shelf"),
        ("record", "shelf", "messages.jsonl"),
        ("install", "shelf", "--into", "vscode"),
        ("auth", "login", "far"),
        ("auth", "status", "far"),
        ("auth", "logout", "far"),
        ("auth", "token", "far"),
    ]
    (project.parent / "m.jsonl").write_text("")
    commands.append(("replay", project.parent / "m.jsonl", "--client", "shelf"))
    for words in commands:
        refused = gudgeon(*words)
        assert refused.code == 2 and "which you have not confirmed" in refused.err, (words, refused)


def test_a_connection_of_a_project_is_made_again_after_it_was_confirmed(gudgeon, run, project):
    assert gudgeon("connect", "c", "shelf", "--yes").code == 0
    assert gudgeon("call", "c", *ADD).out == "3\n"
