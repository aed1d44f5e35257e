"""Targets that do not exist, exit, stay silent, print garbage, or speak another protocol; servers over HTTP."""

import http.server
import os
import sys
import threading

import pytest
from ports import reserve_port

COMMANDS = [["list"], ["call", "find", "title=x"], ["read", "a://b"], ["ping"], ["listen"]]


@pytest.fixture(params=COMMANDS, ids=lambda command: command[0])
def words(request):
    return request.param


def targeted(words, target):
    """Returns a command with its target in its place: a command behind `--`, or else before the other words."""
    return [*words, *target] if target[0] == "--" else [words[0], *target, *words[1:]]


@pytest.mark.parametrize(
    ("kind", "code", "parts"),
    [
        ("exits", 3, ["status 3", "the configuration is missing"]),
        ("garbage", 3, ["Starting the server", "standard output is for messages only"]),
        ("http", 4, ["--connect-timeout"]),
        ("silent", 4, ["no answer", "--connect-timeout"]),
        ("future", 7, ["2199-01-01"]),
    ],
)
def test_a_server_that_can_not_be_used_is_an_error(gudgeon, odd, words, kind, code, parts):
    limit = ["--connect-timeout", "1"] if code == 4 else []
    outcome = gudgeon(*targeted([*words, *limit], odd(kind)))
    assert (outcome.code, outcome.out) == (code, ""), outcome.err
    for part in parts:
        assert part in outcome.err


@pytest.mark.parametrize("is_file", [True, False])
def test_what_a_server_writes_to_standard_error_is_shown_once(gudgeon, words, is_file):
    file = gudgeon.folder / "fails.py"
    file.write_text("import sys\nsys.exit('the configuration is missing')\n")
    target = ["fails.py"] if is_file else ["--", sys.executable, "fails.py"]
    outcome = gudgeon(*targeted(words, target))
    name = "fails.py" if is_file else f"{sys.executable} fails.py"
    expected = f"the configuration is missing\nerror: {name}: the server exited with status 1\n"
    assert (outcome.code, outcome.err) == (3, expected)


def test_what_a_server_prints_beside_its_messages_is_quoted(gudgeon, odd):
    outcome = gudgeon("list", "tools", *odd("chatty"))
    assert outcome.code == 0 and outcome.out.startswith("find"), outcome
    warning = 'warning: the server printed "Starting \\u{1b}[31mup", which is not a message; over stdio a server'
    assert outcome.err.startswith(warning) and outcome.err.count("\n") == 1, outcome.err


def test_an_empty_server_says_so(gudgeon):
    (gudgeon.folder / "empty.py").write_text("from gudgeon import Server\napp = Server('empty')\n")
    assert gudgeon("list", "empty.py") == (0, "", "the server has no tools, resources or prompts\n")


@pytest.mark.parametrize(
    ("target", "code", "part"),
    [
        (["nowhere"], 2, "nowhere"),
        (["nowhere.py"], 2, "nowhere.py"),
        (["--", "no-such-program"], 3, "command not found: no-such-program"),
        (["ftp://127.0.0.1/"], 2, "ftp"),
        (["http://"], 2, "http://"),
        (["127.0.0.1:8000/mcp"], 2, "a URL has a scheme: http://127.0.0.1:8000/mcp"),
        (["localhost:8000"], 2, "a URL has a scheme: http://localhost:8000"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_target_that_does_not_exist_is_an_error(gudgeon, words, target, code, part):
    outcome = gudgeon(*targeted(words, target))
    assert (outcome.code, outcome.out) == (code, "") and part in outcome.err


def test_a_port_at_which_nothing_listens(gudgeon, words):
    url = f"http://127.0.0.1:{reserve_port()}/mcp"
    outcome = gudgeon(*targeted(words, [url]))
    assert (outcome.code, outcome.out) == (3, "") and url in outcome.err


class Page(http.server.BaseHTTPRequestHandler):
    """A web server that knows nothing of MCP."""

    def do_POST(self):
        self.server.seen.append(dict(self.headers))
        body = b"<html><script>alert(1)</script></html>"
        self.send_response(self.server.status)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST

    def log_message(self, *_):
        pass


@pytest.fixture
def page():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    server.seen, server.status = [], 200
    server.url = f"http://127.0.0.1:{server.server_port}/mcp"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(("status", "code"), [(200, 3), (404, 3), (500, 3), (401, 5)])
def test_a_web_server_that_is_none_of_mcp(gudgeon, words, page, status, code):
    page.status = status
    outcome = gudgeon(*targeted(words, [page.url]))
    assert (outcome.code, outcome.out) == (code, ""), outcome.err
    assert page.url in outcome.err


def test_tokens_come_from_the_environment_or_a_file(gudgeon, page):
    page.status = 404
    gudgeon("ping", page.url, GUDGEON_TOKEN="s3cret-env")
    assert {headers["authorization"] for headers in page.seen} == {"Bearer s3cret-env"}
    page.seen.clear()
    file = gudgeon.folder / "token"
    file.write_text("s3cret-file\n")
    gudgeon("ping", page.url, "--token-file", file, GUDGEON_TOKEN="s3cret-env")
    assert {headers["authorization"] for headers in page.seen} == {"Bearer s3cret-file"}
    page.seen.clear()
    gudgeon("ping", page.url, "--header", "X-Tenant: books", "-H", "X-Other: 1")
    assert {(headers.get("authorization"), headers["x-tenant"], headers["x-other"]) for headers in page.seen} == {
        (None, "books", "1")
    }


def test_a_bad_token_is_not_repeated(gudgeon, page):
    file = gudgeon.folder / "token"
    file.write_text("s3cret with spaces")
    outcome = gudgeon("ping", page.url, "--token-file", file)
    assert outcome.code == 2 and str(file) in outcome.err and "s3cret" not in outcome.err
    assert gudgeon("ping", page.url, "--token-file", "nowhere").code == 10
    assert page.seen == []


def test_a_token_is_not_passed_to_a_command(gudgeon):
    words = ["--", "sh", "-c", 'echo "token: [$GUDGEON_TOKEN]" >&2']
    assert "token: []" in gudgeon("ping", *words, GUDGEON_TOKEN="s3cret").err


def test_options_that_are_wrong(gudgeon, shelf):
    for option in [["--timeout", "0"], ["--timeout", "soon"], ["--header", "x"], ["--count", "0"]]:
        outcome = gudgeon("ping", shelf, *option)
        assert outcome.code == 2 and option[0] in outcome.err
    assert gudgeon("ping").code == 2
    assert gudgeon("call", shelf).code == 2
    assert os.listdir(gudgeon.folder) == []
