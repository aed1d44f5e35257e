"""Servers with an OAuth proxy in front of the authorization server of `gudgeon.testing.auth`."""

import asyncio
import json
import re
import socket
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from ports import reserve_port
from starlette.applications import Starlette
from starlette.routing import Mount

from asgi_host import hosted
from form_browser import Browser
from gudgeon import Client, Context, Server
from gudgeon.auth import ApiKeys, Jwt, OAuth, OAuthProxy, providers
from gudgeon.errors import AuthError
from gudgeon.testing.auth import AuthFaults, AuthorizationServer

APP = {"client_id": "shelf", "client_secret": "a secret as long as those of providers"}


def provider(**options: Any) -> AuthorizationServer:
    app = {**APP, "redirect_uris": ["http://127.0.0.1/mcp/oauth/callback", "http://127.0.0.1/sub/mcp/oauth/callback"]}
    return AuthorizationServer(clients=[app], registration=False, subject="ada", **options)


def shelf(auth: Any, **options: Any) -> Server[Any]:
    app: Server[Any] = Server("shelf", auth=auth, **options)

    @app.tool
    async def who(ctx: Context) -> str:
        assert ctx.principal is not None
        return ctx.principal.subject

    @app.tool(scopes=["write"])
    async def write() -> str:
        return "written"

    return app


class Kept:
    """Tokens in a dictionary."""

    def __init__(self, values: dict[str, bytes]) -> None:
        self.values = values

    async def get(self, key: str, /) -> bytes | None:
        return self.values.get(key)

    async def set(self, key: str, value: bytes, /) -> None:
        self.values[key] = value

    async def delete(self, key: str, /) -> None:
        self.values.pop(key, None)


def in_browser(browser: Browser) -> Callable[[str], Awaitable[str]]:
    async def on_redirect(url: str) -> str:
        [back] = parse_qs(urlsplit(url).query)["redirect_uri"]
        return await asyncio.to_thread(browser.open, url, back)

    return on_redirect


@pytest.mark.io
async def test_a_user_signs_in_through_the_proxy_and_gets_more_scopes() -> None:
    browser = Browser()
    async with provider() as behind:
        auth = OAuthProxy(behind.issuer, scopes=["openid", "email"], **APP)
        async with shelf(auth).listen("http://127.0.0.1:0/mcp") as here:
            async with Client(here.url, auth=OAuth(on_redirect=in_browser(browser))) as client:
                assert (await client.call_tool("who")).text == "ada"
                assert (await client.call_tool("write")).text == "written"
        asked = [request.form["scope"] for request in behind.requests if request.path == "/authorize"]
        # A step-up asks for more at the provider.
        assert asked == ["email openid", "email openid write"]
    assert len(browser.pages) == 2
    assert "Allow access?" in browser.pages[0] and "write" in browser.pages[1]


@pytest.mark.io
async def test_a_user_who_declines_gives_no_access() -> None:
    async with provider() as behind, shelf(OAuthProxy(behind.issuer, **APP)).listen("http://127.0.0.1:0/mcp") as here:
        with pytest.raises(AuthError, match="declined"):
            async with Client(here.url, auth=OAuth(on_redirect=in_browser(Browser("deny")))):
                pass
        assert not any(request.path == "/token" for request in behind.requests)


@pytest.mark.io
async def test_a_restart_loses_nobody() -> None:
    url = f"http://127.0.0.1:{reserve_port()}/mcp"
    async with provider() as behind:
        async with AsyncExitStack() as stack:
            async with shelf(OAuthProxy(behind.issuer, **APP)).listen(url):
                auth = OAuth(on_redirect=in_browser(Browser()))
                client = await stack.enter_async_context(Client(url, auth=auth))
                assert (await client.call_tool("who")).text == "ada"
            # Another server with the same credentials: its keys are the same.
            async with shelf(OAuthProxy(behind.issuer, **APP)).listen(url):
                assert (await client.call_tool("who")).text == "ada"
        assert [request.path for request in behind.requests].count("/token") == 1


@pytest.mark.io
async def test_an_expired_token_is_renewed_at_the_provider() -> None:
    async with provider(expires_in=1) as behind:
        async with shelf(OAuthProxy(behind.issuer, **APP)).listen("http://127.0.0.1:0/mcp") as here:
            async with Client(here.url, auth=OAuth(on_redirect=in_browser(Browser()))) as client:
                for _ in range(3):
                    assert (await client.call_tool("who")).text == "ada"
                    await asyncio.sleep(1.1)
        grants = [request.form["grant_type"] for request in behind.requests if request.path == "/token"]
        assert grants[0] == "authorization_code" and set(grants[1:]) == {"refresh_token"}


@pytest.mark.io
async def test_below_a_prefix_the_proxy_is_found() -> None:
    async with provider() as behind:
        app = shelf(OAuthProxy(behind.issuer, **APP))
        async with hosted(Starlette(routes=[Mount("/sub", app.asgi())])) as root:
            async with Client(f"{root}/sub/mcp", auth=OAuth(on_redirect=in_browser(Browser()))) as client:
                assert (await client.call_tool("who")).text == "ada"


def fetch(url: str, body: Any = None, **headers: str) -> tuple[int, Any, Any]:
    data = None if body is None else json.dumps(body).encode()
    kind = {} if body is None else {"Content-Type": "application/json"}
    request = urllib.request.Request(url, data, {**kind, **headers})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.loads(answer.read()), answer.headers
    except urllib.error.HTTPError as error:
        text = error.read()
        return error.code, json.loads(text) if text[:1] == b"{" else text.decode(), error.headers


@pytest.mark.io
async def test_its_documents_are_where_clients_look_for_them() -> None:
    async with provider() as behind, shelf(OAuthProxy(behind.issuer, **APP)).listen("http://127.0.0.1:0/mcp") as here:
        origin = here.url.removesuffix("/mcp")
        _, resource, _ = await asyncio.to_thread(fetch, f"{origin}/.well-known/oauth-protected-resource/mcp")
        assert resource["authorization_servers"] == [here.url]
        for path in (
            "/.well-known/oauth-authorization-server/mcp",
            "/.well-known/openid-configuration/mcp",
            "/mcp/.well-known/openid-configuration",
            "/.well-known/oauth-authorization-server",
        ):
            status, document, headers = await asyncio.to_thread(fetch, origin + path)
            assert (status, document["issuer"]) == (200, here.url)
            assert headers["Access-Control-Allow-Origin"] == "*"
        for path in ("/other/oauth/token", "/.well-known/oauth-authorization-server/other"):
            status, _, _ = await asyncio.to_thread(fetch, origin + path)
            assert status in (401, 404)
        # Anyone could name any host.
        status, _, _ = await asyncio.to_thread(
            fetch, origin + "/.well-known/oauth-authorization-server/mcp", Host="evil.example"
        )
        assert status == 421


@pytest.mark.io
async def test_a_document_of_a_client_is_not_fetched_from_private_addresses() -> None:
    async with provider() as behind, shelf(OAuthProxy(behind.issuer, **APP)).listen("http://127.0.0.1:0/mcp") as here:
        for host in ("127.0.0.1:1", "localhost", "[::1]", "10.0.0.1", "169.254.169.254", "[::ffff:127.0.0.1]"):
            url = f"{here.url}/oauth/authorize?client_id=https%3A%2F%2F{host}%2Fclient.json"
            status, page, _ = await asyncio.to_thread(fetch, url)
            assert status == 400 and "not public" in page, (host, page)
        url = f"{here.url}/oauth/authorize?client_id=http%3A%2F%2F127.0.0.1%2Fclient.json"
        status, page, _ = await asyncio.to_thread(fetch, url)
        assert status == 400 and "unknown" in page


@pytest.mark.io
async def test_a_body_is_bounded() -> None:
    async with provider() as behind, shelf(OAuthProxy(behind.issuer, **APP)).listen("http://127.0.0.1:0/mcp") as here:
        status, _, _ = await asyncio.to_thread(fetch, f"{here.url}/oauth/register", {"x": "y" * 100_000})
        assert status == 413
        registration = {"redirect_uris": ["http://127.0.0.1/callback"]}
        status, client, _ = await asyncio.to_thread(fetch, f"{here.url}/oauth/register", registration)
        assert status == 201 and client["client_secret"]


async def refresh_request(url: str) -> dict[str, str]:
    """Signs in. Returns the fields of the request that exchanges the refresh token."""
    kept: dict[str, bytes] = {}
    async with Client(url, auth=OAuth(on_redirect=in_browser(Browser()), store=Kept(kept))) as client:
        assert (await client.call_tool("who")).text == "ada"
    text = b" ".join(kept.values()).decode()
    return {
        "grant_type": "refresh_token",
        "client_id": re.findall('"id":"([^"]+)"', text)[0],
        "refresh_token": re.findall('"refresh":"([^"]+)"', text)[0],
    }


@pytest.mark.io
async def test_50_requests_with_one_refresh_token_ask_the_provider_once() -> None:
    async with provider() as behind, shelf(OAuthProxy(behind.issuer, **APP)).listen("http://127.0.0.1:0/mcp") as here:
        fields = await refresh_request(here.url)

        def refresh() -> str:
            with urllib.request.urlopen(f"{here.url}/oauth/token", urlencode(fields).encode(), timeout=60) as answer:
                return str(json.loads(answer.read())["access_token"])

        tokens = await asyncio.gather(*[asyncio.to_thread(refresh) for _ in range(50)])
        assert len(set(tokens)) == 1
        grants = [request.form["grant_type"] for request in behind.requests if request.path == "/token"]
        assert grants == ["authorization_code", "refresh_token"]


@pytest.mark.io
async def test_requests_that_wait_for_a_refresh_share_its_failure() -> None:
    async with provider() as behind, shelf(OAuthProxy(behind.issuer, **APP)).listen("http://127.0.0.1:0/mcp") as here:
        fields = await refresh_request(here.url)

        def refresh(_: int = 0) -> int:
            try:
                with urllib.request.urlopen(
                    f"{here.url}/oauth/token", urlencode(fields).encode(), timeout=60
                ) as answer:
                    return int(answer.status)
            except urllib.error.HTTPError as error:
                return error.code

        behind.set_faults(AuthFaults(delay=4, errors={"token": 1}))
        with ThreadPoolExecutor(20) as pool:
            statuses = await asyncio.to_thread(lambda: list(pool.map(refresh, range(20))))
        assert statuses == [503] * 20
        behind.set_faults()
        assert await asyncio.to_thread(refresh) == 200
        assert [request.path for request in behind.requests].count("/token") == 3


@pytest.mark.io
async def test_keys_and_the_proxy_work_beside_each_other() -> None:
    async with provider() as behind:
        auth = [ApiKeys({"k3y": "robot"}), OAuthProxy(behind.issuer, **APP)]
        async with shelf(auth).listen("http://127.0.0.1:0/mcp") as here:
            async with Client(here.url, auth="k3y") as client:
                assert (await client.call_tool("who")).text == "robot"
            with pytest.raises(AuthError):
                async with Client(here.url, auth="wrong"):
                    pass
            async with Client(here.url, auth=OAuth(on_redirect=in_browser(Browser()))) as client:
                assert (await client.call_tool("who")).text == "ada"


@pytest.mark.io
async def test_a_provider_that_is_away_is_named() -> None:
    issuer = f"http://127.0.0.1:{reserve_port()}"
    async with shelf(OAuthProxy(issuer, **APP)).listen("http://127.0.0.1:0/mcp") as here:
        url = f"{here.url}/oauth/register"
        registration = {"redirect_uris": ["http://127.0.0.1/callback"], "token_endpoint_auth_method": "none"}
        _, client, _ = await asyncio.to_thread(fetch, url, registration)
        fields = {
            "response_type": "code",
            "client_id": client["client_id"],
            "redirect_uri": "http://127.0.0.1/callback",
            "code_challenge": "x" * 43,
            "code_challenge_method": "S256",
        }
        page = f"{here.url}/oauth/authorize?{urlencode(fields)}"
        with pytest.raises(AssertionError, match="503.*can't be used: Connection refused"):
            await asyncio.to_thread(Browser().open, page, "http://127.0.0.1/callback")


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: OAuthProxy("http://login.example.com", **APP), "use https"),
        (lambda: OAuthProxy("login.example.com", **APP), "absolute"),
        (lambda: OAuthProxy("https://login.example.com", client_id=""), "client_id is empty"),
        (lambda: OAuthProxy(7, **APP), "URL of an issuer"),
        (lambda: OAuthProxy("https://a.example", client_id="a", client_secret=7), "client_secret must be a string"),  # type: ignore[arg-type]
        (lambda: OAuthProxy("https://a.example", **APP, scopes="read"), "scopes"),
        (lambda: OAuthProxy("https://a.example", **APP, allowed_redirects=["https://*.example.com/"]), "end of a path"),
        (lambda: OAuthProxy(ApiKeys({"a": "b"}), **APP), "with one"),
        (
            lambda: OAuthProxy(providers.descope(project_id="P", mcp_server_id="M"), **APP),
            "register at descope themselves",
        ),
        (lambda: [OAuthProxy("https://a.example", **APP)] * 2, "one OAuth proxy at most"),
        (lambda: providers.google(), "google needs client_id"),
        (lambda: providers.okta(**APP), "okta needs domain"),
        (lambda: providers.okta(**APP, domain="https://a.okta.com"), "without /"),
        (lambda: providers.okta(**APP, domain=7), "domain must be a string"),
        (lambda: providers.github(**APP, tenant="x"), "has no option tenant"),
        (lambda: providers["gogle"](**APP), "choose one of auth0"),
        (lambda: providers, "auth="),
        (lambda: providers.workos(domain="a.authkit.app", client_secret="s3cret"), "needs client_id"),
        (lambda: providers.descope(project_id="P", mcp_server_id="M", **APP), "leave out client_id"),
        (lambda: OAuthProxy(Jwt("https://a.example", scopes=["a"]), **APP), "scopes to the proxy"),
        (lambda: OAuthProxy(providers.google(scopes=["a"]), **APP), "what names the provider"),
        (lambda: OAuthProxy("https://a.example", **APP, allowed_redirects=[]), "is empty"),
    ],
)
def test_a_mistake_is_named_with_its_fix(make: Callable[[], Any], reason: str) -> None:
    with pytest.raises((TypeError, ValueError), match=reason) as raised:
        Server("shelf", auth=make())
    assert "s3cret" not in str(raised.value)


def test_known_providers_need_little_and_show_no_secret() -> None:
    for auth in (
        providers.google(**APP),
        providers.entra(**APP, tenant_id="t"),
        providers["discord"](**APP),
        providers.auth0(domain="a.auth0.com"),
        providers.workos(domain="a.authkit.app", scopes=["openid"]),
        OAuthProxy(providers.auth0(domain="a.auth0.com"), **APP),
        OAuthProxy(Jwt("https://login.example.com"), **APP),
    ):
        Server("shelf", auth=auth)
        assert "s3cret" not in repr(auth)


@pytest.mark.io
async def test_too_many_requests_that_wait_are_refused() -> None:
    # The provider accepts connections and never answers.
    with socket.create_server(("127.0.0.1", 0), backlog=1000) as silent:
        issuer = f"http://127.0.0.1:{silent.getsockname()[1]}"
        async with shelf(OAuthProxy(issuer, **APP)).listen("http://127.0.0.1:0/mcp") as here:
            registration = {"redirect_uris": ["http://127.0.0.1/callback"], "token_endpoint_auth_method": "none"}
            _, client, _ = await asyncio.to_thread(fetch, f"{here.url}/oauth/register", registration)
            fields = {"client_id": client["client_id"], "redirect_uri": "http://127.0.0.1/callback", "scope": "a"}
            fields |= {"response_type": "code", "code_challenge": "x" * 43, "code_challenge_method": "S256"}
            host, port = urlsplit(here.url).hostname, urlsplit(here.url).port
            decisions = [await asyncio.to_thread(decision, f"{here.url}/oauth/authorize?{urlencode(fields)}")] * 257
            waiting = [await asyncio.open_connection(host, port) for _ in decisions]
            for (_, writer), request in zip(waiting, decisions, strict=True):
                writer.write(request)
            answered, _ = await asyncio.wait(
                [asyncio.ensure_future(reader.readline()) for reader, _ in waiting],
                timeout=60,
                return_when=asyncio.FIRST_COMPLETED,
            )
            assert [task.result()[:12] for task in answered] == [b"HTTP/1.1 503"]
            # Somebody else has room.
            reader, writer = await asyncio.open_connection(host, port, local_addr=("127.0.0.2", 0))
            writer.write(decisions[0])
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(reader.readline(), 0.3)
            for _, writer in waiting:
                writer.close()


def decision(page: str) -> bytes:
    """Returns the request by which a browser allows access."""
    with urllib.request.urlopen(page, timeout=60) as answer:
        cookie = answer.headers["Set-Cookie"].split(";")[0]
        [sealed] = re.findall('name=request value="([^"]+)"', answer.read().decode())
    body = urlencode({"request": sealed, "decision": "allow"})
    url = urlsplit(page)
    return (
        f"POST /mcp/oauth/consent HTTP/1.1\r\nHost: {url.netloc}\r\nCookie: {cookie}\r\n"
        f"Origin: {url.scheme}://{url.netloc}\r\n"
        f"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    ).encode()


def post_form(url: str, **fields: str) -> tuple[int, Any, Any]:
    request = urllib.request.Request(url, urlencode(fields).encode())
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.loads(answer.read() or b"null"), answer.headers
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read() or b"null"), error.headers


def credentials(kept: dict[str, bytes]) -> tuple[str, str]:
    """Returns the id of the client, and its refresh token."""
    (stored,) = (json.loads(value) for key, value in kept.items() if key.startswith("credentials "))
    return stored["client"]["id"], stored["tokens"]["refresh"]


@pytest.mark.io
async def test_servers_with_one_store_know_exchanged_refresh_tokens_and_revocations(tmp_path: Path) -> None:
    kept: dict[str, bytes] = {}
    place = f"http://127.0.0.1:{reserve_port()}/mcp"
    async with provider() as behind, AsyncExitStack() as stack:
        auth = OAuthProxy(behind.issuer, **APP)
        options = {"public_url": place, "allowed_hosts": ["*"]}
        store = f"sqlite:{tmp_path / 'store.db'}"
        await stack.enter_async_context(shelf(auth, store=store).listen(place, **options))
        there = await stack.enter_async_context(shelf(auth, store=store).listen("http://127.0.0.1:0/mcp", **options))
        browser = OAuth(on_redirect=in_browser(Browser()), store=Kept(kept))
        async with Client(place, auth=browser) as client:
            assert (await client.call_tool("who")).text == "ada"
        id, first = credentials(kept)

        async def refresh(url: str, token: str) -> tuple[int, Any, Any]:
            fields = {"grant_type": "refresh_token", "client_id": id, "refresh_token": token}
            return await asyncio.to_thread(lambda: post_form(f"{url}/oauth/token", **fields))

        status, second, _ = await refresh(place, first)
        assert status == 200, second
        # The answer may have been lost.
        assert (await refresh(there.url, first))[:2] == (200, second)
        status, third, _ = await refresh(there.url, second["refresh_token"])
        assert status == 200, third
        assert (await refresh(place, first))[1]["error"] == "invalid_grant"
        # It may have been stolen, so everything of this sign-in ended.
        for url in (place, there.url):
            status, _, _ = await asyncio.to_thread(fetch, url, {}, Authorization=f"Bearer {third['access_token']}")
            assert status == 401
            assert (await refresh(url, third["refresh_token"]))[0] == 400


class Away:
    """A store that is away."""

    def get(self, key: str) -> Any:
        raise ConnectionError

    put = take = get


@pytest.mark.io
async def test_without_its_store_a_server_exchanges_no_refresh_token() -> None:
    kept: dict[str, bytes] = {}
    place = f"http://127.0.0.1:{reserve_port()}/mcp"
    async with provider() as behind:
        auth = OAuthProxy(behind.issuer, **APP)
        browser = OAuth(on_redirect=in_browser(Browser()), store=Kept(kept))
        async with shelf(auth).listen(place), Client(place, auth=browser) as client:
            assert (await client.call_tool("who")).text == "ada"
        id, token = credentials(kept)
        async with shelf(auth, store=Away()).listen(place):
            fields = {"grant_type": "refresh_token", "client_id": id, "refresh_token": token}
            status, refused, headers = await asyncio.to_thread(lambda: post_form(f"{place}/oauth/token", **fields))
        assert (status, refused["error"]) == (503, "temporarily_unavailable") and int(headers["Retry-After"]) > 0
        assert [request.form["grant_type"] for request in behind.requests if request.path == "/token"] == [
            "authorization_code"
        ]
