"""OpenTelemetry: spans of handlers below the client's, the context in `_meta`, and nothing at all without it."""

import asyncio
import json
import logging
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest
from opentelemetry import baggage, context, trace

from eventually import eventually
from gudgeon import Context, McpError, Server, SyncContext, ToolError
from gudgeon.middleware import Timing
from gudgeon.testing import ERAS, connect, connect_sync
from gudgeon.types import ToolResult
from recorded_spans import EXPORTER, record, spans


@pytest.fixture(autouse=True, scope="module")
def provider() -> None:
    record()


@pytest.fixture
def outer() -> Iterator[Any]:
    """A span that is active, with baggage."""
    EXPORTER.clear()
    token = context.attach(baggage.set_baggage("user", "ada"))
    with trace.get_tracer("test").start_as_current_span("outer") as span:
        yield span.get_span_context()
    context.detach(token)


def traced() -> Server[Any]:
    app = Server("traced")

    def seen(ctx: Any) -> str:
        trace.get_current_span().add_event("inside")
        meta = ctx.meta
        said = {key: meta.get(key) for key in ("traceparent", "baggage", "own")}
        return json.dumps({**said, "seen": baggage.get_baggage("user")})

    @app.tool
    def blocking(ctx: SyncContext) -> str:
        return seen(ctx)

    @app.tool
    async def waiting(ctx: Context) -> str:
        return seen(ctx)

    @app.tool
    def fails() -> str:
        raise ToolError("no")

    @app.tool
    async def says() -> ToolResult:
        return ToolResult("no", is_error=True)

    @app.prompt
    def greet() -> str:
        return "hi"

    @app.resource("t://{id}")
    def thing(id: str) -> str:
        return id

    return app


def check(outer: Any, era: str, name: str, text: str) -> None:
    # For the schema of the result, a client may ask for the list of tools first.
    (span,) = [span for span in spans() if span.name != "tools/list"]
    assert span.name == f"tools/call {name}"
    assert span.context.trace_id == outer.trace_id
    assert span.parent.span_id == outer.span_id and span.parent.is_remote
    assert span.attributes["mcp.method.name"] == "tools/call"
    assert span.attributes["gen_ai.tool.name"] == name
    assert span.attributes["mcp.protocol.version"] == era
    assert [event.name for event in span.events] == ["inside"]
    said = json.loads(text)
    assert said["traceparent"].startswith(f"00-{outer.trace_id:032x}-{outer.span_id:016x}-0")
    assert (said["baggage"], said["own"], said["seen"]) == ("user=ada", 1, "ada")


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("name", ["blocking", "waiting"])
def test_a_handlers_span_lies_below_the_clients(era: str, name: str, outer: Any) -> None:
    with connect_sync(traced(), revision=era) as client:
        check(outer, era, name, client.call_tool(name, meta={"own": 1}).text)


async def test_an_async_client_stamps_the_span_of_its_task(outer: Any) -> None:
    async with connect(traced(), revision="2026-07-28") as client:
        result = await client.call_tool("waiting", meta={"own": 1})
    check(outer, "2026-07-28", "waiting", result.text)


@pytest.mark.parametrize("name", ["blocking", "waiting"])
def test_middleware_runs_inside_the_span(name: str, outer: Any) -> None:
    house, app = Server("house"), traced()
    house.mount("t", app)

    @app.middleware
    async def note(request: Any, next: Any) -> Any:
        trace.get_current_span().add_event("middleware")
        return await next(request)

    with connect_sync(house) as client:
        client.call_tool(f"t_{name}")
    (span,) = spans()
    assert span.name == f"tools/call t_{name}", "as clients know it"
    assert [event.name for event in span.events] == ["middleware", "inside"]


def test_what_middleware_sees_of_the_core_has_a_span(outer: Any) -> None:
    app = traced()

    @app.middleware(on="tools/list")
    async def note(request: Any, next: Any) -> Any:
        return await next(request)

    with connect_sync(app) as client:
        client.list_tools()
    (span,) = spans()
    assert (span.name, span.parent.span_id) == ("tools/list", outer.span_id)


def test_requests_that_no_handler_answers_have_spans(outer: Any) -> None:
    with connect_sync(traced()) as client:
        client.list_tools()
        with pytest.raises(McpError):
            client.call_tool("nil")
        client.call_tool("blocking", {"more": 1}, raise_on_error=False)
    eventually(lambda: len(spans()) >= 3)
    told = {span.name: (span.attributes.get("error.type"), span.status.is_ok, span.parent.span_id) for span in spans()}
    assert told == {
        "tools/list": (None, True, outer.span_id),
        "tools/call": ("-32602", False, outer.span_id),
        "tools/call blocking": ("tool_error", False, outer.span_id),
    }
    assert all("mcp.session.id" not in span.attributes for span in spans())


HEADER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


async def ask(app: Any, meta: dict[str, Any], active: Any = None) -> Any:
    """Calls the tool `waiting` of an ASGI app over HTTP, below this span. Returns the span of the server."""
    EXPORTER.clear()
    own = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        **meta,
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "waiting", "_meta": own}}
    headers = [
        (b"host", b"localhost"),
        (b"content-type", b"application/json"),
        (b"accept", b"application/json, text/event-stream"),
        (b"mcp-protocol-version", b"2026-07-28"),
        (b"mcp-method", b"tools/call"),
        (b"mcp-name", b"waiting"),
        (b"traceparent", HEADER.encode()),
    ]
    scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": headers, "server": ("127.0.0.1", 80)}
    received = asyncio.Queue[Any]()
    received.put_nowait({"type": "http.request", "body": json.dumps(body).encode()})
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    with trace.use_span(active) if active is not None else nullcontext():
        await app(scope, received.get, send)
    assert sent[0]["status"] == 200
    (span,) = spans()
    return span


async def test_below_asgi_the_parent_is_in_meta_or_active_or_in_the_headers() -> None:
    app = traced().asgi()
    try:
        by_header = await ask(app, {})
        assert f"{by_header.parent.span_id:016x}" == "b7ad6b7169203331"
        with trace.get_tracer("host").start_as_current_span("POST /mcp") as host:
            active = await ask(app, {}, host)
            assert active.parent.span_id == host.get_span_context().span_id
            said = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
            by_meta = await ask(app, {"traceparent": said}, host)
            assert f"{by_meta.parent.span_id:016x}" == "00f067aa0ba902b7"
            assert [link.context.span_id for link in by_meta.links] == [host.get_span_context().span_id]
            assert "mcp.session.id" not in by_meta.attributes
    finally:
        await app.aclose()


def test_records_of_the_log_have_the_ids_of_the_span(outer: Any, caplog: pytest.LogCaptureFixture) -> None:
    app = traced()
    app.middleware(Timing(), on="tools/call")
    with caplog.at_level(logging.DEBUG, "gudgeon"), connect_sync(app) as client:
        client.call_tool("blocking")
        with pytest.raises(McpError):
            client.call_tool("nil")
        events = lambda name: [record for record in caplog.records if getattr(record, "mcp_event", "") == name]  # noqa: E731
        eventually(lambda: events("call.rejected"))
    timed: Any = events("request.timed")[0]
    (span,) = [span for span in spans() if span.name == "tools/call blocking"]
    assert (timed.mcp_trace_id, timed.mcp_span_id) == (f"{outer.trace_id:032x}", f"{span.context.span_id:016x}")
    rejected: Any = events("call.rejected")[0]
    assert (rejected.mcp_trace_id, rejected.mcp_span_id) == (f"{outer.trace_id:032x}", f"{outer.span_id:016x}")


def test_prompts_resources_and_failures_have_their_spans(outer: Any) -> None:
    with connect_sync(traced(), revision="2025-11-25") as client:
        client.get_prompt("greet")
        client.read_resource("t://x")
        client.call_tool("fails", raise_on_error=False)
        client.call_tool("says", raise_on_error=False)
    told = [(span.name, span.attributes.get("error.type"), span.status.is_ok) for span in spans()]
    assert told == [
        ("prompts/get greet", None, True),
        ("resources/read", None, True),
        ("tools/call fails", "ToolError", False),
        ("tools/call says", "tool_error", False),
    ]


def test_a_handler_that_was_stopped_has_failed() -> None:
    EXPORTER.clear()
    app = Server("t")

    @app.tool(timeout=0.5)
    async def slow() -> None:
        await asyncio.sleep(600)

    with connect_sync(app) as client:
        assert client.call_tool("slow", raise_on_error=False).is_error
    patience = time.monotonic() + 60
    while not spans() and time.monotonic() < patience:
        time.sleep(0.005)  # the answer does not wait for the handler's end
    (span,) = spans()
    assert (span.attributes.get("error.type"), span.status.is_ok) == ("CancelledError", False)


def test_a_request_without_a_context_begins_a_trace_of_its_own() -> None:
    EXPORTER.clear()
    with connect_sync(traced()) as client:
        said = json.loads(client.call_tool("blocking").text)
    assert said["traceparent"] is None
    (span,) = spans()
    assert span.parent is None


@pytest.mark.io
def test_a_program_without_it_never_imports_it() -> None:
    program = """
        import json, sys
        from gudgeon import Server, SyncContext
        from gudgeon.testing import connect_sync
        app = Server("t")
        @app.tool
        def meta(ctx: SyncContext) -> str:
            return json.dumps("traceparent" in ctx.meta)
        with connect_sync(app, revision="2025-11-25") as client:
            print(client.call_tool("meta").text, any(name.startswith("opentelemetry") for name in sys.modules))
    """
    import textwrap

    ran = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=False)
    assert ran.stdout.strip() == "false False", ran.stderr
