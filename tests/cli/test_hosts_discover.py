"""`gudgeon discover`, and names of configured servers as targets."""

import json
import sys

SECRETS = ("s3cret", "pa55")


def write(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))


def configure(gudgeon, shelf):
    """Servers of hosts, of the project in the current folder, and of one above it; one file is broken."""
    home = gudgeon.home
    gudgeon.folder = home / "outer/inner"
    gudgeon.folder.mkdir(parents=True)
    run = {"command": sys.executable, "args": [str(shelf)]}
    write(home / ".cursor/mcp.json", {"mcpServers": {"books": {**run, "env": {"KEY": "s3cret"}}}})
    url = "https://me:pa55@a.example/mcp?key=s3cret"
    write(home / ".gemini/settings.json", {"mcpServers": {"far": {"httpUrl": url, "headers": {"A": "s3cret"}}}})
    write(home / ".codex/config.toml", '[mcp_servers.books]\ncommand = "x"\nargs = ["--api-key", "s3cret"]\n')
    local = {"projects": {str(home / "outer"): {"mcpServers": {"mine": run}}}, "mcpServers": {"bad": {"args": []}}}
    write(home / ".claude.json", local)
    write(home / "outer/.mcp.json", {"mcpServers": {"team": {**run, "disabled": True}}})
    servers = {"near": {"type": "stdio", "command": "${workspaceFolder}/x", "args": ["${input:token}"]}}
    write(gudgeon.folder / ".vscode/mcp.json", "// servers\n" + json.dumps({"servers": servers}))
    write(home / ".kiro/settings/mcp.json", "{\n  broken\n}")


def test_servers_of_all_hosts_are_listed_without_secrets(gudgeon, shelf):
    configure(gudgeon, shelf)
    outcome = gudgeon("discover", "--json")
    assert outcome.code == 0 and not any(secret in outcome.out + outcome.err for secret in SECRETS)
    found = {(server["target"], server["scope"]): server for server in outcome.json["servers"]}
    assert list(found) == [
        ("vscode:near", "project"),
        ("claude-code:team", "project"),
        ("claude-code:mine", "local"),
        ("claude-code:bad", "user"),
        ("cursor:books", "user"),
        ("codex:books", "user"),
        ("gemini:far", "user"),
    ]
    assert found["cursor:books", "user"]["command"] == sys.executable
    assert found["cursor:books", "user"]["env"] == ["KEY"]
    assert found["codex:books", "user"]["args"] == ["--api-key", "…"]
    assert found["gemini:far", "user"]["url"] == "https://…@a.example/mcp?…"
    assert found["gemini:far", "user"]["headers"] == ["A"]
    assert found["claude-code:team", "project"]["enabled"] is False
    assert "command" in found["claude-code:bad", "user"]["problem"]
    (problem,) = outcome.json["problems"]
    assert ".kiro/settings/mcp.json: line 2, column 3" in problem


def test_people_get_lines_and_a_warning(gudgeon, shelf):
    configure(gudgeon, shelf)
    outcome = gudgeon("discover")
    assert outcome.code == 0 and not any(secret in outcome.out + outcome.err for secret in SECRETS)
    assert f"Cursor (user): {gudgeon.home}/.cursor/mcp.json\n  books  {sys.executable} {shelf}\n" in outcome.out
    assert "(disabled)" in outcome.out and outcome.err.startswith("warning: ") and "line 2" in outcome.err


def test_names_cannot_control_the_terminal(gudgeon):
    write(gudgeon.home / ".cursor/mcp.json", {"mcpServers": {"a\x1b[2J": {"command": "\x1b]0;x\x07"}}})
    outcome = gudgeon("discover")
    assert outcome.code == 0 and "\x1b" not in outcome.out and "\x07" not in outcome.out


def test_nothing_configured_is_no_failure(gudgeon):
    assert gudgeon("discover", "--json").json == {"servers": [], "problems": []}
    outcome = gudgeon("discover")
    assert (outcome.code, outcome.out) == (0, "") and "No server" in outcome.err


def test_an_ambiguous_name_lists_the_choices(gudgeon, shelf):
    configure(gudgeon, shelf)
    outcome = gudgeon("ping", "books")
    assert outcome.code == 2 and "cursor:books, codex:books" in outcome.err
    assert gudgeon("call", "cursor:books", "add", "a:=1", "b:=2").out == "3\n"
    assert gudgeon("call", "mine", "add", "a:=1", "b:=2").out == "3\n"


def test_variables_are_resolved_or_refused(gudgeon, shelf):
    configure(gudgeon, shelf)
    outcome = gudgeon("ping", "vscode:near")
    assert outcome.code == 10 and "${input:token}" in outcome.err and "asks its user" in outcome.err
    entry = {"command": "${env:PYTHON}", "args": ["${workspaceFolder}/link.py"]}
    write(gudgeon.folder / ".cursor/mcp.json", {"mcpServers": {"resolved": entry}})
    (gudgeon.folder / "link.py").symlink_to(shelf)
    outcome = gudgeon("ping", "cursor:resolved")
    assert outcome.code == 10 and "PYTHON is not set" in outcome.err and ".cursor/mcp.json" in outcome.err
    assert gudgeon("ping", "cursor:resolved", PYTHON=sys.executable).code == 0


def test_a_wrong_entry_is_named(gudgeon, shelf):
    configure(gudgeon, shelf)
    outcome = gudgeon("ping", "bad")
    assert outcome.code == 10 and '"bad"' in outcome.err and '"command" or "url"' in outcome.err


def test_a_file_of_the_users_own(gudgeon, shelf):
    configure(gudgeon, shelf)
    entry = {"command": sys.executable, "args": ["${SERVER:-" + str(shelf) + "}"]}
    write(gudgeon.folder / "own.json", {"mcpServers": {"books": entry}})
    outcome = gudgeon("call", "--config", "own.json", "books", "add", "a:=1", "b:=2")
    assert outcome == (0, "3\n", "")
    outcome = gudgeon("ping", "--config", "own.json", "far")
    assert outcome.code == 2 and "own.json" in outcome.err
    outcome = gudgeon("ping", "--config", "gone.json", "books")
    assert outcome.code == 2 and "gone.json" in outcome.err
    write(gudgeon.folder / "broken.json", "{")
    outcome = gudgeon("ping", "--config", "broken.json", "books")
    assert outcome.code == 10 and "line 1, column" in outcome.err


def test_a_name_may_be_in_a_file_that_cannot_be_read(gudgeon):
    write(gudgeon.home / ".cursor/mcp.json", '{"mcpServers": {,}}')
    outcome = gudgeon("ping", "shelf")
    assert outcome.code == 10 and ".cursor/mcp.json: line 1, column 17" in outcome.err
    assert '"shelf" is in no other file' in outcome.err
