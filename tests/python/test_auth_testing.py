"""`gudgeon.testing.auth`: servers and clients against its authorization server."""

import asyncio
import json
import socket
import urllib.error
import urllib.request
from contextlib import ExitStack
from typing import Any

import pytest
from ports import reserve_port

from asgi_host import hosted
from gudgeon import Client, Context, Server
from gudgeon.auth import ClientCredentials, EnterpriseManaged, Introspection, Jwt, OAuth, WorkloadIdentity
from gudgeon.errors import AuthError, McpError
from gudgeon.testing.auth import AuthFaults, AuthorizationServer, generate_key

pytestmark = pytest.mark.io

SECRET = {"client_id": "robot", "client_secret": "s3cret"}


def shelf(auth: Any) -> Server[Any]:
    app: Server[Any] = Server("shelf", auth=auth)

    @app.tool
    async def who(ctx: Context) -> str:
        assert ctx.principal is not None
        return " ".join([ctx.principal.subject, *sorted(ctx.principal.scopes)])

    @app.tool(scopes=["write"])
    async def write() -> str:
        return "written"

    return app


async def who(url: str, auth: Any) -> str:
    async with Client(url, auth=auth) as client:
        return (await client.call_tool("who")).text


def paths(provider: AuthorizationServer) -> list[str]:
    return [request.path for request in provider.requests]


async def test_a_user_signs_in_and_gets_more_scopes() -> None:
    async with AuthorizationServer(subject="ada", scopes=["read", "write"]) as provider:
        app = shelf(Jwt(provider.issuer, scopes=["read"]))
        async with app.listen("http://127.0.0.1:0/mcp") as here:
            async with Client(here.url, auth=OAuth(on_redirect=provider.browse)) as client:
                assert (await client.call_tool("who")).text == "ada read"
                assert (await client.call_tool("write")).text == "written"
                assert (await client.call_tool("who")).text == "ada read write"
        tokens = [request for request in provider.requests if request.path == "/token"]
        assert [request.form["resource"] for request in tokens] == [here.url] * 2
        assert {request.form["code"] for request in tokens} == {"…"}


async def test_a_registered_client_and_a_document_need_no_registration() -> None:
    document = {"client_id": "https://app.example.com/client.json", "redirect_uris": ["http://127.0.0.1/callback"]}
    async with AuthorizationServer(
        clients=[{"client_id": "app"}], client_documents={document["client_id"]: document}, registration=False
    ) as provider:
        async with shelf(provider.issuer).listen("http://127.0.0.1:0/mcp") as here:
            for client in ({"client_id": "app"}, {"client_metadata_url": document["client_id"]}):
                assert await who(here.url, OAuth(on_redirect=provider.browse, **client)) == "user"
            with pytest.raises(AuthError, match="registration"):
                await who(here.url, OAuth(on_redirect=provider.browse))


async def test_a_document_is_fetched_from_an_address_of_the_list() -> None:
    place = ""

    async def serve(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            body = json.dumps({"client_id": place, "redirect_uris": ["http://127.0.0.1/callback"]})
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": body.encode()})

    async with hosted(serve) as url:
        place = f"{url}/client.json"
        async with AuthorizationServer(client_documents=[place]) as provider:
            query = f"response_type=code&client_id={place}&code_challenge={'x' * 43}&code_challenge_method=S256"
            target = f"{provider.issuer}/authorize?{query}&redirect_uri=http://127.0.0.1:9/callback"
            # In a thread, because this event loop serves the document.
            redirected = await asyncio.to_thread(provider.browse, target)
            assert redirected.startswith("http://127.0.0.1:9/callback?code=")
            with pytest.raises(RuntimeError, match="the client is unknown"):
                provider.browse(target.replace("/client.json", "/other.json"))


async def test_programs_sign_in() -> None:
    private, public = generate_key()
    signer = {"client_id": "signer", "jwks": {"keys": [public]}}
    with AuthorizationServer() as platform:
        provider = AuthorizationServer(clients=[SECRET, signer], trusted_issuers=[platform.issuer])
        async with provider, shelf(provider.issuer).listen("http://127.0.0.1:0/mcp") as here:
            assert await who(here.url, ClientCredentials(**SECRET)) == "robot"
            key = ClientCredentials(client_id="signer", private_key=private, algorithm="ES256")
            assert await who(here.url, key) == "signer"

            def token() -> str:
                return platform.token(subject="build-7", audience=provider.issuer)

            assert await who(here.url, WorkloadIdentity(token=token)) == "build-7"
            platform.rotate_keys(keep_former=False)
            assert await who(here.url, WorkloadIdentity(token=token)) == "build-7"


async def test_an_organisation_decides() -> None:
    with AuthorizationServer(clients=[SECRET]) as idp:
        async with AuthorizationServer(clients=[SECRET], trusted_issuers=[idp.issuer]) as provider:
            async with shelf(provider.issuer).listen("http://127.0.0.1:0/mcp") as here:
                identity = idp.identity_token("robot", subject="ada")
                managed = EnterpriseManaged(identity_token=identity, idp=idp.issuer, **SECRET)
                assert await who(here.url, managed) == "ada"


async def test_tokens_are_issued_on_demand() -> None:
    async with AuthorizationServer() as provider, shelf(provider.issuer).listen("http://127.0.0.1:0/mcp") as here:
        token = provider.token(subject="ada", scopes=["a", "b"], audience=here.url)
        assert await who(here.url, token) == "ada a b"
        for wrong in ({"audience": "https://other.example"}, {"expires_in": -600}, {"dpop_key": "thumbprint"}):
            with pytest.raises(AuthError):
                await who(here.url, provider.token(**{"audience": here.url, **wrong}))
        provider.rotate_keys(keep_former=False)
        async with shelf(provider.issuer).listen("http://127.0.0.1:0/mcp") as other:
            assert await who(other.url, provider.token(audience=other.url)) == "user"
            with pytest.raises(AuthError):
                await who(other.url, token)


@pytest.mark.parametrize("dpop", ["required", "nonce"])
async def test_tokens_are_bound(dpop: Any) -> None:
    async with AuthorizationServer(dpop=dpop) as provider:
        app = shelf(Jwt(provider.issuer, dpop="required"))
        async with app.listen("http://127.0.0.1:0/mcp") as here:
            assert await who(here.url, OAuth(on_redirect=provider.browse, dpop=True)) == "user"


async def test_opaque_tokens_are_introspected_and_revoked() -> None:
    async with AuthorizationServer(token_format="opaque", clients=[SECRET]) as provider:
        method = Introspection(f"{provider.issuer}/introspect", issuer=provider.issuer, cache=0, **SECRET)
        async with shelf(method).listen("http://127.0.0.1:0/mcp") as here:
            token = provider.token(audience=here.url)
            async with Client(here.url, auth=token) as client:
                assert (await client.call_tool("who")).text == "user"
                provider.revoke_all()
                with pytest.raises((AuthError, McpError)):
                    await client.call_tool("who")


@pytest.mark.parametrize(
    ("faults", "reason"),
    [
        (AuthFaults(metadata_issuer="https://evil.example"), "not of"),
        (AuthFaults(response_issuer="https://evil.example"), "another authorization server"),
        (AuthFaults(no_pkce=True), "PKCE"),
        (AuthFaults(metadata_bytes=1_000_000), "longer than"),
        (AuthFaults(refuse_registration=True), "rejected the registration"),
        (AuthFaults(errors={"token": 1}), "HTTP 500"),
        (AuthFaults(errors={"metadata": 2}), "500"),
    ],
)
async def test_faults_fail_a_sign_in(faults: AuthFaults, reason: str) -> None:
    async with AuthorizationServer() as provider, shelf(provider.issuer).listen("http://127.0.0.1:0/mcp") as here:
        provider.set_faults(faults)
        with pytest.raises(AuthError, match=reason):
            await who(here.url, OAuth(on_redirect=provider.browse))
        provider.set_faults()
        assert await who(here.url, OAuth(on_redirect=provider.browse)) == "user"


async def test_a_key_may_change_with_each_token() -> None:
    provider = AuthorizationServer(clients=[SECRET], faults=AuthFaults(rotate_keys=True))
    async with provider, shelf(provider.issuer).listen("http://127.0.0.1:0/mcp") as here:
        assert await who(here.url, provider.token(audience=here.url)) == "user"
        assert await who(here.url, ClientCredentials(**SECRET)) == "robot"
        # The key of the next token is not published any more. The server fetches the key set, which has the one after.
        assert await who(here.url, ClientCredentials(**SECRET)) == "robot"
        # It does not do so again for 30 seconds.
        with pytest.raises(AuthError, match="to every new token"):
            await who(here.url, ClientCredentials(**SECRET))


def test_a_server_may_be_slow() -> None:
    with AuthorizationServer(faults=AuthFaults(delay=600)) as provider:
        with pytest.raises(TimeoutError):
            urllib.request.urlopen(f"{provider.issuer}/jwks", timeout=0.5)
        provider.set_faults()
        assert urllib.request.urlopen(f"{provider.issuer}/jwks", timeout=60).status == 200


def test_a_page_asks_and_a_user_declines() -> None:
    query = "response_type=code&client_id=app&code_challenge_method=S256&code_challenge=" + "x" * 43
    query += "&redirect_uri=http://127.0.0.1:9/callback"
    with AuthorizationServer(clients=[{"client_id": "app"}], consent="deny") as provider:
        assert "error=access_denied" in provider.browse(f"{provider.issuer}/authorize?{query}")
    with AuthorizationServer(clients=[{"client_id": "app"}], consent="page") as provider:
        page = urllib.request.urlopen(f"{provider.issuer}/authorize?{query}").read().decode()
        assert "Allow" in page
        with pytest.raises(RuntimeError, match="does not redirect"):
            provider.browse(f"{provider.issuer}/authorize?{query}")
        with pytest.raises(ValueError, match="not one of"):
            provider.browse("https://elsewhere.example/authorize")


def test_only_this_machine_by_its_name_is_served() -> None:
    with AuthorizationServer() as provider:
        url = f"{provider.issuer}/jwks"
        for host, status in (("evil.example", 421), ("localhost", 421), (provider.issuer[7:], 200)):
            request = urllib.request.Request(url, headers={"Host": host})
            try:
                assert urllib.request.urlopen(request).status == status
            except urllib.error.HTTPError as error:
                assert error.code == status
        body = urllib.request.Request(f"{provider.issuer}/token", b"x" * 300_000)
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(body)
        assert caught.value.code == 413


def test_connections_are_bounded() -> None:
    with AuthorizationServer() as provider, ExitStack() as held:
        address = ("127.0.0.1", int(provider.issuer.rsplit(":", 1)[1]))
        for _ in range(256):
            held.enter_context(socket.create_connection(address))
        one_more = held.enter_context(socket.create_connection(address, timeout=60))
        try:
            assert one_more.recv(1) == b""
        except ConnectionResetError:
            pass


def test_it_runs_in_its_block_only() -> None:
    provider = AuthorizationServer(scopes=["a"], port=reserve_port())
    with pytest.raises(RuntimeError, match="does not run"):
        provider.token()
    with provider:
        url = provider.issuer
        with pytest.raises(RuntimeError, match="already"):
            provider.__enter__()
        with AuthorizationServer() as other:
            assert other.issuer != url
        with pytest.raises(OSError):
            AuthorizationServer(port=int(url.rsplit(":", 1)[1])).__enter__()
    with pytest.raises(OSError):
        urllib.request.urlopen(f"{url}/jwks", timeout=60)
    assert "AuthorizationServer" in repr(provider)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"subject": ""}, "subject: "),
        ({"clients": [{"client_id": "a", "secret": "s"}]}, "client_secret"),
        ({"faults": AuthFaults(errors={"tokens": 1})}, "the endpoints are"),
        ({"client_documents": ["http://app.example.com/c.json"]}, "client_documents: "),
        ({"trusted_issuers": "https://idp.example.com"}, "trusted_issuers="),
        ({"consent": "maybe"}, "automatic"),
    ],
)
def test_wrong_options_are_errors(options: Any, problem: str) -> None:
    with pytest.raises((TypeError, ValueError), match=problem):
        AuthorizationServer(**options).__enter__()
