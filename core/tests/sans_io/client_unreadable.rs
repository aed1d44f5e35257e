//! Responses that a client can't read: each fails the request that it answers, or whose exchange it ends, and no other.

use gudgeon::{
    error::ErrorKind,
    protocol::{MAX_BATCH, Method, Revision},
    session::client::{Input, Output, RequestOptions},
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::wire::Scripted;

/// Sends two requests with the keys 1 and 2; returns their ids.
fn requests(client: &mut Scripted) -> [Value; 2] {
    [1, 2].map(|key| {
        client.request(key, Method::ListTools, "{}", RequestOptions::default());
        client.sent()["id"].clone()
    })
}

fn receive(client: &mut Scripted, frame: impl AsRef<[u8]>) {
    client.feed(Input::Frame(frame.as_ref()));
}

/// Takes the outcome of a request, which its unreadable response ended.
fn assert_failed(client: &mut Scripted, key: u64) {
    let (ended, outcome) = client.done();
    let failure = outcome.expect_err("can't be read");
    assert_eq!((ended, failure.kind), (key, ErrorKind::Protocol), "{failure}");
    assert!(failure.message.contains("can't be read"), "{failure}");
}

#[test]
fn a_response_that_is_not_json_ends_its_request() {
    for rest in [
        &br#","result":{"tools":["#[..],
        b",\"result\":{\"tools\":\"\xff\"}}",
        br#","result":{"tools":[]}} x"#,
        br#","result":{"tools":[]},}"#,
    ] {
        let mut client = Scripted::legacy();
        let [_, second] = requests(&mut client);
        receive(
            &mut client,
            [format!(r#"{{"jsonrpc":"2.0","id":{second}"#).as_bytes(), rest].concat(),
        );
        assert_failed(&mut client, 2);
        client.silent();
        assert_eq!(client.session.in_flight(), 1);
    }
}

#[test]
fn other_frames_that_are_not_json_end_no_request() {
    let mut client = Scripted::legacy();
    client.request(1, Method::ListTools, "{}", RequestOptions::default());
    let id = client.sent()["id"].clone();
    for frame in [
        "listening on port 8000".to_owned(),
        "{".into(),
        format!(r#"{{"jsonrpc":"2.0","id":{id}"#),
        format!(r#"{{"jsonrpc":"2.0","id":"x{id}","result":{{"#),
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"roots/list","result":{{"#),
        format!(r#"{{"params":{{"id":{id},"result":{{}}"#),
        format!(r#"[[{{"id":{id},"result":{{}}}}],"#),
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"#.into(),
    ] {
        receive(&mut client, &frame);
        client.silent();
    }
    client.receive(&json!({"jsonrpc": "2.0", "id": id, "result": {"tools": []}}));
    assert!(client.done().1.is_ok());
}

#[test]
fn a_batch_that_is_not_json_ends_the_requests_that_it_answers() {
    let mut client = Scripted::legacy();
    let [first, second] = requests(&mut client);
    let batch = format!(
        r#" [7,"x",null,-1.5,[{{}}],{{"method":"x"}},{{"id":{first},"result":{{"tools":[]}}}},{{"id":{second},"error":{{"#
    );
    receive(&mut client, batch);
    assert_failed(&mut client, 1);
    assert_failed(&mut client, 2);
    client.silent();
}

#[test]
fn a_response_behind_too_many_others_of_its_batch_ends_its_request() {
    let mut client = Scripted::legacy();
    let [first, second] = requests(&mut client);
    let message = |id: &Value| json!({"jsonrpc": "2.0", "id": id, "result": {"tools": []}});
    let mut batch = vec![json!({"jsonrpc": "2.0", "method": "notifications/x"}); MAX_BATCH];
    batch[MAX_BATCH - 1] = message(&first);
    batch.extend([message(&first), json!(7), message(&second)]);
    client.receive(&Value::Array(batch));
    let mut outcomes: Vec<_> = client
        .drain()
        .into_iter()
        .filter_map(|output| match output {
            Output::Done(key, outcome) => Some((key.0, outcome)),
            _ => None,
        })
        .collect();
    let (key, failure) = outcomes.pop().expect("an outcome");
    assert_eq!((key, failure.expect_err("dropped").kind), (2, ErrorKind::Protocol));
    let (key, result) = outcomes.pop().expect("an outcome");
    assert!(key == 1 && result.is_ok() && outcomes.is_empty(), "{result:?}");
}

#[test]
fn a_response_with_a_method_that_is_not_a_string_ends_its_request() {
    for method in ["null", "3", "{}"] {
        for outcome in [r#""result":{"tools":[]}"#, r#""error":{"code":1,"message":"x"}"#] {
            let mut client = Scripted::legacy();
            let [_, second] = requests(&mut client);
            receive(
                &mut client,
                format!(r#"{{"jsonrpc":"2.0","id":{second},"method":{method},{outcome}}}"#),
            );
            let (ended, outcome) = client.done();
            let failure = outcome.expect_err("malformed");
            assert_eq!((ended, failure.kind), (2, ErrorKind::Protocol));
            assert!(failure.message.contains("can't be read"), "{failure}");
            client.silent();
        }
    }
}

#[test]
fn an_unreadable_answer_to_the_probe_means_a_legacy_server() {
    let mut client = Scripted::start(&Revision::ALL);
    let id = client.sent()["id"].clone();
    receive(&mut client, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"#));
    let initialize = client.sent();
    assert_eq!(initialize["method"], "initialize");
    let id = initialize["id"].clone();
    receive(&mut client, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"#));
    let failure = client.failed();
    assert_eq!(failure.kind, ErrorKind::Protocol);
    assert!(failure.message.contains("can't be read"), "{failure}");
}

#[test]
fn an_unreadable_member_of_a_batch_ends_its_request_only() {
    let mut client = Scripted::legacy();
    let [first, second] = requests(&mut client);
    let batch = format!(
        r#"[{{"jsonrpc":"2.0","id":{first},"result":{{"tools":[]}}}},{{"jsonrpc":"2.0","id":{second},"result":{{}},"params":1e999}}]"#
    );
    receive(&mut client, batch);
    let (key, result) = client.done();
    assert!(key == 1 && result.is_ok(), "{result:?}");
    assert_failed(&mut client, 2);
    client.silent();
}

#[test]
fn a_response_that_the_end_of_the_connection_cuts_is_lost_with_it() {
    let mut client = Scripted::legacy();
    let [first, second] = requests(&mut client);
    let whole = json!([{"jsonrpc": "2.0", "id": first, "result": {"tools": []}}]).to_string();
    client.feed(Input::LastLine(whole.as_bytes()));
    assert!(client.done().1.is_ok());
    let cut = format!(r#"{{"jsonrpc":"2.0","id":{second},"result":{{"to"#);
    client.feed(Input::LastLine(cut.as_bytes()));
    client.silent();
    client.feed(Input::Closed("gone"));
    assert_eq!(client.done().1.expect_err("lost").kind, ErrorKind::Lost);
}

#[test]
fn a_response_that_ends_an_exchange_ends_its_request() {
    for frame in [
        "",
        "no JSON",
        "[]",
        r#"{"jsonrpc":"2.0","id":3,"method":null,"result":{}}"#,
        r#"{"jsonrpc":"2.0","method":"x"}"#,
    ] {
        let mut client = Scripted::legacy();
        let [_, second] = requests(&mut client);
        let id = second.as_u64().expect("a number");
        client.feed(Input::Response { id, frame: frame.as_bytes() });
        let mut outputs = client.drain();
        let Some(Output::Done(key, Err(failure))) = outputs.pop() else { panic!("{outputs:?}") };
        assert_eq!((key.0, failure.kind), (2, ErrorKind::Protocol), "{failure}");
        assert_eq!(client.session.in_flight(), 1);
    }
}

#[test]
fn a_response_with_a_mistake_whose_meaning_is_certain_is_read() {
    let error = r#""error":{"code":-32000,"message":"full"}"#;
    for (rest, is_result) in [
        (r#""id":ID,"result":{"tools":[]},"error":null"#, true),
        (r#""id":"ID","result":{"tools":[]}"#, true),
        (&*format!(r#""id":ID,"result":null,{error}"#), false),
        (&*format!(r#""id":"ID",{error}"#), false),
    ] {
        for mark in ["", "\u{feff}"] {
            let mut client = Scripted::legacy();
            let [_, second] = requests(&mut client);
            let rest = rest.replace("ID", &second.to_string());
            receive(&mut client, format!(r#"{mark}{{"jsonrpc":"2.0",{rest}}}"#));
            let (key, outcome) = client.done();
            assert_eq!((key, outcome.is_ok()), (2, is_result), "{rest}");
        }
    }
}

#[test]
fn an_error_without_an_id_belongs_to_the_request_of_its_exchange() {
    let error = br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"too long"}}"#;
    let mut client = Scripted::legacy();
    let [_, second] = requests(&mut client);
    receive(&mut client, error);
    client.silent();
    let id = second.as_u64().expect("a number");
    client.feed(Input::Response { id, frame: error });
    let (key, outcome) = client.done();
    assert_eq!((key, outcome.expect_err("refused").message.as_str()), (2, "too long"));
    receive(&mut client, error);
    client.silent();
    assert_eq!(client.session.in_flight(), 1);
}

#[test]
fn a_response_that_is_read_ends_its_request_once() {
    let mut client = Scripted::legacy();
    let [first, second] = requests(&mut client);
    let id = second.as_u64().expect("a number");
    let message = |id: &Value| json!({"jsonrpc": "2.0", "id": id, "result": {"tools": []}});
    let frame = json!([message(&second), message(&first)]).to_string();
    client.feed(Input::Response { id, frame: frame.as_bytes() });
    for key in [2, 1] {
        let (ended, outcome) = client.done();
        assert!(ended == key && outcome.is_ok(), "{outcome:?}");
    }
    client.silent();
}

#[test]
fn an_exchange_without_an_answer_to_the_probe_means_a_legacy_server() {
    let mut client = Scripted::start(&Revision::ALL);
    client.sent();
    client.feed(Input::Response { id: 1, frame: b"{}" });
    assert_eq!(client.sent()["method"], "initialize");
    client.feed(Input::Response { id: 2, frame: b"{}" });
    assert_eq!(client.failed().kind, ErrorKind::Protocol);
    client.silent();
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn a_batch_that_is_cut_anywhere_ends_the_requests_that_it_answers_until_then(
        ids in proptest::collection::vec(2_u64..9, 1..6), at in 0_usize..300,
    ) {
        let member = |id| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"id":3,"tools":"…"}}}}"#);
        let batch = format!("[{}", ids.iter().map(member).collect::<Vec<_>>().join(","));
        let at = at.min(batch.len());
        let mut client = Scripted::legacy();
        // The ids begin at 2.
        for id in 2..9 {
            client.request(id, Method::ListTools, "{}", RequestOptions::default());
        }
        client.drain();
        receive(&mut client, &batch.as_bytes()[..at]);
        let mut ended = Vec::new();
        while client.session.in_flight() + ended.len() < 7 {
            let (key, outcome) = client.done();
            prop_assert_eq!(outcome.expect_err("can't be read").kind, ErrorKind::Protocol);
            ended.push(key);
        }
        client.silent();
        let answered = |complete: usize| {
            let mut found = Vec::new();
            for id in &ids[..complete] {
                if !found.contains(id) {
                    found.push(*id);
                }
            }
            found
        };
        let complete = at.saturating_sub(1) / (member(&2).len() + 1);
        let with_cut = (complete + 1).min(ids.len());
        prop_assert!(
            ended == answered(complete) || ended == answered(with_cut),
            "{:?} ended by {}", ended, String::from_utf8_lossy(&batch.as_bytes()[..at])
        );
    }
}
