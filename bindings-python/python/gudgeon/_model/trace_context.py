"""The trace context of OpenTelemetry in `_meta`, for programs that use it.

Imported only once the program itself has imported `opentelemetry.trace`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Spec: Base Protocol › General fields › OpenTelemetry trace context.
KEYS = ("traceparent", "tracestate", "baggage")


def with_trace_context(meta: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Adds the trace context of the active span, if any, to the `_meta` of a request; existing members stay."""
    from opentelemetry import propagate, trace

    if not trace.get_current_span().get_span_context().is_valid:
        return meta
    carrier: dict[str, str] = {}
    propagate.inject(carrier)
    return {**{key: value for key, value in carrier.items() if key in KEYS}, **(meta or {})}
