"""`gudgeon install` and `uninstall`: every host's file in a temporary home folder, read back in the host's own form."""

import json
import os
import pty
import re
import select
import stat
import subprocess
import sys
import time

import pytest
import tomllib

URL = "https://mcp.example.com/mcp"
# The file in the home folder, the member with the servers, the entry of a command beside its words, and that of a URL.
HOSTS = {
    "claude-desktop": (".config/Claude/claude_desktop_config.json", "mcpServers", {}, None),
    "claude-code": (".claude.json", "mcpServers", {"type": "stdio"}, {"type": "http", "url": URL}),
    "cursor": (".cursor/mcp.json", "mcpServers", {}, {"url": URL}),
    "vscode": (".config/Code/User/mcp.json", "servers", {"type": "stdio"}, {"type": "http", "url": URL}),
    "codex": (".codex/config.toml", "mcp_servers", {}, {"url": URL}),
    "gemini": (".gemini/settings.json", "mcpServers", {}, {"httpUrl": URL}),
    "windsurf": (".codeium/windsurf/mcp_config.json", "mcpServers", {}, {"serverUrl": URL}),
    "zed": (".config/zed/settings.json", "context_servers", {}, {"url": URL}),
    "cline": (
        ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
        "mcpServers",
        {},
        {"type": "streamableHttp", "url": URL},
    ),
    "cline-cli": (
        ".cline/data/settings/cline_mcp_settings.json",
        "mcpServers",
        {},
        {"type": "streamableHttp", "url": URL},
    ),
    "copilot-cli": (
        ".copilot/mcp-config.json",
        "mcpServers",
        {"type": "local", "tools": ["*"]},
        {"type": "http", "url": URL, "tools": ["*"]},
    ),
    "kiro": (".kiro/settings/mcp.json", "mcpServers", {}, {"url": URL}),
    "lm-studio": (".lmstudio/mcp.json", "mcpServers", {}, {"url": URL}),
}
PROJECTS = {
    "claude-code": ".mcp.json",
    "cursor": ".cursor/mcp.json",
    "vscode": ".vscode/mcp.json",
    "codex": ".codex/config.toml",
    "gemini": ".gemini/settings.json",
    "zed": ".zed/settings.json",
    "kiro": ".kiro/settings/mcp.json",
}


def read(path):
    text = path.read_text(encoding="utf-8")
    return tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)


def files(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("host", HOSTS)
def test_a_command_is_installed_and_removed(gudgeon, shelf, host):
    path, member, entry, _ = HOSTS[host]
    path = gudgeon.home / path
    outcome = gudgeon("install", shelf, "--into", host, "--env", "TOKEN=s3cret")
    assert outcome.code == 0 and "s3cret" not in outcome.out + outcome.err, outcome
    python = gudgeon("install", shelf, "--into", host, "--env", "TOKEN=s3cret")
    assert "already" in python.out
    installed = read(path)[member]["shelf"]
    assert installed.pop("args") == [str(shelf)]
    command = installed.pop("command")
    assert os.path.isabs(command) and os.access(command, os.X_OK)
    assert installed == {**entry, "env": {"TOKEN": "s3cret"}}
    outcome = gudgeon("uninstall", "shelf", "--from", host)
    assert outcome.code == 0, outcome
    assert read(path).get(member, {}) == {}


@pytest.mark.parametrize("host", HOSTS)
def test_a_url_is_installed(gudgeon, host):
    path, member, _, entry = HOSTS[host]
    header = {"codex": "http_headers"}.get(host, "headers")
    outcome = gudgeon("install", URL, "--into", host, "--header", "X-Key: s3cret", "--name", "far")
    if entry is None:
        assert outcome.code == 2 and "takes no URLs" in outcome.err and files(gudgeon.home) == {}
        return
    assert outcome.code == 0 and "s3cret" not in outcome.out
    assert read(gudgeon.home / path)[member]["far"] == {**entry, header: {"X-Key": "s3cret"}}


@pytest.mark.parametrize("host", PROJECTS)
def test_a_project_has_its_own_file(gudgeon, shelf, tmp_path, host):
    gudgeon.folder = tmp_path / "project"
    gudgeon.folder.mkdir()
    assert gudgeon("install", shelf, "--into", host, "--scope", "project").code == 0
    assert list(files(tmp_path)) == [gudgeon.folder / PROJECTS[host]]
    assert "shelf" in read(gudgeon.folder / PROJECTS[host])[HOSTS[host][1]]


def test_a_host_without_files_of_projects_says_so(gudgeon, shelf):
    outcome = gudgeon("install", shelf, "--into", "windsurf", "--scope", "project")
    assert outcome.code == 2 and "no configuration files of projects" in outcome.err


@pytest.mark.parametrize("host", HOSTS)
def test_a_dry_run_shows_the_change_and_writes_nothing(gudgeon, shelf, host):
    outcome = gudgeon("install", shelf, "--into", host, "--dry-run")
    assert outcome.code == 0 and "shelf" in outcome.out and "+++ " in outcome.out
    assert files(gudgeon.home) == {}


@pytest.mark.parametrize(
    ("name", "text"), [("hello.py", "import os\nprint('hello')\n"), ("x.mjs", "export const x = 1;\n")]
)
def test_a_file_without_a_server_is_not_installed(gudgeon, name, text):
    (gudgeon.folder / name).write_text(text)
    outcome = gudgeon("install", name, "--into", "cursor")
    assert outcome.code == 2 and f"there is no server in {name}: " in outcome.err and "Server(" in outcome.err
    assert list(files(gudgeon.home)) == [gudgeon.folder / name]
    # Whoever knows better names the command.
    assert gudgeon("install", "--into", "cursor", "--", sys.executable, name).code == 0


def test_the_rest_of_a_file_is_kept_and_a_backup_is_made(gudgeon, shelf):
    path = gudgeon.home / ".config/zed/settings.json"
    path.parent.mkdir(parents=True)
    text = '// mine\n{\n\t"theme": "One", // dark\n\t"context_servers": {\n\t\t"a": { "command": "x" },\n\t},\n}\n'
    path.write_text(text)
    path.chmod(0o640)
    outcome = gudgeon("install", shelf, "--into", "zed")
    assert outcome.code == 0, outcome
    assert outcome.out.startswith(f"--- {path}\n+++ {path}\n@@ ")
    added = re.search(r"\n\t\t\"shelf\": \{.*?\n\t\t\},", path.read_text(), re.S)
    assert added and path.read_text().replace(added[0], "") == text
    assert (path.parent / "settings.json.gudgeon.bak").read_text() == text
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert gudgeon("uninstall", "shelf", "--from", "zed").code == 0
    assert path.read_text() == text


def test_a_linked_file_stays_a_link(gudgeon, shelf):
    real = gudgeon.home / "dotfiles/mcp.json"
    real.parent.mkdir()
    real.write_text("{}")
    link = gudgeon.home / ".cursor/mcp.json"
    link.parent.mkdir()
    link.symlink_to("../dotfiles/mcp.json")
    assert gudgeon("install", shelf, "--into", "cursor").code == 0
    assert link.is_symlink() and "shelf" in read(real)["mcpServers"]


@pytest.mark.parametrize(
    ("host", "text", "place"),
    [
        ("cursor", '{\n  "mcpServers": {,}\n}\n', "line 2, column 18"),
        ("claude-desktop", '{\n  // no\n  "a": 1\n}\n', "line 2, column 3"),
        ("codex", 'a = 1\nb = "x\n', "line 2, column"),
        ("vscode", '{"servers": []}', '"servers" must be an object'),
        ("kiro", "\xff", "not UTF-8"),
    ],
)
def test_a_broken_file_is_not_overwritten(gudgeon, shelf, host, text, place):
    path = gudgeon.home / HOSTS[host][0]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode("latin-1"))
    for words in (["install", shelf, "--into", host, "--yes"], ["uninstall", "shelf", "--from", host, "--yes"]):
        outcome = gudgeon(*words)
        assert outcome.code == 10 and outcome.out == "", outcome
        assert str(path) in outcome.err and place in outcome.err and "hint: " in outcome.err
    assert files(gudgeon.home) == {path: text.encode("latin-1")}


def test_another_server_of_the_name_is_replaced_only_when_told(gudgeon, shelf):
    path = gudgeon.home / ".cursor/mcp.json"
    path.parent.mkdir()
    old = {"mcpServers": {"shelf": {"command": "x", "env": {"K": "s3cret"}, "timeout": 5}}}
    path.write_text(json.dumps(old))
    outcome = gudgeon("install", URL, "--into", "cursor", "--name", "shelf")
    assert outcome.code == 2 and "--yes" in outcome.err and "s3cret" not in outcome.out
    assert read(path) == old
    assert gudgeon("install", URL, "--into", "cursor", "--name", "shelf", "--yes").code == 0
    assert read(path)["mcpServers"] == {"shelf": {"url": URL, "timeout": 5}}


def test_a_home_that_cannot_be_written_is_a_clear_error(gudgeon, shelf):
    (gudgeon.home / ".cursor").write_text("no folder")
    outcome = gudgeon("install", shelf, "--into", "cursor")
    assert outcome.code == 10 and ".cursor/mcp.json" in outcome.err, outcome
    outcome = gudgeon("install", shelf, "--into", "cursor", HOME="/proc/self")
    assert outcome.code == 10 and "/proc/self/.cursor/mcp.json" in outcome.err, outcome
    outcome = gudgeon("install", shelf, "--into", "cursor", HOME="")
    assert outcome.code == 10 and "HOME is not set" in outcome.err, outcome


def test_an_unknown_host_or_server_is_named_with_the_known_ones(gudgeon, shelf):
    outcome = gudgeon("install", shelf, "--into", "emacs")
    assert outcome.code == 2 and "claude-desktop" in outcome.err
    gudgeon("install", shelf, "--into", "cursor")
    outcome = gudgeon("uninstall", "shell", "--from", "cursor")
    assert outcome.code == 8 and '"shelf"' in outcome.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--into", "cursor"], "the target is missing"),
        (["nowhere", "--into", "cursor"], "nowhere"),
        (["ftp://a", "--into", "cursor"], "ftp"),
        ([URL, "--into", "cursor", "--env", "A=b"], "--env is for commands"),
        ([URL, "--into", "cursor", "--name", "a b"], "not the name of a server"),
        (["--into", "cursor", "--env", "GONE", "--", "x"], "GONE"),
        (["--into", "cursor", "--header", "A: b", "--", "x"], "--header is for URLs"),
        ([URL, "--into", "cursor", "--", "x"], "both a target and a command"),
    ],
)
def test_wrong_arguments_are_explained(gudgeon, words, message):
    outcome = gudgeon("install", *words)
    assert outcome.code == 2 and message in outcome.err, outcome
    assert files(gudgeon.home) == {}


def program(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


def words(gudgeon, file, **environment):
    outcome = gudgeon("install", file, "--into", "kiro", "--name", "x", "--yes", **environment)
    assert outcome.code == 0, outcome
    entry = read(gudgeon.home / ".kiro/settings/mcp.json")["mcpServers"]["x"]
    return [entry["command"], *entry["args"]]


def test_the_interpreter_is_that_of_the_project(gudgeon, tmp_path):
    project = tmp_path / "project"
    file = project / "src/server.py"
    file.parent.mkdir(parents=True)
    file.write_text("app.run()\n")
    tools = tmp_path / "tools"
    python, uv = program(tools / "python3"), program(tools / "uv")
    path = {"PATH": str(tools)}
    assert words(gudgeon, file, **path) == [python, str(file)]
    (project / "uv.lock").write_text("")
    assert words(gudgeon, file, **path) == [uv, "run", "--project", str(project), "python", str(file)]
    own = program(project / ".venv/bin/python")
    assert words(gudgeon, file, **path) == [own, str(file)]
    active = program(tmp_path / "active/bin/python")
    assert words(gudgeon, file, VIRTUAL_ENV=str(tmp_path / "active"), **path) == [active, str(file)]
    file.write_text("# /// script\n# dependencies = []\n# ///\napp.run()\n")
    assert words(gudgeon, file, **path) == [uv, "run", "--script", str(file)]
    gudgeon.folder = project
    assert words(gudgeon, "src/server.py", **path) == [uv, "run", "--script", str(file)]


SHOP = """
from gudgeon import Server
from shop.prices import add
app = Server("shop")
admin = Server("admin")
for server in (app, admin):
    server.tool(add)
"""


@pytest.fixture
def shop(gudgeon, tmp_path):
    """A package with two servers, in the current folder. Returns another folder, as hosts have one."""
    package = tmp_path / "project/shop"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit('a package is not run')\n")
    (package / "server.py").write_text(SHOP)
    (package.parent / "several.py").write_text(SHOP)
    (package / "prices.py").write_text("def add(a: int, b: int) -> int:\n    return a + b\n")
    (tmp_path / "elsewhere").mkdir()
    gudgeon.folder = package.parent
    return tmp_path / "elsewhere"


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("shop.server:app", "shop"),
        ("shop.server:admin", "admin"),
        ("several.py:admin", "admin"),
        ("several.py:app", "several"),
    ],
)
def test_a_module_or_one_server_of_a_file_is_started_from_any_folder(gudgeon, shop, target, name):
    program = gudgeon.words()[0]
    outcome = gudgeon("install", target, "--into", "kiro")
    assert outcome.code == 0, outcome
    entry = read(gudgeon.home / ".kiro/settings/mcp.json")["mcpServers"][name]
    folder = str(gudgeon.folder)
    place = [os.path.join(folder, target)] if ".py" in target else ["--directory", folder, target]
    assert entry == {"command": program, "args": ["run", *place]}
    (gudgeon.folder / "shop/__init__.py").write_text("")
    gudgeon.folder = shop
    assert gudgeon("call", f"kiro:{name}", "add", "a:=1", "b:=2") == (0, "3\n", "")


def test_the_active_environment_is_kept_for_the_host(gudgeon, shop):
    active = gudgeon.home / "active"
    program(active / "bin/python")
    (active / "bin/python").write_text(f'#!/bin/sh\necho active >&2\nexec {sys.executable} "$@"\n')
    outcome = gudgeon("install", "shop.server:app", "--into", "kiro", VIRTUAL_ENV=str(active))
    assert outcome.code == 0, outcome
    entry = read(gudgeon.home / ".kiro/settings/mcp.json")["mcpServers"]["shop"]
    assert entry["env"] == {"VIRTUAL_ENV": str(active)}
    (gudgeon.folder / "shop/__init__.py").write_text("")
    gudgeon.folder = shop
    outcome = gudgeon("call", "shop", "add", "a:=1", "b:=2")
    assert (outcome.code, outcome.out) == (0, "3\n") and "active" in outcome.err


@pytest.mark.parametrize("module", ["nowhere", "shop.nowhere", "shop.server.nowhere"])
def test_a_module_that_is_not_found_is_not_installed(gudgeon, shop, module):
    outcome = gudgeon("install", f"{module}:app", "--into", "kiro")
    assert outcome.code == 2 and f'no Python module "{module}" in {gudgeon.folder}' in outcome.err, outcome
    assert not (gudgeon.home / ".kiro").exists()


def test_javascript_and_typescript_have_theirs(gudgeon, tmp_path):
    tools = tmp_path / "tools"
    node = program(tools / "node")
    for name in ("a.js", "a.mjs", "a.ts"):
        (tmp_path / name).write_text("await app.run();\n")
    path = {"PATH": str(tools)}
    assert words(gudgeon, tmp_path / "a.mjs", **path) == [node, str(tmp_path / "a.mjs")]
    outcome = gudgeon("install", tmp_path / "a.ts", "--into", "kiro", **path)
    assert outcome.code == 2 and "tsx" in outcome.err
    tsx = program(tmp_path / "node_modules/.bin/tsx")
    assert words(gudgeon, tmp_path / "a.ts", **path) == [tsx, str(tmp_path / "a.ts")]
    outcome = gudgeon("install", tmp_path / "a.js", "--into", "kiro", PATH="/none")
    assert outcome.code == 2 and '"node"' in outcome.err


def test_a_relative_program_of_a_command_is_made_absolute(gudgeon, tmp_path):
    binary = program(tmp_path / "bin/shelf")
    gudgeon("install", "--into", "kiro", "--", "./bin/shelf", "--stdio")
    gudgeon("install", "--into", "kiro", "--", "npx", "-y", "@scope/some-server@2")
    servers = read(tmp_path / ".kiro/settings/mcp.json")["mcpServers"]
    assert servers["shelf"] == {"command": binary, "args": ["--stdio"]}
    assert servers["some-server"] == {"command": "npx", "args": ["-y", "@scope/some-server@2"]}


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 9), ("", 9)])
def test_a_terminal_is_asked_to_confirm(gudgeon, shelf, answer, code):
    parent, child = pty.openpty()
    environment = {**gudgeon.environment, "TERM": "xterm", "COLUMNS": "20"}
    del environment["NO_COLOR"]
    process = subprocess.Popen(
        gudgeon.words("install", shelf, "--into", "cursor"),
        stdin=child,
        stdout=child,
        stderr=child,
        env=environment,
        cwd=gudgeon.home,
    )
    os.close(child)
    shown, deadline = b"", time.monotonic() + 60
    while b"[y/N]" not in shown and time.monotonic() < deadline:
        if select.select([parent], [], [], 1)[0]:
            shown += os.read(parent, 4096)
    os.write(parent, f"{answer}\n".encode())
    assert process.wait(60) == code
    os.close(parent)
    assert b"\x1b[32m+" in shown
    assert (gudgeon.home / ".cursor/mcp.json").exists() == (answer == "y")


def test_an_installed_server_is_a_target(gudgeon, shelf):
    gudgeon("install", "--into", "cursor", "--name", "books", "--", sys.executable, shelf)
    for name in ("books", "cursor:books"):
        outcome = gudgeon("call", name, "add", "a:=1", "b:=2")
        assert outcome == (0, "3\n", "")


def test_a_file_that_only_defines_a_server_is_served_by_gudgeon_run(gudgeon, shop):
    text = "from gudgeon import Server\nfrom prices import add\napp = Server('shop')\napp.tool(add)\n"
    (gudgeon.folder / "defines.py").write_text(text)
    (gudgeon.folder / "prices.py").write_text("def add(a: int, b: int) -> int:\n    return a + b\n")
    assert gudgeon("install", "defines.py", "--into", "kiro").code == 0
    entry = read(gudgeon.home / ".kiro/settings/mcp.json")["mcpServers"]["defines"]
    assert entry == {"command": gudgeon.words()[0], "args": ["run", str(gudgeon.folder / "defines.py")]}
    gudgeon.folder = shop
    assert gudgeon("call", "kiro:defines", "add", "a:=1", "b:=2") == (0, "3\n", "")
