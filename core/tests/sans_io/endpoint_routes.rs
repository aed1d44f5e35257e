//! Routes of the program: which requests reach their handlers, how they are counted, and what is answered. The conversion of
//! requests and replies in detail is tested with the routes themselves.

use std::time::Duration;

use gudgeon::{
    engine::HandlerEvent,
    http::{Cors, EndpointConfig, EndpointInput, ExchangeId, GuardConfig},
    protocol::{Method, Question, json::to_raw},
    router::{Failure, Reply},
    session::asking::AskId,
};
use serde_json::{Value, json};

use crate::support::{Handler, fixture, kept, request::Request, visitor::Visitor};

const HOOKS: &str = "/hooks";
const STATUS: &str = "/status";

fn served(config: EndpointConfig) -> Visitor {
    let mut components = fixture::components();
    for (method, path) in [("POST", HOOKS), ("GET", STATUS), ("DELETE", STATUS)] {
        components.add_route(method, path, false, kept(Handler::Plain)).unwrap();
    }
    Visitor::new(components, config)
}

fn hook(body: &str) -> Request {
    Request::new("POST", HOOKS).body(body)
}

fn status(visitor: &Visitor, id: u64) -> u16 {
    visitor.replies.get(&id).map_or(0, |reply| reply.status)
}

#[test]
fn a_request_is_the_input_of_a_handler_whose_reply_is_the_response() {
    let mut visitor = served(EndpointConfig::default());
    let request = hook("{\"a\":1}").at("/hooks?from=shop").header("x-signature", "ab");
    let id = visitor.request(&request);
    let run = visitor.runs.last().expect("a handler runs");
    let input: Value = serde_json::from_str(&run.input).unwrap();
    assert_eq!(
        input,
        json!({
            "method": "POST",
            "url": "http://localhost/hooks?from=shop",
            "path": "/hooks",
            "query": "from=shop",
            "headers": [["host", "localhost"], ["x-signature", "ab"]],
            "body": "{\"a\":1}",
        })
    );
    assert_eq!(visitor.endpoint.in_flight(), 1);
    assert_eq!(status(&visitor, id), 0, "it waits for the handler");
    visitor.finish(Ok(Reply::Result(
        r#"{"status":201,"headers":[["location","/a"]],"body":"made"}"#.into(),
    )));
    let reply = visitor.reply(id);
    assert_eq!((reply.status, &*reply.body, reply.complete), (201, "made", true));
    assert_eq!(reply.header("location"), "/a");
    assert!(visitor.endpoint.keeps_no_call());
}

#[test]
fn a_large_reply_is_converted_outside_the_lock_and_answers_as_well() {
    let mut visitor = served(EndpointConfig::default());
    let id = visitor.request(&Request::new("GET", STATUS));
    let text = "x".repeat(1024 * 1024);
    visitor.finish(Ok(Reply::Text(text.clone())));
    assert_eq!(visitor.reply(id).body, text);
    assert!(visitor.endpoint.keeps_no_call());
}

#[test]
fn head_is_a_get_and_other_methods_are_not_allowed() {
    let mut visitor = served(EndpointConfig::default());
    for method in ["GET", "HEAD", "DELETE"] {
        let id = visitor.request(&Request::new(method, STATUS));
        let run = visitor.runs.last().expect("a handler runs");
        assert!(run.input.contains(&format!("\"method\":\"{method}\"")), "{}", run.input);
        visitor.finish(Ok(Reply::Text("ok".into())));
        assert_eq!(status(&visitor, id), 200);
    }
    for (method, expected) in [("PUT", 405), ("POST", 405), ("OPTIONS", 204), ("TRACE", 405)] {
        let id = visitor.request(&Request::new(method, STATUS));
        let reply = visitor.reply(id);
        let answered = (reply.status, reply.header("allow"));
        assert_eq!(answered, (expected, "DELETE, GET, HEAD, OPTIONS"), "{method}");
    }
    for path in ["/hooks/", "/hook", "/hooks/x", "/mcp/hooks"] {
        let id = visitor.request(&hook("").at(path));
        assert_eq!(status(&visitor, id), 404, "{path}");
    }
    assert!(visitor.runs.is_empty());
}

#[test]
fn host_and_origin_are_checked_and_webhooks_without_origin_pass() {
    let guard = GuardConfig {
        allowed_hosts: vec!["shelf.example.org".into()],
        allowed_origins: vec!["https://app.example.org".into()],
        cors: Cors::Origins(vec!["https://app.example.org".into()]),
        ..GuardConfig::default()
    };
    let mut visitor = served(EndpointConfig { guard, ..EndpointConfig::default() });
    for (name, value, refused) in [
        ("host", "shelf.example.org", 0),
        ("host", "evil.example.com", 421),
        ("origin", "https://app.example.org", 0),
        ("origin", "https://evil.example.com", 403),
        // Headers of the protocol mean nothing here.
        ("mcp-protocol-version", "no version", 0),
        ("accept", "image/png", 0),
        ("content-type", "application/x-www-form-urlencoded", 0),
    ] {
        let id = visitor.request(&hook("").header(name, value));
        assert_eq!(status(&visitor, id), refused, "{name}: {value}");
        assert_eq!(visitor.runs.pop().is_some(), refused == 0, "{name}: {value}");
    }
    let preflight = Request::new("OPTIONS", STATUS)
        .header("origin", "https://app.example.org")
        .header("access-control-request-method", "DELETE");
    let id = visitor.request(&preflight);
    let reply = visitor.reply(id);
    assert_eq!(reply.status, 204);
    assert_eq!(reply.header("access-control-allow-methods"), "DELETE, GET, HEAD, OPTIONS");
}

#[test]
fn a_body_is_at_most_max_body() {
    let mut visitor = served(EndpointConfig { max_body: 10, ..EndpointConfig::default() });
    let id = visitor.request(&hook("0123456789a"));
    assert_eq!(status(&visitor, id), 413);
    visitor.request(&hook("0123456789"));
    assert_eq!(visitor.runs.len(), 1);
}

#[test]
fn routes_and_calls_are_in_flight_together() {
    let mut visitor = served(EndpointConfig { max_in_flight: 2, ..EndpointConfig::default() });
    let session = visitor.open("2025-11-25", json!({}));
    let first = visitor.request(&hook(""));
    visitor.call(&session, 1, "wait");
    let refused = visitor.request(&hook(""));
    assert_eq!(status(&visitor, refused), 503);
    assert_eq!(visitor.reply(refused).header("retry-after"), "1");
    let call = visitor.call(&session, 2, "wait");
    assert_eq!(status(&visitor, call), 503);
    visitor.handle(EndpointInput::Disconnected(ExchangeId(first)));
    visitor.request(&hook(""));
    assert_eq!(visitor.endpoint.in_flight(), 2);
}

#[test]
fn a_client_that_leaves_cancels_the_handler() {
    let mut visitor = served(EndpointConfig::default());
    let id = visitor.request(&hook(""));
    let run = visitor.runs.pop().expect("a handler runs");
    visitor.handle(EndpointInput::Disconnected(ExchangeId(id)));
    assert_eq!(visitor.cancelled, [run.id.0]);
    assert!(visitor.endpoint.keeps_no_call());
    let late = HandlerEvent::Done(Ok(Reply::Nothing));
    visitor.handle(EndpointInput::Handler(run.id, late));
    assert_eq!(status(&visitor, id), 0, "nobody is answered");
}

#[test]
fn a_failure_is_500_and_a_line_for_the_log() {
    let mut visitor = served(EndpointConfig::default());
    let id = visitor.request(&hook(""));
    visitor.finish(Err(Failure::Exception {
        kind: "KeyError".into(),
        message: "a secret".into(),
        traceback: "line 1".into(),
    }));
    let reply = visitor.reply(id);
    assert_eq!(reply.status, 500);
    assert!(!reply.body.contains("secret") && !reply.body.contains("KeyError"), "{}", reply.body);
    let reference = reply.body.rsplit("(reference ").next().unwrap().trim_end_matches(")\n");
    let expected = format!("route POST \"/hooks\" failed (reference {reference})\nline 1");
    assert_eq!(visitor.reports, [expected]);
    let id = visitor.request(&hook(""));
    visitor.finish(Ok(Reply::Parts("[]".into())));
    assert_eq!(status(&visitor, id), 500);
    assert!(visitor.reports[1].contains("a route does not return content of tools"));
}

#[test]
fn a_handler_that_asks_is_told_that_nobody_answers() {
    let mut visitor = served(EndpointConfig::default());
    visitor.request(&hook(""));
    let run = visitor.runs.last().expect("a handler runs").id;
    let question =
        Question { key: "roots-1".into(), method: Method::ListRoots, params: to_raw(&json!({})) };
    visitor.handle(EndpointInput::Handler(run, HandlerEvent::Ask { ask: AskId(7), question }));
    let (ask, outcome) = visitor.answers.pop().expect("an answer");
    assert_eq!(ask, 7);
    assert!(outcome.unwrap_err().starts_with("a route has no client that could be asked"));
}

#[test]
fn a_slow_handler_gets_no_stream() {
    let mut visitor = served(EndpointConfig::default());
    let request = hook("").header("accept", "text/event-stream");
    let id = visitor.request(&request);
    visitor.advance(Duration::from_secs(120));
    assert_eq!(status(&visitor, id), 0);
    visitor.finish(Ok(Reply::Text("late".into())));
    assert_eq!(visitor.reply(id).body, "late");
}

#[test]
fn a_server_that_shuts_down_answers_what_runs_and_refuses_the_rest() {
    let mut visitor = served(EndpointConfig::default());
    let id = visitor.request(&hook(""));
    visitor.handle(EndpointInput::ShutDown);
    let refused = visitor.request(&hook(""));
    assert_eq!(status(&visitor, refused), 503);
    visitor.finish(Ok(Reply::Nothing));
    assert_eq!(status(&visitor, id), 204);
    let mut closed = served(EndpointConfig::default());
    let id = closed.request(&hook(""));
    let run = closed.runs.last().expect("a handler runs").id.0;
    closed.handle(EndpointInput::Closed);
    assert_eq!(closed.cancelled, [run]);
    assert_eq!(closed.replies[&id].status, 503);
    assert!(closed.endpoint.keeps_no_call());
}
