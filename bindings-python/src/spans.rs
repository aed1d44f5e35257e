//! Spans of requests, for OpenTelemetry in Python.

use gudgeon::engine::{AnsweredRequest, SpanDescription};
use pyo3::{prelude::*, types::PyDict};

use crate::calling;

/// The module that a program that traces has imported.
const OPENTELEMETRY: &str = "opentelemetry.trace";

/// The name of a span, its attributes, the values that propagators read, and the `traceparent` of a span to link.
pub(crate) type Span<'py> = (String, Bound<'py, PyDict>, Bound<'py, PyDict>, Option<String>);

/// Returns whether the program traces.
pub(crate) fn are_wanted(py: Python<'_>) -> bool {
    let modules = py.import("sys").and_then(|sys| sys.getattr("modules"));
    modules.and_then(|modules| modules.contains(OPENTELEMETRY)).unwrap_or_default()
}

pub(crate) fn to_python(py: Python<'_>, span: SpanDescription) -> PyResult<Span<'_>> {
    let SpanDescription { title, attributes, trace } = span;
    let given = PyDict::new(py);
    for (name, value) in attributes {
        given.set_item(name, value)?;
    }
    let carrier = PyDict::new(py);
    let parent = trace.parent;
    for (name, value) in [
        ("traceparent", parent.traceparent),
        ("tracestate", parent.tracestate),
        ("baggage", parent.baggage),
    ] {
        if let Some(value) = value {
            carrier.set_item(name, value)?;
        }
    }
    Ok((title, given, carrier, trace.link))
}

/// Makes the span of a request that was answered without a handler.
pub(crate) fn record(py: Python<'_>, request: &AnsweredRequest) {
    let make = || {
        let span = to_python(py, request.span())?;
        let error = request.error.as_ref().map(|error| &*error.message);
        let answered = py.import("gudgeon._call.tracing")?.getattr("answered")?;
        calling::call(&answered, (span, error, request.duration.as_secs_f64()))
    };
    if let Err::<_, PyErr>(problem) = make() {
        problem.write_unraisable(py, None);
    }
}
