//! Spans of requests, for OpenTelemetry in JavaScript.

use gudgeon::{engine::SpanDescription, protocol::json::ObjectWriter};
use serde_json::{Map, Value};

/// Returns a span as JavaScript gets it.
pub(crate) fn as_json(span: &SpanDescription) -> String {
    let SpanDescription { title, attributes, trace } = span;
    let attributes: Map<String, Value> = attributes
        .iter()
        .map(|(name, value)| ((*name).to_owned(), Value::from(value.as_str())))
        .collect();
    let parent = &trace.parent;
    let carrier: Map<String, Value> = [
        ("traceparent", &parent.traceparent),
        ("tracestate", &parent.tracestate),
        ("baggage", &parent.baggage),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name.to_owned(), Value::from(value.as_deref()?))))
    .collect();
    let mut out = ObjectWriter::with_capacity(512);
    out.member("title", &**title).member("attributes", &attributes).member("carrier", &carrier);
    if let Some(link) = &trace.link {
        out.member("link", &**link);
    }
    out.finish()
}
