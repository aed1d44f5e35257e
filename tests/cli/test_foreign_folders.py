"""Folders that somebody else made, such as a cloned repository or one of another user: their files are not trusted."""

import json
import os
import stat
import sys

import pytest

SERVER = {"mcpServers": {"theirs": {"command": "true"}}}
OWN = "# a file of the user\n"
# A configuration whose comments would be commands of a shell.
OLD = '{\n// "\n"mcpServers": {}\n}\n'


@pytest.fixture
def project(gudgeon, tmp_path):
    """A folder in which the command runs, and beside it a file of the user."""
    folder = tmp_path / "project"
    (folder / ".cursor").mkdir(parents=True)
    gudgeon.folder = folder
    (tmp_path / "own").write_text(OWN)
    return folder


def install(gudgeon):
    return gudgeon("install", "https://mcp.example.com/mcp", "--into", "cursor", "--scope", "project", "--yes")


@pytest.mark.parametrize("target", ["own", "none"])
def test_a_backup_takes_the_place_of_a_link(gudgeon, project, tmp_path, target):
    configuration, backup = project / ".cursor/mcp.json", project / ".cursor/mcp.json.gudgeon.bak"
    configuration.write_text(OLD)
    backup.symlink_to(tmp_path / target)
    assert install(gudgeon).code == 0
    assert "mcp.example.com" in configuration.read_text()
    assert not backup.is_symlink() and backup.read_text() == OLD
    assert (tmp_path / "own").read_text() == OWN and not (tmp_path / "none").exists()


@pytest.mark.parametrize("link", [".cursor/mcp.json", ".cursor"])
@pytest.mark.parametrize("target", ["elsewhere", "none"])
def test_nothing_is_written_or_read_through_a_link(gudgeon, project, tmp_path, link, target):
    elsewhere = tmp_path / "elsewhere"
    if link == ".cursor":
        (project / ".cursor").rmdir()
        elsewhere.mkdir()
        (elsewhere / "mcp.json").write_text(json.dumps(SERVER))
    else:
        elsewhere.write_text(json.dumps(SERVER))
    (project / link).symlink_to(tmp_path / target)
    before = sorted(tmp_path.rglob("*"))
    for refused in (
        install(gudgeon),
        gudgeon("uninstall", "theirs", "--from", "cursor", "--scope", "project", "--yes"),
    ):
        assert refused.code == 10 and "is a symbolic link, which is not followed here" in refused.err
    assert sorted(tmp_path.rglob("*")) == before
    assert "theirs" not in gudgeon("discover", "--json").out


def test_what_is_no_small_file_is_not_read(gudgeon, project):
    configuration = project / ".cursor/mcp.json"

    def is_refused(reason):
        done = gudgeon("discover")
        configuration.unlink()
        return reason in done.err

    configuration.symlink_to("/dev/zero")
    assert is_refused("is not used")
    os.mkfifo(configuration)
    assert is_refused("it is not a regular file")
    configuration.write_text(json.dumps(SERVER) + " " * (1 << 20))
    assert is_refused("it is larger than 1 MiB")


@pytest.fixture(params=["writable", "foreign"])
def give_away(request):
    """A function that makes a file one that another user may have written."""

    def change(path):
        if request.param == "writable":
            path.chmod(path.stat().st_mode | stat.S_IWOTH)
            return "may be written by other users"
        os.chown(path, 65534, -1)
        return "belongs to the user 65534"

    if request.param == "foreign" and os.getuid() != 0:
        # Only root can give files away; unit tests of the command have the rule.
        return None
    return change


def test_a_configuration_of_another_user_is_not_used(gudgeon, project, give_away):
    if give_away is None:
        return
    configuration = project / ".cursor/mcp.json"
    configuration.write_text(json.dumps(SERVER))
    below = project / "a/b"
    below.mkdir(parents=True)
    gudgeon.folder = below
    assert "theirs" in gudgeon("discover", "--json").out
    reason = give_away(configuration)
    found = gudgeon("discover", "--json")
    assert "theirs" not in found.out
    assert f"{configuration} is not used: {configuration} {reason}\n" in found.err


def test_an_interpreter_of_another_user_is_not_started(gudgeon, project, give_away, shelf):
    if give_away is None:
        return
    environment = project / ".venv/bin"
    environment.mkdir(parents=True)
    python = environment / "python"
    python.write_text("#!/bin/sh\necho started >&2\nexit 1\n")
    python.chmod(0o755)
    server = project / "server.py"
    server.write_text(shelf.read_text())
    assert "started" in gudgeon("list", "server.py").err
    reason = give_away(environment)
    listed = gudgeon("list", "server.py")
    assert "started" not in listed.err
    assert f"{python} is not used: {environment} {reason}\n" in listed.err
    # The interpreter that is found instead starts the server.
    assert listed.code == 0, listed.err


def test_generated_files_and_recordings_follow_no_link(gudgeon, project, tmp_path, shelf):
    for name, words in {
        "types.py": ("types", shelf, "--out"),
        "report.xml": ("doctor", shelf, "--junit"),
        "messages.jsonl": ("record",),
    }.items():
        rest = ["--", sys.executable, shelf] if words[0] == "record" else []
        for target in ("own", "none"):
            link = project / name
            link.symlink_to(tmp_path / target)
            refused = gudgeon(*words, link, *rest)
            link.unlink()
            assert refused.code == 10 and link.name in refused.err, refused
    assert (tmp_path / "own").read_text() == OWN and not (tmp_path / "none").exists()
    # Nor is a folder on the way one.
    (tmp_path / "folder").mkdir()
    (project / "out").symlink_to(tmp_path / "folder")
    for words in (
        ("types", shelf, "--out", "out/types.py"),
        ("types", shelf, "--out", project / "out/types.py"),
        ("doctor", shelf, "--junit", "./out/report.xml"),
        ("record", "out/messages.jsonl", "--", sys.executable, shelf),
    ):
        refused = gudgeon(*words)
        assert refused.code == 10 and "out is a symbolic link, which is not followed here" in refused.err, refused
    assert not list((tmp_path / "folder").iterdir())
    recording = project / "new.jsonl"
    assert gudgeon("record", recording, "--", sys.executable, shelf).code == 0
    assert stat.S_IMODE(recording.stat().st_mode) == 0o600


def test_files_without_end_are_errors(gudgeon, shelf):
    for words in (
        ("replay", "/dev/zero"),
        ("call", shelf, "add_book", "title=@/dev/zero"),
        ("call", shelf, "add_book", "@/dev/zero"),
        ("list", "http://127.0.0.1:9/mcp", "--token-file", "/dev/zero"),
        ("list", "server", "--config", "/dev/zero"),
        ("auth", "cimd", "validate", "/dev/zero"),
    ):
        refused = gudgeon(*words)
        assert refused.code == 10 and "it is larger than" in refused.err, (words, refused)


def test_a_recording_is_not_read_whole(gudgeon, project, shelf):
    recording = project / "messages.jsonl"
    assert gudgeon("record", recording, "--", sys.executable, shelf).code == 0
    # A file with a hole, which takes no space: its size is beyond what would be read.
    with recording.open("ab") as file:
        file.truncate(8 << 30)
        file.seek(0, os.SEEK_END)
        file.write(b"\n")
    assert gudgeon("record", recording, "--", sys.executable, shelf).code == 0
    recording.unlink()
    os.mkfifo(recording)
    refused = gudgeon("record", recording, "--", sys.executable, shelf)
    assert refused.code == 10 and "it is not a regular file" in refused.err


def test_a_file_with_variables_of_another_user_is_not_read(gudgeon, project, tmp_path, shelf, give_away):
    if give_away is None:
        return
    entry = {"command": sys.executable, "args": [str(shelf)], "envFile": ".env"}
    (project / ".cursor/mcp.json").write_text(json.dumps({"mcpServers": {"theirs": entry}}))
    file = project / ".env"
    file.write_text("A=b\n")
    assert gudgeon("call", "--yes", "theirs", "add", "a:=1", "b:=2").code == 0
    reason = give_away(file)
    refused = gudgeon("call", "theirs", "add", "a:=1", "b:=2")
    assert refused.code == 10 and f"envFile: {file}: {file} {reason}" in refused.err
    file.unlink()
    file.symlink_to(tmp_path / "own")
    refused = gudgeon("call", "theirs", "add", "a:=1", "b:=2")
    assert refused.code == 10 and f"{file} is a symbolic link" in refused.err


def test_a_recording_is_not_added_to_a_file_of_another_user(gudgeon, project, shelf, give_away):
    if give_away is None:
        return
    recording = project / "messages.jsonl"
    assert gudgeon("record", recording, "--", sys.executable, shelf).code == 0
    before = recording.read_text()
    reason = give_away(recording)
    refused = gudgeon("record", recording, "--", sys.executable, shelf)
    assert refused.code == 10 and reason in refused.err
    assert recording.read_text() == before


def test_a_change_is_shown_without_what_a_terminal_obeys(gudgeon, project):
    configuration = project / ".cursor/mcp.json"
    configuration.write_text('{\n// \x1b[2J\u202e\n"mcpServers": {}\n}\n')
    shown = install(gudgeon)
    assert shown.code == 0
    assert "\\u{1b}[2J" in shown.out and "\x1b" not in shown.out + shown.err and "\u202e" not in shown.out


def test_errors_name_no_secret_arguments(gudgeon):
    for program in ("false", "no-such-program"):
        refused = gudgeon("list", "--", program, "--token", "s3cret")
        assert refused.code != 0 and f"{program} --token …" in refused.err and "s3cret" not in refused.err


def watched_modules(folder, mark):
    """Puts a module of each name of the standard library into a folder. Each records that it was imported."""
    for name in sys.stdlib_module_names:
        (folder / f"{name}.py").write_text(f"open({str(mark)!r}, 'a').write({name!r} + ' ')\n")


SCRIPT = """\
# /// script
# dependencies = ["gudgeon"]
# ///
from gudgeon import Server

app = Server("own")


@app.tool
def look() -> str:
    return "it is mine"
"""


@pytest.mark.parametrize("begins", [0, 3])
def test_no_module_of_the_current_folder_is_imported_for_a_server_elsewhere(gudgeon, project, tmp_path, begins):
    watched_modules(project, tmp_path / "imported")
    own = tmp_path / "elsewhere/own.py"
    own.parent.mkdir()
    # With the dependencies that a script declares, and without.
    own.write_text("\n".join(SCRIPT.splitlines()[begins:]))
    assert gudgeon("call", own, "look") == (0, "it is mine\n", "")
    assert not (tmp_path / "imported").exists(), (tmp_path / "imported").read_text()


def test_nothing_of_a_project_is_run_to_find_a_module_that_is_installed(gudgeon, project, tmp_path):
    mark = tmp_path / "ran"
    record = f"open({str(mark)!r}, 'a').write(__file__ if '__file__' in globals() else 'pth')\n"
    watched_modules(project, mark)
    for name in ("shop.py", "sitecustomize.py", "usercustomize.py"):
        (project / name).write_text(record)
    packages = project / ".venv/lib/python3.11/site-packages"
    packages.mkdir(parents=True)
    (packages / "start.pth").write_text(f"import os; {record}../../../../linked\n")
    (project / "linked").mkdir()
    (project / "linked/there.py").write_text(record)
    (packages / "installed.py").write_text(record)
    interpreter = project / ".venv/bin/python"
    interpreter.parent.mkdir()
    interpreter.write_text(f"#!/bin/sh\necho interpreter >> {mark}\n")
    interpreter.chmod(0o755)
    for module in ("shop", "installed", "there"):
        outcome = gudgeon("install", f"{module}:app", "--into", "kiro", "--dry-run")
        assert outcome.code == 0, outcome
    outcome = gudgeon("install", "nowhere:app", "--into", "kiro", "--dry-run")
    assert outcome.code == 2 and 'no Python module "nowhere"' in outcome.err
    (interpreter.parent / "python").unlink()
    outcome = gudgeon("install", "nowhere:app", "--into", "kiro", "--dry-run")
    assert outcome.code == 2 and 'no Python module "nowhere"' in outcome.err
    assert not mark.exists(), mark.read_text()
