//! Spans of `tracing` around handlers, and of requests that are answered without one.

use tracing::{Span, field::Empty};

use crate::{
    engine::{AnsweredRequest, SpanDescription, SpanSubject},
    session::server::CallContext,
};

/// Returns whether the program's subscriber wants spans of requests.
pub(super) fn are_wanted() -> bool {
    tracing::span_enabled!(target: "gudgeon::request", tracing::Level::INFO)
}

/// Returns the span around the handler of a call.
pub(super) fn of_handler(subject: &SpanSubject, context: &CallContext) -> Span {
    let SpanSubject { method, name, uri } = subject;
    span(&SpanDescription::new(method.as_str(), name.as_deref(), uri.as_deref(), context))
}

/// Makes the span of a request that was answered without a handler.
pub(super) fn record(request: &AnsweredRequest) {
    let span = span(&request.span());
    if let Some(error) = &request.error {
        span.record("otel.status_code", "ERROR");
        span.record("otel.status_description", &*error.message);
    }
}

fn span(description: &SpanDescription) -> Span {
    let SpanDescription { title, attributes, trace } = description;
    let ids = trace.parent.ids();
    let span = tracing::info_span!(
        target: "gudgeon::request",
        "request",
        "otel.name" = %title,
        "otel.kind" = "server",
        "otel.status_code" = Empty,
        "otel.status_description" = Empty,
        trace_id = ids.map(|ids| format!("{:032x}", ids.trace)),
        parent_id = ids.map(|ids| format!("{:016x}", ids.span)),
        "mcp.method.name" = Empty,
        "mcp.protocol.version" = Empty,
        "mcp.resource.uri" = Empty,
        "jsonrpc.request.id" = Empty,
        "gen_ai.tool.name" = Empty,
        "gen_ai.operation.name" = Empty,
        "gen_ai.prompt.name" = Empty,
        "network.protocol.name" = Empty,
        "client.address" = Empty,
        "error.type" = Empty,
        "rpc.response.status_code" = Empty,
    );
    for (name, value) in attributes {
        span.record(*name, &**value);
    }
    span
}
