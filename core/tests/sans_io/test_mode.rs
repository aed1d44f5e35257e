//! Test mode: every handler is replayed, states are shared, and requests carry the keys of questions.

use std::sync::Arc;

use gudgeon::{
    engine::{HandlerEvent, Start, TestMode},
    protocol::{Implementation, Tool, json::to_raw},
    router::{Components, RegisteredTool, Reply, ServerFacts},
    service::{Input, Service},
    test_pair::start,
};
use serde_json::{Value, json};

use crate::support::{
    Handler,
    asker::{Server, ask, legacy, modern, questions, yes},
    kept,
};

/// A server without keys; `seed` is what no other process has.
fn test_server(seed: u8, test_mode: Option<TestMode>) -> Server {
    let mut components = Components::new(ServerFacts::from(Implementation::new("asker", "1")));
    let tool = Tool::new("tool", to_raw(&json!({"type": "object"})));
    components.tools.add(RegisteredTool::new(tool, kept(Handler::Plain)).unwrap(), true).unwrap();
    let mut server = Server::new();
    let start = Start { seed: [seed; 32], test_mode, ..start(server.now) };
    server.service = Service::new(Arc::new(components), &start);
    server
}

fn able() -> Value {
    json!({"elicitation": {}})
}

fn retry(id: u64, state: &str, key: &str) -> Value {
    modern(id, &able(), &json!({"requestState": state, "inputResponses": {key: yes()}}))
}

/// Asks the one question and gives the state.
fn asked(server: &mut Server, key: &str) -> String {
    let run = server.running();
    server.handle(ask(&run, 0, key));
    server.handle(Input::Handler(run.id, HandlerEvent::Waits { blocks: false }));
    let said = server.next_sent();
    said["result"]["requestState"].as_str().unwrap_or_else(|| panic!("{said}")).to_owned()
}

#[test]
fn in_test_mode_handlers_are_replayed_instead_of_suspended() {
    let mut server = test_server(1, Some(TestMode { replays: true, ..TestMode::default() }));
    server.receive(&modern(1, &able(), &json!({})));
    let first = server.runs[0].id;
    let state = asked(&mut server, "a");
    assert_eq!(server.cancelled, [first]);
    server.receive(&retry(2, &state, "a"));
    assert!(server.resumed.is_empty());
    let again = server.running();
    server.handle(ask(&again, 0, "a"));
    assert_eq!(server.answered, [Ok(yes())], "it knows the answer");
    server.done(&again, Ok(Reply::Text("deleted".into())));
    assert_eq!(server.next_sent()["result"]["content"][0]["text"], "deleted");
}

#[test]
fn in_test_mode_a_restarted_server_opens_earlier_states() {
    let key = Some(TestMode { replays: false, state_key: Some([9; 32]) });
    for (first, next, opens) in [(key, key, true), (key, None, false), (None, None, false)] {
        let mut before = test_server(1, first);
        before.receive(&modern(1, &able(), &json!({})));
        let state = asked(&mut before, "a");
        assert!(before.cancelled.is_empty(), "it is suspended");
        let mut after = test_server(2, next);
        after.receive(&retry(2, &state, "a"));
        assert_eq!(after.runs.len(), usize::from(opens));
        assert_eq!(after.sent.iter().any(|message| message["error"]["code"] == -32602), !opens);
    }
}

#[test]
fn requests_carry_question_keys_in_test_mode_only() {
    let in_a_test = Some(TestMode::default());
    for (test_mode, expected) in [(in_a_test, json!({"gudgeon/key": "name"})), (None, Value::Null)]
    {
        let mut server = test_server(1, test_mode);
        server.open("2025-11-25", &able());
        server.receive(&legacy(1));
        let run = server.running();
        server.handle(ask(&run, 0, "name"));
        assert_eq!(server.next_sent()["params"]["_meta"], expected);
        server.receive(&legacy(2));
        let returns = server.running();
        server.done(&returns, Ok(questions(&["name"])));
        assert_eq!(server.next_sent()["params"]["_meta"], expected);
    }
}
