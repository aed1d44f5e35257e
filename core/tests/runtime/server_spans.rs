//! The spans of `tracing` that a Rust server makes of requests.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex},
};

use gudgeon::{Server, ToolError};
use serde_json::json;
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

use crate::support::duplex::Peer;

/// A span with its fields, and the messages of events while it was the innermost one.
#[derive(Clone, Debug, Default)]
struct Recorded {
    fields: Fields,
    events: Vec<String>,
    is_closed: bool,
}

#[derive(Clone, Debug, Default)]
struct Fields(BTreeMap<&'static str, String>);

/// Records the spans of requests.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<(Vec<Recorded>, Vec<usize>)>>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }
}

impl Subscriber for Spans {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() || metadata.target() == "gudgeon::request"
    }

    fn new_span(&self, attributes: &span::Attributes<'_>) -> span::Id {
        let mut recorded = Recorded::default();
        attributes.record(&mut recorded.fields);
        let (spans, _) = &mut *self.0.lock().unwrap();
        spans.push(recorded);
        span::Id::from_u64(spans.len() as u64)
    }

    fn record(&self, span: &span::Id, values: &span::Record<'_>) {
        values.record(&mut self.0.lock().unwrap().0[index(span)].fields);
    }

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let (spans, entered) = &mut *self.0.lock().unwrap();
        if let (Some(span), Some(message)) = (entered.last(), fields.0.remove("message")) {
            spans[*span].events.push(message);
        }
    }

    fn enter(&self, span: &span::Id) {
        self.0.lock().unwrap().1.push(index(span));
    }

    fn exit(&self, span: &span::Id) {
        assert_eq!(self.0.lock().unwrap().1.pop(), Some(index(span)));
    }

    fn try_close(&self, span: span::Id) -> bool {
        self.0.lock().unwrap().0[index(&span)].is_closed = true;
        true
    }
}

fn index(span: &span::Id) -> usize {
    usize::try_from(span.into_u64()).unwrap() - 1
}

impl Spans {
    /// Returns the span with this name.
    fn named(&self, name: &str) -> Recorded {
        let spans = self.0.lock().unwrap().0.clone();
        let is_it =
            |span: &&Recorded| span.fields.0.get("otel.name").is_some_and(|own| own == name);
        spans.iter().find(is_it).unwrap_or_else(|| panic!("no {name}: {spans:?}")).clone()
    }
}

#[tokio::test(start_paused = true)]
async fn handlers_and_answers_without_one_have_spans_below_those_of_their_clients() {
    let spans = Spans::default();
    let _guard = tracing::subscriber::set_default(spans.clone());
    let open = || async {
        tracing::info!("begun");
        // Other tasks, without this span, run in between.
        tokio::task::yield_now().await;
        tracing::info!("inside");
        "open"
    };
    let server = Server::new("shelf")
        .tool("open", open)
        .tool("fail", || async { Err::<String, _>(ToolError::new("it is locked")) });
    let mut peer = Peer::legacy(&server).await;
    let meta = json!({"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"});
    let call = |name: &str| json!({"name": name, "arguments": {}, "_meta": meta});
    for name in ["open", "fail", "nil"] {
        peer.request("tools/call", call(name)).await;
    }
    peer.request("tools/list", json!({})).await;
    let field = |span: &Recorded, name: &str| span.fields.0.get(name).cloned().unwrap_or_default();
    let open = spans.named("tools/call open");
    for (name, value) in [
        ("otel.kind", "server"),
        ("trace_id", "4bf92f3577b34da6a3ce929d0e0e4736"),
        ("parent_id", "00f067aa0ba902b7"),
        ("mcp.method.name", "tools/call"),
        ("mcp.protocol.version", "2025-11-25"),
        ("gen_ai.tool.name", "open"),
        ("gen_ai.operation.name", "execute_tool"),
        ("otel.status_code", ""),
    ] {
        assert_eq!(field(&open, name), value, "{name}");
    }
    assert_eq!(open.events, ["begun", "inside"]);
    let failed = spans.named("tools/call fail");
    assert_eq!(field(&failed, "gen_ai.tool.name"), "fail");
    assert_eq!(field(&failed, "error.type"), "tool_error");
    assert_eq!(field(&failed, "otel.status_code"), "ERROR");
    let unknown = spans.named("tools/call");
    assert_eq!(field(&unknown, "otel.status_code"), "ERROR");
    assert_eq!(field(&unknown, "error.type"), "-32602");
    assert_eq!(field(&unknown, "parent_id"), "00f067aa0ba902b7");
    let list = spans.named("tools/list");
    assert_eq!((field(&list, "trace_id"), field(&list, "otel.status_code")), Default::default());
    let (all, entered) = &*spans.0.lock().unwrap();
    assert!(entered.is_empty() && all.iter().all(|span| span.is_closed), "{all:?}");
}
