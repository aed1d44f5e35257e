//! Requests of a client: sent frames, accepted responses, and time limits.

use std::time::Duration;

use gudgeon::{
    error::ErrorKind,
    framing::TooLong,
    protocol::{LoggingLevel, Method, MethodName, Revision},
    session::client::{Input, ListKind, Output, RequestKey, RequestOptions},
};
use serde_json::json;

use crate::support::wire::{Scripted, error, seconds};

const NONE: RequestOptions = RequestOptions {
    timeout: None,
    max_timeout: None,
    wants_progress: false,
    is_passed_on: false,
    times: None,
};

#[test]
fn a_legacy_request_carries_a_progress_token_only_if_used() {
    let mut client = Scripted::legacy();
    client.request(1, Method::ListTools, "{}", NONE);
    assert_eq!(client.sent(), json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}));
    client.request(2, Method::CallTool, r#"{"name":"a"}"#, seconds(1, 2));
    assert_eq!(client.sent()["params"], json!({"name": "a", "_meta": {"progressToken": 3}}));
}

#[test]
fn a_modern_request_carries_the_envelope() {
    let mut client = Scripted::modern();
    client.request(1, Method::SetLevel, r#"{"level":"warning"}"#, NONE);
    assert_eq!(client.done().1.expect("kept").get(), "{}");
    client.request(2, Method::CallTool, r#"{"name":"a","_meta":{"acme/x":1}}"#, seconds(1, 2));
    let sent = client.sent();
    assert_eq!(
        sent["params"]["_meta"],
        json!({
            "acme/x": 1, "progressToken": 2,
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "probe", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {"roots": {}},
            "io.modelcontextprotocol/logLevel": "warning",
        })
    );
    client.request(3, Method::Ping, "{}", NONE);
    assert_eq!(client.sent()["method"], "server/discover");
}

#[test]
fn log_level_in_the_legacy_era_is_a_request() {
    let mut client = Scripted::legacy();
    client.request(1, Method::SetLevel, r#"{"level":"warning"}"#, NONE);
    assert_eq!(client.sent()["params"], json!({"level": "warning"}));
}

#[test]
fn requests_unsupported_by_server_or_revision_are_not_sent() {
    let mut client = Scripted::start(&[Revision::V2025_11_25]);
    client.sent();
    client.receive(&json!({"jsonrpc": "2.0", "id": 1, "result": {
        "protocolVersion": "2025-11-25", "capabilities": {"resources": {}}, "serverInfo": {"name": "x", "version": "1"},
    }}));
    client.drain();
    for (method, capability) in [
        (Method::ListTools, "\"tools\""),
        (Method::GetPrompt, "\"prompts\""),
        (Method::Subscribe, "\"resources.subscribe\""),
        (Method::Complete, "\"completions\""),
        (Method::SetLevel, "\"logging\""),
        (Method::Listen, "2025-11-25 has no subscriptions/listen"),
    ] {
        client.request(1, method, "{}", NONE);
        let failure = client.done().1.expect_err("refused");
        assert_eq!(failure.kind, ErrorKind::Unsupported);
        assert!(failure.message.contains(capability), "{failure}");
        client.silent();
    }
    client.request(2, Method::ListResources, "{}", NONE);
    client.sent();
}

#[test]
fn responses_are_matched_by_id_in_any_order_and_unknown_ones_are_ignored() {
    let mut client = Scripted::legacy();
    client.request(10, Method::ListTools, "{}", NONE);
    client.request(11, Method::ListPrompts, "{}", NONE);
    client.drain();
    for stray in [
        json!({"jsonrpc": "2.0", "id": 99, "result": {}}),
        json!({"jsonrpc": "2.0", "id": "x2", "result": {}}),
        json!({"jsonrpc": "2.0", "id": null, "error": {"code": 1, "message": "?"}}),
        json!({"jsonrpc": "1.0", "method": "x"}),
        json!([]),
        json!("hello"),
    ] {
        client.receive(&stray);
    }
    client.feed(Input::Frame(b"{not json"));
    client.feed(Input::Frame(b"\xff\xfe"));
    client.silent();
    client.receive(&json!([
        {"jsonrpc": "2.0", "id": 3, "result": {"prompts": []}},
        {"jsonrpc": "2.0", "id": 2, "result": {"tools": []}},
    ]));
    assert_eq!((client.done().0, client.done().0), (11, 10));
    client.receive(&json!({"jsonrpc": "2.0", "id": 2, "result": {}}));
    client.silent();
}

#[test]
fn a_malformed_answer_ends_its_request() {
    let mut client = Scripted::legacy();
    for answer in [
        json!({"jsonrpc": "2.0", "id": 2, "error": "broken"}),
        json!({"jsonrpc": "2.0", "id": 3, "result": 1, "error": {"code": 1, "message": "x"}}),
        json!({"jsonrpc": "2.0", "id": 4, "result": []}),
        json!({"jsonrpc": "2.0", "id": 5}),
        json!({"id": 6, "result": {}}),
    ] {
        client.request(1, Method::ListTools, "{}", NONE);
        client.sent();
        client.receive(&answer);
        assert_eq!(client.done().1.expect_err("malformed").kind, ErrorKind::Protocol);
    }
}

#[test]
fn a_malformed_request_of_the_server_ends_no_request() {
    let mut client = Scripted::legacy();
    client.request(1, Method::ListTools, "{}", NONE);
    let id = client.sent()["id"].clone();
    client.receive(&json!({"jsonrpc": "2.0", "id": id, "method": 3}));
    client.silent();
}

#[test]
fn errors_keep_code_and_data() {
    let mut client = Scripted::legacy();
    client.request(1, Method::ListTools, "{}", NONE);
    client.sent();
    client.receive(&error(2, -32603, Some(json!({"x": 1}))));
    let failure = client.done().1.expect_err("an error");
    assert_eq!((failure.kind, failure.code), (ErrorKind::Protocol, Some(-32603)));
    assert_eq!(failure.data.as_ref().expect("kept").get(), r#"{"x":1}"#);

    client.request(1, Method::ReadResource, r#"{"uri":"a:b"}"#, NONE);
    client.sent();
    client.receive(&error(3, -32002, None));
    assert_eq!(client.done().1.expect_err("an error").kind, ErrorKind::NotFound);

    let mut client = Scripted::start(&[Revision::V2025_11_25]);
    client.sent();
    client.receive(&json!({"jsonrpc": "2.0", "id": 1, "result": {
        "protocolVersion": "2025-11-25", "capabilities": {"resources": {"subscribe": true}},
        "serverInfo": {"name": "x", "version": "1"},
    }}));
    client.drain();
    client.request(1, Method::Subscribe, r#"{"uri":"a:b"}"#, NONE);
    client.sent();
    client.receive(&error(2, -32002, None));
    assert_eq!(client.done().1.expect_err("an error").kind, ErrorKind::NotFound);

    let mut client = Scripted::modern();
    client.request(1, Method::ReadResource, r#"{"uri":"a:b"}"#, NONE);
    client.sent();
    client.receive(&error(2, -32602, Some(json!({"uri": "a:b"}))));
    assert_eq!(client.done().1.expect_err("an error").kind, ErrorKind::NotFound);
}

#[test]
fn modern_result_types() {
    let mut client = Scripted::modern();
    for (method, result_type, is_fine) in [
        (Method::CallTool, json!("complete"), true),
        (Method::CallTool, json!("input_required"), true),
        (Method::ListTools, json!("input_required"), false),
        (Method::CallTool, json!("task"), false),
        (Method::CallTool, json!(3), false),
    ] {
        client.request(1, method, r#"{"name":"a"}"#, NONE);
        let id = client.sent()["id"].clone();
        client.receive(&json!({"jsonrpc": "2.0", "id": id, "result": {"resultType": result_type}}));
        let outcome = client.done().1;
        assert_eq!(outcome.is_ok(), is_fine, "{method:?} {result_type}");
        if let Err(failure) = outcome {
            assert_eq!(failure.kind, ErrorKind::Protocol);
        }
    }
    client.request(1, Method::CallTool, r#"{"name":"a"}"#, NONE);
    let id = client.sent()["id"].clone();
    client.receive(&json!({"jsonrpc": "2.0", "id": id, "result": {"content": []}}));
    assert!(client.done().1.is_ok(), "an absent resultType means complete");
}

#[test]
fn silence_times_out_and_tells_the_server() {
    let mut client = Scripted::legacy();
    client.request(1, Method::CallTool, r#"{"name":"a"}"#, seconds(10, 25));
    client.sent();
    assert!(client.advance(Duration::from_secs(10)));
    let told = client.sent();
    assert_eq!(told["method"], "notifications/cancelled");
    assert_eq!(told["params"]["requestId"], 2);
    let failure = client.done().1.expect_err("too late");
    assert_eq!(failure.kind, ErrorKind::Timeout);
    assert!(failure.message.contains("tools/call") && failure.message.contains("10 s"));
    client.receive(&json!({"jsonrpc": "2.0", "id": 2, "result": {}}));
    client.silent();
    assert_eq!(client.session.deadline(), None);
}

#[test]
fn progress_extends_the_timeout_up_to_the_cap() {
    let mut client = Scripted::legacy();
    client.request(1, Method::CallTool, r#"{"name":"a"}"#, seconds(10, 25));
    client.sent();
    for step in 1..=2 {
        assert!(!client.advance(Duration::from_secs(9)));
        client.receive(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {
            "progressToken": 2, "progress": step, "total": 3, "message": "on it"}}));
        match client.session.poll() {
            Some(Output::Progress(RequestKey(1), report)) => {
                assert_eq!((report.progress, report.total), (f64::from(step), Some(3.0)));
                assert_eq!(report.message.as_deref(), Some("on it"));
            }
            other => panic!("expected progress, got {other:?}"),
        }
    }
    assert!(client.advance(Duration::from_secs(7)));
    client.sent();
    let failure = client.done().1.expect_err("capped");
    assert!(failure.message.contains("25 s in all"), "{failure}");
}

#[test]
fn progress_of_nothing_is_ignored() {
    let mut client = Scripted::legacy();
    client.request(1, Method::CallTool, r#"{"name":"a"}"#, NONE);
    client.sent();
    for params in [
        json!({"progressToken": 2, "progress": 1}),
        json!({"progressToken": 9, "progress": 1}),
        json!({"progressToken": "2", "progress": 1}),
        json!({"progressToken": 2}),
        json!(null),
    ] {
        client.receive(
            &json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}),
        );
        assert!(client.drain().is_empty(), "{params}");
    }
    client.silent();
}

#[test]
fn cancelling_notifies_the_server_and_ignores_the_response() {
    let mut client = Scripted::modern();
    client.request(1, Method::CallTool, r#"{"name":"a"}"#, seconds(10, 25));
    client.sent();
    client.feed(Input::Cancel(RequestKey(1), Some("enough")));
    assert_eq!(
        client.sent(),
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2, "reason": "enough"}})
    );
    client.feed(Input::Cancel(RequestKey(1), None));
    client.receive(&json!({"jsonrpc": "2.0", "id": 2, "result": {}}));
    client.silent();
    assert_eq!((client.session.deadline(), client.session.in_flight()), (None, 0));
}

#[test]
fn a_lost_connection_ends_every_request_and_refuses_new_ones() {
    let mut client = Scripted::legacy();
    client.request(1, Method::ListTools, "{}", NONE);
    client.request(2, Method::ListPrompts, "{}", seconds(1, 1));
    client.drain();
    client.feed(Input::Closed("the server exited"));
    for key in [1, 2] {
        let (done, outcome) = client.done();
        let failure = outcome.expect_err("lost");
        assert_eq!((done, failure.kind), (key, ErrorKind::Lost));
        assert!(failure.message.ends_with("the server exited"));
    }
    client.request(3, Method::ListTools, "{}", NONE);
    assert_eq!(client.done().1.expect_err("lost").kind, ErrorKind::Lost);
    assert_eq!(client.session.deadline(), None);
}

#[test]
fn closing_cancels_pending_requests() {
    for mut client in [Scripted::legacy(), Scripted::modern()] {
        for key in [1, 2] {
            client.request(key, Method::ListTools, "{}", RequestOptions::default());
        }
        let ids = [client.sent(), client.sent()].map(|request| request["id"].clone());
        client.feed(Input::Leave("closed"));
        for id in ids {
            let params = json!({"requestId": id, "reason": "closed"});
            let taken_back = client.sent();
            assert_eq!(taken_back["method"], "notifications/cancelled");
            assert_eq!(taken_back["params"], params);
        }
        for key in [1, 2] {
            let (ended, outcome) = client.done();
            assert_eq!((ended, outcome.expect_err("closed").kind), (key, ErrorKind::Lost));
        }
        client.feed(Input::Closed("gone"));
        client.silent();
    }
    let mut client = Scripted::start(&[Revision::V2025_11_25]);
    client.sent();
    client.feed(Input::Leave("closed"));
    assert_eq!(client.failed().kind, ErrorKind::Connect, "initialize is never cancelled");
    client.silent();
}

#[test]
fn a_message_over_the_limit_ends_the_only_request() {
    let mut client = Scripted::legacy();
    client.request(1, Method::ListTools, "{}", NONE);
    client.sent();
    client.feed(Input::TooLong(TooLong { limit: 100, beginning: b"", end: b"" }));
    let failure = client.done().1.expect_err("too long");
    assert!(failure.message.contains("100 bytes") && failure.hint.is_some());
}

#[test]
fn a_response_over_the_limit_ends_the_request_that_its_beginning_names() {
    let mut client = Scripted::legacy();
    client.request(1, Method::ListTools, "{}", NONE);
    let first = client.sent()["id"].clone();
    client.request(2, Method::ListTools, "{}", NONE);
    let second = client.sent()["id"].clone();
    for other in [
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"x"#.to_owned(),
        format!(r#"{{"id":{second},"method":"sampling/createMessage","params":{{"x"#),
        r#"{"id":999,"result":{"tools":[{"x"#.to_owned(),
        r#"{"result":{"tools":[{"x"#.to_owned(),
    ] {
        client.feed(Input::TooLong(TooLong { limit: 100, beginning: other.as_bytes(), end: b"" }));
        client.silent();
    }
    let beginning = format!(r#"{{"jsonrpc":"2.0","id":{second},"result":{{"tools":[{{"x"#);
    client.feed(Input::TooLong(TooLong { limit: 100, beginning: beginning.as_bytes(), end: b"" }));
    let (key, outcome) = client.done();
    assert_eq!(key, 2);
    assert!(outcome.expect_err("too long").message.contains("longer than 100 bytes"));
    // A notification does not end the only request.
    let notification = br#"{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"x"#;
    client.feed(Input::TooLong(TooLong { limit: 100, beginning: notification, end: b"" }));
    client.silent();
    client.receive(&json!({"jsonrpc": "2.0", "id": first, "result": {"tools": []}}));
    assert!(client.done().1.is_ok());
}

#[test]
fn a_response_over_the_limit_ends_the_request_that_its_end_names() {
    let mut client = Scripted::legacy();
    client.request(1, Method::ListTools, "{}", NONE);
    client.sent();
    client.request(2, Method::ListTools, "{}", NONE);
    let second = client.sent()["id"].clone();
    // As the official SDKs write responses.
    let end = format!(r#"xx"}}]}},"jsonrpc":"2.0","id":{second}}}"#);
    let beginning = br#"{"result":{"tools":[{"name":"x"#;
    client.feed(Input::TooLong(TooLong { limit: 100, beginning, end: end.as_bytes() }));
    assert_eq!(client.done().0, 2);
    let question = br#"{"method":"sampling/createMessage","params":{"x"#;
    client.feed(Input::TooLong(TooLong { limit: 100, beginning: question, end: end.as_bytes() }));
    client.silent();
}

#[test]
fn notifications_are_told_apart() {
    let mut client = Scripted::legacy();
    for (method, params) in [
        ("notifications/message", json!({"level": "error", "logger": "l", "data": {"a": 1}})),
        ("notifications/message", json!({"level": "loud", "data": 1})),
        ("notifications/tools/list_changed", json!({})),
        ("notifications/resources/updated", json!({"uri": "a:b"})),
        ("notifications/acme", json!({"x": 1, "_meta": {"y": 2}})),
    ] {
        client.receive(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }
    let outputs = client.drain();
    let [
        Output::Log(log),
        Output::ListChanged(ListKind::Tools),
        Output::ResourceUpdated(uri),
        Output::Notified { method, params },
    ] = &outputs[..]
    else {
        panic!("got {outputs:?}")
    };
    assert_eq!((log.level, log.data.get()), (LoggingLevel::Error, r#"{"a":1}"#));
    assert_eq!(uri, "a:b");
    assert_eq!(*method, MethodName::parse("notifications/acme"));
    assert_eq!(params.get(), r#"{"x":1,"_meta":{"y":2}}"#);
}

#[test]
fn only_notifications_that_the_revision_has_are_sent() {
    let roots = || MethodName::Standard(Method::RootsListChanged);
    let mut client = Scripted::modern();
    client.feed(Input::Notify { method: roots(), params: "{}" });
    client.silent();
    client.feed(Input::Notify {
        method: MethodName::parse("notifications/acme"),
        params: r#"{"a":1}"#,
    });
    // Without a session it says itself who speaks.
    let params = client.sent()["params"].clone();
    assert_eq!(params["a"], 1);
    assert_eq!(params["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    let mut client = Scripted::legacy();
    client.feed(Input::Notify {
        method: MethodName::parse("notifications/acme"),
        params: r#"{"a":1}"#,
    });
    assert_eq!(client.sent()["params"], json!({"a": 1}));
    client.feed(Input::Notify { method: roots(), params: "{}" });
    assert_eq!(
        client.sent(),
        json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})
    );
}

#[test]
fn params_that_are_no_object_are_a_misuse() {
    let mut client = Scripted::legacy();
    client.request(1, Method::ListTools, "[]", NONE);
    assert_eq!(client.done().1.expect_err("refused").kind, ErrorKind::Misuse);
}

#[test]
fn a_batch_over_the_limit_ends_all_requests_because_it_may_answer_each() {
    for beginning in [r#"[{"jsonrpc":"2.0","id":2,"result":{"x"#, " [ ", "[\n{", ""] {
        let mut client = Scripted::legacy();
        for key in [1, 2, 3] {
            client.request(key, Method::ListTools, "{}", NONE);
            client.sent();
        }
        client.feed(Input::TooLong(TooLong {
            limit: 100,
            beginning: beginning.as_bytes(),
            end: b"",
        }));
        for key in [1, 2, 3] {
            let (ended, outcome) = client.done();
            let failure = outcome.expect_err("too long");
            assert_eq!((ended, failure.kind), (key, ErrorKind::Protocol));
            assert!(failure.message.contains("may have contained the answer"), "{failure}");
            assert!(failure.message.contains("100 bytes") && failure.hint.is_some(), "{failure}");
        }
        client.silent();
    }
}

#[test]
fn a_log_line_over_the_limit_ends_no_request() {
    let mut client = Scripted::legacy();
    for key in [1, 2] {
        client.request(key, Method::ListTools, "{}", NONE);
        client.sent();
    }
    client.feed(Input::TooLong(TooLong { limit: 100, beginning: b"[INFO] starting", end: b"" }));
    client.silent();
}

#[test]
fn an_answer_over_the_limit_ends_the_negotiation() {
    for beginning in [r#"{"jsonrpc":"2.0","id":1,"result":{"x"#, r#"[{"jsonrpc":"2.0","#] {
        let mut client = Scripted::start(&[Revision::V2025_11_25]);
        client.sent();
        client.feed(Input::TooLong(TooLong {
            limit: 100,
            beginning: beginning.as_bytes(),
            end: b"",
        }));
        let failure = client.failed();
        assert_eq!(failure.kind, ErrorKind::Protocol);
        assert!(failure.message.contains("longer than 100 bytes"), "{failure}");
        client.silent();
    }
}
