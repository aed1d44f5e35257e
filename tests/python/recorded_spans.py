"""The spans of this process, in memory. A process can set only one provider of tracers."""

from typing import Any

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

EXPORTER = InMemorySpanExporter()
PROVIDER = TracerProvider()
PROVIDER.add_span_processor(SimpleSpanProcessor(EXPORTER))


def record() -> None:
    """Has this process record its spans."""
    if trace.get_tracer_provider() is not PROVIDER:
        trace.set_tracer_provider(PROVIDER)


def spans(scope: str = "gudgeon") -> list[Any]:
    """Returns the spans that have ended of this library."""
    return [span for span in EXPORTER.get_finished_spans() if span.instrumentation_scope.name == scope]
