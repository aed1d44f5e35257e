"""Signing in at an authorization server, with the tokens in a file; client metadata documents; completions."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from background import eventually, is_background, processes
from ports import reserve_port

from gudgeon.testing.auth import AuthorizationServer

ROOT = Path(__file__).resolve().parents[2]
TOKENS = ".local/share/gudgeon/tokens.json"


@pytest.fixture
def provider():
    with AuthorizationServer() as provider:
        yield provider


@pytest.fixture
def url(provider):
    """The URL of a server that needs a sign-in at the provider."""
    port = reserve_port()
    url = f"http://127.0.0.1:{port}/mcp"
    server = subprocess.Popen(
        [sys.executable, ROOT / "tests/e2e_sign_in/protected_server.py", "direct", provider.issuer, url],
        stdin=subprocess.DEVNULL,
    )
    end = time.monotonic() + 60
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        assert time.monotonic() < end and server.poll() is None
        time.sleep(0.02)
    yield url
    server.terminate()
    server.wait()


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


def visited(url):
    """The URL to which the provider, whose user agrees to everything, sends the browser."""
    opener = urllib.request.build_opener(NoRedirect)
    try:
        answer = opener.open(url)
    except urllib.error.HTTPError as redirect:
        answer = redirect
    return answer.headers["Location"]


def login(gudgeon, url, *options):
    command = gudgeon.start("auth", "login", "--headless", *options, url)
    assert command.stdout is not None and command.stdin is not None
    page = command.stdout.readline().strip()
    if page.startswith("http"):
        command.stdin.write(visited(page) + "\n")
        command.stdin.flush()
    out, err = command.communicate(timeout=60)
    return command.returncode, out, err


def test_a_sign_in_is_used_by_every_command(gudgeon, provider, url):
    before = gudgeon("call", url, "who")
    assert before.code == 5 and f"gudgeon auth login {url}" in before.err
    assert not (gudgeon.home / TOKENS).exists()
    code, out, err = login(gudgeon, url)
    assert code == 0, err
    assert provider.issuer in out
    assert gudgeon("call", url, "who") == (0, "user\n", "")
    assert (gudgeon.home / TOKENS).stat().st_mode & 0o777 == 0o600


def test_a_named_connection_uses_the_sign_in(gudgeon, run, url):
    assert gudgeon("connect", "web", url).code == 5
    assert login(gudgeon, url)[0] == 0
    assert gudgeon("connect", "web", url).code == 0
    assert gudgeon("call", "web", "who") == (0, "user\n", "")


def test_a_named_connection_gets_a_token_from_the_environment_or_a_file(gudgeon, run, url):
    assert login(gudgeon, url)[0] == 0
    token = gudgeon("auth", "token", url).out.strip()
    (gudgeon.home / TOKENS).unlink()
    (gudgeon.folder / "token").write_text(token)
    assert gudgeon("connect", "web", url, GUDGEON_TOKEN=token).code == 0
    assert gudgeon("connect", "other", url, "--token-file", "token").code == 0
    assert [file.name for file in run.iterdir() if file.is_file() and token in file.read_text()] == []
    for name in ("web", "other"):
        assert gudgeon("call", name, "who") == (0, "user\n", "")
    (process,) = processes(run)
    os.kill(process, signal.SIGKILL)
    eventually(lambda: not is_background(process))
    refused = gudgeon("call", "web", "who")
    assert refused.code == 5 and f"gudgeon auth login {url}" in refused.err
    assert gudgeon("call", "web", "who", GUDGEON_TOKEN=token) == (0, "user\n", "")
    assert gudgeon("call", "other", "who") == (0, "user\n", "")


def test_status_shows_no_token_and_token_shows_it(gudgeon, provider, url):
    assert gudgeon("auth", "status", "--json").json == {"signIns": []}
    assert gudgeon("auth", "status", url).code == 8
    assert gudgeon("auth", "token", url).code == 8
    assert login(gudgeon, url, "--scope", "books:read")[0] == 0
    token = gudgeon("auth", "token", url).out.strip()
    assert token.count(".") == 2
    for outcome in (gudgeon("auth", "status"), gudgeon("auth", "status", url, "--json")):
        assert outcome.code == 0
        assert token not in outcome.out
        assert provider.issuer in outcome.out and "books:read" in outcome.out
    (shown,) = gudgeon("auth", "status", "--json").json["signIns"]
    assert shown["url"] == url and shown["isRenewable"] and shown["expiresAt"] > time.time()


def test_logout_revokes_and_removes(gudgeon, provider, url):
    assert login(gudgeon, url)[0] == 0
    done = gudgeon("auth", "logout", url)
    assert done.code == 0 and "revoked" in done.out
    assert any(request.path.endswith("revoke") for request in provider.requests)
    assert gudgeon("auth", "status", "--json").json == {"signIns": []}
    assert json.loads((gudgeon.home / TOKENS).read_text())["records"] == {}
    assert gudgeon("call", url, "who").code == 5
    assert gudgeon("auth", "logout", url).code == 8


def test_the_input_of_a_headless_sign_in_must_not_end_early(gudgeon, url):
    command = gudgeon.start("auth", "login", "--headless", url)
    _, err = command.communicate(timeout=60)
    assert command.returncode == 5 and "standard input has ended" in err


def test_a_corrupt_file_of_tokens_is_not_overwritten(gudgeon, url):
    path = gudgeon.home / TOKENS
    path.parent.mkdir(parents=True)
    path.write_text('{"s3cret-token": ')
    for words in (["login", "--headless", url], ["status"], ["token", url], ["logout", url]):
        refused = gudgeon("auth", *words)
        assert refused.code == 10, refused
        assert "tokens.json" in refused.err and "line 1" in refused.err and "s3cret" not in refused.err
    assert gudgeon("call", url, "who").code == 5
    assert path.read_text() == '{"s3cret-token": '


def test_a_read_only_home_is_an_error_that_names_the_file(gudgeon, url):
    refused = gudgeon("auth", "status", HOME="/proc")
    assert refused.code == 0
    # Reported before the user signs in.
    refused = gudgeon("auth", "login", "--headless", url, HOME="/proc")
    assert refused.code == 10 and refused.out == ""
    assert "/proc/.local/share/gudgeon" in refused.err


def test_users_sign_in_over_http_only(gudgeon, shelf):
    refused = gudgeon("auth", "login", "--", sys.executable, shelf)
    assert refused.code == 2 and "http" in refused.err


def test_a_program_without_keyrings_says_so_before_the_sign_in(gudgeon, url):
    refused = gudgeon("auth", "login", "--headless", "--keyring", url)
    assert (refused.code, refused.out) == (7, "")
    assert "without access to the system's keyring" in refused.err and "--features keyring" in refused.err
    # The tokens of another build may be there.
    assert login(gudgeon, url)[0] == 0
    assert gudgeon("auth", "status", "--json").json["signIns"][0]["isInKeyring"] is False
    file = json.loads((gudgeon.home / TOKENS).read_text())
    file["records"][f"gudgeon {url}"]["keyring"] = True
    (gudgeon.home / TOKENS).write_text(json.dumps(file))
    for words, code in [(["call", url, "who"], 5), (["auth", "status"], 7), (["auth", "token", url], 7)]:
        refused = gudgeon(*words)
        assert refused.code == code and "--features keyring" in refused.err, refused


DOCUMENT = "https://app.example.com/client.json"


def test_a_document_is_created_and_valid(gudgeon, tmp_path):
    made = gudgeon("auth", "cimd", "create", DOCUMENT, "--name", "Shelf", "--redirect", "http://127.0.0.1/callback")
    assert made.code == 0 and made.json["client_id"] == DOCUMENT
    path = tmp_path / "client.json"
    path.write_text(made.out)
    checked = gudgeon("auth", "cimd", "validate", path, "--json")
    assert checked.code == 0 and checked.json == {"errors": [], "warnings": []}


def test_wrong_documents_are_found(gudgeon, tmp_path):
    path = tmp_path / "client.json"
    path.write_text(json.dumps({"client_id": "http://app.example.com", "client_secret": "s"}))
    checked = gudgeon("auth", "cimd", "validate", path)
    assert checked.code == 1
    for problem in ("must be https", "client_name", "redirect_uris", "client_secret"):
        assert problem in checked.out
    path.write_text("{")
    assert "not valid JSON" in gudgeon("auth", "cimd", "validate", path).out
    assert gudgeon("auth", "cimd", "validate", tmp_path / "none.json").code == 10
    words = ["auth", "cimd", "create", DOCUMENT, "--name", "x", "--redirect", "javascript:alert(1)"]
    assert gudgeon(*words).code == 2


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_completions_are_scripts(gudgeon, shell):
    script = gudgeon("completions", shell)
    assert script.code == 0 and "disconnect" in script.out
    # A hidden command is not completed.
    assert not re.search(r"gudgeon__background\)|'background:", script.out)
    program = shutil.which(shell)
    if shell == "bash":
        assert program is not None
    if program is not None and shell != "powershell":
        subprocess.run([program, "-n"], input=script.out, encoding="utf-8", check=True, env={**os.environ})
