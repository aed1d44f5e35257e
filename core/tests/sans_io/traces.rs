//! The trace context of calls, spans of requests that no handler answers, and the ids of traces in log events.

use gudgeon::{
    engine::{AnsweredRequest, HandlerEvent},
    http::EndpointConfig,
    protocol::{Dialect, Method, MethodName, TraceContext},
    router::{Failure, Reply},
    session::server::CallTrace,
};
use serde_json::{Value, json};

use crate::support::{fixture, request::Request, visitor::Visitor};

const META: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const HEADER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const HOST: &str = "00-11112222333344445555666677778888-1111222233334444-01";

fn visitor() -> Visitor {
    let components = fixture::components_in(vec![Dialect::Bare]);
    components.server.traces.turn_on();
    Visitor::new(components, EndpointConfig::default())
}

fn context(traceparent: &str) -> TraceContext {
    TraceContext::new(Some(traceparent.to_owned()), None, None)
}

/// Calls a tool, and returns the trace context of its handler.
fn trace_of(meta: &Value, headers: &[(&str, &str)], active: Option<&str>) -> CallTrace {
    let mut visitor = visitor();
    visitor.ambient = active.map(context);
    let call = json!({"name": "wait", "_meta": meta});
    let request =
        headers.iter().fold(Request::modern("tools/call", call), |request, (name, value)| {
            request.header(name, value)
        });
    visitor.request(&request);
    visitor.runs.pop().expect("a run").context.trace()
}

#[test]
fn meta_counts_before_the_host_and_the_host_before_the_headers() {
    let headers = [("traceparent", HEADER), ("tracestate", "a=1"), ("baggage", "user=ada")];
    let of_meta =
        trace_of(&json!({"traceparent": META, "tracestate": "b=2"}), &headers, Some(HOST));
    assert_eq!(of_meta.parent.traceparent.as_deref(), Some(META));
    assert_eq!(of_meta.parent.tracestate.as_deref(), Some("b=2"));
    assert_eq!(of_meta.parent.baggage.as_deref(), Some("user=ada"));
    assert_eq!(of_meta.link.as_deref(), Some(HOST));
    let of_host = trace_of(&json!({}), &headers, Some(HOST));
    assert_eq!((of_host.parent.traceparent.as_deref(), of_host.link), (Some(HOST), None));
    assert_eq!(of_host.parent.tracestate, None, "it belongs to another parent");
    let of_headers = trace_of(&json!({}), &headers, None);
    assert_eq!(of_headers.parent.traceparent.as_deref(), Some(HEADER));
    assert_eq!(of_headers.parent.tracestate.as_deref(), Some("a=1"));
    let of_nobody = trace_of(&json!({"traceparent": "no"}), &[("traceparent", "no")], None);
    assert_eq!(of_nobody, CallTrace::default());
}

fn answered(visitor: &mut Visitor, method: &str, params: Value) -> AnsweredRequest {
    visitor.modern(method, params);
    let mut spans = std::mem::take(&mut visitor.spans);
    assert_eq!(spans.len(), 1, "{method}: {spans:?}");
    spans.remove(0)
}

fn attributes(request: &AnsweredRequest) -> Value {
    let span = request.span();
    span.attributes.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect()
}

#[test]
fn lists_unknown_names_and_refused_arguments_have_spans() {
    let mut visitor = visitor();
    let list = answered(&mut visitor, "tools/list", json!({"_meta": {"traceparent": META}}));
    let span = list.span();
    assert_eq!((&*span.title, list.error.is_none()), ("tools/list", true));
    assert_eq!(span.trace.parent.traceparent.as_deref(), Some(META));
    assert_eq!(
        attributes(&list),
        json!({
            "mcp.method.name": "tools/list", "mcp.protocol.version": "2026-07-28", "jsonrpc.request.id": "1",
            "network.protocol.name": "http",
        })
    );
    let refused =
        answered(&mut visitor, "tools/call", json!({"name": "add", "arguments": {"a": "x"}}));
    assert_eq!(refused.span().title, "tools/call add");
    let found = attributes(&refused);
    assert_eq!(
        (&found["error.type"], &found["gen_ai.tool.name"]),
        (&json!("tool_error"), &json!("add"))
    );
    assert_eq!(found.get("rpc.response.status_code"), None);
    let unknown = answered(&mut visitor, "tools/call", json!({"name": "nil"}));
    let found = attributes(&unknown);
    assert_eq!(unknown.span().title, "tools/call", "clients choose such names");
    assert_eq!(found["rpc.response.status_code"], "-32602");
    assert!(unknown.error.expect("an error").message.contains("nil"));
    let resource = answered(&mut visitor, "resources/read", json!({"uri": "a://nil"}));
    assert_eq!(attributes(&resource)["mcp.resource.uri"], "a://nil");
}

#[test]
fn a_handler_has_a_subject_and_its_call_no_second_span() {
    let mut visitor = visitor();
    visitor.modern("tools/call", json!({"name": "wait"}));
    let subject = visitor.runs[0].subject.as_ref().expect("a subject");
    assert_eq!(subject.method, MethodName::Standard(Method::CallTool));
    assert_eq!(subject.name.as_deref(), Some("wait"));
    let run = visitor.runs[0].id;
    let reply = Reply::Result(r#"{"content":[]}"#.into());
    visitor.handle(gudgeon::http::EndpointInput::Handler(run, HandlerEvent::Done(Ok(reply))));
    assert!(visitor.spans.is_empty());
}

#[test]
fn a_host_that_does_not_trace_gets_no_spans() {
    let components = fixture::components_in(vec![Dialect::Bare]);
    let mut visitor = Visitor::new(components, EndpointConfig::default());
    visitor.modern("tools/list", json!({}));
    visitor.modern("tools/call", json!({"name": "wait"}));
    assert!(visitor.spans.is_empty() && visitor.runs[0].subject.is_none());
}

#[test]
fn a_session_is_not_named_in_spans() {
    let mut visitor = visitor();
    let session = visitor.open("2025-11-25", json!({}));
    visitor.spans.clear();
    let list = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/list", "params": {}});
    visitor.legacy(&session, &list);
    let span = visitor.spans.remove(0).span();
    assert!(!format!("{span:?}").contains(&session));
}

#[test]
fn log_events_of_calls_have_the_ids_of_the_trace() {
    let mut visitor = visitor();
    visitor.modern("tools/call", json!({"name": "nil", "_meta": {"traceparent": META}}));
    let fields = visitor.events.remove(0).fields();
    assert_eq!(fields["trace_id"], "4bf92f3577b34da6a3ce929d0e0e4736");
    assert_eq!(fields["span_id"], "00f067aa0ba902b7");
    visitor.modern_with("tools/call", json!({"name": "wait"}), &[("traceparent", HEADER)]);
    let run = visitor.runs.pop().expect("a run").id;
    let failure = Failure::Exception {
        kind: "E".into(),
        message: "no row".into(),
        traceback: "line 1".into(),
    };
    visitor.handle(gudgeon::http::EndpointInput::Handler(run, HandlerEvent::Done(Err(failure))));
    let failed = visitor.events.remove(0).fields();
    assert_eq!((&failed["event"], &failed["tool"]), (&json!("call.failed"), &json!("wait")));
    assert_eq!(failed["trace_id"], "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(failed["request_id"], "1", "who called is known");
}
