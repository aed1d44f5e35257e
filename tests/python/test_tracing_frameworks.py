"""OpenTelemetry below real frameworks: a tool's span is a child of that of the framework's own instrumentation."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.instrumentation.asgi import OpenTelemetryMiddleware
from opentelemetry.instrumentation.fastapi import FastAPIInstrumentor
from opentelemetry.trace import SpanKind

from asgi_host import hosted
from eventually import eventually
from gudgeon import Client, Server
from gudgeon.testing import ERAS
from recorded_spans import EXPORTER, PROVIDER, record, spans

pytestmark = pytest.mark.io


@pytest.fixture(autouse=True)
def provider() -> Iterator[None]:
    record()
    EXPORTER.clear()
    yield
    EXPORTER.clear()


def fastapi(asgi: Any) -> Any:
    from fastapi import FastAPI

    host = FastAPI()
    host.mount("/mcp", asgi)
    FastAPIInstrumentor.instrument_app(host, tracer_provider=PROVIDER)
    return host


def starlette(asgi: Any) -> Any:
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.routing import Mount

    middleware = Middleware(OpenTelemetryMiddleware, tracer_provider=PROVIDER)
    return Starlette(routes=[Mount("/mcp", asgi)], middleware=[middleware])


def shelf() -> Server[Any]:
    app = Server("shelf")

    @app.tool
    def blocking() -> str:
        return f"{trace.get_current_span().get_span_context().span_id:016x}"

    @app.tool
    async def waiting() -> str:
        return f"{trace.get_current_span().get_span_context().span_id:016x}"

    return app


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("framework", [fastapi, starlette])
async def test_the_span_of_a_tool_lies_below_that_of_the_framework(framework: Callable[[Any], Any], era: str) -> None:
    async with hosted(framework(shelf().asgi())) as url, Client(f"{url}/mcp", revision=era) as client:
        active = {name: (await client.call_tool(name)).text for name in ("blocking", "waiting")}
    scope = f"opentelemetry.instrumentation.{'fastapi' if framework is fastapi else 'asgi'}"
    # The span of a request ends after its answer was sent.
    requests = lambda: [span for span in spans(scope) if span.kind is SpanKind.SERVER]  # noqa: E731
    tools = {span.attributes["gen_ai.tool.name"]: span for span in spans() if "gen_ai.tool.name" in span.attributes}
    assert {name: f"{span.context.span_id:016x}" for name, span in tools.items()} == active
    eventually(lambda: {span.parent.span_id for span in tools.values()} <= {one.context.span_id for one in requests()})
    of_request = {one.context.span_id: one for one in requests()}
    for span in tools.values():
        parent = of_request[span.parent.span_id]
        assert span.context.trace_id == parent.context.trace_id
        assert (
            parent.attributes["http.method" if "http.method" in parent.attributes else "http.request.method"] == "POST"
        )
        assert parent.start_time <= span.start_time
    assert len({span.parent.span_id for span in tools.values()}) == len(tools), "each has a request of its own"
