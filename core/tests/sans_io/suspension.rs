//! Handlers that are suspended until a later request brings the answers (2026-07-28, Multi Round-Trip Requests).

use gudgeon::{
    engine::{HandlerEvent, Run},
    protocol::{Method, Question, Raw, json::to_raw},
    router::{Definition, Failure, Middleware, Reply, RoundLimits},
    service::Input,
    session::{asking::AskId, server::Progress},
};
use serde_json::json;

use self::{
    asker::{Server, ask, form, questions, yes},
    rounds::{asked, asks, call, done, refused, retry, state, text, waits},
};

use crate::support::{Handler, asker, kept, rounds};

#[test]
fn a_suspended_handler_resumes_for_the_request_with_the_answers() {
    let mut server = Server::new();
    let (run, state) = asked(&mut server, 1, "tool", &["a", "b"]);
    assert!(server.answered.is_empty());
    server.receive(&retry(2, "tool", &state, &json!({"a": yes(), "b": {"action": "decline"}})));
    assert!(server.runs.is_empty(), "it is not run again");
    let (call, context) = server.resumed.pop().unwrap();
    assert_eq!(call, run.id);
    assert_eq!(context.request_id.unwrap().as_json(), "2");
    let answers: Vec<_> = server.answered.drain(..).map(Result::unwrap).collect();
    assert_eq!(answers, [yes(), json!({"action": "decline"})]);
    let second = asks(&mut server, &run, &["c"]);
    server.receive(&retry(3, "tool", &second, &json!({"c": yes()})));
    assert_eq!(server.answered.len(), 1);
    done(&mut server, &run, "deleted");
    assert_eq!(text(&server.next_sent()), (3, "deleted"));
    assert_eq!(server.service.in_flight(), 0);
}

#[test]
fn answers_sent_in_advance_are_used() {
    let (mut server, mut other) = (Server::new(), Server::new());
    let (run, first) = asked(&mut server, 1, "tool", &["a"]);
    let unfit = json!({"action": "accept", "content": {"value": "perhaps"}});
    let answers = json!({"a": yes(), "b": yes(), "c": unfit});
    server.receive(&retry(2, "tool", &first, &answers));
    assert_eq!(server.answered.drain(..).count(), 1);
    server.handle(ask(&run, 1, "b"));
    assert_eq!(server.answered.pop().unwrap().unwrap(), yes());
    // Unless its handler wants another answer.
    let question = Question { key: "b".into(), method: Method::Elicit, params: to_raw(&form()) };
    let problem = "not that one".to_owned();
    let again = HandlerEvent::AskAgain { ask: AskId(2), question, problem };
    server.handle(Input::Handler(run.id, again));
    server.handle(ask(&run, 3, "c"));
    assert!(server.answered.is_empty());
    server.handle(waits(&run));
    state(&mut server, &["b", "c"]);
    // A replay knows the answer as well.
    other.receive(&retry(3, "tool", &first, &answers));
    let run = other.running();
    for (number, key) in ["a", "b"].into_iter().enumerate() {
        other.handle(ask(&run, number as u64, key));
        assert_eq!(other.answered.pop().unwrap().unwrap(), yes());
    }
}

#[test]
fn progress_goes_to_the_request_that_the_handler_runs_for_now() {
    let mut server = Server::new();
    let (run, state) = asked(&mut server, 1, "tool", &["a"]);
    let step = || Progress { progress: 1.0, total: None, message: None };
    server.handle(Input::Handler(run.id, HandlerEvent::Progress(step())));
    assert!(server.sent.is_empty(), "nobody waits for it");
    let mut request = retry(2, "tool", &state, &json!({"a": yes()}));
    request["params"]["_meta"]["progressToken"] = json!("later");
    server.receive(&request);
    assert!(server.resumed[0].1.wants_progress);
    server.handle(Input::Handler(run.id, HandlerEvent::Progress(step())));
    assert_eq!(server.next_sent()["params"]["progressToken"], "later");
}

#[test]
fn a_lost_handler_is_replayed_with_all_answers() {
    let (mut first, mut second) = (Server::new(), Server::new());
    let (run, state) = asked(&mut first, 1, "tool", &["a"]);
    first.receive(&retry(2, "tool", &state, &json!({"a": yes()})));
    first.handle(Input::Handler(
        run.id,
        HandlerEvent::Step { key: "paid".into(), value: to_raw(&json!(7)) },
    ));
    let state = asks(&mut first, &run, &["b"]);
    // Another process that shares the keys.
    second.receive(&retry(3, "tool", &state, &json!({"b": yes()})));
    let again = second.running();
    assert_eq!(again.context.answers.step("paid").unwrap().get(), "7");
    for (number, key) in ["a", "b"].into_iter().enumerate() {
        second.handle(ask(&again, number as u64, key));
        assert_eq!(second.answered.pop().unwrap().unwrap(), yes(), "{key}");
    }
    let third = asks(&mut second, &again, &["c"]);
    first.receive(&retry(4, "tool", &third, &json!({"c": yes()})));
    let last = first.running();
    for key in ["a", "b", "c"] {
        first.handle(ask(&last, 0, key));
        assert_eq!(first.answered.pop().unwrap().unwrap(), yes(), "{key}");
    }
    done(&mut first, &last, "done");
    assert_eq!(text(&first.next_sent()), (4, "done"));
}

#[test]
fn missing_and_invalid_answers_are_asked_again_and_the_rest_is_kept() {
    let mut server = Server::new();
    let (run, state_of_both) = asked(&mut server, 1, "tool", &["a", "b"]);
    let unfit = json!({"a": yes(), "b": {"action": "accept", "content": {"value": 3}}, "z": yes()});
    server.receive(&retry(2, "tool", &state_of_both, &unfit));
    let rest = state(&mut server, &["b"]);
    assert!(server.answered.is_empty() && server.resumed.is_empty());
    server.receive(&retry(3, "tool", &rest, &json!({})));
    let rest = state(&mut server, &["b"]);
    server.receive(&retry(4, "tool", &rest, &json!({"b": yes()})));
    assert_eq!(server.answered.len(), 2);
    done(&mut server, &run, "done");
    assert_eq!(text(&server.next_sent()), (4, "done"));
}

#[test]
fn a_second_retry_joins_the_first_while_it_runs_and_gets_the_same_reply() {
    let mut server = Server::new();
    let (run, state) = asked(&mut server, 1, "tool", &["a"]);
    server.receive(&retry(2, "tool", &state, &json!({"a": yes()})));
    server.receive(&retry(3, "tool", &state, &json!({"a": yes()})));
    assert!(server.runs.is_empty());
    done(&mut server, &run, "once");
    let mut replies = [server.next_sent(), server.next_sent()];
    replies.sort_by_key(|reply| reply["id"].as_u64());
    assert_eq!(replies.each_ref().map(text), [(2, "once"), (3, "once")]);
    // Later it is a replay.
    server.receive(&retry(4, "tool", &state, &json!({"a": yes()})));
    assert_eq!(server.runs.len(), 1);
}

#[test]
fn a_joined_retry_gets_the_next_round_as_well() {
    let mut server = Server::new();
    let (run, first) = asked(&mut server, 1, "tool", &["a"]);
    server.receive(&retry(2, "tool", &first, &json!({"a": yes()})));
    server.receive(&retry(3, "tool", &first, &json!({"a": yes()})));
    server.handle(ask(&run, 0, "b"));
    server.handle(waits(&run));
    let states = [state(&mut server, &["b"]), state(&mut server, &["b"])];
    assert_eq!(states[0], states[1]);
}

#[test]
fn a_handler_outlives_the_retry_that_woke_it_while_another_waits() {
    let mut server = Server::new();
    let (run, state) = asked(&mut server, 1, "tool", &["a"]);
    for id in [2, 3] {
        server.receive(&retry(id, "tool", &state, &json!({"a": yes()})));
    }
    let cancel = |id| json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    server.receive(&cancel(2));
    assert!(server.cancelled.is_empty());
    assert_eq!(server.resumed.last().unwrap().1.request_id.as_ref().unwrap().as_json(), "3");
    done(&mut server, &run, "still");
    assert_eq!(text(&server.next_sent()), (3, "still"));
    assert!(server.sent.is_empty());

    let (run, state) = asked(&mut server, 4, "tool", &["a"]);
    server.receive(&retry(5, "tool", &state, &json!({"a": yes()})));
    server.receive(&cancel(5));
    assert_eq!(server.cancelled, [run.id]);
}

#[test]
fn a_tool_that_must_not_run_twice_is_refused_once_its_handler_is_gone() {
    let mut server = Server::new();
    let (run, state) = asked(&mut server, 1, "forbids", &["a"]);
    server.receive(&retry(2, "forbids", &state, &json!({"a": yes()})));
    done(&mut server, &run, "paid");
    assert_eq!(text(&server.next_sent()), (2, "paid"));
    server.receive(&retry(3, "forbids", &state, &json!({"a": yes()})));
    assert!(refused(&server.next_sent()) && server.runs.is_empty());
    assert!(server.reports.pop().unwrap().contains("must not run again"));
    let mut other = Server::new();
    other.receive(&retry(4, "forbids", &state, &json!({"a": yes()})));
    assert!(refused(&other.next_sent()) && other.runs.is_empty());
}

/// A handler that waits for its turn with the answers of request 3, while request 2 runs in its place.
fn in_line(server: &mut Server) -> (Run, Run, String) {
    let (waits, state) = asked(server, 1, "alone", &["a"]);
    server.receive(&call(2, "alone", &json!({})));
    let runs = server.running();
    server.receive(&retry(3, "alone", &state, &json!({"a": yes()})));
    assert!(server.resumed.is_empty() && server.sent.is_empty());
    (waits, runs, state)
}

#[test]
fn a_joined_request_replaces_a_cancelled_queued_request() {
    let mut server = Server::new();
    let cancel = |id| json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    let (waits, runs, state) = in_line(&mut server);
    server.receive(&retry(4, "alone", &state, &json!({"a": yes()})));
    server.receive(&cancel(3));
    assert!(server.cancelled.is_empty());
    done(&mut server, &runs, "first");
    done(&mut server, &waits, "second");
    assert_eq!(text(&server.next_sent()), (2, "first"));
    assert_eq!(text(&server.next_sent()), (4, "second"));
    // Without a joined request the handler is cancelled, and another request with the state replays it.
    let mut server = Server::new();
    let (waits, runs, state) = in_line(&mut server);
    server.receive(&cancel(3));
    assert_eq!(server.cancelled, [waits.id]);
    done(&mut server, &runs, "first");
    server.receive(&retry(5, "alone", &state, &json!({"a": yes()})));
    let again = server.running();
    done(&mut server, &again, "again");
    assert_eq!(text(&server.next_sent()), (2, "first"));
    assert_eq!(text(&server.next_sent()), (5, "again"));
    assert_eq!(server.in_flight(), 0);
}

#[test]
fn events_of_a_handler_count_while_its_request_is_queued() {
    let mut server = Server::new();
    let (waits_in_line, runs, _) = in_line(&mut server);
    done(&mut server, &waits_in_line, "went on");
    assert_eq!(text(&server.next_sent()), (3, "went on"));
    done(&mut server, &runs, "first");
    assert_eq!(text(&server.next_sent()), (2, "first"));
    server.receive(&call(4, "alone", &json!({})));
    let run = server.running();
    done(&mut server, &run, "next");
    assert_eq!(text(&server.next_sent()), (4, "next"));
    assert_eq!(server.in_flight(), 0);
    // The handler asks again and performs a step: the next round knows both.
    let (waits_in_line, runs, _) = in_line(&mut server);
    let handler = waits_in_line.id;
    server.handle(Input::Handler(
        handler,
        HandlerEvent::Step { key: "paid".into(), value: to_raw(&json!(7)) },
    ));
    server.handle(ask(&waits_in_line, 9, "b"));
    server.handle(waits(&waits_in_line));
    assert!(server.answered.is_empty() && server.sent.is_empty());
    done(&mut server, &runs, "first");
    server.next_sent();
    let state = state(&mut server, &["b"]);
    let mut other = Server::new();
    other.receive(&retry(5, "alone", &state, &json!({"b": yes()})));
    let replayed = other.running();
    assert_eq!(replayed.context.answers.step("paid").unwrap().get(), "7");
}

#[test]
fn a_handler_that_continued_without_answers_replies_to_the_next_request() {
    let mut server = Server::new();
    let (run, state_of_a) = asked(&mut server, 1, "tool", &["a"]);
    done(&mut server, &run, "gave up");
    assert!(server.sent.is_empty());
    server.receive(&retry(2, "tool", &state_of_a, &json!({"a": yes()})));
    assert_eq!(text(&server.next_sent()), (2, "gave up"));
    let (run, state_of_a) = asked(&mut server, 3, "tool", &["a"]);
    server.done(&run, Ok(questions(&["explicit"])));
    server.receive(&retry(4, "tool", &state_of_a, &json!({"a": yes()})));
    state(&mut server, &["explicit"]);
    // Questions of a suspended handler are sent with the next round.
    let (run, first) = asked(&mut server, 5, "tool", &["a"]);
    server.handle(ask(&run, 1, "later"));
    server.handle(waits(&run));
    server.receive(&retry(6, "tool", &first, &json!({"a": yes()})));
    let second = state(&mut server, &["later"]);
    server.receive(&retry(7, "tool", &second, &json!({"later": yes()})));
    assert_eq!(server.answered.len(), 2);
}

#[test]
fn a_handler_stopped_by_its_own_shell_is_replayed() {
    let mut server = Server::new();
    for (id, tool) in [(1, "tool"), (3, "forbids")] {
        let (run, state) = asked(&mut server, id, tool, &["a"]);
        server.done(&run, Err(Failure::Cancelled));
        assert!(server.cancelled.is_empty() && server.sent.is_empty());
        server.receive(&retry(id + 1, tool, &state, &json!({"a": yes()})));
        assert!(server.resumed.is_empty());
    }
    assert_eq!(server.runs.len(), 1);
    assert!(refused(&server.next_sent()), "it must not run twice");
}

#[test]
fn a_question_that_changed_is_asked_again() {
    let mut server = Server::with(RoundLimits { suspended_limit: 0, ..RoundLimits::default() });
    let (_, state_of_a) = asked(&mut server, 1, "tool", &["a"]);
    server.receive(&retry(2, "tool", &state_of_a, &json!({"a": yes()})));
    let run = server.running();
    let mut changed = form();
    changed["message"] = json!("Really?");
    let question = Question { key: "a".into(), method: Method::Elicit, params: to_raw(&changed) };
    server.handle(Input::Handler(run.id, HandlerEvent::Ask { ask: AskId(0), question }));
    server.handle(waits(&run));
    assert!(server.answered.is_empty());
    state(&mut server, &["a"]);
}

#[test]
fn one_key_is_one_question() {
    let mut server = Server::new();
    let (run, state) = asked(&mut server, 1, "tool", &["a"]);
    server.receive(&retry(2, "tool", &state, &json!({"a": yes()})));
    server.answered.clear();
    server.handle(ask(&run, 1, "a"));
    assert_eq!(server.answered.pop().unwrap().unwrap(), yes(), "it was answered already");
    server.handle(ask(&run, 2, "b"));
    server.handle(ask(&run, 3, "b"));
    let problem = server.answered.pop().unwrap().unwrap_err();
    assert!(problem.contains("two questions have the key \"b\""), "{problem}");
}

#[test]
fn a_state_that_grew_too_long_still_finds_its_handler() {
    let mut server = Server::with(RoundLimits { max_state: 600, ..RoundLimits::default() });
    let (run, first) = asked(&mut server, 1, "tool", &["a"]);
    server.receive(&retry(2, "tool", &first, &json!({"a": yes()})));
    let value: Raw = to_raw(&"x".repeat(4_000));
    server.handle(Input::Handler(run.id, HandlerEvent::Step { key: "long".into(), value }));
    let second = asks(&mut server, &run, &["b"]);
    assert!(second.len() < 600);
    server.receive(&retry(3, "tool", &second, &json!({"b": yes()})));
    assert_eq!(server.resumed.len(), 2);
    let third = asks(&mut server, &run, &["c"]);
    server.handle(Input::ShutDown);
    assert_eq!(server.cancelled, [run.id], "finally blocks run");
    server.receive(&retry(4, "tool", &third, &json!({"c": yes()})));
    let again = server.running();
    assert!(again.context.answers.step("long").is_none(), "it has to ask all of it again");
}

#[test]
fn questions_of_a_suspended_handler_are_checked_and_counted() {
    let mut server = Server::new();
    let (run, first) = asked(&mut server, 1, "tool", &["a"]);
    let roots =
        Question { key: "roots".into(), method: Method::ListRoots, params: to_raw(&json!({})) };
    let (call, number) = (run.id, AskId);
    server.handle(Input::Handler(call, HandlerEvent::Ask { ask: number(1), question: roots }));
    server.handle(waits(&run));
    server.receive(&retry(2, "tool", &first, &json!({"a": yes()})));
    assert_eq!(server.answered.remove(0).unwrap(), yes());
    let problem = server.answered.remove(0).unwrap_err();
    assert!(problem.contains("did not declare roots"), "{problem}");
    assert!(server.sent.is_empty(), "nobody is asked what it did not declare");

    let (run, _) = asked(&mut server, 3, "tool", &["a"]);
    for number in 1..=100 {
        server.handle(ask(&run, number, &format!("k{number}")));
    }
    assert!(server.answered.is_empty());
    server.handle(ask(&run, 101, "k101"));
    let problem = server.answered.remove(0).unwrap_err();
    assert!(problem.contains("100 questions"), "{problem}");
}

#[test]
fn a_handler_in_the_cores_place_asks_as_the_tools_resources_and_prompts_whose_method_it_answers() {
    let replacing = || {
        Server::with_components(RoundLimits::default(), |components| {
            components.add(Definition::Method("tools/call".into()), kept(Handler::Plain)).unwrap();
        })
    };
    let (mut first, mut second) = (replacing(), replacing());
    let (run, state) = asked(&mut first, 1, "anything", &["a"]);
    second.receive(&retry(2, "anything", &state, &json!({"a": yes()})));
    let again = second.running();
    let given: serde_json::Value = serde_json::from_str(&again.input).unwrap();
    assert_eq!(given["name"], "anything");
    assert_eq!(given["requestState"], state, "its params come as they were sent");
    second.handle(ask(&again, 1, "a"));
    assert_eq!(second.answered.pop().unwrap().unwrap(), yes(), "the answer is known there");
    first.receive(&retry(2, "anything", &state, &json!({"a": yes()})));
    assert!(first.runs.is_empty(), "where it waits it is not run again");
    let outcome = json!({"content": [{"type": "text", "text": "done"}]});
    first.done(&run, Ok(Reply::Json(outcome.to_string())));
    assert_eq!(text(&first.next_sent()), (2, "done"));
}

#[test]
fn middleware_that_asks_around_a_rejected_request_is_resumed() {
    let mut server = Server::with_components(RoundLimits::default(), |components| {
        components.set_middleware(Some(Middleware::new(
            kept(Handler::Plain),
            ["tools/call"],
            false,
        )));
    });
    let (run, state) = asked(&mut server, 1, "nowhere", &["a"]);
    server.receive(&retry(2, "nowhere", &state, &json!({"a": yes()})));
    assert!(server.runs.is_empty(), "it is not run again");
    assert_eq!(server.answered.pop().unwrap().unwrap(), yes());
    server.done(&run, Ok(Reply::Nothing));
    assert_eq!(server.next_sent()["error"]["message"], "Unknown tool: nowhere");
}
