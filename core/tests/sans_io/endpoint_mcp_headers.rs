//! Headers that repeat the body of a stateless request (2026-07-28, "Server Validation"): the whole check of a request.
//! Tests of `wire/headers.rs` and `wire/param_headers.rs` prove how values are spelled, decoded and compared.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use gudgeon::{
    http::EndpointConfig,
    protocol::{Tool, json::to_raw},
    router::{RegisteredTool, Reply},
    schema::closed,
};
use serde_json::{Value, json};

use crate::support::{Handler, fixture, kept, request::Request, visitor::Visitor};

const MISMATCH: i64 = -32020;

/// Encodes a value that can't be a header's as it is.
fn encoded(text: &str) -> String {
    format!("=?base64?{}?=", STANDARD.encode(text))
}

/// An endpoint with a tool that has a parameter of each type that a header can repeat.
fn visitor() -> Visitor {
    let mut components = fixture::components();
    let schema = json!({"type": "object", "properties": {
        "string": {"type": "string", "x-mcp-header": "String"},
        "integer": {"type": "integer", "x-mcp-header": "Integer"},
        "boolean": {"type": "boolean", "x-mcp-header": "Boolean"},
    }});
    let tool = Tool::new("mirrored", closed(to_raw(&schema)));
    let handler = Handler::Act(|input, _| Some(Ok(Reply::Text(input.to_string()))));
    components.tools.add(RegisteredTool::new(tool, kept(handler)).unwrap(), true).unwrap();
    Visitor::new(components, EndpointConfig::default())
}

fn echo() -> Request {
    Request::modern("tools/call", json!({"name": "echo", "arguments": {"text": "hi"}}))
}

#[test]
fn mcp_method_is_the_method_of_the_body() {
    let mut visitor = visitor();
    let list = Request::modern("tools/list", json!({}));
    visitor.serves(&list.clone().without("mcp-method").also("MCP-METHOD", "tools/list"));
    for wrong in ["prompts/list", "TOOLS/LIST", "", "tools/list, tools/list"] {
        visitor.refuses(&list.clone().header("mcp-method", wrong), 400, MISMATCH);
    }
    visitor.refuses(&list.clone().without("mcp-method"), 400, MISMATCH);
    visitor.refuses(&list.also("mcp-method", "tools/call"), 400, MISMATCH);
}

#[test]
fn mcp_name_is_what_the_request_is_about() {
    let mut visitor = visitor();
    let item = "fixture://items/größe";
    for (request, name) in [
        (echo(), "echo"),
        (Request::modern("resources/read", json!({"uri": "fixture://about"})), "fixture://about"),
        (Request::modern("resources/read", json!({"uri": item})), item),
        (
            Request::modern("prompts/get", json!({"name": "greet", "arguments": {"name": "Ada"}})),
            "greet",
        ),
    ] {
        let named = |value: &str| request.clone().header("mcp-name", value);
        let mut right = vec![encoded(name), format!(" {} ", encoded(name))];
        if name.is_ascii() {
            right.extend([name.into(), format!("  {name}  "), format!("\t{name}")]);
        }
        for value in right {
            // The resource need not exist: the headers are right.
            let reply = visitor.ask(&named(&value)).json();
            assert_ne!(reply["error"]["code"], MISMATCH, "{value:?} {reply}");
        }
        for value in
            ["wrong", &name.to_uppercase(), &encoded("wrong"), &encoded(&format!("{name}x"))]
        {
            if value.is_ascii() {
                visitor.refuses(&named(value), 400, MISMATCH);
            }
        }
        visitor.refuses(&request.clone().without("mcp-name"), 400, MISMATCH);
    }
    visitor.refuses(&echo().also("mcp-name", "other"), 400, MISMATCH);
    visitor.serves(&echo().also("mcp-name", "echo"));
}

#[test]
fn a_mismatch_is_json_for_a_client_that_accepts_streams_only() {
    let request = echo().header("mcp-name", "wrong").header("accept", "text/event-stream");
    visitor().refuses(&request, 400, MISMATCH);
}

/// A call with this argument, unless it is `None`, and this header.
fn mirrored(name: &str, value: Option<&Value>, header: Option<&str>) -> Request {
    let arguments = value.map_or(json!({}), |value| json!({name: value}));
    let request =
        Request::modern("tools/call", json!({"name": "mirrored", "arguments": arguments}));
    match header {
        Some(header) => request.header(&format!("mcp-param-{name}"), header),
        None => request,
    }
}

#[test]
fn the_header_of_a_parameter_that_says_the_same_is_accepted() {
    let mut visitor = visitor();
    let encoded = [
        encoded("Hello, 世界"),
        encoded(" padded "),
        encoded("line1\r\nline2"),
        encoded("=?base64?literal?="),
        encoded("42"),
    ];
    for (name, value, header) in [
        ("string", json!("Hello"), "Hello"),
        ("string", json!("Hello"), "=?base64?SGVsbG8=?="),
        ("string", json!("us west 1"), "us west 1"),
        ("string", json!("SGVsbG8="), "SGVsbG8="),
        ("string", json!("=?base64?SGVsbG8="), "=?base64?SGVsbG8="),
        ("string", json!("SGVsbG8=?="), "SGVsbG8=?="),
        ("string", json!("=?BASE64?SGVsbG8=?="), "=?BASE64?SGVsbG8=?="),
        ("string", json!("Hello, 世界"), &encoded[0]),
        ("string", json!(" padded "), &encoded[1]),
        ("string", json!("line1\r\nline2"), &encoded[2]),
        ("string", json!("=?base64?literal?="), &encoded[3]),
        ("string", json!(""), ""),
        ("string", json!(""), "=?base64??="),
        ("integer", json!(42), "42"),
        ("integer", json!(42), "42.0"),
        ("integer", json!(-7), "-7"),
        ("integer", json!(0), "0"),
        ("integer", json!(9_007_199_254_740_991_i64), "9007199254740991"),
        ("integer", json!(42), &encoded[4]),
        ("integer", json!(42.0), "42"),
        ("integer", json!(42.0), "42.0"),
        ("integer", json!(1e15), "1e15"),
        ("boolean", json!(true), "true"),
        ("boolean", json!(false), "false"),
    ] {
        let result = visitor.serves(&mirrored(name, Some(&value), Some(header)));
        assert_ne!(result["isError"], true, "{name} {value} {header:?} {result}");
    }
}

#[test]
fn the_header_of_a_parameter_that_says_another_thing_is_a_mismatch() {
    let mut visitor = visitor();
    for (name, value, header) in [
        ("string", json!("Hello"), Some("hello")),
        ("string", json!("Hello"), None),
        ("string", json!("Hello"), Some("")),
        ("string", json!("Hello"), Some("=?base64?SGVsbG8?=")),
        ("string", json!("Hello"), Some("=?base64?SGVs!!!bG8=?=")),
        ("string", json!("Hello"), Some("=?base64?SGVsbG9=?=")),
        ("string", json!("Hello"), Some("=?BASE64?SGVsbG8=?=")),
        ("string", json!("Hello"), Some("=?base64?SGVs bG8=?=")),
        ("string", json!("\u{fffd}"), Some("=?base64?/w==?=")),
        ("string", json!(""), None),
        ("integer", json!(42), Some("43")),
        ("integer", json!(42), Some("42.5")),
        ("integer", json!(42), Some("0x2a")),
        ("integer", json!(42), Some("forty-two")),
        ("integer", json!(42), Some("")),
        ("integer", json!(42), None),
        ("integer", json!(9_007_199_254_740_991_i64), Some("9007199254740992")),
        ("boolean", json!(true), Some("True")),
        ("boolean", json!(true), Some("1")),
        ("boolean", json!(true), Some("false")),
        ("boolean", json!(false), None),
    ] {
        visitor.refuses(&mirrored(name, Some(&value), header), 400, MISMATCH);
    }
    let twice = mirrored("string", Some(&json!("a")), Some("a")).also("mcp-param-string", "b");
    visitor.refuses(&twice, 400, MISMATCH);
}

#[test]
fn a_parameter_that_is_not_given_or_null_has_no_header() {
    let mut visitor = visitor();
    for name in ["string", "integer", "boolean"] {
        visitor.serves(&mirrored(name, None, None));
        visitor.refuses(&mirrored(name, None, Some("1")), 400, MISMATCH);
        // That the schema does not take null is another matter.
        assert_eq!(visitor.serves(&mirrored(name, Some(&json!(null)), None))["isError"], true);
        visitor.refuses(&mirrored(name, Some(&json!(null)), Some("1")), 400, MISMATCH);
    }
}

#[test]
fn headers_of_no_parameter_are_ignored() {
    let mut visitor = visitor();
    visitor.serves(&mirrored("string", None, None).header("mcp-param-nobody", "x"));
    visitor.serves(&echo().header("mcp-param-string", "x"));
}

#[test]
fn sessions_have_no_such_headers() {
    let mut visitor = visitor();
    let session = visitor.open("2025-11-25", json!({}));
    let Request { body, .. } = mirrored("string", Some(&json!("right")), None);
    let mut body: Value = serde_json::from_slice(&body).unwrap();
    body["params"].as_object_mut().unwrap().remove("_meta");
    let request = ["mcp-method", "mcp-name", "mcp-param-string"]
        .iter()
        .fold(Request::of_session(&session, &body), |request, name| request.header(name, "wrong"));
    visitor.serves(&request);
}
