"""`envFile` of a configured server: a file with its environment variables, whose values are never shown."""

import json
import sys

import pytest

SERVER = """
import os
from gudgeon import Server
app = Server("room")
@app.tool
def variables(names: list[str]) -> dict[str, str | None]:
    return {name: os.environ.get(name) for name in names}
app.run()
"""
FILE = """# keys of the room
export KEY="s3cret # one"  # why
PLAIN=pl41n
LINES='first
second'
BOTH=from the file
"""


@pytest.fixture
def room(gudgeon):
    """Returns the function that configures a server with an `envFile`, in the project of the current folder."""
    project = gudgeon.home / "project"
    project.mkdir()
    (project / "room.py").write_text(SERVER)
    (project / ".env").write_text(FILE)
    gudgeon.folder = project

    def configure(env_file, path=".vscode/mcp.json", member="servers", env=None):
        entry = {"command": sys.executable, "args": [str(project / "room.py")], "envFile": env_file}
        path = project / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({member: {"room": {**entry, "env": env or {"BOTH": "from the entry"}}}}))

    return configure


def values(gudgeon, *words, names=("KEY", "PLAIN", "LINES", "BOTH")):
    outcome = gudgeon("call", "--json", *words, "variables", f"names:={json.dumps(names)}")
    assert outcome.code == 0, outcome
    return list(outcome.json["structuredContent"].values())


VALUES = ["s3cret # one", "pl41n", "first\nsecond", "from the entry"]


@pytest.mark.parametrize("env_file", ["${workspaceFolder}/.env", ".env", "${env:FOLDER}/.env"])
@pytest.mark.parametrize(
    ("path", "member"),
    [(".vscode/mcp.json", "servers"), (".cursor/mcp.json", "mcpServers"), ("own.json", "mcpServers")],
)
def test_a_server_has_the_variables_of_its_file(gudgeon, room, path, member, env_file):
    room(env_file, path, member)
    gudgeon.environment["FOLDER"] = str(gudgeon.folder)
    words = {"own.json": ["--config", path, "room"], ".cursor/mcp.json": ["cursor:room"]}.get(path, ["vscode:room"])
    assert values(gudgeon, *words) == VALUES


def test_the_folder_of_the_project_counts_not_the_current_one(gudgeon, room):
    room(".env")
    gudgeon.folder = gudgeon.folder / "below"
    gudgeon.folder.mkdir()
    assert values(gudgeon, "vscode:room") == VALUES


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("KEY=1\ns3cret\n", "line 2, column 7: "),
        ("KEY=1\n\n  KEY = 's3cret\n", "line 3, column 9: this quote is not closed"),
        ("KEY='a' s3cret\n", "line 1, column 9: only a comment may follow"),
        ("=s3cret\n", "line 1, column 1: "),
        ("KEY=\xff\n", "line 1, column 5: this is not UTF-8"),
        (None, "No such file"),
    ],
)
def test_a_wrong_file_is_an_error_with_its_place_and_without_values(gudgeon, room, text, place):
    room(".env")
    file = gudgeon.folder / ".env"
    file.unlink() if text is None else file.write_bytes(text.encode("latin-1"))
    outcome = gudgeon("ping", "vscode:room")
    assert outcome.code == 10 and outcome.err.startswith('error: the server "room" in '), outcome
    assert f"envFile: {file}: {place}" in outcome.err and "s3cret" not in outcome.err


def test_the_member_must_be_a_string(gudgeon, room):
    room(["s3cret"])
    outcome = gudgeon("ping", "vscode:room")
    assert outcome.code == 10 and "envFile must be a string" in outcome.err and "s3cret" not in outcome.err


def test_discover_shows_the_file_and_no_values(gudgeon, room):
    room("${workspaceFolder}/.env")
    (server,) = gudgeon("discover", "--json").json["servers"]
    assert server["envFile"] == "${workspaceFolder}/.env" and server["env"] == ["BOTH"]
    assert "s3cret" not in gudgeon("discover").out


def installed(gudgeon, path):
    return json.loads((gudgeon.home / path).read_text())["mcpServers"]["room"]


def test_a_host_that_reads_such_files_gets_the_path(gudgeon, room):
    for env_file, written in [(".env", str(gudgeon.folder / ".env")), ("${userHome}/.env", "${userHome}/.env")]:
        room(env_file)
        assert gudgeon("install", "vscode:room", "--into", "cursor", "--name", "room", "--yes").code == 0
        assert installed(gudgeon, ".cursor/mcp.json")["envFile"] == written


def test_another_host_gets_the_variables_and_they_are_not_shown(gudgeon, room):
    room(".env")
    outcome = gudgeon("install", "vscode:room", "--into", "kiro", "--name", "room")
    assert outcome.code == 0, outcome
    assert "KEY" in outcome.out and not any(secret in outcome.out + outcome.err for secret in ("s3cret", "pl41n"))
    entry = installed(gudgeon, ".kiro/settings/mcp.json")
    assert "envFile" not in entry and list(entry["env"].values()) == [VALUES[3], *VALUES[:3]]
    (gudgeon.folder / ".env").write_text("s3cret")
    outcome = gudgeon("install", "vscode:room", "--into", "kiro", "--name", "room", "--yes")
    assert outcome.code == 10 and "line 1, column 7" in outcome.err and "s3cret" not in outcome.err
    assert installed(gudgeon, ".kiro/settings/mcp.json") == entry


def test_variables_that_decide_what_is_run_stand_where_they_are_confirmed(gudgeon, room):
    room(".env")
    (gudgeon.folder / ".env").write_text(f"{FILE}PATH=/tmp/theirs\n")
    outcome = gudgeon("list", "room", "--yes")
    assert outcome.code != 0 and "envFile: it sets PATH, which decides what is run" in outcome.err, outcome
    assert '"env"' in outcome.err and "/tmp/theirs" not in outcome.err
    room(".env", env={"PATH": gudgeon.environment["PATH"], "BOTH": "from the entry"})
    assert gudgeon("list", "room", "--yes").code == 0
    # A file of the user's own was not written by somebody else.
    room(".env", "own.json", "mcpServers")
    assert gudgeon("list", "room", "--config", "own.json").code == 0
