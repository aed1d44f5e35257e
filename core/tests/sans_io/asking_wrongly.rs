//! Wrong questions of handlers and wrong answers of clients: the waiting side gets an error at once, losses are logged.

use gudgeon::{
    engine::{HandlerEvent, Run},
    protocol::{Method, Question, json::to_raw},
    router::{Reply, RoundLimits},
    service::Input,
    session::asking::AskId,
};
use serde_json::{Value, json};

use crate::support::{
    asker::{Server, ask, form, legacy, questions, yes},
    rounds::{asked, call, done, retry, state, text, waits},
};

/// A question whose form differs from that of other questions with this key.
fn ask_another(run: &Run, number: u64, key: &str) -> Input<'static> {
    let mut params = form();
    params["message"] = json!("Really?");
    let question = Question { key: key.into(), method: Method::Elicit, params: to_raw(&params) };
    Input::Handler(run.id, HandlerEvent::Ask { ask: AskId(number), question })
}

#[test]
fn a_malformed_response_settles_its_question() {
    for malformed in [
        json!({"error": {"code": -1}}),
        json!({"error": "no"}),
        json!({"error": null}),
        json!({"result": yes(), "error": {"code": -1, "message": "no"}}),
        json!({"result": yes(), "jsonrpc": "1.0"}),
    ] {
        let answer = |id: &Value| {
            let mut answer = json!({"jsonrpc": "2.0", "id": id});
            answer.as_object_mut().unwrap().extend(malformed.as_object().unwrap().clone());
            answer
        };
        let mut server = Server::new();
        server.open("2025-11-25", &json!({"elicitation": {}}));
        server.receive(&legacy(1));
        let run = server.running();
        server.handle(ask(&run, 0, "k"));
        let id = server.next_sent()["id"].clone();
        server.receive(&answer(&json!("nobody's")));
        server.receive(&answer(&json!(null)));
        assert!(server.answered.is_empty() && server.sent.is_empty(), "{malformed}");
        server.receive(&answer(&id));
        let problem = server.answered.pop().unwrap().unwrap_err();
        assert!(problem.starts_with("the client's answer is malformed: "), "{problem}");
        assert!(server.sent.is_empty(), "who answers is not answered");

        server.done(&run, Ok(questions(&["k"])));
        let id = server.next_sent()["id"].clone();
        server.receive(&answer(&id));
        let error = server.next_sent()["error"].clone();
        assert_eq!(error["code"], -32600, "{malformed}");
        assert_eq!(server.in_flight(), 0);
    }
}

#[test]
fn two_questions_with_one_key_are_an_error_on_every_run() {
    const MISTAKE: &str = "two questions have the key \"k\": give each a key of its own";
    let mut server = Server::with(RoundLimits { suspended_limit: 0, ..RoundLimits::default() });
    let (_, first) = asked(&mut server, 1, "tool", &["k"]);
    for is_answered in [true, false] {
        let responses = if is_answered { json!({"k": yes()}) } else { json!({}) };
        server.receive(&retry(2, "tool", &first, &responses));
        let run = server.running();
        server.handle(ask(&run, 0, "k"));
        assert_eq!(server.answered.pop().is_some(), is_answered);
        server.handle(ask_another(&run, 1, "k"));
        assert_eq!(server.answered.pop().unwrap().unwrap_err(), MISTAKE);
        server.done(&run, Ok(Reply::Text("done".into())));
        server.sent.clear();
    }
    // A question that changed since the last run does not count as a second one.
    server.receive(&retry(3, "tool", &first, &json!({"k": yes()})));
    let run = server.running();
    server.handle(ask_another(&run, 0, "k"));
    assert!(server.answered.is_empty());
    server.handle(waits(&run));
    state(&mut server, &["k"]);
}

#[test]
fn a_returned_question_with_an_answered_key_is_an_error() {
    let mut server = Server::new();
    server.receive(&call(1, "tool", &json!({"inputResponses": {"k": yes()}})));
    let run = server.running();
    assert!(run.context.answers.get("k", Method::Elicit, &form().to_string()).is_some());
    let mut another = json!([{"key": "k", "method": "elicitation/create", "params": form()}]);
    another[0]["params"]["message"] = json!("Really?");
    server.done(&run, Ok(Reply::Questions(another.to_string())));
    let said = server.next_sent();
    assert!(
        text(&said).1.contains("two questions have the key \"k\": give each a key of its own"),
        "{said}"
    );
}

#[test]
fn a_state_over_the_limit_is_logged() {
    const TOLD: &str = "what tools/call \"tool\" was answered and did is longer than 600 bytes (option max_request_state)";
    let limits = RoundLimits { max_state: 600, ..RoundLimits::default() };
    let mut server = Server::with(limits);
    let (run, first) = asked(&mut server, 1, "tool", &["a"]);
    assert!(server.reports.is_empty(), "nothing is lost yet");
    let value = to_raw(&json!("x".repeat(1_000)));
    server.handle(Input::Handler(run.id, HandlerEvent::Step { key: "s".into(), value }));
    server.receive(&retry(2, "tool", &first, &json!({"a": yes()})));
    server.handle(ask(&run, 1, "b"));
    server.handle(waits(&run));
    let second = state(&mut server, &["b"]);
    let report = server.reports.pop().unwrap();
    assert!(report.starts_with(TOLD), "{report}");
    server.receive(&retry(3, "tool", &second, &json!({"b": yes()})));
    done(&mut server, &run, "it waits all the same");
    assert_eq!(text(&server.next_sent()), (3, "it waits all the same"));

    server.receive(&retry(4, "tool", &first, &json!({"a": yes(), "long": "x".repeat(1_000)})));
    let run = server.running();
    server.handle(Input::Handler(
        run.id,
        HandlerEvent::Step { key: "s".into(), value: to_raw(&json!("x".repeat(1_000))) },
    ));
    server.done(&run, Ok(questions(&["c"])));
    state(&mut server, &["c"]);
    assert!(server.reports.pop().unwrap().starts_with(TOLD), "returned questions");
}
