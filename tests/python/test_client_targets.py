import sys
from pathlib import Path

import pytest

from gudgeon import Client, Command, Retry, SyncClient
from gudgeon._client.targets import place_of


def argv(target):
    return tuple(place_of(target).name.split())


def test_a_list_is_a_command():
    assert argv(["python", "server.py"]) == ("python", "server.py")
    assert argv(("uvx", Path("a"))) == ("uvx", "a")


def test_a_path_is_run_by_what_its_suffix_tells():
    assert argv(Path("server.py")) == (sys.executable, "server.py")
    assert argv(Path("server.mjs")) == ("node", "server.mjs")
    assert argv(Path("server.ts")) == ("node", "server.ts")
    assert argv(Path("server")) == ("./server",)
    assert argv(Path("/opt/server")) == ("/opt/server",)


def test_an_entry_of_a_hosts_configuration():
    entry = {
        "type": "stdio",
        "command": "npx",
        "args": ["-y", "thing"],
        "env": {"A": "1"},
        "cwd": "/srv",
        "disabled": False,
    }
    assert argv(entry) == ("npx", "-y", "thing")


def test_a_command_keeps_its_secrets():
    assert repr(Command("a", "b", env={"KEY": "secret"})) == "Command('a', 'b')"


@pytest.mark.parametrize(
    ("target", "error", "fix"),
    [
        ("python server.py", ValueError, "['python', 'server.py']"),
        ("server.py", ValueError, "Path('server.py')"),
        ("ftp://example.org", ValueError, "http"),
        ([], ValueError, "program"),
        (["a", 1], TypeError, "1 is of type int"),
        ({"args": []}, ValueError, '"command"'),
        ({"command": "a", "type": "http"}, ValueError, 'must be "stdio"'),
        ({"command": "a", "args": [b"b"]}, TypeError, "not a bytes"),
        ({"command": "a", "args": "b c"}, TypeError, "write one string for each argument"),
        ({"mcpServers": {}}, ValueError, "ClientGroup"),
        (42, TypeError, "list of words"),
        (["a\0b"], ValueError, "NUL"),
    ],
)
def test_an_invalid_target_is_rejected_at_once_with_the_fix(target, error, fix):
    for face in (Client, SyncClient):
        with pytest.raises(error) as caught:
            face(target)
        assert fix in str(caught.value)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"timeout": 0}, ValueError),
        ({"timeout": "1"}, ValueError),
        ({"revision": "2024-01-01"}, ValueError),
        ({"revision": []}, ValueError),
        ({"revision": ["bare", "2025-11-25"]}, ValueError),
        ({"retry": "always"}, ValueError),
        ({"on_log": 3}, TypeError),
        ({"max_rounds": 0}, ValueError),
        ({"roots": "file:///a"}, TypeError),
        ({"roots": ["a"]}, ValueError),
        ({"roots": [3]}, TypeError),
        ({"nonsense": 1}, TypeError),
    ],
)
def test_options_are_checked_when_they_are_given(options, error):
    with pytest.raises(error):
        Client(["a"], **options)


def test_retry_is_checked():
    with pytest.raises(ValueError, match="Retry: attempts= must be an integer from 1, not 0"):
        Retry(attempts=0)
    with pytest.raises(ValueError, match="Retry: deadline= must be a number of seconds above 0, .*, not 0"):
        Retry(deadline=0)
    with pytest.raises(TypeError, match="Retry: only_safe= must be True or False, not 'no'"):
        Retry(only_safe="no")


def test_an_async_callback_needs_a_loop():
    async def on_elicit(request):
        return True

    with pytest.raises(TypeError, match="async def"):
        SyncClient(["a"], on_elicit=on_elicit)


def test_nothing_is_known_before_it_is_connected():
    from gudgeon import McpError

    client = SyncClient(["a"])
    with pytest.raises(McpError, match="not connected"):
        client.server
    with pytest.raises(McpError, match="not connected"):
        client.list_tools()
    client.close()


@pytest.mark.parametrize(
    "url", ["ftp://me:s3cret@host/mcp?key=s3cret", "http:/me:s3cret@host", "https://me:s3cret@host", "tcp://h?s3cret"]
)
def test_errors_show_no_passwords_of_urls(url):
    with pytest.raises(ValueError) as caught:
        Client(url)
    assert "s3cret" not in str(caught.value)


def test_nothing_that_shows_a_client_shows_secrets():
    client = Client("https://host/mcp?key=s3cret", headers={"Authorization": "s3cret"})
    command = Command("npx", env={"TOKEN": "s3cret"})
    core = client._core
    for value in (client, command, Client(command), core, core.options, core.place, core.native):
        assert "s3cret" not in repr(value)
    with pytest.raises(TypeError) as caught:
        Command("npx", env={b"TOKEN": "s3cret"})
    assert "s3cret" not in str(caught.value)
