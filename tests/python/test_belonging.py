"""No principal uses another's sessions, results, components, rates or rounds of questions."""

import asyncio
import json
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from asgi_host import Host, scope_of
from gudgeon import Context, Next, Request, Server, SyncContext, current_context, current_sync_context
from gudgeon.errors import NotSupported, ProtocolError, ResourceNotFound, ToolError
from gudgeon.middleware import RateLimit
from gudgeon.types import Principal
from principals import ADA, BOB, WAYS, ask, door, entering, name_of, until, whom

# ── without questions ───────────────────────────────────────────────────────────────────────────────


async def test_a_session_is_there_for_who_began_it() -> None:
    app = door()
    asgi = app.asgi(principal=whom)
    session = b""

    async def send(method: str, body: Any, who: Any) -> tuple[int, Any]:
        nonlocal session
        headers = [
            (b"host", b"127.0.0.1"),
            (b"content-type", b"application/json"),
            (b"accept", b"text/event-stream" if method == "GET" else b"application/json"),
            *([(b"mcp-session-id", session)] if session else []),
        ]
        scope = {**scope_of(method=method), "headers": headers, "whom": who}
        host = Host(asgi, scope, {"type": "http.request", "body": json.dumps(body).encode() if body else b""})
        start, said = await host.next(), await host.next()
        host.inbox.put_nowait({"type": "http.disconnect"})
        await host.done()
        session = dict(start["headers"]).get(b"mcp-session-id", session)
        return start["status"], said["body"]

    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    assert (await send("POST", {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}, ADA))[0] == 200
    assert session
    await send("POST", {"jsonrpc": "2.0", "method": "notifications/initialized"}, ADA)
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "in_task"}}
    renewed = Principal("ada", scopes=["admin"], claims={"exp": 2})
    elsewhere = Principal("ada", claims={"iss": "https://other.example"})
    for who, text in ((ADA, b"ada staff"), (renewed, b"ada admin")):
        status, said = await send("POST", call, who)
        assert status == 200 and text in said
    for who in (BOB, None, elsewhere, Principal("ada", client_id="other")):
        for method, body in (("POST", call), ("GET", None), ("DELETE", None)):
            status, said = await send(method, body, who)
            assert status == 404 and b"ada" not in said, (method, who)
    assert (await send("GET", None, ADA))[0] == 200, "nobody else has ended it"
    assert (await send("DELETE", None, ADA))[0] in (200, 204)
    assert (await send("POST", call, ADA))[0] == 404
    await app.aclose()


async def test_the_old_pair_is_there_for_who_opened_it() -> None:
    app = door()
    asgi = app.asgi(principal=whom, legacy_sse=True)
    scope = {**scope_of(method="GET", path="/sse"), "whom": ADA}
    scope["headers"] = [(b"host", b"127.0.0.1"), (b"accept", b"text/event-stream")]
    stream = Host(asgi, scope, {"type": "http.request"})

    async def heard(what: bytes) -> bytes:
        while what not in (said := (await stream.next()).get("body", b"")):
            pass
        return said

    query = (await heard(b"event: endpoint")).split(b"/sse?")[1].split(b"\n")[0]

    async def post(who: Any, body: dict[str, Any]) -> int:
        scope = {**scope_of(path="/sse", query_string=query), "whom": who}
        host = Host(asgi, scope, {"type": "http.request", "body": json.dumps({"jsonrpc": "2.0", **body}).encode()})
        status: int = (await host.next())["status"]
        await host.next()
        await host.done()
        return status

    params = {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    began = {"id": 0, "method": "initialize", "params": params}
    call = {"id": 1, "method": "tools/call", "params": {"name": "in_place"}}
    assert [await post(BOB, began), await post(None, began), await post(ADA, began)] == [404, 404, 202]
    await heard(b'"id":0')
    await post(ADA, {"method": "notifications/initialized"})
    assert [await post(BOB, call), await post(ADA, call)] == [404, 202]
    assert b"ada staff" in await heard(b'"id":1')
    stream.inbox.put_nowait({"type": "http.disconnect"})
    await stream.done()
    await app.aclose()


@pytest.mark.parametrize("kind", ["async", "def"])
async def test_nobody_gets_what_was_read_for_another(kind: str) -> None:
    app, calls, goes_on = Server("t"), [], threading.Event()

    @app.resource("shelf://async", cache=60)
    async def read_async(ctx: Context) -> str:
        calls.append(name_of(ctx.principal))
        await until(goes_on.is_set)
        return f"for {name_of(ctx.principal)}"

    @app.resource("shelf://def", cache=60, thread=True)
    def read_def(ctx: SyncContext) -> str:
        calls.append(name_of(ctx.principal))
        assert goes_on.wait(60)
        return f"for {name_of(ctx.principal)}"

    asgi = app.asgi(principal=whom)

    async def read(who: Any) -> str:
        text: str = (await ask(asgi, "resources/read", {"uri": f"shelf://{kind}"}, who))["contents"][0]["text"]
        return text

    reading = [asyncio.ensure_future(read(who)) for who in (ADA, ADA, BOB, None)]
    await until(lambda: len(calls) == 3)
    goes_on.set()
    assert await asyncio.gather(*reading) == ["for ada staff", "for ada staff", "for bob", "for nobody"]
    assert sorted(calls) == ["ada staff", "bob", "nobody"]
    assert [await read(BOB), await read(None)] == ["for bob", "for nobody"]
    assert len(calls) == 3
    assert await read(Principal("bob", scopes=["staff"])) == "for bob staff"
    assert len(calls) == 4, "somebody who may do more is another"
    await app.aclose()


async def test_who_sees_an_offer_is_asked_by_who_asks() -> None:
    app, is_open = Server("t"), [True]

    def staff(who: Principal | None) -> bool:
        return is_open[0] and who is not None and "staff" in who.scopes

    app.tool(lambda: "ok", name="add")

    @app.tool(visible=staff)
    def drop(ctx: SyncContext) -> str:
        assert ctx.principal is not None
        return f"dropped by {ctx.principal.subject}"

    app.prompt(lambda: "fire", name="fire", visible=staff)
    app.resource("staff://pay", name="pay", visible=staff)(lambda: "much")

    @app.resource("staff://people/{id}", visible=staff)
    async def people(id: str) -> str:
        return id

    house: Server[Any] = Server("house", page_size=1)
    house.mount("t", app)
    for asgi, prefix in ((app.asgi(principal=whom), ""), (house.asgi(principal=whom), "t_")):
        listed = await ask(asgi, "tools/list", {}, ADA)
        tools = [tool["name"] for tool in listed["tools"]]
        cursor = listed.get("nextCursor")
        assert (cursor is not None) == (prefix != ""), "one server has pages"
        if cursor:
            following = await ask(asgi, "tools/list", {"cursor": cursor}, ADA)
            tools += [tool["name"] for tool in following["tools"]]
            with_hers = await ask(asgi, "tools/list", {"cursor": cursor}, BOB)
            assert with_hers["tools"] == [], "a cursor is a place, not a pass"
        assert tools == [f"{prefix}add", f"{prefix}drop"]
        for who in (BOB, None):
            assert [tool["name"] for tool in (await ask(asgi, "tools/list", {}, who))["tools"]] == [f"{prefix}add"]
        assert listed["cacheScope"] == "private"
        said = await ask(asgi, "tools/call", {"name": f"{prefix}drop"}, ADA)
        assert said["content"][0]["text"] == "dropped by ada"
        with pytest.raises(ProtocolError, match=f"Unknown tool: {prefix}drop"):
            await ask(asgi, "tools/call", {"name": f"{prefix}drop"}, BOB)
    asgi = app.asgi(principal=whom)
    assert (await ask(asgi, "resources/read", {"uri": "staff://people/7"}, ADA))["contents"][0]["text"] == "7"
    assert (await ask(asgi, "resources/read", {"uri": "staff://pay"}, ADA))["cacheScope"] == "private"
    assert len((await ask(asgi, "resources/templates/list", {}, ADA))["resourceTemplates"]) == 1
    assert (await ask(asgi, "resources/list", {}, BOB))["resources"] == []
    hidden = [
        ("prompts/get", {"name": "fire"}, "Unknown prompt: fire"),
        ("resources/read", {"uri": "staff://pay"}, "Resource not found: staff://pay"),
        ("resources/read", {"uri": "staff://people/7"}, "Resource not found"),
    ]
    for method, params, message in hidden:
        for who in (BOB, None):
            with pytest.raises(ProtocolError, match=message):
                await ask(asgi, method, params, who)
    is_open[0] = False
    assert [tool["name"] for tool in (await ask(asgi, "tools/list", {}, ADA))["tools"]] == ["add"]
    await app.aclose()
    await house.aclose()


async def test_what_is_read_or_changed_for_somebody_is_nobody_elses_unless_the_resource_says_otherwise() -> None:
    app: Server[Any] = Server("t")
    app.tool(lambda: "ok", name="add")
    app.resource("a://mine", name="mine", ttl=1)(lambda: "hers")
    app.resource("a://everybodys", name="everybodys", ttl=1, cache_scope="public")(lambda: "all")
    asgi = app.asgi(principal=whom)
    for method, uri, who, scope in (
        ("resources/read", "a://mine", ADA, "private"),
        ("resources/read", "a://mine", None, "public"),
        ("resources/read", "a://everybodys", ADA, "public"),
        ("tools/list", None, ADA, "public"),
    ):
        assert (await ask(asgi, method, {"uri": uri} if uri else {}, who))["cacheScope"] == scope

    @app.middleware(on="tools/list")
    async def fewer(request: Request, call_next: Next) -> Any:
        await call_next(request)
        return {"tools": [], "_meta": {"acme/by": "us"}}

    changed = await ask(asgi, "tools/list", {}, ADA)
    assert (changed["cacheScope"], changed["_meta"]["acme/by"]) == ("private", "us")


@pytest.mark.io
@pytest.mark.parametrize("way", WAYS)
async def test_lists_and_updates_are_for_who_sees_them_in_every_era(way: str) -> None:
    app: Server[Any] = Server("t")
    staff = lambda who: who is not None and "staff" in who.scopes  # noqa: E731
    app.tool(lambda: "ok", name="add")
    app.tool(lambda: "ok", name="drop", visible=staff)
    app.resource("staff://pay", name="pay", visible=staff)(lambda: "much")
    async with entering(app, way, "ada staff", "bob", "") as (ada, *others):
        assert [tool.name for tool in await ada.list_tools()] == ["add", "drop"]
        async with ada.subscribe("staff://pay") as changes:
            for other in others:
                assert [tool.name for tool in await other.list_tools()] == ["add"]
                with pytest.raises(ResourceNotFound):
                    await other.read_resource("staff://pay")
                with pytest.raises((ResourceNotFound, NotSupported)):
                    async with other.subscribe("staff://pay"):
                        pass
            app.notify_updated("staff://pay")
            assert (await asyncio.wait_for(changes.__anext__(), 60)).uri == "staff://pay"


@pytest.mark.io
@pytest.mark.parametrize("way", WAYS)
async def test_rates_are_counted_by_who_asks(way: str) -> None:
    app: Server[Any] = Server("t")
    app.tool(lambda: "ok", name="add")
    app.middleware(RateLimit(0.01, burst=1, by="principal"), on="tools/call")
    async with entering(app, way, "ada", "ada staff", "bob", "") as (ada, too, bob, nobody):
        for client in (ada, bob, nobody):
            assert (await client.call_tool("add")).text == "ok"
        for client in (ada, too, bob, nobody):
            with pytest.raises(ToolError, match="too many requests"):
                await client.call_tool("add")


# ── rounds of questions ──────────────────────────────────────────────────────────────────────────────


def asks(**options: Any) -> tuple[Server[Any], list[str]]:
    app: Server[Any] = Server("asks", **options)
    runs: list[str] = []

    def facts(ctx: Context | SyncContext) -> list[str]:
        assert ctx.principal is not None
        return [name_of(ctx.principal), str(ctx.principal.claims.get("turn")), ctx.headers.get("x-turn", "")]

    async def asks_async(ctx: Context) -> str:
        runs.append("began")
        before = facts(ctx)
        await ctx.elicit("Go on?", bool)
        return " ".join([*before, *facts(ctx)])

    def asks_def(ctx: SyncContext) -> str:
        runs.append("began")
        before = facts(ctx)
        ctx.elicit("Go on?", bool)
        return " ".join([*before, *facts(ctx)])

    app.tool(asks_async, name="async")
    app.tool(asks_def, name="def")
    app.resource("asks://async", name="async")(asks_async)
    app.prompt(asks_def, name="def")
    return app, runs


async def round_of(asgi: Any, method: str, params: Mapping[str, Any], who: Principal, turn: int) -> Any:
    by = Principal(who.subject, client_id=who.client_id, scopes=who.scopes, claims={**who.claims, "turn": turn})
    return await ask(asgi, method, params, by, headers=[(b"x-turn", str(turn).encode())])


YES = {"elicit-1": {"action": "accept", "content": {"value": True}}}
ROUNDS = [
    ("tools/call", {"name": "async"}),
    ("tools/call", {"name": "def"}),
    ("resources/read", {"uri": "asks://async"}),
    ("prompts/get", {"name": "def"}),
]


@pytest.mark.parametrize("options", [{}, {"suspended_limit": 0}], ids=["suspended", "replayed"])
@pytest.mark.parametrize("method, params", ROUNDS)
async def test_a_round_goes_on_for_who_began_it(method: str, params: Any, options: dict[str, Any]) -> None:
    app, runs = asks(**options)
    asgi = app.asgi(principal=whom)
    asked = await round_of(asgi, method, params, ADA, 1)
    answers = {**params, "requestState": asked["requestState"], "inputResponses": YES}
    others = [BOB, Principal("ada", client_id="other"), Principal("ada", claims={"iss": "elsewhere"})]
    refusals = set()
    for turn, other in enumerate(others, 2):
        with pytest.raises(ProtocolError) as caught:
            await round_of(asgi, method, answers, other, turn)
        refusals.add((caught.value.code, caught.value.message))
    with pytest.raises(ProtocolError) as caught:
        await ask(asgi, method, answers, None)
    refusals.add((caught.value.code, caught.value.message))
    assert len(refusals) == 1 and refusals.pop()[0] == -32602, "one message, whatever is wrong"
    assert runs == ["began"]
    promoted = Principal("ada", scopes=["admin"])
    done = json.dumps(await round_of(asgi, method, answers, promoted, 9))
    before = "ada admin 9 9" if options else "ada staff 1 1"
    assert f"{before} ada admin 9 9" in done
    assert runs == ["began"] * (2 if options else 1)
    await app.aclose()


@pytest.mark.parametrize("form", ["async", "def"])
async def test_a_handler_sees_the_request_that_it_runs_for(form: str) -> None:
    app: Server[Any] = Server("asks")
    goes_on = threading.Event()
    meanwhile: list[str] = []

    def turn(ctx: Any) -> str:
        return f"{ctx.principal.subject} {ctx.principal.claims['turn']}"

    @app.tool(name="async")
    async def asks_async(ctx: Context) -> str:
        before, question = turn(ctx), ctx.elicit("Go on?", bool)
        asking = asyncio.ensure_future(question)
        await until(goes_on.is_set)
        meanwhile.append(turn(ctx))
        await asking
        return f"{before}, {turn(ctx)}, {turn(current_context())}"

    @app.tool(name="def")
    def asks_def(ctx: SyncContext) -> str:
        before = turn(ctx)
        meanwhile.append(turn(ctx))
        ctx.elicit("Go on?", bool)
        return f"{before}, {turn(ctx)}, {turn(current_sync_context())}"

    asgi = app.asgi(principal=whom)
    asked = await round_of(asgi, "tools/call", {"name": form}, ADA, 1)
    goes_on.set()
    await until(lambda: bool(meanwhile))
    answers = {"name": form, "requestState": asked["requestState"], "inputResponses": YES}
    done = await round_of(asgi, "tools/call", answers, ADA, 2)
    assert meanwhile == ["ada 1"]
    assert done["content"][0]["text"] == "ada 1, ada 2, ada 2"
    await app.aclose()


@pytest.mark.io
@pytest.mark.parametrize("way", WAYS[2:])
@pytest.mark.parametrize("form", ["async", "def"])
async def test_who_asks_stays_while_a_handler_asks(way: str, form: str) -> None:
    app, _ = asks()
    async with entering(app, way, "ada staff", "bob", on_elicit=lambda question: True) as clients:
        for client, name in zip(clients, ("ada staff", "bob"), strict=True):
            assert (await client.call_tool(form)).text == f"{name} None  {name} None "
