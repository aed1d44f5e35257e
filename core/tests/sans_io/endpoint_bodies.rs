//! Bodies that can't be served, in both eras: the status, the code, and the id where one can be read.

use gudgeon::http::EndpointConfig;
use serde_json::{Value, json};

use crate::support::{
    fixture,
    request::{Request, message, modern_body},
    visitor::Visitor,
};

const MAX_BODY: usize = 4 << 20;

/// An endpoint with a session of 2025-11-25.
fn opened() -> (Visitor, String) {
    let mut visitor = Visitor::new(fixture::components(), EndpointConfig::default());
    let session = visitor.open("2025-11-25", json!({}));
    (visitor, session)
}

/// A request of each era with this body, and one of no session, and of one that does not exist.
fn requests(session: &str, body: &str) -> Vec<Request> {
    let mut requests = Vec::from(Request::of_both_eras(session, body));
    requests.extend([Request::post(body), Request::post(body).header("mcp-session-id", "none")]);
    requests
}

/// A request of each era for the list of tools, and its body.
fn lists(session: &str) -> [(Request, Value); 2] {
    let [modern, legacy] = Request::of_both_eras(session, "");
    let params = json!({});
    [(modern, modern_body("tools/list", params.clone())), (legacy, message("tools/list", params))]
        .map(|(request, body)| (request.body(body.to_string()), body))
}

#[test]
fn what_is_not_json_is_a_parse_error() {
    let (mut visitor, session) = opened();
    for body in [
        &b""[..],
        b" ",
        b"{",
        br#"{"jsonrpc":"2.0""#,
        b"nonsense",
        br#"{"a":1}{"b":2}"#,
        b"\xff\xfe",
        b"{\"jsonrpc\":\"2.0\",\"id\":\"\xc3\"}",
        b"\0",
    ] {
        for request in Request::of_both_eras(&session, body) {
            visitor.refuses(&request, 400, -32700);
        }
    }
    for (request, _) in lists(&session) {
        visitor.serves(&request);
    }
}

#[test]
fn json_that_is_no_message_is_an_invalid_request() {
    let (mut visitor, session) = opened();
    for body in
        ["1", r#""initialize""#, "null", "true", "{}", r#"{"jsonrpc":"2.0"}"#, r#"{"id":1}"#]
    {
        for request in requests(&session, body) {
            visitor.refuses(&request, 400, -32600);
        }
    }
    for (member, wrong) in [
        ("jsonrpc", json!("1.0")),
        ("jsonrpc", json!(null)),
        ("id", json!(null)),
        ("id", json!({"a": 1})),
        ("id", json!([1])),
        ("id", json!(true)),
        ("id", json!(1.5)),
        ("method", json!(7)),
    ] {
        for (request, mut body) in lists(&session) {
            body[member] = wrong.clone();
            visitor.refuses(&request.body(body.to_string()), 400, -32600);
        }
    }
}

/// A number that is too large is JSON all the same (JSON-RPC 2.0, section 5.1).
#[test]
fn a_number_that_no_member_can_hold_does_not_hide_the_id() {
    let (mut visitor, session) = opened();
    let body = r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":1e999}"#;
    for request in requests(&session, body) {
        let reply = visitor.ask(&request);
        assert_eq!((reply.status, reply.error()), (400, -32600), "{request:?}\n{reply:?}");
        assert_eq!(reply.json()["id"], 7, "{request:?}\n{reply:?}");
    }
}

#[test]
fn params_that_are_no_object_are_invalid() {
    let (mut visitor, session) = opened();
    for params in [json!(7), json!("x"), json!(null), json!([1])] {
        for ((request, mut body), status) in lists(&session).into_iter().zip([400, 200]) {
            body["params"] = params.clone();
            visitor.refuses(&request.body(body.to_string()), status, -32602);
        }
    }
}

#[test]
fn deep_nesting_is_refused_wherever_it_is() {
    const DEPTH: usize = 100_000;
    let (mut visitor, session) = opened();
    for (open, close) in [("[", "]"), (r#"{"a":"#, "}")] {
        let opened = open.repeat(DEPTH);
        for body in [opened.clone(), opened + "1" + &close.repeat(DEPTH)] {
            for request in Request::of_both_eras(&session, body) {
                let reply = visitor.ask(&request);
                // What is missing may be found before the depth is.
                assert!([-32700, -32600].contains(&reply.error()), "{}", reply.error());
                assert_eq!(reply.status, 400);
            }
        }
    }
    // The arguments of a tool are read later, against its schema.
    let nested = "[".repeat(DEPTH) + &"]".repeat(DEPTH);
    let arguments = json!({"name": "echo", "arguments": {"text": "@"}});
    let modern = Request::modern("tools/call", arguments.clone());
    let legacy = Request::of_session(&session, &message("tools/call", arguments));
    for request in [modern, legacy] {
        let body = String::from_utf8(request.body.clone()).unwrap().replace("\"@\"", &nested);
        let reply = visitor.ask(&request.body(body));
        assert_eq!(reply.status, 200);
        let result = &reply.json()["result"];
        assert_eq!(result["isError"], true);
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("recursion limit"), "{text}");
    }
}

#[test]
fn a_body_may_have_four_mebibytes() {
    let (mut visitor, session) = opened();
    for (request, mut body) in lists(&session) {
        body["params"]["_meta"]["example.com/pad"] = json!("");
        let padding = |size: usize| "x".repeat(size - body.to_string().len());
        for size in [MAX_BODY, MAX_BODY + 1] {
            let mut body = body.clone();
            body["params"]["_meta"]["example.com/pad"] = json!(padding(size));
            let request = request.clone().body(body.to_string());
            match size {
                MAX_BODY => assert!(visitor.serves(&request)["tools"].is_array()),
                _ => visitor.rejects(&request, 413, "max_body"),
            }
        }
    }
    // The length that the head claims is enough.
    let (request, _) = &lists(&session)[0];
    let claim = |length: usize| request.clone().header("content-length", &length.to_string());
    visitor.serves(&claim(MAX_BODY));
    visitor.rejects(&claim(MAX_BODY + 1), 413, "max_body");
    visitor.rejects(&claim(999_999_999_999), 413, "max_body");
    let small = EndpointConfig { max_body: 2_000, ..EndpointConfig::default() };
    let mut visitor = Visitor::new(fixture::components(), small);
    let long = json!({"_meta": {"example.com/pad": "x".repeat(2_000)}});
    visitor.rejects(&Request::modern("tools/list", long), 413, "max_body");
    visitor.serves(&Request::modern("tools/list", json!({})));
}

/// Responses that answer no question: an error in the modern era, where a client must send none (2026-07-28, "Sending
/// Messages"), and accepted in the legacy one, where the server may just have given up.
#[test]
fn a_response_that_answers_nothing() {
    let (mut visitor, session) = opened();
    for answer in [("result", json!({})), ("error", json!({"code": 1, "message": "no"}))] {
        let body = json!({"jsonrpc": "2.0", "id": 1, answer.0: answer.1}).to_string();
        let [modern, legacy] = Request::of_both_eras(&session, body);
        visitor.refuses(&modern.without("mcp-method"), 400, -32600);
        visitor.accepts(&legacy);
    }
    visitor.serves(&Request::of_session(&session, &message("ping", json!({}))));
}
