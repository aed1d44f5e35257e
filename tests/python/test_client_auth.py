"""Clients with credentials: `auth=`."""

import asyncio
import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

import fake_keyring
from gudgeon import Client, SyncClient
from gudgeon.auth import ClientCredentials, EnterpriseManaged, FileStore, KeyringStore, OAuth, WorkloadIdentity
from gudgeon.errors import AuthError

RESULTS: dict[str, Any] = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "protected", "version": "1"},
    },
    "tools/list": {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]},
    "tools/call": {"content": [{"type": "text", "text": "done"}]},
}


class Listener(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512


class Protected:
    """A server that accepts one token, and its authorization server, which issues that token."""

    token = "t0ken"

    def __init__(self) -> None:
        owner = self
        self.forms: list[dict[str, list[str]]] = []
        self.sent: list[str | None] = []

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self.reply(*owner.document(self.path))

            def do_DELETE(self) -> None:
                self.reply(405, {})

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.path == "/token":
                    owner.forms.append(parse_qs(body.decode()))
                    answer = {"access_token": owner.token, "token_type": "Bearer", "refresh_token": "r"}
                    return self.reply(200, answer)
                if self.path == "/register":
                    return self.reply(201, {"client_id": "registered"})
                owner.sent.append(self.headers["authorization"])
                if self.headers["authorization"] != f"Bearer {owner.token}":
                    return self.reply(401, {})
                message = json.loads(body)
                if "id" not in message:
                    return self.reply(202, {})
                result = RESULTS[message["method"]]
                self.reply(200, {"jsonrpc": "2.0", "id": message["id"], "result": result})

            def reply(self, status: int, body: Any) -> None:
                content = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                if status == 401:
                    self.send_header("WWW-Authenticate", "Bearer")
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *args: Any) -> None:
                """Prints nothing."""

        self.server = Listener(("127.0.0.1", 0), Handler)
        self.origin = f"http://127.0.0.1:{self.server.server_port}"
        self.url = f"{self.origin}/mcp"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def document(self, path: str) -> tuple[int, Any]:
        if path == "/.well-known/oauth-protected-resource/mcp":
            return 200, {"resource": self.url, "authorization_servers": [self.origin]}
        if path == "/.well-known/oauth-authorization-server":
            return 200, {
                "issuer": self.origin,
                "authorization_endpoint": f"{self.origin}/authorize",
                "token_endpoint": f"{self.origin}/token",
                "registration_endpoint": f"{self.origin}/register",
                "code_challenge_methods_supported": ["S256"],
            }
        return 405 if path == "/mcp" else 404, {}

    def options(self, auth: Any) -> dict[str, Any]:
        return {"auth": auth, "revision": "2025-11-25"}


@pytest.fixture
def protected() -> Any:
    server = Protected()
    yield server
    server.server.shutdown()
    server.server.server_close()


def agree(url: str) -> str:
    """Does what a user and an authorization server do."""
    query = parse_qs(urlsplit(url).query)
    return f"{query['redirect_uri'][0]}?code=c0de&state={query['state'][0]}"


def visit(url: str) -> None:
    from urllib.request import urlopen

    threading.Thread(target=lambda: urlopen(agree(url)).read(), daemon=True).start()


class Store:
    def __init__(self) -> None:
        self.records: dict[str, bytes] = {}

    async def get(self, key: str) -> bytes | None:
        return self.records.get(key)

    async def set(self, key: str, value: bytes) -> None:
        self.records[key] = value

    async def delete(self, key: str) -> None:
        del self.records[key]


def call(server: Protected, auth: Any) -> str:
    async def main() -> str:
        async with Client(server.url, **server.options(auth)) as client:
            return (await client.call_tool("echo")).text

    return asyncio.run(main())


@pytest.mark.io
def test_a_token_or_a_function_of_one_is_sent(protected: Any) -> None:
    async def token() -> str:
        return "t0ken"

    for auth in ("t0ken", lambda: "t0ken", token):
        protected.sent.clear()
        assert call(protected, auth) == "done"
        assert set(protected.sent) == {"Bearer t0ken"}
    with SyncClient(protected.url, **protected.options("t0ken")) as client:
        assert client.call_tool("echo").text == "done"
    with pytest.raises(AuthError) as caught:
        call(protected, "wr0ng")
    assert "wr0ng" not in str(caught.value) and "the server rejected the credentials" in str(caught.value)
    with pytest.raises(AuthError, match='pass auth="TOKEN", or auth="oauth"'):
        call(protected, None)
    with pytest.raises(ValueError, match="pass the token alone"):
        call(protected, "Bearer t0ken")
    error = RuntimeError("s3cret")

    def fails() -> str:
        raise error

    with pytest.raises(AuthError) as caught:
        call(protected, fails)
    assert "RuntimeError" in str(caught.value) and "s3cret" not in str(caught.value)
    assert caught.value.__cause__ is error

    class Away:
        def get(self, key: str) -> bytes | None:
            raise error

        set = delete = get

    with pytest.raises(AuthError) as caught:
        call(protected, OAuth(store=Away()))
    assert "RuntimeError" in str(caught.value) and "s3cret" not in str(caught.value)
    assert caught.value.__cause__ is error


@pytest.mark.io
def test_a_user_signs_in(protected: Any, tmp_path: Any) -> None:
    assert call(protected, OAuth(open_url=visit)) == "done"
    assert protected.forms[-1]["grant_type"] == ["authorization_code"]
    store = Store()
    assert call(protected, OAuth(on_redirect=agree, store=store)) == "done"
    assert len(store.records) == 2 and all(json.loads(record)["version"] == 1 for record in store.records.values())
    before = len(protected.forms)
    # The stored token needs no user.
    assert call(protected, OAuth(store=store)) == "done"
    path = tmp_path / "tokens.json"
    assert call(protected, OAuth(on_redirect=agree, store=FileStore(path))) == "done"
    assert call(protected, OAuth(store=FileStore(path))) == "done"
    assert len(protected.forms) == before + 1
    with SyncClient(protected.url, **protected.options(OAuth(on_redirect=agree))) as client:
        assert client.call_tool("echo").text == "done"


@pytest.mark.io
def test_tokens_are_kept_in_the_keyring(protected: Any) -> None:
    with fake_keyring.used() as system:
        system.is_locked = True
        with pytest.raises(AuthError, match="the system's keyring can't be read .* unlock it, or use FileStore"):
            call(protected, OAuth(on_redirect=agree, store=KeyringStore("shelf")))
        system.is_locked = False
        assert call(protected, OAuth(on_redirect=agree, store=KeyringStore("shelf"))) == "done"
        assert threading.get_ident() not in system.threads
        before = len(protected.forms)
        # The stored token needs no user, with an event loop or without one.
        assert call(protected, OAuth(store=KeyringStore("shelf"))) == "done"
        with SyncClient(protected.url, **protected.options(OAuth(store=KeyringStore("shelf")))) as client:
            assert client.call_tool("echo").text == "done"
        assert len(protected.forms) == before
        system.entries.clear()
        auth = OAuth(on_redirect=agree, store=KeyringStore("shelf"))
        with SyncClient(protected.url, **protected.options(auth)) as client:
            assert client.call_tool("echo").text == "done"
        assert {service for service, _ in system.entries} == {"shelf"}


FIFTY_CALLS = """
import asyncio, sys
from gudgeon import Client
from gudgeon.auth import FileStore, OAuth

def browser(url):
    raise RuntimeError("nobody is asked")

async def main():
    auth = OAuth(store=FileStore(sys.argv[2]), on_redirect=browser)
    async with Client(sys.argv[1], auth=auth, revision="2025-11-25") as client:
        await asyncio.gather(*(client.call_tool("echo") for _ in range(50)))

asyncio.run(main())
"""


@pytest.mark.io
def test_processes_renew_a_token_once(protected: Any, tmp_path: Any) -> None:
    path = tmp_path / "tokens.json"
    assert call(protected, OAuth(on_redirect=agree, store=FileStore(path))) == "done"
    assert path.stat().st_mode & 0o777 == 0o600
    content = json.loads(path.read_text())
    for record in content["records"].values():
        if "tokens" in record:
            record["tokens"].update(expires_at=1, renew_at=1)
    path.write_text(json.dumps(content))
    protected.token = "renewed"
    protected.forms.clear()
    command = [sys.executable, "-c", FIFTY_CALLS, protected.url, str(path)]
    processes = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    for process in processes:
        _, said = process.communicate()
        assert process.returncode == 0, said
    assert [form["grant_type"] for form in protected.forms] == [["refresh_token"]]


@pytest.mark.io
def test_programs_sign_in_by_themselves(protected: Any) -> None:
    assert call(protected, ClientCredentials(client_id="me", client_secret="s")) == "done"
    assert protected.forms[-1]["grant_type"] == ["client_credentials"]

    async def token() -> str:
        return "platform"

    assert call(protected, WorkloadIdentity(token=token, client_id="me")) == "done"
    assert protected.forms[-1]["assertion"] == ["platform"]


@pytest.mark.io
def test_credentials_go_to_the_issuer_that_the_program_names(protected: Any) -> None:
    kinds = {
        OAuth: {"client_id": "me", "client_secret": "s", "on_redirect": agree},
        ClientCredentials: {"client_id": "me", "client_secret": "s"},
        EnterpriseManaged: {"identity_token": "i", "idp": "https://idp.example.com", "client_id": "me"},
        WorkloadIdentity: {"token": "platform"},
    }
    for kind, options in kinds.items():
        with pytest.raises(AuthError, match=r"for https://as\.example\.com, but"):
            call(protected, kind(**options, issuer="https://as.example.com"))
        assert protected.forms == []
    for kind in (OAuth, ClientCredentials, WorkloadIdentity):
        assert call(protected, kind(**kinds[kind], issuer=protected.origin)) == "done"


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: Client("http://127.0.0.1:1", auth=7), "auth="),
        (lambda: Client("http://127.0.0.1:1", auth=OAuth), "auth="),
        (lambda: OAuth(client_id=""), "client_id="),
        (lambda: OAuth(client_id="me", issuer=""), "issuer="),
        (lambda: WorkloadIdentity(token="t", issuer=7), "issuer="),
        (lambda: OAuth(scopes="a b"), "scopes="),
        (lambda: OAuth(redirect_port=70000), "redirect_port="),
        (lambda: OAuth(open_url="firefox"), "open_url="),
        (lambda: OAuth(store={}), "set"),
        (lambda: ClientCredentials(client_id="me"), "private_key="),
        (lambda: EnterpriseManaged(identity_token="", idp="https://idp", client_id="me"), "identity_token="),
    ],
)
def test_invalid_credentials_are_refused_at_once(make: Any, problem: str) -> None:
    with pytest.raises((TypeError, ValueError), match=problem):
        make()


def test_credentials_show_no_secrets() -> None:
    for credentials in (
        OAuth(client_id="me", client_secret="s3cret"),
        ClientCredentials(client_id="me", client_secret="s3cret"),
        WorkloadIdentity(token="s3cret"),
        Client("http://127.0.0.1:1", auth="s3cret"),
    ):
        assert "s3cret" not in repr(credentials)
