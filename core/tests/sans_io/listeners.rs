//! Handlers of notifications, and others whose results can't contain questions: what they can ask.

use gudgeon::{
    engine::{HandlerEvent, Run},
    protocol::{LoggingLevel, Method, Prompt, Question, json::to_raw},
    router::{Definition, Failure, RegisteredPrompt, Reply, RoundLimits},
    service::Input,
    session::{asking::AskId, server::Log},
};
use serde_json::{Value, json};

use crate::support::{
    Handler,
    asker::{self, Server},
    kept,
};

fn server() -> Server {
    Server::with_components(RoundLimits::default(), |components| {
        components
            .add(
                Definition::Notification("notifications/roots/list_changed".into()),
                kept(Handler::Plain),
            )
            .unwrap();
        components
            .add(Definition::Notification("acme/changed".into()), kept(Handler::Plain))
            .unwrap();
        components.add(Definition::Method("acme/method".into()), kept(Handler::Plain)).unwrap();
        let prompt: Prompt =
            serde_json::from_value(json!({"name": "p", "arguments": [{"name": "a"}]})).unwrap();
        components
            .prompts
            .add(RegisteredPrompt::new(prompt, kept(Handler::Plain)).unwrap(), true)
            .unwrap();
        components
            .add(
                Definition::Completion { target: "p".into(), argument: "a".into() },
                kept(Handler::Plain),
            )
            .unwrap();
    })
}

fn roots(run: &Run, number: u64) -> Input<'static> {
    let question = Question {
        key: format!("roots-{number}"),
        method: Method::ListRoots,
        params: to_raw(&json!({})),
    };
    Input::Handler(run.id, HandlerEvent::Ask { ask: AskId(number), question })
}

fn changed() -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})
}

fn meta(capabilities: &Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    })
}

#[test]
fn a_handler_of_notifications_asks_in_a_session() {
    let mut server = server();
    server.open("2025-11-25", &json!({"roots": {"listChanged": true}}));
    server.receive(&changed());
    server.receive(&changed());
    let (second, first) = (server.running(), server.running());
    assert!(first.is_notification);
    assert_ne!(first.id, second.id, "each has a number of its own");
    server.handle(roots(&first, 7));
    server.handle(roots(&second, 7));
    let asked = server.next_sent();
    assert_eq!(asked["method"], "roots/list");
    server.next_sent();
    let answer = json!({"roots": [{"uri": "file:///a"}]});
    server.receive(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer}));
    assert_eq!(server.answered, [Ok(answer)]);
    // The handler can also send log messages, and its open questions are withdrawn when it ends.
    let data = to_raw(&json!("heard"));
    let (call, level) = (second.id, LoggingLevel::Info);
    server.handle(Input::Handler(call, HandlerEvent::Log(Log { level, logger: None, data })));
    assert_eq!(server.next_sent()["params"]["data"], "heard");
    server.done(&first, Ok(Reply::Nothing));
    assert!(server.sent.is_empty());
    server.done(&second, Ok(Reply::Nothing));
    let withdrawn = server.next_sent();
    assert_eq!(withdrawn["method"], "notifications/cancelled");
    server.handle(roots(&second, 8));
    assert_eq!(
        server.answered.pop(),
        Some(Err("the call is over: a handler can ask its client only while its call runs".into()))
    );
}

#[test]
fn a_handler_of_notifications_waits_no_longer_than_a_call() {
    let mut server = server();
    server.open("2025-11-25", &json!({"roots": {}}));
    server.receive(&changed());
    let run = server.running();
    server.handle(roots(&run, 1));
    let first = server.next_sent();
    server.handle(roots(&run, 2));
    server.next_sent();
    let answer = json!({"roots": []});
    server.receive(&json!({"jsonrpc": "2.0", "id": first["id"], "result": answer}));
    assert_eq!(server.answered.pop(), Some(Ok(answer)));
    let limit = RoundLimits::default().suspended_ttl;
    assert_eq!(server.deadline(), Some(server.now + limit));
    server.now += limit;
    server.handle(Input::Tick);
    let problem = "the client gave no answer for 300 s (option suspended_ttl)";
    assert_eq!(server.answered, [Err(problem.into())]);
    assert!(server.cancelled.is_empty(), "it may go on without");
    server.done(&run, Ok(Reply::Nothing));
    assert_eq!(server.next_sent()["method"], "notifications/cancelled");
    assert_eq!(server.deadline(), None);
}

#[test]
fn a_handler_of_notifications_gets_an_error_at_once_if_it_can_not_ask() {
    let mut server = server();
    server.open("2025-11-25", &json!({}));
    server.receive(&changed());
    let run = server.running();
    server.handle(roots(&run, 1));
    let error = server.answered.pop().unwrap().unwrap_err();
    assert!(error.contains("did not declare roots"), "{error}");
    let mut server = self::server();
    server.open("2025-11-25", &json!({"roots": {}}));
    server.receive(&changed());
    let run = server.running();
    server.handle(roots(&run, 1));
    server.handle(Input::Closed);
    let gone = Some(Err("the client disconnected: this question gets no answer".into()));
    assert_eq!(server.answered.pop(), gone);
    server.handle(roots(&run, 2));
    assert_eq!(server.answered.pop(), gone);
    let mut server = self::server();
    server.receive(&json!({"jsonrpc": "2.0", "method": "acme/changed", "params": {"_meta": meta(&json!({"roots": {}}))}}));
    let run = server.running();
    server.handle(roots(&run, 1));
    let error = server.answered.pop().unwrap().unwrap_err();
    assert!(error.starts_with("a handler of notifications can't ask in 2026-07-28"), "{error}");
}

#[test]
fn a_flood_of_notifications_pauses_reading() {
    let mut server = server();
    server.open("2025-11-25", &json!({}));
    for _ in 0..1_001 {
        server.receive(&changed());
    }
    assert!(server.is_full());
    let run = server.running();
    server.done(&run, Ok(Reply::Nothing));
    assert!(!server.is_full());
    assert_eq!(server.in_flight(), 0);
}

#[test]
fn completions_and_methods_return_no_questions() {
    let asked = json!([{"key": "k", "method": "roots/list"}]).to_string();
    let complete =
        json!({"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}});
    for (method, params) in [("completion/complete", complete), ("acme/method", json!({}))] {
        for is_modern in [false, true] {
            let mut server = server();
            let mut params = params.clone();
            if is_modern {
                params["_meta"] = meta(&json!({"roots": {}}));
            } else {
                server.open("2025-11-25", &json!({"roots": {}}));
            }
            server.receive(&json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}));
            let run = server.running();
            server.handle(roots(&run, 1));
            if is_modern {
                let error = server.answered.pop().unwrap().unwrap_err();
                assert_eq!(
                    error,
                    "only the results of tools, resources and prompts carry questions: ask there"
                );
            } else {
                // While it runs, a session can carry a request of its own.
                assert_eq!(server.next_sent()["method"], "roots/list");
            }
            server.done(&run, Ok(Reply::Questions(asked.clone())));
            server.sent.retain(|message| message["id"] == 1);
            let reply = server.next_sent();
            assert_eq!(
                reply["error"]["message"],
                "only the results of tools, resources and prompts carry questions: ask there",
                "{reply}"
            );
            assert_eq!(server.in_flight(), 0);
        }
    }
}

#[test]
fn a_call_may_ask_a_hundred_questions() {
    let mut server = server();
    server.open("2025-11-25", &json!({"elicitation": {}}));
    server.receive(&asker::legacy(1));
    let run = server.running();
    for number in 0..100 {
        server.handle(asker::ask(&run, number, &format!("k{number}")));
        let id = server.next_sent()["id"].clone();
        server.receive(&json!({"jsonrpc": "2.0", "id": id, "result": asker::yes()}));
        assert!(server.answered.pop().unwrap().is_ok());
    }
    server.handle(asker::ask(&run, 100, "k100"));
    let error = server.answered.pop().unwrap().unwrap_err();
    assert_eq!(error, "a call may ask its client 100 questions, and this one has asked them all");
    assert!(server.sent.is_empty());
    // An answered question is not withdrawn.
    server.handle(asker::ask(&run, 101, "k5"));
    assert!(server.answered.pop().unwrap().is_ok());
    server.done(&run, Err(Failure::NotSupported(error)));
    assert!(
        server.next_sent()["result"]["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains("100 questions")
    );
}

#[test]
fn returning_questions_repeatedly_is_limited() {
    let mut server = server();
    server.open("2025-11-25", &json!({"elicitation": {}}));
    server.receive(&asker::legacy(1));
    for round in 0..100 {
        let run = server.running();
        server.done(&run, Ok(asker::questions(&[&format!("k{round}")])));
        let id = server.next_sent()["id"].clone();
        server.receive(&json!({"jsonrpc": "2.0", "id": id, "result": asker::yes()}));
    }
    let run = server.running();
    server.done(&run, Ok(asker::questions(&["more"])));
    let reply = server.next_sent();
    let text = reply["result"]["content"][0]["text"].as_str().unwrap();
    assert_eq!(text, "a call may ask its client 100 questions, and this one has asked them all");
    assert_eq!(server.in_flight(), 0);
}

#[test]
fn a_form_that_the_revision_can_not_say_is_not_sent() {
    let form = |property: Value| json!({"mode": "form", "message": "Which?", "requestedSchema": {"type": "object", "properties": {"p": property}}});
    let list = json!({"type": "array", "items": {"type": "string", "enum": ["a"]}});
    let pattern = json!({"type": "string", "pattern": "^a"});
    for (revision, property, problem) in [
        (
            "2025-06-18",
            &list,
            "the form \"Which?\" can't be asked: its property \"p\" is a list of choices",
        ),
        (
            "2025-06-18",
            &pattern,
            "the form \"Which?\" can't be asked: its property \"p\" has \"pattern\"",
        ),
        (
            "2025-11-25",
            &pattern,
            "the form \"Which?\" can't be asked: its property \"p\" has \"pattern\"",
        ),
        (
            "2026-07-28",
            &pattern,
            "the form \"Which?\" can't be asked: its property \"p\" has \"pattern\"",
        ),
    ] {
        let mut server = server();
        if revision == "2026-07-28" {
            server.receive(&asker::modern(1, &json!({"elicitation": {}}), &json!({})));
        } else {
            server.open(revision, &json!({"elicitation": {}}));
            server.receive(&asker::legacy(1));
        }
        let run = server.running();
        let params = to_raw(&form(property.clone()));
        let question = Question { key: "k".into(), method: Method::Elicit, params };
        server.handle(Input::Handler(run.id, HandlerEvent::Ask { ask: AskId(0), question }));
        let error = server.answered.pop().unwrap().unwrap_err();
        assert!(error.starts_with(problem), "{revision}: {error}");
        assert!(server.sent.is_empty());
        let all =
            json!([{"key": "k", "method": "elicitation/create", "params": form(property.clone())}]);
        server.done(&run, Ok(Reply::Questions(all.to_string())));
        let reply = server.next_sent();
        let text = reply["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with(problem), "{revision}: {text}");
    }
}
