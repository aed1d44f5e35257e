"""`tests/conformance/serve`: the options of the servers that these tests, and others, start."""

import os
import subprocess

import pytest
import servers
import speak

pytestmark = pytest.mark.native
ADDRESS = ["--http", "127.0.0.1:0"]
MOUNTS = {"python": ["asgi"], "node": ["fetch", "node"], "rust": ["tower"]}


@pytest.fixture
def refused(kind):
    def refused(*options):
        """Returns the output of a server that does not start."""
        command = [str(servers.SERVE), kind, *options]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20)
        assert done.returncode > 0, done
        assert done.stdout == ""
        return done.stderr

    return refused


@pytest.mark.parametrize(
    "options",
    [[], ["--stdio", *ADDRESS], [*ADDRESS, "--stdio"], ["--http"], [*ADDRESS, "--nonsense"], ["--stdio", "--mount"]],
    ids=" ".join,
)
def test_what_cannot_be_meant_is_refused(refused, options):
    assert "--" in refused(*options)


def test_a_mount_of_another_language_or_of_none_is_refused(refused, kind):
    for mount in {"nonsense", *(it for mounts in MOUNTS.values() for it in mounts)} - set(MOUNTS[kind]):
        assert MOUNTS[kind][0] in refused(*ADDRESS, "--mount", mount)
    for mount in MOUNTS[kind]:
        assert "--stdio" in refused("--stdio", "--mount", mount) or "--http" in refused("--stdio", "--mount", mount)


@pytest.mark.parametrize(
    "name, value, told",
    [
        ("page-size", "0", "page"),
        ("page-size", "many", "page"),
        ("dialects", "0.8", "0.7"),
        ("options", "{", "JSON"),
        ("options", '{"max_bdy": 1}', "max"),
    ],
)
def test_a_value_that_cannot_be_meant_is_refused(refused, name, value, told):
    assert told in refused(*ADDRESS, f"--{name}", value)


def test_lists_are_paged(kind):
    command = [str(servers.SERVE), *servers.KINDS[kind], *ADDRESS, "--page-size", "3"]
    with servers.Server(kind, command=command) as server:
        for method, listed in (("tools/list", "tools"), ("resources/list", "resources"), ("prompts/list", "prompts")):
            names, params = [], {}
            while True:
                result = speak.reply(speak.ask_modern(server, method, params))["result"]
                assert 0 < len(result[listed]) <= 3
                names += [it["name"] for it in result[listed]]
                if "nextCursor" not in result:
                    break
                params = {"cursor": result["nextCursor"]}
            assert len(names) == len(set(names)) and len(names) >= 3


def test_it_becomes_the_server_and_says_its_url_last(kind, start):
    server = start()
    program = os.path.basename(os.readlink(f"/proc/{server.process.pid}/exe"))
    assert program.startswith({"python": "python", "node": "node", "rust": "conformance-server"}[kind])
    assert server.stderr[-1] == f"http://127.0.0.1:{server.port}/mcp\n"
    assert server.stdout == []
