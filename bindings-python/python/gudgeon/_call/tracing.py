"""OpenTelemetry, for programs that use it: spans around handlers, as children of the span in the request's `_meta`.

Imported only once the program itself has imported
`opentelemetry.trace`, so that it costs nothing without and is never required.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .._model.trace_context import KEYS


@contextmanager
def span(subject: tuple[str, str | None], call: Any) -> Iterator[Any]:
    """Starts a server span around a handler, as a child of the span in the client's request.

    Args:
        subject: The method, and the name of the tool or prompt.
    """
    from opentelemetry import context, propagate, trace
    from opentelemetry.trace import SpanKind, StatusCode

    method, name = subject
    tracer = trace.get_tracer("gudgeon")
    token = context.attach(propagate.extract(_carrier(call.meta), context.Context()))
    try:
        attributes = _attributes(method, name, call)
        title = f"{method} {name}" if name else method
        with tracer.start_as_current_span(title, kind=SpanKind.SERVER, attributes=attributes) as started:
            try:
                yield started
            except BaseException as error:
                started.set_attribute("error.type", type(error).__qualname__)
                if not isinstance(error, Exception):  # OpenTelemetry does not count it as a failure
                    started.set_status(StatusCode.ERROR)
                raise
    finally:
        context.detach(token)


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


def _carrier(meta: str | bytes | None) -> dict[str, str]:
    if meta is None:
        return {}
    from msgspec.json import decode

    members = decode(meta)
    return {key: members[key] for key in KEYS if isinstance(members.get(key), str)}


def _attributes(method: str, name: str | None, call: Any) -> dict[str, str]:
    out = {"mcp.method.name": method, "mcp.protocol.version": call.revision}
    if call.request_id is not None:
        out["jsonrpc.request.id"] = str(call.request_id)
    if call.session_id is not None:
        out["mcp.session.id"] = call.session_id
    if method == "tools/call" and name:
        out |= {"gen_ai.tool.name": name, "gen_ai.operation.name": "execute_tool"}
    if method == "prompts/get" and name:
        out["gen_ai.prompt.name"] = name
    return out
