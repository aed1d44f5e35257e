//! Handlers that wait for answers to requests (before 2026-07-28): their timeout is suspended, their concurrency slot is
//! free, and the wait is limited. `suspension.rs` tests the same for the modern era.

use std::time::Duration;

use gudgeon::{
    engine::{HandlerEvent, Run},
    protocol::{Tool, json::to_raw},
    router::{RegisteredTool, Reply, RoundLimits},
    service::Input,
};
use proptest::{collection::vec, prelude::*};
use serde_json::{Value, json};

use crate::support::{
    Handler,
    asker::{Server, ask, modern, questions, yes},
    kept,
    rounds::text,
};

const REVISIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

fn server() -> Server {
    opened("2025-11-25")
}

fn opened(revision: &str) -> Server {
    let mut server = Server::with_components(RoundLimits::default(), |components| {
        let tool = Tool::new("both", to_raw(&json!({"type": "object"})));
        let mut component = RegisteredTool::new(tool, kept(Handler::Plain)).unwrap();
        component.options.timeout = Some(Duration::from_secs(10));
        component.options.concurrency = Some(1);
        components.tools.add(component, true).unwrap();
    });
    server.open(revision, &json!({"elicitation": {}, "sampling": {}, "roots": {}}));
    server
}

fn call(server: &mut Server, id: u64, tool: &str) -> Run {
    request(server, id, tool);
    server.running()
}

fn request(server: &mut Server, id: u64, tool: &str) {
    let params = json!({"name": tool});
    server.receive(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
}

/// Calls a tool whose handler asks under these keys, and waits: the handler, and the ids of the requests.
fn asked(server: &mut Server, id: u64, tool: &str, keys: &[&str]) -> (Run, Vec<Value>) {
    let run = call(server, id, tool);
    let ids = asks(server, &run, keys);
    (run, ids)
}

fn asks(server: &mut Server, run: &Run, keys: &[&str]) -> Vec<Value> {
    for (number, key) in keys.iter().enumerate() {
        server.handle(ask(run, number as u64, key));
    }
    server.handle(Input::Handler(run.id, HandlerEvent::Waits { blocks: false }));
    keys.iter().map(|_| asked_by(server)).collect()
}

fn asked_by(server: &mut Server) -> Value {
    let said = server.next_sent();
    assert_eq!(said["method"], "elicitation/create", "{said}");
    said["id"].clone()
}

fn answer(server: &mut Server, id: &Value) {
    server.receive(&json!({"jsonrpc": "2.0", "id": id, "result": yes()}));
}

fn cancel(server: &mut Server, id: u64) {
    let params = json!({"requestId": id});
    server
        .receive(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
}

fn wait(server: &mut Server, seconds: u64) {
    server.now += Duration::from_secs(seconds);
    server.handle(Input::Tick);
}

fn done(server: &mut Server, run: &Run, text: &str) {
    server.done(run, Ok(Reply::Text(text.into())));
}

/// Checks that no call has left state: the next one runs at once, and there is no deadline.
fn is_clean(server: &mut Server) {
    assert_eq!(server.in_flight(), 0);
    for id in [90, 91] {
        let run = call(server, id, "both");
        done(server, &run, "clean");
        assert_eq!(text(&server.next_sent()), (id, "clean"));
    }
    assert_eq!((server.in_flight(), server.deadline()), (0, None));
    assert!(server.runs.is_empty() && server.sent.is_empty());
}

#[test]
fn a_handlers_timeout_is_suspended_while_it_waits() {
    for revision in REVISIONS.into_iter().skip(2) {
        let mut server = opened(revision);
        let run = call(&mut server, 1, "slow");
        wait(&mut server, 4);
        for key in ["a", "b"] {
            let ids = asks(&mut server, &run, &[key]);
            wait(&mut server, 60);
            assert!(server.cancelled.is_empty() && server.sent.is_empty(), "{revision}");
            answer(&mut server, &ids[0]);
            assert_eq!(server.answered.pop(), Some(Ok(yes())));
            wait(&mut server, 2);
            assert!(server.sent.is_empty(), "{revision}");
        }
        wait(&mut server, 2);
        assert_eq!(text(&server.next_sent()), (1, "tool \"slow\" took longer than its 10 s"));
        assert_eq!(server.cancelled, [run.id]);
        is_clean(&mut server);
    }
}

#[test]
fn a_waiting_handler_releases_its_slot_and_queues_for_it_again() {
    let mut server = server();
    let (first, ids) = asked(&mut server, 1, "both", &["a"]);
    let second = call(&mut server, 2, "both");
    request(&mut server, 3, "both");
    assert!(server.runs.is_empty(), "one runs at once");
    answer(&mut server, &ids[0]);
    assert!(server.answered.is_empty(), "it waits in line");
    assert_eq!(server.in_flight(), 3);
    // In line no time passes for it.
    server.now += Duration::from_secs(5);
    done(&mut server, &second, "second");
    assert_eq!(text(&server.next_sent()), (2, "second"));
    let third = server.running();
    assert!(server.answered.is_empty(), "others came before it");
    server.now += Duration::from_secs(9);
    done(&mut server, &third, "third");
    assert_eq!(text(&server.next_sent()), (3, "third"));
    assert_eq!(server.answered, [Ok(yes())]);
    request(&mut server, 4, "both");
    assert!(server.runs.is_empty(), "its place is taken again");
    wait(&mut server, 9);
    done(&mut server, &first, "first");
    assert_eq!(text(&server.next_sent()), (1, "first"));
    let fourth = server.running();
    done(&mut server, &fourth, "fourth");
    assert_eq!(text(&server.next_sent()), (4, "fourth"));
    is_clean(&mut server);
}

#[test]
fn waiting_ends_after_the_time_to_live_of_suspended_handlers() {
    for (tool, revision) in [("tool", "2025-06-18"), ("both", "2025-11-25")] {
        let mut server = opened(revision);
        let limits = RoundLimits::default();
        let (run, ids) = asked(&mut server, 1, tool, &["a", "b"]);
        answer(&mut server, &ids[0]);
        assert_eq!(server.answered.len(), 1, "what is known is told");
        server.now += limits.suspended_ttl.checked_sub(Duration::from_secs(1)).unwrap();
        server.handle(Input::Tick);
        assert!(server.sent.is_empty());
        wait(&mut server, 1);
        let withdrawn = server.next_sent();
        assert_eq!(withdrawn["method"], "notifications/cancelled");
        assert_eq!(withdrawn["params"]["requestId"], ids[1]);
        let said = server.next_sent();
        let problem = format!(
            "tool {tool:?} waited 300 s for its client's answer, and none came (option suspended_ttl)"
        );
        assert_eq!(text(&said), (1, &*problem));
        assert_eq!(said["result"]["isError"], true);
        assert_eq!(server.cancelled, [run.id]);
        // Later messages of the handler or its client are dropped.
        done(&mut server, &run, "too late");
        answer(&mut server, &ids[1]);
        assert!(server.sent.is_empty());
        is_clean(&mut server);
    }
}

#[test]
fn answers_are_delivered_at_once_and_the_last_one_when_a_slot_is_free() {
    let mut server = server();
    let (first, ids) = asked(&mut server, 1, "both", &["a", "b"]);
    let second = call(&mut server, 2, "both");
    answer(&mut server, &ids[1]);
    assert_eq!(server.answered.len(), 1);
    answer(&mut server, &ids[0]);
    assert_eq!(server.answered.len(), 1, "it waits in line");
    done(&mut server, &second, "second");
    assert_eq!(server.answered.len(), 2);
    done(&mut server, &first, "first");
    assert_eq!(text(&server.next_sent()), (2, "second"));
    assert_eq!(text(&server.next_sent()), (1, "first"));
    is_clean(&mut server);
}

#[test]
fn a_queued_handler_that_asks_again_waits_for_its_client() {
    let mut server = server();
    let (first, ids) = asked(&mut server, 1, "both", &["a"]);
    let second = call(&mut server, 2, "both");
    answer(&mut server, &ids[0]);
    // Another task of the same handler's asks.
    server.handle(ask(&first, 7, "b"));
    let more = asked_by(&mut server);
    server.handle(Input::Handler(first.id, HandlerEvent::Waits { blocks: false }));
    assert_eq!(server.answered.len(), 1, "while it waits for another, each answer is told");
    done(&mut server, &second, "second");
    assert_eq!(text(&server.next_sent()), (2, "second"));
    wait(&mut server, 60);
    answer(&mut server, &more);
    assert_eq!(server.answered.len(), 2);
    done(&mut server, &first, "first");
    assert_eq!(text(&server.next_sent()), (1, "first"));
    is_clean(&mut server);
}

#[test]
fn an_early_answer_does_not_suspend_the_timeout() {
    let mut server = server();
    let run = call(&mut server, 1, "both");
    server.handle(ask(&run, 0, "a"));
    let id = asked_by(&mut server);
    answer(&mut server, &id);
    assert_eq!(server.answered.len(), 1);
    server.handle(Input::Handler(run.id, HandlerEvent::Waits { blocks: true }));
    request(&mut server, 2, "both");
    assert!(server.runs.is_empty(), "it runs");
    wait(&mut server, 10);
    assert_eq!(text(&server.next_sent()), (1, "tool \"both\" took longer than its 10 s"));
    let run = server.running();
    done(&mut server, &run, "second");
    server.next_sent();
    is_clean(&mut server);
}

#[test]
fn handlers_that_end_while_waiting_or_queued_leave_no_state() {
    for is_in_line in [false, true] {
        for ends in ["cancelled", "done", "failed"] {
            let mut server = server();
            let (first, ids) = asked(&mut server, 1, "both", &["a"]);
            let second = call(&mut server, 2, "both");
            if is_in_line {
                answer(&mut server, &ids[0]);
            }
            match ends {
                "cancelled" => {
                    cancel(&mut server, 1);
                    assert_eq!(server.cancelled, [first.id]);
                }
                "done" => done(&mut server, &first, "without it"),
                _ => server.done(&first, Err(gudgeon::router::Failure::Exposed("no".into()))),
            }
            let said: Vec<_> = server.sent.drain(..).collect();
            let withdrawn =
                said.iter().any(|message| message["method"] == "notifications/cancelled");
            assert_eq!(withdrawn, !is_in_line, "{ends} {said:?}");
            assert_eq!(
                said.iter().any(|message| message["id"] == 1),
                ends != "cancelled",
                "{said:?}"
            );
            request(&mut server, 3, "both");
            assert!(server.runs.is_empty(), "one runs still");
            done(&mut server, &second, "second");
            assert_eq!(text(&server.next_sent()), (2, "second"));
            let third = server.running();
            done(&mut server, &third, "third");
            assert_eq!(text(&server.next_sent()), (3, "third"));
            assert!(server.answered.is_empty(), "{ends}");
            is_clean(&mut server);
        }
    }
}

#[test]
fn a_client_that_leaves_ends_the_wait() {
    for is_in_line in [false, true] {
        let mut server = server();
        let (first, ids) = asked(&mut server, 1, "both", &["a"]);
        let second = call(&mut server, 2, "both");
        if is_in_line {
            answer(&mut server, &ids[0]);
        }
        server.handle(Input::Closed);
        server.cancelled.sort_unstable();
        assert_eq!(server.cancelled, [first.id, second.id]);
        assert!(server.answered.is_empty());
        assert_eq!((server.in_flight(), server.deadline()), (0, None));
    }
}

#[test]
fn returned_questions_count_against_neither_timeout_nor_concurrency() {
    let mut server = server();
    let first = call(&mut server, 1, "both");
    wait(&mut server, 9);
    server.done(&first, Ok(questions(&["a", "b"])));
    let ids = [asked_by(&mut server), asked_by(&mut server)];
    let second = call(&mut server, 2, "both");
    wait(&mut server, 9);
    done(&mut server, &second, "second");
    assert_eq!(text(&server.next_sent()), (2, "second"));
    wait(&mut server, 200);
    assert!(server.sent.is_empty());
    let third = call(&mut server, 3, "both");
    for id in &ids {
        answer(&mut server, id);
    }
    assert!(server.runs.is_empty(), "it waits in line");
    done(&mut server, &third, "third");
    assert_eq!(text(&server.next_sent()), (3, "third"));
    let again = server.running();
    wait(&mut server, 9);
    done(&mut server, &again, "first");
    assert_eq!(text(&server.next_sent()), (1, "first"));
    is_clean(&mut server);
}

#[test]
fn unanswered_returned_questions_expire() {
    let mut server = server();
    for ends in ["late", "cancelled", "refused"] {
        let run = call(&mut server, 1, "both");
        server.done(&run, Ok(questions(&["a"])));
        let id = asked_by(&mut server);
        match ends {
            "late" => {
                wait(&mut server, 300);
                assert_eq!(server.next_sent()["method"], "notifications/cancelled");
                let said = server.next_sent();
                assert!(text(&said).1.contains("(option suspended_ttl)"), "{said}");
            }
            "cancelled" => {
                cancel(&mut server, 1);
                assert_eq!(server.next_sent()["method"], "notifications/cancelled");
            }
            _ => {
                let error = json!({"code": -1, "message": "no"});
                server.receive(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
                assert_eq!(server.next_sent()["error"]["message"], "no");
            }
        }
        is_clean(&mut server);
    }
}

#[test]
fn a_tool_that_must_not_run_again_can_not_return_questions() {
    let problem = "the handler returned a question, though its tool forbids being run again (replay=\"forbid\"): call \
                   ctx.elicit, ctx.sample or ctx.roots instead, or remove replay=\"forbid\"";
    for revision in REVISIONS {
        let mut server = opened(revision);
        let run = call(&mut server, 1, "forbids");
        server.done(&run, Ok(questions(&["a"])));
        let said = server.next_sent();
        assert_eq!(text(&said), (1, problem));
        assert_eq!(said["result"]["isError"], true);
        is_clean(&mut server);
    }
    let mut server = Server::new();
    let able = json!({"elicitation": {}});
    server.receive(&modern(1, &able, &json!({"name": "forbids"})));
    let run = server.running();
    server.done(&run, Ok(questions(&["a"])));
    let said = server.next_sent();
    assert_eq!((text(&said), &said["result"]["isError"]), ((1, problem), &json!(true)));
    // A suspended handler does not either.
    server.receive(&modern(2, &able, &json!({"name": "forbids"})));
    let run = server.running();
    server.handle(ask(&run, 0, "a"));
    server.handle(Input::Handler(run.id, HandlerEvent::Waits { blocks: false }));
    let state = server.next_sent()["result"]["requestState"].clone();
    server.done(&run, Ok(questions(&["b"])));
    let rest = json!({"name": "forbids", "requestState": state, "inputResponses": {"a": yes()}});
    server.receive(&modern(3, &able, &rest));
    assert_eq!(text(&server.next_sent()), (3, problem));
    assert!(server.runs.is_empty());
    assert_eq!(server.in_flight(), 0);
}

/// A possible event; the number selects one of the calls that it can apply to.
#[derive(Clone, Debug)]
enum CallStep {
    Call,
    Ask(usize),
    Answer(usize),
    End(usize),
    Return(usize),
    Cancel(usize),
    Wait(u64),
}

fn step() -> impl Strategy<Value = CallStep> {
    prop_oneof![
        3 => Just(CallStep::Call),
        4 => (0..8_usize).prop_map(CallStep::Ask),
        4 => (0..8_usize).prop_map(CallStep::Answer),
        2 => (0..8_usize).prop_map(CallStep::End),
        2 => (0..8_usize).prop_map(CallStep::Return),
        1 => (0..8_usize).prop_map(CallStep::Cancel),
        1 => (1..200_u64).prop_map(CallStep::Wait),
    ]
}

/// Handlers of the tool `both` as their shell knows them, and questions that are open at the client.
#[derive(Default)]
struct Scene {
    next: u64,
    running: Vec<Run>,
    open: Vec<Value>,
}

impl Scene {
    fn act(&mut self, server: &mut Server, step: &CallStep) {
        self.next += 1;
        let key = format!("key-{}", self.next);
        let of = |number: usize, all: usize| (all > 0).then(|| number % all);
        match *step {
            CallStep::Call => request(server, self.next, "both"),
            CallStep::Ask(number) => {
                let Some(at) = of(number, self.running.len()) else { return };
                let call = self.running[at].id;
                server.handle(ask(&self.running[at], self.next, &key));
                server.handle(Input::Handler(call, HandlerEvent::Waits { blocks: false }));
            }
            CallStep::Answer(number) => {
                let Some(at) = of(number, self.open.len()) else { return };
                let id = self.open.swap_remove(at);
                answer(server, &id);
            }
            CallStep::End(number) => {
                let Some(at) = of(number, self.running.len()) else { return };
                let run = self.running.swap_remove(at);
                done(server, &run, "done");
            }
            CallStep::Return(number) => {
                let Some(at) = of(number, self.running.len()) else { return };
                let run = self.running.swap_remove(at);
                server.done(&run, Ok(questions(&[&key])));
            }
            CallStep::Cancel(number) => {
                let Some(at) = of(number, self.running.len()) else { return };
                let id = self.running[at].context.request_id.clone();
                let id: u64 = id.unwrap().as_json().parse().unwrap();
                cancel(server, id);
            }
            CallStep::Wait(seconds) => wait(server, seconds),
        }
        self.running.append(&mut server.runs);
        for said in server.sent.drain(..) {
            match said["method"].as_str() {
                Some("elicitation/create") => self.open.push(said["id"].clone()),
                Some(_) => self.open.retain(|id| *id != said["params"]["requestId"]),
                None => (),
            }
        }
        let cancelled: Vec<_> = server.cancelled.drain(..).collect();
        self.running.retain(|run| !cancelled.contains(&run.id));
        server.answered.clear();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_sequence_of_events_loses_a_slot_or_waits_forever(steps in vec(step(), 1..60)) {
        let mut server = server();
        let mut scene = Scene::default();
        for step in &steps {
            scene.act(&mut server, step);
        }
        // Running handlers end, and waiting ones expire.
        while server.in_flight() > 0 {
            match scene.running.is_empty() {
                false => scene.act(&mut server, &CallStep::End(0)),
                true => scene.act(&mut server, &CallStep::Wait(300)),
            }
        }
        server.runs.clear();
        is_clean(&mut server);
    }
}
