//! Spans of `tracing` around handlers, and of requests that are answered without one.

use std::borrow::Cow;

use serde::Deserialize;
use tracing::{Span, field::Empty};

use super::handler::Outcome;
use crate::{
    engine::{AnsweredRequest, SpanDescription, SpanSubject},
    protocol::json,
    router::{Failure, Reply},
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

/// Records the outcome of a handler that has failed in its span.
pub(super) fn record_outcome(span: &Span, outcome: &Outcome) {
    let kind: Cow<'_, str> = match outcome {
        Ok(Reply::Result(result)) if is_error(result) => "tool_error".into(),
        Ok(_) => return,
        Err(Failure::Tool { .. }) => "tool_error".into(),
        Err(Failure::Protocol { code, .. }) => code.to_string().into(),
        Err(Failure::Exception { kind, .. }) if !kind.is_empty() => kind.into(),
        // The conventions' word for errors without a name.
        Err(_) => "_OTHER".into(),
    };
    span.record("error.type", &*kind);
    span.record("otel.status_code", "ERROR");
}

/// Returns whether a result has `isError`.
fn is_error(result: &str) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Flag {
        #[serde(default)]
        is_error: bool,
    }
    json::from_bytes::<Flag>(result.as_bytes()).is_ok_and(|flag| flag.is_error)
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
