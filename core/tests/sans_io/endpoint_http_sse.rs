//! HTTP+SSE of 2024-11-05: a stream that names the URL for messages, which are posted there and answered on the stream.

use gudgeon::http::{EndpointConfig, EndpointInput, ExchangeId};
use serde_json::{Value, json};

use crate::support::{
    fixture,
    request::{Request, initialize, message, notification},
    visitor::Visitor,
};

fn visitor() -> Visitor {
    let config = EndpointConfig { legacy_sse: true, ..EndpointConfig::default() };
    Visitor::new(fixture::components(), config)
}

/// A stream and the URL for its messages.
struct Pair {
    stream: u64,
    url: String,
}

impl Pair {
    fn open(visitor: &mut Visitor, revision: &str) -> Self {
        let get = Request::new("GET", "/sse").header("accept", "text/event-stream");
        let stream = visitor.request(&get);
        let reply = visitor.reply(stream);
        assert!(reply.is_stream() && reply.body.starts_with("event: endpoint\n"), "{reply:?}");
        assert_eq!(reply.header("x-accel-buffering"), "no");
        let url = reply.messages()[0].as_str().unwrap().to_owned();
        assert!(url.starts_with("/sse?session_id=") && url.len() > 32, "{url}");
        let pair = Self { stream, url };
        assert_eq!(pair.ask(visitor, &initialize(revision))["result"]["protocolVersion"], revision);
        visitor.accepts(&pair.post(&notification("notifications/initialized", json!({}))));
        pair
    }

    fn post(&self, body: &Value) -> Request {
        Request::post(body).at(&self.url)
    }

    /// Returns the last message on the stream after this one was posted.
    fn ask(&self, visitor: &mut Visitor, body: &Value) -> Value {
        visitor.accepts(&self.post(body));
        visitor.reply(self.stream).messages().pop().unwrap()
    }
}

fn ping(id: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "ping"})
}

#[test]
fn responses_and_notifications_come_on_the_stream() {
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut visitor = visitor();
        let pair = Pair::open(&mut visitor, revision);
        assert_eq!(pair.ask(&mut visitor, &ping("a"))["result"], json!({}));
        let count =
            json!({"name": "count", "arguments": {"steps": 2}, "_meta": {"progressToken": 5}});
        pair.ask(&mut visitor, &message("tools/call", count));
        let reply = visitor.reply(pair.stream);
        let messages = reply.messages();
        let [.., first, second, result] = &messages[..] else { panic!("{messages:?}") };
        assert_eq!(
            (&first["params"]["progress"], &second["params"]["progress"]),
            (&json!(1), &json!(2))
        );
        assert_eq!(result["result"]["content"][0]["text"], "done");
        assert_eq!(reply.body.matches("event: message\n").count(), messages.len() - 1);
        let answer = pair.ask(&mut visitor, &json!([ping("b"), ping("c")]));
        match revision < "2025-06-18" {
            true => assert_eq!((&answer[0]["id"], &answer[1]["id"]), (&json!("b"), &json!("c"))),
            false => assert_eq!(answer["error"]["code"], -32600),
        }
    }
}

#[test]
fn two_streams_are_kept_apart() {
    let mut visitor = visitor();
    let (one, other) =
        (Pair::open(&mut visitor, "2024-11-05"), Pair::open(&mut visitor, "2024-11-05"));
    assert_ne!(one.url, other.url);
    let before = visitor.reply(other.stream).messages().len();
    assert_eq!(one.ask(&mut visitor, &ping("for one"))["id"], "for one");
    assert_eq!(visitor.reply(other.stream).messages().len(), before);
}

#[test]
fn a_message_that_can_not_be_taken_is_refused_where_it_is_posted() {
    let mut visitor = visitor();
    let pair = Pair::open(&mut visitor, "2024-11-05");
    let post = pair.post(&ping("a"));
    visitor.refuses(&post.clone().body("{"), 400, -32700);
    visitor.rejects(&post.clone().header("content-type", "text/plain"), 415, "application/json");
    visitor.rejects(
        &post.clone().header("origin", "http://evil.example.com"),
        403,
        "allowed_origins",
    );
    visitor.rejects(&post.clone().header("host", "evil.example.com"), 421, "allowed_hosts");
    visitor.refuses(&post.clone().at("/sse?session_id=nobody"), 404, -32600);
    visitor.refuses(&post.clone().at("/sse"), 404, -32600);
    assert_eq!(pair.ask(&mut visitor, &ping("b"))["id"], "b");
}

/// Responses would come on the stream of the pair.
#[test]
fn its_session_is_unknown_to_streamable_http() {
    let mut visitor = visitor();
    let pair = Pair::open(&mut visitor, "2024-11-05");
    let (_, session) = pair.url.split_once("session_id=").unwrap();
    visitor.refuses(&Request::of_session(session, &ping("a")), 404, -32600);
    for method in ["GET", "DELETE"] {
        visitor.rejects(&Request::bare(method, session), 404, "session");
    }
    assert_eq!(pair.ask(&mut visitor, &ping("b"))["id"], "b");
}

#[test]
fn a_session_ends_with_its_stream() {
    let mut visitor = visitor();
    let pair = Pair::open(&mut visitor, "2024-11-05");
    visitor.handle(EndpointInput::Disconnected(ExchangeId(pair.stream)));
    visitor.refuses(&pair.post(&ping("a")), 404, -32600);
}

#[test]
fn it_is_served_only_where_it_is_enabled() {
    let mut visitor = Visitor::new(fixture::components(), EndpointConfig::default());
    let get = Request::new("GET", "/sse").header("accept", "text/event-stream");
    visitor.rejects(&get, 404, "path");
}
