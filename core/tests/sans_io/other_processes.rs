//! Several processes that serve one address: whichever gets a request of a client, it has the same effect.

use std::{sync::Arc, time::Instant};

use gudgeon::{
    engine::{HandlerEvent, Start},
    http::{EndpointConfig, EndpointInput},
    protocol::{Method, Question, json::to_raw},
    router::Reply,
    session::{asking::AskId, server::ListKind},
};
use serde_json::{Value, json};

use crate::support::{
    fixture,
    request::{Request, initialize, message, notification},
    visitor::Visitor,
};

/// Processes that exchange messages.
struct Processes(Vec<Visitor>);

impl Processes {
    fn new() -> Self {
        let process = |number| {
            let start =
                Start { now: Instant::now(), unix: 1_000_000, seed: [number; 32], test_mode: None };
            let config = EndpointConfig::default();
            let mut visitor = Visitor::started(fixture::components(), config, &start);
            visitor.endpoint.share();
            visitor
        };
        Self((0..3).map(process).collect())
    }

    /// Has a process do something, and passes messages on until there are no more.
    fn at<T>(&mut self, process: usize, act: impl FnOnce(&mut Visitor) -> T) -> T {
        let done = act(&mut self.0[process]);
        for _ in 0..10 {
            for from in 0..self.0.len() {
                for message in std::mem::take(&mut self.0[from].published) {
                    let others = self.0.iter_mut().enumerate().filter(|(to, _)| *to != from);
                    others.for_each(|(_, to)| to.handle(EndpointInput::Published(&message)));
                }
            }
        }
        assert!(self.0.iter().all(|process| process.published.is_empty()), "they go on for ever");
        done
    }

    fn open(&mut self, capabilities: Value) -> String {
        self.at(0, |process| process.open("2025-11-25", capabilities))
    }

    fn messages(&self, process: usize, exchange: u64) -> Vec<Value> {
        self.0[process].reply(exchange).messages()
    }
}

fn ask_for_roots(process: &mut Visitor, session: &str) -> u64 {
    let call = process.call(session, 1, "wait");
    let question =
        Question { key: "asked".into(), method: Method::ListRoots, params: to_raw(&json!({})) };
    let event = HandlerEvent::Ask { ask: AskId(5), question };
    process.handle(EndpointInput::Handler(process.runs[0].id, event));
    call
}

#[test]
fn an_answer_reaches_the_process_that_asked() {
    for capability in
        [json!({"result": {"roots": []}}), json!({"error": {"code": 1, "message": "no"}})]
    {
        let mut processes = Processes::new();
        let session = processes.open(json!({"roots": {}}));
        let call = processes.at(1, |process| ask_for_roots(process, &session));
        let mut answer = capability;
        answer["jsonrpc"] = json!("2.0");
        answer["id"] = processes.messages(1, call)[0]["id"].clone();
        processes.at(2, |process| process.accepts(&Request::of_session(&session, &answer)));
        assert_eq!(processes.0[1].answers.len(), 1);
        assert_eq!(processes.0[1].answers[0].1.is_ok(), answer["error"].is_null());
        assert!(processes.0[0].answers.is_empty() && processes.0[2].answers.is_empty());
    }
}

#[test]
fn a_question_does_not_wait_for_a_confirmation_that_another_process_got() {
    let mut processes = Processes::new();
    let mut body = initialize("2025-11-25");
    body["params"]["capabilities"] = json!({"roots": {}});
    let session = processes
        .at(0, |process| process.ask(&Request::post(body)).header("mcp-session-id").to_owned());
    let initialized = notification("notifications/initialized", json!({}));
    processes.at(1, |process| process.accepts(&Request::of_session(&session, &initialized)));
    let call = processes.at(0, |process| ask_for_roots(process, &session));
    assert_eq!(processes.messages(0, call)[0]["method"], "roots/list");
}

#[test]
fn a_cancellation_reaches_the_process_of_the_call() {
    let mut processes = Processes::new();
    let session = processes.open(json!({}));
    processes.at(1, |process| process.call(&session, 7, "wait"));
    let cancel = |id: u64| {
        Request::of_session(
            &session,
            &notification("notifications/cancelled", json!({"requestId": id})),
        )
    };
    processes.at(2, |process| process.accepts(&cancel(8)));
    assert!(processes.0[1].cancelled.is_empty());
    processes.at(2, |process| process.accepts(&cancel(7)));
    assert_eq!(processes.0[1].cancelled.len(), 1);
}

#[test]
fn updates_reach_the_stream_wherever_client_and_change_are() {
    let mut processes = Processes::new();
    let session = processes.open(json!({}));
    let subscribe = message("resources/subscribe", json!({"uri": "fixture://about"}));
    processes.at(1, |process| process.serves(&Request::of_session(&session, &subscribe)));
    // Before there is a stream, the update is kept.
    processes.at(0, |process| process.handle(EndpointInput::Updated("fixture://about")));
    let stream = processes.at(2, |process| process.get(&session, ""));
    let updated = json!("notifications/resources/updated");
    let methods = |processes: &Processes| -> Vec<Value> {
        let messages = processes.messages(2, stream);
        messages.into_iter().map(|message| message["method"].clone()).collect()
    };
    // The stream begins in a process that had not seen the session: lists may have changed.
    let before = methods(&processes);
    assert_eq!(before.iter().filter(|method| **method == updated).count(), 1, "{before:?}");
    processes.at(0, |process| process.handle(EndpointInput::Updated("fixture://about")));
    assert_eq!(&methods(&processes)[before.len()..], std::slice::from_ref(&updated));
    // Nothing is left for a later stream of the process that made the messages.
    let later = processes.at(1, |process| process.get(&session, ""));
    let left = processes.messages(1, later);
    assert!(left.iter().all(|message| message["method"] != updated), "{left:?}");
}

#[test]
fn a_changed_list_is_told_once_on_each_stream() {
    let mut processes = Processes::new();
    let session = processes.open(json!({}));
    let subscribe = message("resources/subscribe", json!({"uri": "fixture://about"}));
    // Two processes hold the session.
    processes.at(0, |process| process.serves(&Request::of_session(&session, &subscribe)));
    let stream = processes.at(1, |process| process.get(&session, ""));
    let before = processes.messages(1, stream).len();
    let listen = json!({"notifications": {"toolsListChanged": true}});
    let listening = processes.at(2, |process| process.modern("subscriptions/listen", listen));
    let heard = processes.messages(2, listening).len();
    processes.at(2, |process| {
        let components = Arc::new(fixture::components());
        process.handle(EndpointInput::Components(components, vec![ListKind::Tools]));
    });
    let told: Vec<_> = processes.messages(1, stream).split_off(before);
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0]["method"], "notifications/tools/list_changed");
    assert_eq!(processes.messages(2, listening).len(), heard + 1);
}

#[test]
fn a_session_that_a_client_ends_is_over_in_each_process() {
    let mut processes = Processes::new();
    let session = processes.open(json!({}));
    let stream = processes.at(1, |process| process.get(&session, ""));
    let deleted = processes.at(2, |process| process.ask(&Request::bare("DELETE", &session)).status);
    assert_eq!(deleted, 204);
    assert!(processes.0[1].reply(stream).complete);
    let ping = Request::of_session(&session, &message("ping", json!({})));
    for process in 0..3 {
        processes.at(process, |process| process.refuses(&ping, 404, -32600));
    }
}

#[test]
fn a_page_that_is_done_is_told_by_the_process_that_named_it() {
    let mut processes = Processes::new();
    let session = processes.open(json!({"elicitation": {"url": {}}}));
    let call = processes.at(1, |process| {
        let call = process.call(&session, 1, "wait");
        let params = json!({"mode": "url", "message": "In?", "url": "https://a.example/in"});
        let question =
            Question { key: "page".into(), method: Method::Elicit, params: to_raw(&params) };
        let event = HandlerEvent::Ask { ask: AskId(1), question };
        process.handle(EndpointInput::Handler(process.runs[0].id, event));
        call
    });
    let page =
        processes.messages(1, call)[0]["params"]["elicitationId"].as_str().unwrap().to_owned();
    let stream = processes.at(2, |process| process.get(&session, ""));
    processes.at(0, |process| process.handle(EndpointInput::PageDone(&page)));
    let told = processes.messages(2, stream).pop().unwrap();
    assert_eq!(told["method"], "notifications/elicitation/complete");
    processes.at(1, |process| process.finish(Ok(Reply::Nothing)));
}

#[test]
fn a_process_that_is_alone_publishes_nothing_and_nonsense_changes_nothing() {
    let mut alone = Visitor::new(fixture::components(), EndpointConfig::default());
    let session = alone.open("2025-11-25", json!({}));
    alone.handle(EndpointInput::Updated("fixture://about"));
    alone.get(&session, "");
    alone.ask(&Request::bare("DELETE", &session));
    assert!(alone.published.is_empty());
    for nonsense in ["", "{", "{}", "[1]", r#"{"ended":{"session":"x"}}"#, r#"{"unknown":1}"#] {
        alone.handle(EndpointInput::Published(nonsense.as_bytes()));
    }
    assert_eq!(alone.endpoint.sessions(), 0);
}
