//! The dialects at an endpoint: stateless POSTs, and sessions that expire when idle.

use std::time::Duration;

use gudgeon::{
    engine::Effect,
    framing::TooLong,
    http::{ConnectionId, EndpointConfig, EndpointInput, EndpointOutput, Part},
    protocol::{Dialect, Frame},
};
use serde_json::{Value, json};

use crate::support::{
    fixture,
    request::{Request, initialize},
    visitor::{BOTH, Visitor},
};

const MINUTE: Duration = Duration::from_secs(60);

fn with(dialects: &[Dialect]) -> Visitor {
    let config = EndpointConfig { legacy_sse: true, ..EndpointConfig::default() };
    Visitor::new(fixture::components_in(dialects.to_vec()), config)
}

fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn post(visitor: &mut Visitor, more: &[(&str, &str)], body: &Value) -> u64 {
    let mut headers = vec![("content-type", "application/json"), ("accept", BOTH)];
    headers.extend(more);
    let id = visitor.send("POST", "/mcp", &headers, &body.to_string());
    visitor.run_handlers();
    id
}

#[test]
fn every_post_stands_alone() {
    let mut visitor = with(&[Dialect::V0_7]);
    let id = post(&mut visitor, &[], &request(1, "initialize", &json!({})));
    let reply = visitor.reply(id);
    assert_eq!((reply.status, reply.header("mcp-session-id")), (200, ""));
    assert_eq!(reply.json()["result"]["version"], "0.7.0");
    for (method, params, member) in [
        ("call_tool", json!({"name": "add", "arguments": {"a": 1, "b": 2}}), "content"),
        (
            "read_resource",
            json!({"uri": "fixture://items/{id}", "arguments": {"id": 1}}),
            "content",
        ),
        ("render_prompt", json!({"name": "greet", "arguments": {"name": "Ada"}}), "content"),
        ("list_tools", json!({}), "tools"),
        ("tools/list", json!({}), "tools"),
        ("resources/list", json!({}), "resources"),
        ("prompts/list", json!({}), "prompts"),
        ("ping", json!({}), ""),
    ] {
        let id = post(&mut visitor, &[], &request(2, method, &params));
        let reply = visitor.reply(id);
        assert_eq!((reply.status, reply.complete), (200, true), "{method}");
        assert!(
            (member.is_empty() || reply.json()["result"].get(member).is_some()),
            "{method}: {reply:?}"
        );
        assert!(reply.json()["result"].get("resultType").is_none(), "{method}");
    }
}

#[test]
fn errors_have_status_200_and_their_own_codes() {
    let mut visitor = with(&[Dialect::V0_7]);
    for (method, params, code) in [
        ("call_tool", json!({"name": "nothing"}), 4001),
        ("call_tool", json!({"name": "add", "arguments": {}}), 4002),
        ("call_tool", json!({"name": "crash"}), 4003),
        ("call_tool", json!({}), -32602),
        ("read_resource", json!({"uri": "fixture://no"}), 3001),
        ("initialize", json!({"version": "9.0.0"}), -32602),
        ("no/such", json!({}), -32601),
        ("nonsense", json!({}), -32601),
    ] {
        let id = post(&mut visitor, &[], &request(1, method, &params));
        let reply = visitor.reply(id);
        assert_eq!((reply.status, reply.error()), (200, code), "{method} {params}");
    }
}

#[test]
fn requests_with_a_session_or_version_follow_the_specification() {
    let mut visitor = with(&[Dialect::V0_7]);
    // A name that both have, with a version header or a session.
    let list = request(1, "tools/list", &json!({}));
    let id = post(&mut visitor, &[("mcp-protocol-version", "2025-11-25")], &list);
    assert_eq!(visitor.reply(id).status, 400);
    let session = visitor.open("2025-11-25", json!({}));
    let id = visitor.legacy(&session, &list);
    assert!(visitor.reply(id).json()["result"]["tools"][0].get("inputSchema").is_some());
    let id = visitor.modern("tools/list", json!({}));
    assert_eq!(visitor.reply(id).json()["result"]["resultType"], "complete");
    // A name of its own within a session is understood message by message.
    let id = visitor.legacy(&session, &request(2, "list_tools", &json!({})));
    assert!(visitor.reply(id).json()["result"]["tools"][0].get("arguments").is_some());
    // Names that only the specification has.
    let id = post(&mut visitor, &[], &request(3, "tools/call", &json!({"name": "add"})));
    assert_eq!(visitor.reply(id).status, 400);
}

#[test]
fn without_the_dialect_nothing_changes() {
    for dialects in [&[][..], &[Dialect::Bare]] {
        let mut visitor = with(dialects);
        for (method, params) in [
            ("tools/list", json!({})),
            ("list_tools", json!({})),
            ("call_tool", json!({"name": "add"})),
        ] {
            let id = post(&mut visitor, &[], &request(1, method, &params));
            assert_eq!(visitor.reply(id).status, 400, "{method}");
        }
        let id = post(&mut visitor, &[], &request(1, "initialize", &json!({})));
        assert_eq!(visitor.reply(id).error(), -32602);
        let session = visitor.open("2025-11-25", json!({}));
        let id = visitor.legacy(&session, &request(2, "list_tools", &json!({})));
        assert_eq!(visitor.reply(id).error(), -32601);
    }
}

#[test]
fn a_session_of_the_bare_dialect_is_named_by_its_id() {
    let mut visitor = with(&[Dialect::Bare]);
    let began = visitor.ask(&Request::post(initialize("2024-11-05")));
    let session = began.header("mcp-session-id").to_owned();
    let initialized = json!({"jsonrpc": "2.0", "method": "initialized"});
    visitor.accepts(&Request::of_session(&session, &initialized));
    let ping = Request::of_session(&session, &request(1, "ping", &json!({})));
    assert_eq!(visitor.serves(&ping), json!({"status": "ok"}));
}

struct PairOfStreams {
    stream: u64,
    address: String,
}

impl PairOfStreams {
    fn open(visitor: &mut Visitor) -> Self {
        let stream = visitor.send("GET", "/sse", &[("accept", "text/event-stream")], "");
        let messages = visitor.reply(stream).messages();
        Self { stream, address: messages[0].as_str().unwrap().to_owned() }
    }

    /// The last event after this message.
    fn ask(&self, visitor: &mut Visitor, body: &Value) -> Value {
        let headers = [("content-type", "application/json")];
        let id = visitor.send("POST", &self.address, &headers, &body.to_string());
        assert_eq!(visitor.reply(id).status, 202);
        visitor.run_handlers();
        visitor.reply(self.stream).messages().last().unwrap().clone()
    }
}

#[test]
fn an_idle_http_sse_session_expires_and_can_be_replaced() {
    let mut visitor = with(&[Dialect::V0_7]);
    let pair = PairOfStreams::open(&mut visitor);
    let call = request(7, "call_tool", &json!({"name": "echo", "arguments": {"text": "hi"}}));
    assert_eq!(pair.ask(&mut visitor, &call)["error"]["code"], 1001);
    let introduction = pair.ask(&mut visitor, &request(1, "initialize", &json!({})));
    assert_eq!(introduction["result"]["version"], "0.7.0");
    // A client that sends messages is not idle.
    for _ in 0..3 {
        visitor.advance(20 * MINUTE);
        assert_eq!(pair.ask(&mut visitor, &call)["result"]["isError"], false);
    }
    visitor.advance(40 * MINUTE);
    assert_eq!(pair.ask(&mut visitor, &call)["error"]["code"], 1002);
    let list = request(8, "tools/list", &json!({}));
    assert_eq!(pair.ask(&mut visitor, &list)["error"]["code"], 1002);
    let again = pair.ask(&mut visitor, &request(2, "initialize", &json!({})));
    assert_eq!(again["result"]["version"], "0.7.0");
    assert_eq!(pair.ask(&mut visitor, &call)["result"]["isError"], false);
    let events = visitor.reply(pair.stream).body.matches("event: message").count();
    assert_eq!(events, visitor.reply(pair.stream).messages().len() - 1);
}

#[test]
fn a_session_with_a_pending_call_is_not_idle() {
    let mut visitor = with(&[Dialect::V0_7]);
    let pair = PairOfStreams::open(&mut visitor);
    pair.ask(&mut visitor, &request(1, "initialize", &json!({})));
    pair.ask(&mut visitor, &request(2, "call_tool", &json!({"name": "wait"})));
    visitor.advance(40 * MINUTE);
    let list = request(3, "list_prompts", &json!({}));
    assert!(pair.ask(&mut visitor, &list).get("result").is_some());
}

#[test]
fn sessions_of_dated_revisions_do_not_expire_this_way() {
    let mut visitor = with(&[Dialect::V0_7, Dialect::Bare]);
    let pair = PairOfStreams::open(&mut visitor);
    let params = json!({"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
    pair.ask(&mut visitor, &request(1, "initialize", &params));
    pair.ask(&mut visitor, &json!({"jsonrpc": "2.0", "method": "initialized"}));
    visitor.advance(40 * MINUTE);
    let pong = pair.ask(&mut visitor, &request(2, "ping", &json!({})));
    assert_eq!(pong["result"], json!({"status": "ok"}));
}

#[test]
fn an_idle_message_connection_expires_and_can_be_replaced() {
    let mut visitor = with(&[Dialect::V0_7]);
    let connection = ConnectionId(1);
    let feed = |visitor: &mut Visitor, input: EndpointInput<'_>| -> Vec<Value> {
        let mut received = Vec::new();
        visitor.endpoint.handle(visitor.now, input);
        while let Some(output) = visitor.endpoint.poll() {
            match output {
                EndpointOutput::Connection(_, Part::Bytes(frame)) => {
                    received.push(serde_json::from_slice(&frame).unwrap());
                }
                EndpointOutput::Effect(Effect::Run(_)) => panic!("nothing runs here"),
                _ => (),
            }
        }
        received
    };
    let ask = |visitor: &mut Visitor, body: &Value| -> Value {
        let frame = body.to_string();
        let received =
            feed(visitor, EndpointInput::Message(connection, Frame::parse(frame.as_bytes())));
        received.into_iter().next().unwrap()
    };
    feed(&mut visitor, EndpointInput::Opened(connection, None, None));
    assert_eq!(
        ask(&mut visitor, &request(1, "initialize", &json!({})))["result"]["version"],
        "0.7.0"
    );
    let list = request(2, "list_prompts", &json!({}));
    visitor.advance(20 * MINUTE);
    assert!(ask(&mut visitor, &list).get("result").is_some());
    visitor.advance(40 * MINUTE);
    assert_eq!(ask(&mut visitor, &list)["error"]["code"], 1002);
    ask(&mut visitor, &request(3, "initialize", &json!({})));
    assert!(ask(&mut visitor, &list).get("result").is_some());
    let long = feed(&mut visitor, EndpointInput::TooLong(connection, TooLong::unread(99)));
    assert_eq!(long[0]["error"]["code"], 2002);
}
