"""OpenTelemetry, for programs that use it: spans of requests, as children of the span that caused them.

Imported only once the program itself has imported
`opentelemetry.trace`, so that it costs nothing without and is never required.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# A span as the native half describes it: its name, its attributes, the values that propagators read, and the
# `traceparent` of a span to link.
Description = tuple[str, dict[str, str], dict[str, str], str | None]


@contextmanager
def span(subject: tuple[str, str | None], call: Any) -> Iterator[Any]:
    """Starts a server span around a handler, as a child of the span that caused the client's request.

    Args:
        subject: The method, and the name of the tool or prompt.
    """
    from opentelemetry import context
    from opentelemetry.trace import StatusCode, set_span_in_context

    parent, started = _start(call.span(*subject))
    token = context.attach(set_span_in_context(started, parent))
    try:
        yield started
    except BaseException as error:
        started.set_attribute("error.type", type(error).__qualname__)
        started.record_exception(error)
        started.set_status(StatusCode.ERROR, f"{type(error).__name__}: {error}")
        raise
    finally:
        context.detach(token)
        started.end()


def answered(description: Description, error: str | None, seconds: float) -> None:
    """Makes the span of a request that was answered without a handler. The native half calls this function.

    Args:
        error: The message of the error, if it was answered with one.
        seconds: The time that it took.
    """
    now = time.time_ns()
    _, made = _start(description, now - int(seconds * 1e9))
    if error is not None:
        _fail(made, error)
    made.end(now)


def failed(span: Any, code: int, message: str) -> None:
    """Marks a span as that of a request that was answered with an error."""
    span.set_attribute("error.type", str(code))
    span.set_attribute("rpc.response.status_code", str(code))
    _fail(span, message)


def outcome(span: Any, reply: Any) -> None:
    """Marks the span of a tool whose result is an error."""
    if not (isinstance(reply, tuple) and b'"isError"' in reply[1]):
        return
    from msgspec.json import decode

    result = decode(reply[1])
    if isinstance(result, dict) and result.get("isError"):
        from opentelemetry.trace import StatusCode

        span.set_attribute("error.type", "tool_error")
        span.set_status(StatusCode.ERROR)


def active_context() -> tuple[str | None, str | None, str | None] | None:
    """Returns `traceparent`, `tracestate` and `baggage` of the active span, such as that of a web framework.

    Returns None without one.
    """
    from opentelemetry import propagate, trace

    if not trace.get_current_span().get_span_context().is_valid:
        return None
    carrier: dict[str, str] = {}
    propagate.inject(carrier)
    return carrier.get("traceparent"), carrier.get("tracestate"), carrier.get("baggage")


def active_ids() -> dict[str, str]:
    """Returns the fields of log events that name the active span; empty without one."""
    from opentelemetry import trace

    active = trace.get_current_span().get_span_context()
    if not active.is_valid:
        return {}
    return {"trace_id": trace.format_trace_id(active.trace_id), "span_id": trace.format_span_id(active.span_id)}


def _start(description: Description, start: int | None = None) -> tuple[Any, Any]:
    """Starts a span. Returns the context of its parent, and the span."""
    from opentelemetry import context, propagate, trace

    title, attributes, carrier, link = description
    parent = propagate.extract(carrier, context.Context())
    links = [] if link is None else [trace.Link(_span_context(link))]
    tracer = trace.get_tracer("gudgeon")
    kind = trace.SpanKind.SERVER
    return parent, tracer.start_span(title, parent, kind=kind, attributes=attributes, links=links, start_time=start)


def _span_context(traceparent: str) -> Any:
    from opentelemetry import context, trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    found = TraceContextTextMapPropagator().extract({"traceparent": traceparent}, context.Context())
    return trace.get_current_span(found).get_span_context()


def _fail(span: Any, message: str) -> None:
    from opentelemetry.trace import StatusCode

    span.set_status(StatusCode.ERROR, message)
