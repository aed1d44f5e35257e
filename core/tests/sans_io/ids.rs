//! A response has exactly the id that the request had (Overview, "Responses").

use std::{fmt::Write as _, sync::Arc, time::Instant};

use gudgeon::{
    engine::Effect,
    protocol::{Id, Implementation, json::push_string},
    router::{Components, ServerFacts},
    service::{Input, Output, Service},
};
use proptest::prelude::*;

fn service() -> Service {
    let facts = ServerFacts::from(Implementation::new("test", "1"));
    Service::new(Arc::new(Components::new(facts)), &gudgeon::test_pair::start(Instant::now()))
}

fn ping(id: &str) -> String {
    answer(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#))
}

fn answer(frame: &str) -> String {
    let mut service = service();
    service.handle(Instant::now(), Input::Frame(frame.as_bytes()));
    let Some(Output::Send(reply)) = service.poll() else { panic!("no reply to {frame}") };
    // The log is told of a refusal.
    let is_event = |output| matches!(output, Output::Effect(Effect::Log(_)));
    assert!(service.poll().is_none_or(is_event));
    String::from_utf8(reply).unwrap()
}

/// A number that is too large is JSON all the same, so the request is invalid rather than unreadable (JSON-RPC 2.0, section 5.1).
#[test]
fn a_request_with_a_number_that_no_member_can_hold_is_refused_under_its_id() {
    for (member, place) in [("params", "1e999"), ("method", "-1e999"), ("jsonrpc", "1e999")] {
        let mut message = serde_json::Map::new();
        for (name, value) in [("jsonrpc", "2.0"), ("id", "7"), ("method", "ping")] {
            message.insert(name.into(), value.into());
        }
        message.insert(member.into(), "HERE".into());
        let text = serde_json::Value::from(message).to_string().replace(r#""HERE""#, place);
        let reply = answer(&text);
        assert!(reply.contains(r#""id":"7""#) && reply.contains("-32600"), "{text}: {reply}");
    }
}

/// A JSON string in which every character is escaped.
fn escape(text: &str) -> String {
    let mut json = String::from("\"");
    for unit in text.encode_utf16() {
        write!(json, "\\u{unit:04x}").unwrap();
    }
    json + "\""
}

proptest! {
    #[test]
    fn integers_of_any_size_come_back(id in "-?(0|[1-9][0-9]{0,60})") {
        prop_assert_eq!(ping(&id), format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
    }

    #[test]
    fn any_string_comes_back(text in any::<String>(), escaped in any::<bool>()) {
        let id = match escaped {
            true => escape(&text),
            false => serde_json::to_string(&text).unwrap(),
        };
        prop_assert_eq!(ping(&id), format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
    }

    #[test]
    fn fractions_and_other_values_are_rejected_as_ids(id in prop_oneof![
        "-?[0-9]{1,5}\\.[0-9]{1,5}", "[1-9]e[0-9]{1,3}", Just("null".to_owned()), Just("true".to_owned()),
        Just("[1]".to_owned()), Just("{}".to_owned()),
    ]) {
        prop_assert!(Id::parse(&id).is_none());
    }

    #[test]
    fn strings_are_written_as_serde_writes_them(text in any::<String>()) {
        let mut written = String::new();
        push_string(&mut written, &text);
        prop_assert_eq!(written, serde_json::to_string(&text).unwrap());
    }
}
