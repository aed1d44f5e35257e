//! Answers that fit the form but not the handler's type: the question is asked up to three times in all.

use gudgeon::{
    engine::{HandlerEvent, Run},
    protocol::{Method, Question, json::to_raw},
    router::{Definition, Reply, RoundLimits},
    service::Input,
    session::asking::AskId,
};
use serde_json::{Value, json};

use self::{
    asker::{Server, ask, form, legacy, modern, questions, yes},
    rounds::{able, state, waits},
};

use crate::support::{Handler, asker, kept, rounds};

const TOO_OFTEN: &str =
    r#"the client's answer to "Sure?" does not fit, 3 times: nobody is that sure"#;

fn question(key: &str) -> Question {
    Question { key: key.into(), method: Method::Elicit, params: to_raw(&form()) }
}

/// The handler's own check refuses what was answered under this key.
fn again(run: &Run, number: u64, key: &str) -> Input<'static> {
    Input::Handler(
        run.id,
        HandlerEvent::AskAgain {
            ask: AskId(number),
            question: question(key),
            problem: "nobody is that sure".into(),
        },
    )
}

fn retry(id: u64, state: &str, responses: &Value) -> Value {
    modern(id, &able(), &json!({"requestState": state, "inputResponses": responses}))
}

/// The one answer that the handler got since the last.
fn received(server: &mut Server) -> Result<Value, String> {
    assert_eq!(server.answered.len(), 1, "{:?}", server.answered);
    server.answered.remove(0)
}

fn finish(server: &mut Server, run: &Run) {
    server.done(run, Ok(Reply::Text("done".into())));
    assert_eq!(server.next_sent()["result"]["content"][0]["text"], "done");
    assert_eq!(server.in_flight(), 0);
}

#[test]
fn in_a_session_an_invalid_answer_leads_to_another_request() {
    let mut server = Server::new();
    server.open("2025-11-25", &able());
    server.receive(&legacy(1));
    let run = server.running();
    server.handle(ask(&run, 0, "sure"));
    for number in 1..3 {
        let asked = server.next_sent();
        assert_eq!(asked["params"]["message"], "Sure?");
        server.receive(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": yes()}));
        assert_eq!(received(&mut server), Ok(yes()));
        server.handle(again(&run, number, "sure"));
    }
    let asked = server.next_sent();
    server.receive(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": yes()}));
    assert_eq!(received(&mut server), Ok(yes()));
    server.handle(again(&run, 3, "sure"));
    assert_eq!(received(&mut server), Err(TOO_OFTEN.into()));
    assert!(server.sent.is_empty(), "nobody is asked a fourth time");
    finish(&mut server, &run);
}

#[test]
fn a_suspended_handler_asks_only_the_rejected_question_again() {
    let mut server = Server::new();
    server.receive(&modern(1, &able(), &json!({})));
    let run = server.running();
    server.handle(ask(&run, 0, "sure"));
    server.handle(ask(&run, 1, "other"));
    server.handle(waits(&run));
    let mut round = state(&mut server, &["sure", "other"]);
    server.receive(&retry(2, &round, &json!({"sure": yes(), "other": yes()})));
    assert_eq!(server.answered.drain(..).count(), 2);
    for number in 2..4 {
        server.handle(again(&run, number, "sure"));
        server.handle(waits(&run));
        round = state(&mut server, &["sure"]);
        server.receive(&retry(number + 1, &round, &json!({"sure": yes()})));
        assert_eq!(received(&mut server), Ok(yes()));
    }
    server.handle(again(&run, 4, "sure"));
    assert_eq!(received(&mut server), Err(TOO_OFTEN.into()));
    finish(&mut server, &run);
}

#[test]
fn rejected_answers_are_not_journaled_but_count_on_another_server() {
    let limits = RoundLimits { suspended_limit: 0, ..RoundLimits::default() };
    let (mut first, mut second) = (Server::with(limits), Server::with(limits));
    first.receive(&modern(1, &able(), &json!({})));
    let run = first.running();
    first.handle(ask(&run, 0, "sure"));
    first.handle(ask(&run, 1, "other"));
    first.handle(waits(&run));
    let mut round = state(&mut first, &["sure", "other"]);
    let mut responses = json!({"sure": yes(), "other": yes()});
    for turn in 0..3 {
        let server = if turn % 2 == 0 { &mut second } else { &mut first };
        server.receive(&retry(2 + turn, &round, &responses));
        let run = server.running();
        server.handle(ask(&run, 0, "sure"));
        server.handle(ask(&run, 1, "other"));
        // The other one's answer is known in every run, and what was refused in none.
        assert_eq!(server.answered.drain(..).count(), 2, "{turn}");
        server.handle(again(&run, 2, "sure"));
        if turn == 2 {
            assert_eq!(received(server), Err(TOO_OFTEN.into()));
            return finish(server, &run);
        }
        server.handle(waits(&run));
        round = state(server, &["sure"]);
        responses = json!({"sure": yes()});
    }
}

#[test]
fn a_round_without_the_answer_asks_again_and_does_not_count() {
    let limits = RoundLimits { suspended_limit: 0, ..RoundLimits::default() };
    let mut server = Server::with(limits);
    server.receive(&modern(1, &able(), &json!({"inputResponses": {"sure": yes()}})));
    let mut run = server.running();
    server.handle(ask(&run, 0, "sure"));
    assert_eq!(received(&mut server), Ok(yes()));
    server.handle(again(&run, 1, "sure"));
    server.handle(waits(&run));
    for id in 2..8 {
        let round = state(&mut server, &["sure"]);
        server.receive(&retry(id, &round, &json!({})));
        run = server.running();
        server.handle(ask(&run, 0, "sure"));
        assert!(server.answered.is_empty(), "{id}");
        server.handle(waits(&run));
    }
    let round = state(&mut server, &["sure"]);
    server.receive(&retry(9, &round, &json!({"sure": yes()})));
    run = server.running();
    server.handle(ask(&run, 0, "sure"));
    assert_eq!(received(&mut server), Ok(yes()));
    finish(&mut server, &run);
}

#[test]
fn invalid_form_content_counts_as_an_attempt() {
    let unfit = json!({"action": "accept", "content": {"value": "yes"}});
    let problem =
        r#"its content does not fit the form: field 'value': expected a boolean, got "yes""#;
    let too_often = format!(r#"the client's answer to "Sure?" does not fit, 3 times: {problem}"#);
    let mut server = Server::new();
    server.open("2025-11-25", &able());
    server.receive(&legacy(1));
    let run = server.running();
    server.handle(ask(&run, 0, "sure"));
    for (said, is_refused) in [(&unfit, false), (&yes(), true), (&unfit, false)] {
        let asked = server.next_sent();
        server.receive(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": said}));
        if is_refused {
            assert_eq!(received(&mut server), Ok(yes()));
            server.handle(again(&run, 1, "sure"));
        }
    }
    assert_eq!(received(&mut server), Err(too_often.clone()));
    finish(&mut server, &run);
    for suspended_limit in [0, 9] {
        let mut server = Server::with(RoundLimits { suspended_limit, ..RoundLimits::default() });
        server.receive(&modern(1, &able(), &json!({"inputResponses": {"sure": yes()}})));
        let mut run = server.running();
        server.handle(ask(&run, 0, "sure"));
        assert_eq!(received(&mut server), Ok(yes()));
        server.handle(again(&run, 1, "sure"));
        server.handle(waits(&run));
        for id in 2..4 {
            let round = state(&mut server, &["sure"]);
            server.receive(&retry(id, &round, &json!({"sure": unfit})));
            if suspended_limit == 0 {
                run = server.running();
                server.handle(ask(&run, 0, "sure"));
                server.handle(waits(&run));
            }
        }
        assert_eq!(received(&mut server), Err(too_often.clone()), "{suspended_limit}");
        finish(&mut server, &run);
    }
}

#[test]
fn returned_questions_are_asked_again_in_both_eras() {
    for is_legacy in [true, false] {
        let mut server = Server::new();
        if is_legacy {
            server.open("2025-06-18", &able());
            server.receive(&legacy(1));
        } else {
            server.receive(&modern(1, &able(), &json!({})));
        }
        let run = server.running();
        server.done(&run, Ok(questions(&["sure", "other"])));
        let mut keys = vec!["sure", "other"];
        for turn in 0..3 {
            if is_legacy {
                let asked: Vec<_> = keys.iter().map(|_| server.next_sent()).collect();
                for (at, mut one) in asked.into_iter().enumerate() {
                    assert_eq!(one["method"], "elicitation/create");
                    if turn == 0 && at == 1 {
                        let unfit = json!({"action": "perhaps"});
                        server
                            .receive(&json!({"jsonrpc": "2.0", "id": one["id"], "result": unfit}));
                        one = server.next_sent();
                        assert_eq!(one["id"], 3);
                    }
                    server.receive(&json!({"jsonrpc": "2.0", "id": one["id"], "result": yes()}));
                }
            } else {
                let round = state(&mut server, &keys);
                let answers: Value = keys.iter().map(|key| ((*key).to_owned(), yes())).collect();
                server.receive(&retry(turn + 2, &round, &answers));
            }
            let run = server.running();
            let answers = &run.context.answers;
            for key in ["sure", "other"] {
                assert!(answers.get(key, Method::Elicit, to_raw(&form()).get()).is_some());
            }
            let refused = answers.refuse(&question("sure"), "nobody is that sure");
            assert!(answers.get("sure", Method::Elicit, to_raw(&form()).get()).is_none());
            if turn < 2 {
                assert_eq!(refused.map_err(|error| error.message), Ok(()));
            } else {
                assert_eq!(refused.unwrap_err().message, TOO_OFTEN);
            }
            server.done(&run, Ok(questions(&["sure", "other"])));
            keys = vec!["sure"];
        }
        let error = server.next_sent()["error"].clone();
        assert_eq!((&error["code"], &error["message"]), (&json!(-32602), &json!(TOO_OFTEN)));
        assert_eq!(server.in_flight(), 0);
    }
}

#[test]
fn handlers_of_notifications_ask_again_up_to_the_limit() {
    let unfit = json!({"action": "accept", "content": {"value": "yes"}});
    let mut server = Server::with_components(RoundLimits::default(), |components| {
        components
            .add(
                Definition::Notification("notifications/roots/list_changed".into()),
                kept(Handler::Plain),
            )
            .unwrap();
    });
    server.open("2025-11-25", &able());
    server.receive(&json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}));
    let run = server.running();
    server.handle(ask(&run, 0, "sure"));
    for said in [&unfit, &yes()] {
        let asked = server.next_sent();
        assert_eq!(asked["params"]["message"], "Sure?");
        server.receive(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": said}));
    }
    assert_eq!(received(&mut server), Ok(yes()));
    server.handle(again(&run, 1, "sure"));
    let asked = server.next_sent();
    server.receive(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": yes()}));
    assert_eq!(received(&mut server), Ok(yes()));
    server.handle(again(&run, 2, "sure"));
    assert_eq!(received(&mut server), Err(TOO_OFTEN.into()));
    server.done(&run, Ok(Reply::Nothing));
    assert!(server.sent.is_empty(), "nothing is open");
}

#[test]
fn sampling_is_not_repeated_for_invalid_results() {
    let mut server = Server::new();
    server.open("2025-11-25", &json!({"roots": {}}));
    server.receive(&legacy(1));
    let run = server.running();
    let roots =
        || Question { method: Method::ListRoots, params: to_raw(&json!({})), ..question("roots") };
    server.handle(Input::Handler(run.id, HandlerEvent::Ask { ask: AskId(0), question: roots() }));
    let asked = server.next_sent();
    server.receive(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": []}}));
    assert!(received(&mut server).is_ok());
    let (call, problem) = (run.id, "there is none".into());
    server.handle(Input::Handler(
        call,
        HandlerEvent::AskAgain { ask: AskId(1), question: roots(), problem },
    ));
    let error = "the client's answer to roots/list does not fit: there is none";
    assert_eq!(received(&mut server), Err(error.into()));
    finish(&mut server, &run);
}
