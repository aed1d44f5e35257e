//! Questions of a server to a client: which are passed on, their answers, and the time that the user takes.

use std::time::Duration;

use gudgeon::{
    protocol::{ErrorObject, Method},
    session::client::{Input, Output},
};
use serde_json::json;

use crate::support::wire::{Scripted, raw, seconds};

#[test]
fn a_server_may_ask_only_what_the_client_declared() {
    let mut client = Scripted::legacy();
    for method in
        ["sampling/createMessage", "elicitation/create", "tasks/get", "acme/x", "tools/list"]
    {
        client.receive(&json!({"jsonrpc": "2.0", "id": "q", "method": method, "params": {}}));
        assert_eq!(client.sent()["error"]["code"], -32601, "{method}");
    }
    client.receive(&json!({"jsonrpc": "2.0", "id": "q", "method": "roots/list"}));
    let Some(Output::Ask(ask)) = client.session.poll() else { panic!("expected a question") };
    assert_eq!((ask.method, ask.params.get()), (Method::ListRoots, "{}"));
    client.receive(&json!({"jsonrpc": "2.0", "id": "q", "method": "roots/list"}));
    assert_eq!(client.sent()["error"]["code"], -32600, "the id is still in flight");
    client.feed(Input::Answer(ask.id, Ok(raw(&json!({"roots": []})))));
    assert_eq!(client.sent(), json!({"jsonrpc": "2.0", "id": "q", "result": {"roots": []}}));
    client.feed(Input::Answer(ask.id, Err(ErrorObject::new(1, "twice"))));
    client.silent();

    let mut client = Scripted::modern();
    for method in ["roots/list", "ping", "acme/x"] {
        client.receive(&json!({"jsonrpc": "2.0", "id": 1, "method": method}));
        client.silent();
    }
}

#[test]
fn a_cancelled_question_is_not_answered() {
    let mut client = Scripted::legacy();
    client.receive(&json!({"jsonrpc": "2.0", "id": 5, "method": "roots/list"}));
    let Some(Output::Ask(ask)) = client.session.poll() else { panic!("expected a question") };
    client.receive(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}}),
    );
    assert!(matches!(client.session.poll(), Some(Output::AskCancelled(id)) if id == ask.id));
    client.feed(Input::Answer(ask.id, Ok(raw(&json!({})))));
    client.silent();
}

#[test]
fn timeouts_are_suspended_while_the_user_answers() {
    let mut client = Scripted::legacy();
    client.request(1, Method::CallTool, r#"{"name":"a"}"#, seconds(5, 60));
    client.sent();
    let ask = |client: &mut Scripted, id: &str| {
        client.receive(&json!({"jsonrpc": "2.0", "id": id, "method": "roots/list"}));
        let Some(Output::Ask(ask)) = client.session.poll() else { panic!("expected a question") };
        ask.id
    };
    let (one, _other) = (ask(&mut client, "q1"), ask(&mut client, "q2"));
    assert!(!client.advance(Duration::from_secs(20)), "the user reads");
    client.feed(Input::Answer(one, Ok(raw(&json!({"roots": []})))));
    client.sent();
    assert!(!client.advance(Duration::from_secs(20)), "and reads");
    let taken_back = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "q2"}});
    client.receive(&taken_back);
    client.drain();
    assert!(!client.advance(Duration::from_secs(4)));
    assert!(client.advance(Duration::from_secs(1)), "from here on it is silent");
    client.sent();
    let failure = client.done().1.expect_err("it took too long");
    assert!(failure.message.contains("no answer and no progress for 5 s"), "{failure}");
}

#[test]
fn the_total_limit_includes_the_users_time() {
    let mut client = Scripted::legacy();
    client.request(1, Method::CallTool, r#"{"name":"a"}"#, seconds(5, 60));
    client.sent();
    client.receive(&json!({"jsonrpc": "2.0", "id": "q", "method": "roots/list"}));
    client.drain();
    assert!(!client.advance(Duration::from_secs(59)));
    assert!(client.advance(Duration::from_secs(1)));
    client.sent();
    let failure = client.done().1.expect_err("it took too long");
    assert!(failure.message.contains("60 s in all"), "{failure}");
}

#[test]
fn questions_are_bounded() {
    let mut client = Scripted::legacy();
    for id in 0..1_000 {
        client.receive(&json!({"jsonrpc": "2.0", "id": id, "method": "roots/list"}));
    }
    let asked =
        client.drain().into_iter().filter(|output| matches!(output, Output::Ask(_))).count();
    assert_eq!(asked, 64);
}
