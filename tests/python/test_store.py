"""`Server(store=…)`: servers that remember used DPoP proofs together, and `check_store`."""

import asyncio
import json
import logging
import time
import urllib.error
import urllib.request
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from asgi_host import hosted
from gudgeon import Client, Server
from gudgeon._server import awaiting
from gudgeon.auth import Jwt
from gudgeon.testing import check_store
from gudgeon.testing.auth import AuthorizationServer
from principals import until

URL = "https://shelf.example.com/mcp"


class Memory:
    """A store that keeps the rules."""

    def __init__(self) -> None:
        self.values: dict[str, tuple[bytes, int, float]] = {}
        self.version = 0
        self.puts: list[tuple[str, bytes, float, Any]] = []

    def get(self, key: str) -> tuple[bytes, int] | None:
        value, version, end = self.values.get(key, (b"", 0, 0.0))
        return (value, version) if time.monotonic() < end else None

    def put(self, key: str, value: bytes, *, ttl: float, expect: Any) -> Any:
        self.puts.append((key, value, ttl, expect))
        current = self.get(key)
        if expect != "any" and expect != ("absent" if current is None else current[1]):
            return "conflict"
        self.version += 1
        self.values[key] = value, self.version, time.monotonic() + ttl
        return self.version

    def take(self, key: str) -> bytes | None:
        current = self.get(key)
        self.values.pop(key, None)
        return None if current is None else current[0]


class AsyncMemory:
    """A store whose methods are async, on the event loop of the server."""

    def __init__(self) -> None:
        self.memory = Memory()
        self.loops: set[asyncio.AbstractEventLoop] = set()

    async def get(self, key: str) -> tuple[bytes, int] | None:
        return self.memory.get(key)

    async def put(self, key: str, value: bytes, *, ttl: float, expect: Any) -> Any:
        self.loops.add(asyncio.get_running_loop())
        return self.memory.put(key, value, ttl=ttl, expect=expect)

    async def take(self, key: str) -> bytes | None:
        return self.memory.take(key)


def shelf(provider: AuthorizationServer, store: Any) -> Server[Any]:
    return Server("shelf", auth=Jwt(provider.issuer, audience=URL, dpop="required"), store=store)


class Holder:
    """A client with a key, to which its token is bound."""

    def __init__(self, provider: AuthorizationServer) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        numbers = self.key.public_key().public_numbers()
        x, y = (text(number.to_bytes(32, "big")) for number in (numbers.x, numbers.y))
        self.jwk = {"crv": "P-256", "kty": "EC", "x": x, "y": y}
        self.token = provider.token(audience=URL, dpop_key=self.jwk)

    def credentials(self, id: str) -> dict[str, str]:
        """Returns the headers of a request, with a proof of this id (RFC 9449, section 4.2)."""
        hash = text(sha256(self.token.encode()).digest())
        claims = {"jti": id, "htm": "POST", "htu": URL, "iat": int(time.time()), "ath": hash}
        header = {"typ": "dpop+jwt", "alg": "ES256", "jwk": self.jwk}
        signed = ".".join(text(json.dumps(part).encode()) for part in (header, claims))
        r, s = decode_dss_signature(self.key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
        signature = text(r.to_bytes(32, "big") + s.to_bytes(32, "big"))
        return {"Authorization": f"DPoP {self.token}", "DPoP": f"{signed}.{signature}"}


def text(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


async def sent(url: str, headers: dict[str, str]) -> tuple[int, Any, str]:
    """Returns the status, the headers and the body of the response to a ping."""
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    meta["io.modelcontextprotocol/clientInfo"] = {"name": "c", "version": "1"}
    body = {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": meta}}
    usual = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "server/discover",
    }

    def post() -> tuple[int, Any, str]:
        request = urllib.request.Request(url, json.dumps(body).encode(), {**usual, **headers})
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return response.status, response.headers, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.headers, error.read().decode()

    return await asyncio.to_thread(post)


@pytest.mark.io
@pytest.mark.parametrize("store", [Memory(), AsyncMemory()], ids=["def", "async def"])
async def test_a_proof_that_one_server_has_seen_is_refused_by_another(store: Any) -> None:
    """RFC 9449, section 11.1: the ids of proofs, in the context of their URL."""
    async with AuthorizationServer() as provider:
        one, other = shelf(provider, store), shelf(provider, store)
        holder = Holder(provider)
        async with (
            one.listen("http://127.0.0.1:0/mcp", public_url=URL) as here,
            hosted(other.asgi(public_url=URL, allowed_hosts=["*"])) as there,
        ):
            used, urls = holder.credentials("1"), [here.url, f"{there}/mcp"]
            assert (await sent(urls[0], used))[0] == 200
            for url in reversed(urls):
                status, headers, body = await sent(url, used)
                assert status == 401 and "was used before" in body
                assert 'error="invalid_dpop_proof"' in headers["WWW-Authenticate"]
            assert (await sent(urls[1], holder.credentials("2")))[0] == 200
    memory = store if isinstance(store, Memory) else store.memory
    for key, _, ttl, expect in memory.puts:
        assert key.startswith("gudgeon:dpop:") and 300 < ttl <= 361 and expect == "absent"
    if isinstance(store, AsyncMemory):
        assert asyncio.get_running_loop() in store.loops


@pytest.mark.io
async def test_without_a_store_each_server_remembers_its_own() -> None:
    async with AuthorizationServer() as provider:
        used = Holder(provider).credentials("1")
        for app in (shelf(provider, "memory"), shelf(provider, None)):
            async with app.listen("http://127.0.0.1:0/mcp", public_url=URL) as here:
                assert [(await sent(here.url, used))[0] for _ in range(2)] == [200, 401]


class Bad(Memory):
    """A store that fails in the way that `how` names."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how

    def put(self, key: str, value: bytes, *, ttl: float, expect: Any) -> Any:
        if self.how == "raises":
            raise RuntimeError("s3cret")
        if self.how == "hangs":
            return asyncio.sleep(600)
        if self.how == "nothing":
            return None
        if self.how == "nonsense":
            return object()
        return self.how if self.how != "works" else super().put(key, value, ttl=ttl, expect=expect)


def is_logged(caplog: pytest.LogCaptureFixture, text: str) -> bool:
    return any(text in record.getMessage() for record in caplog.records)


@pytest.mark.io
@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("raises", "put() raised RuntimeError"),
        ("hangs", "put() raised TimeoutError"),
        ("nothing", "put() of the store must return the version of the value"),
        ("nonsense", "put() raised TypeError"),
        ("stored", "put() of the store must return the version of the value"),
    ],
)
async def test_a_bad_store_refuses_requests_for_a_while(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, how: str, reason: str
) -> None:
    store = Bad(how)
    async with AuthorizationServer() as provider:
        holder = Holder(provider)
        async with shelf(provider, store).listen("http://127.0.0.1:0/mcp", public_url=URL) as here:
            monkeypatch.setattr(awaiting, "TIME", 0.1 if how == "hangs" else 60)
            with caplog.at_level(logging.ERROR, "gudgeon"):
                status, headers, body = await sent(here.url, holder.credentials("1"))
                assert status == 503 and int(headers["Retry-After"]) > 0 and "s3cret" not in body
                # A thread of its own logs what the core reports.
                await until(partial(is_logged, caplog, reason))
            store.how = "works"
            monkeypatch.setattr(awaiting, "TIME", 60)
            assert (await sent(here.url, holder.credentials("1")))[0] == 200
            assert (await sent(here.url, {}))[0] == 401


class Incomplete:
    get = put = Memory.get


@pytest.mark.parametrize("store", ["mysql://:s3cret@localhost", "", 7, Incomplete(), Memory])
def test_other_values_are_refused_with_those_that_are_allowed(store: Any) -> None:
    with pytest.raises(ValueError) as refused:
        Server("shelf", store=store)
    assert str(refused.value) == (
        'Server \'shelf\': store= must be "memory", "redis://host:6379" (also "rediss:", "valkey:" and "valkeys:") or '
        '"sqlite:path", or an object with the methods get, put and take, and both or none of append and read, and of '
        "publish and subscribe, and all or none of lease, renew and release (gudgeon.types.Store)"
    )


@pytest.mark.parametrize("store", [Memory(), AsyncMemory()], ids=["def", "async def"])
async def test_a_store_that_keeps_the_rules_passes(store: Any) -> None:
    await check_store(store)
    memory = store if isinstance(store, Memory) else store.memory
    await until(lambda: all(time.monotonic() > end for _, _, end in memory.values.values()))


class Forgetful(Memory):
    def put(self, key: str, value: bytes, *, ttl: float, expect: Any) -> Any:
        return super().put(key, value, ttl=ttl, expect="any")


class Keeping(Memory):
    def take(self, key: str) -> bytes | None:
        found = self.get(key)
        return None if found is None else found[0]


@pytest.mark.parametrize(
    ("store", "rule"),
    [
        (Bad("raises"), "put with a version must be a conflict if the key has no value"),
        (Forgetful(), "put with a version must be a conflict if the key has no value"),
        (Keeping(), "take must remove the value"),
    ],
)
async def test_a_store_that_does_not_keep_a_rule_is_found(store: Any, rule: str) -> None:
    with pytest.raises(AssertionError, match=rule):
        await check_store(store)


async def test_the_methods_that_a_store_has_are_used_and_the_others_are_made_of_three() -> None:
    class Deleting(Memory):
        deleted = 0

        async def delete(self, key: str) -> None:
            self.deleted += 1
            self.take(key)

    store = Deleting()
    await check_store(store)
    assert store.deleted > 0

    class Leasing(Memory):
        def lease(self, key: str, owner: str, *, ttl: float) -> Any:
            return self.put(f"lease:{key}", owner.encode(), ttl=ttl, expect="any")

        def renew(self, key: str, owner: str, *, ttl: float) -> Any:
            return "held"

        def release(self, key: str, owner: str) -> None:
            self.take(f"lease:{key}")

    with pytest.raises(AssertionError, match="a lease must have one owner|renew must"):
        await check_store(Leasing())

    class Forgetting(Memory):
        def append(self, log: str, event: bytes, *, max_events: int, max_bytes: int, ttl: float) -> int:
            return 1

        def read(self, log: str, after: int) -> Any:
            return [] if after == 0 else "gone"

    with pytest.raises(AssertionError, match=r"append must return a number|read must return the events"):
        await check_store(Forgetting())


@pytest.mark.parametrize(
    ("store", "reason"),
    [
        ("postgres://ada:s3cret@localhost", r'must be "memory", "redis://host:6379".* or "sqlite:path"'),
        ("redis://ada:s3cret@localhost:99999", "the URL of the store is not like redis://"),
        ("sqlite:/missing/s3cret-folder/store.db", "its folder does not exist; create it first"),
    ],
)
def test_an_address_that_is_none_is_refused(store: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as refused:
        Server("shelf", store=store)
    assert "ada" not in str(refused.value)


@pytest.mark.io
async def test_servers_with_one_file_accept_a_proof_once(tmp_path: Path) -> None:
    address = f"sqlite:{tmp_path / 'store.db'}"
    async with AuthorizationServer() as provider:
        used = Holder(provider).credentials("1")
        statuses = []
        for app in (shelf(provider, address), shelf(provider, address)):
            async with app.listen("http://127.0.0.1:0/mcp", public_url=URL) as here:
                statuses.append((await sent(here.url, used))[0])
    assert statuses == [200, 401]


class Messages(AsyncMemory):
    """A store that carries messages between the servers of this process, once its gate is open."""

    def __init__(self) -> None:
        super().__init__()
        self.queues: dict[asyncio.Queue[Any], list[str]] = {}
        self.gate = asyncio.Event()
        self.gate.set()

    async def publish(self, topic: str, message: bytes) -> None:
        for queue, topics in self.queues.items():
            if topic in topics:
                queue.put_nowait((topic, message))

    async def subscribe(self, topics: list[str]) -> AsyncIterator[tuple[str, bytes] | None]:
        queue: asyncio.Queue[Any] = asyncio.Queue()
        await self.gate.wait()
        self.queues[queue] = topics
        try:
            yield None
            while True:
                item = await queue.get()
                if isinstance(item, Exception):
                    raise item
                yield item
        finally:
            del self.queues[queue]


def house(store: Any) -> Server[Any]:
    app = Server("house", store=store, request_state_keys=["k" * 32])

    @app.tool
    def enter() -> str:
        return "in"

    @app.resource("house://about")
    def about() -> str:
        return "full"

    return app


@pytest.mark.io
async def test_changes_reach_the_clients_of_another_server_and_all_count_as_changed_after_a_break(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = Messages()
    store.gate.clear()
    one, other = house(store), house(store)
    everything = {"tools", "updated"}
    async with (
        one.listen("http://127.0.0.1:0/mcp"),
        hosted(other.asgi(allowed_hosts=["*"])) as there,
        Client(f"{there}/mcp") as client,
        client.subscribe("house://about", tools=True) as changes,
    ):
        store.gate.set()
        assert {(await anext(changes)).kind, (await anext(changes)).kind} == everything
        await until(lambda: len(store.queues) == 2)
        one.notify_updated("house://about")
        assert (await anext(changes)).kind == "updated"
        store.gate.clear()
        for queue in list(store.queues):
            queue.put_nowait(ConnectionError("the database is gone"))
        await until(lambda: not store.queues)
        store.gate.set()
        assert {(await anext(changes)).kind, (await anext(changes)).kind} == everything
        await until(lambda: len(store.queues) == 2)
        one.notify_updated("house://about")
        assert (await anext(changes)).kind == "updated"
    # Both servers have ended their subscriptions.
    await until(lambda: not store.queues)
    await until(partial(is_logged, caplog, "store: subscribe() failed; it is called again until it works"))


async def test_the_messages_of_a_store_are_checked() -> None:
    await check_store(Messages())

    class Repeating(Messages):
        async def publish(self, topic: str, message: bytes) -> None:
            await super().publish(topic, message)
            await super().publish(topic, message)

    with pytest.raises(AssertionError, match="a listener must get the messages of a topic once and in their order"):
        await check_store(Repeating())


@pytest.mark.io
async def test_a_store_without_messages_is_logged_at_the_start(caplog: pytest.LogCaptureFixture) -> None:
    text = "the store carries no messages, so clients hear only of changes that this process reports"
    async with house(AsyncMemory()).listen("http://127.0.0.1:0/mcp"):
        await until(partial(is_logged, caplog, text))
    caplog.clear()
    async with house(Messages()).listen("http://127.0.0.1:0/mcp"):
        pass
    assert not is_logged(caplog, text)


@pytest.mark.io
async def test_a_store_that_yields_something_else_than_messages_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    class Wrong(Messages):
        ended = False

        async def subscribe(self, topics: list[str]) -> AsyncIterator[Any]:
            try:
                yield "no pair"
            finally:
                self.ended = True

    store = Wrong()
    async with house(store).listen("http://127.0.0.1:0/mcp"):
        await until(partial(is_logged, caplog, "store: subscribe() failed; it is called again until it works"))
        await until(lambda: store.ended)
