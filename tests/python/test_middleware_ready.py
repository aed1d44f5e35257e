"""The middleware that comes ready-made: timing, logging, limits of rates and of responses."""

import logging
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

from asgi_host import answer
from gudgeon import Server, SyncClient, ToolError
from gudgeon.errors import McpError, ProtocolError
from gudgeon.middleware import Logging, RateLimit, ResponseLimit, Timing
from gudgeon.testing import ERAS, connect_sync
from gudgeon.types import Implementation


@pytest.fixture
def app() -> Server[Any]:
    app = Server("shelf")

    @app.tool
    def open(title: str) -> str:
        """Opens a book."""
        return f"open {title}"

    return app


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Iterator[Any]:
    with caplog.at_level(logging.INFO, "gudgeon"):
        yield lambda: [record.getMessage() for record in caplog.records if record.name == "gudgeon.request"]


def test_timing_tells_how_long(app: Server[Any], lines: Any) -> None:
    app.middleware(Timing(), on=["tools/call", "tools/list"])
    with connect_sync(app) as client:
        client.list_tools()
        client.call_tool("open", {"title": "x"})
    said = " | ".join(lines())
    assert re.search(r"tools/list took \d+\.\d ms", said) and re.search(r"tools/call open took \d+\.\d ms", said)


def test_logging_tells_what_and_how_it_ended(app: Server[Any], lines: Any) -> None:
    @app.tool
    def fails() -> str:
        raise ToolError("no")

    app.middleware(Logging(params=True), on="tools/call")
    with connect_sync(app) as client:
        client.call_tool("open", {"title": "x"})
        client.call_tool("fails", raise_on_error=False)
    assert lines()[0].startswith("tools/call open {") and "'title': 'x'" in lines()[0]
    assert lines()[1] == "tools/call open is done"
    assert lines()[3] == "tools/call fails failed: ToolError: no"


def test_a_text_of_a_client_stays_on_its_line(app: Server[Any], lines: Any) -> None:
    app.middleware(Timing(), on="tools/call")
    app.middleware(Logging(params=True), on="tools/call")
    with connect_sync(app) as client, pytest.raises(McpError):
        client.call_tool("open\nERROR \x1b[2J\u2028", {"title": "\x1b"})
    assert lines() and all(re.fullmatch(r"[ -~]+", line) for line in lines()), lines()
    assert all(line.startswith(r"tools/call open\nERROR \u{1b}[2J\u{2028} ") for line in lines()), lines()


@pytest.mark.parametrize("era", ERAS)
def test_rates_are_limited_and_the_handshake_is_not_counted(app: Server[Any], era: str) -> None:
    app.middleware(RateLimit(0.01, burst=3))
    with SyncClient(app, revision=era) as client:
        start = time.monotonic()
        for _ in range(3):
            client.ping()
        client.list_tools()
        assert client.call_tool("open", {"title": "x"}).text == "open x"
        assert client.request("tools/list")["tools"]
        refused = client.call_tool("open", {"title": "x"}, raise_on_error=False)
        told = re.fullmatch(
            r"too many requests: at most 0\.01 per second are allowed; try again in (\d+\.\d) s", refused.text
        )
        # Some of the time has passed. The number is rounded.
        assert told and 99.9 - (time.monotonic() - start) <= float(told[1]) <= 100, refused.text
        with pytest.raises(ProtocolError) as caught:
            client.request("tools/list")
        assert caught.value.code == 429
    with (
        SyncClient(app, revision=era, client_info=Implementation("another name", "1")) as client,
        pytest.raises(ProtocolError, match="too many requests"),
    ):
        client.request("tools/list")


def test_notifications_of_vendors_pass_middleware_and_are_not_counted(app: Server[Any]) -> None:
    heard: list[Any] = []
    app.middleware(RateLimit(0.01, burst=1))

    @app.middleware(on="acme/poke")
    async def louder(request: Any, next: Any) -> Any:
        request.params["x"] *= 10
        return await next(request)

    @app.notification("acme/poke")
    def poke(x: int) -> None:
        heard.append(x)

    with connect_sync(app) as client:
        for x in range(3):
            client.notify("acme/poke", {"x": x})
        assert client.call_tool("open", {"title": "x"}).text == "open x"
        # Each runs on a thread of its own, and the end of the connection does not wait for them.
        deadline = time.monotonic() + 60
        while len(heard) < 3 and time.monotonic() < deadline:
            time.sleep(0.01)
    assert sorted(heard) == [0, 10, 20]


def test_rates_come_back_with_time(monkeypatch: pytest.MonkeyPatch) -> None:
    import asyncio
    from types import SimpleNamespace

    now = [100.0]
    monkeypatch.setattr("gudgeon.middleware.time.monotonic", lambda: now[0])
    call = SimpleNamespace(remote=None)
    ctx: Any = SimpleNamespace(principal=None, client=SimpleNamespace(name="c"), request_id=1, _call=call)
    request: Any = SimpleNamespace(method="tools/list", params={}, ctx=ctx)
    limit = RateLimit(2, burst=1)

    async def next(_: Any) -> str:
        return "ok"

    async def go() -> Any:
        return await limit(request, next)

    assert asyncio.run(go()) == "ok"
    with pytest.raises(ProtocolError, match="at most 2 per second are allowed; try again in 0.5 s"):
        asyncio.run(go())
    now[0] += 0.5
    assert asyncio.run(go()) == "ok"
    ctx.principal = SimpleNamespace(subject="ada")
    assert asyncio.run(go()) == "ok", "a principal counts by itself"


def test_responses_are_limited(app: Server[Any]) -> None:
    @app.resource("shelf://{id}")
    def book(id: str) -> str:
        return id * 100

    app.middleware(ResponseLimit(150))
    with connect_sync(app, revision="2025-11-25") as client:
        assert client.call_tool("open", {"title": "x"}).text == "open x"
        refused = client.call_tool("open", {"title": "x" * 200}, raise_on_error=False)
        assert re.fullmatch(
            r"the result of tools/call open has \d+ bytes, more than the limit of 150; request less", refused.text
        )
        with pytest.raises(ProtocolError) as caught:
            client.read_resource("shelf://xx")
        assert caught.value.code == 413 and "resources/read" in str(caught.value)


def test_a_string_that_other_middleware_returns_is_measured_as_the_whole_result(app: Server[Any]) -> None:
    app.middleware(ResponseLimit(42), on="tools/call")

    @app.middleware(on="tools/call")
    async def short(request: Any, next: Any) -> Any:
        return request.params["arguments"]["title"]

    with connect_sync(app) as client:
        assert client.call_tool("open", {"title": "abc"}).text == "abc"
        refused = client.call_tool("open", {"title": "abcd"}, raise_on_error=False)
        assert "has 43 bytes, more than the limit of 42" in refused.text


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: RateLimit(0), "above 0"),
        (lambda: RateLimit(1, burst=0), "at least 1"),
        (lambda: RateLimit(1, by="moon"), '"principal", "client" or "server"'),
        (lambda: ResponseLimit(0), "above 0"),
    ],
)
def test_invalid_numbers_are_rejected(make: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make()


async def test_rates_are_limited_by_address_where_there_is_no_principal(app: Server[Any]) -> None:
    app.middleware(RateLimit(0.01), on="tools/call")
    asgi = app.asgi()
    texts = []
    for address in ("192.0.2.1", "192.0.2.1", "192.0.2.2"):
        _, said = await answer(asgi, "open", {"title": "x"}, client=(address, 40_000))
        texts.append(said["result"]["content"][0]["text"])
    assert texts[0] == texts[2] == "open x"
    assert texts[1].startswith("too many requests")
