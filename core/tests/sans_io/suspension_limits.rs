//! Limits of suspended handlers: their number, size and time to live.

use std::time::Duration;

use gudgeon::{engine::HandlerEvent, engine::RunId, router::RoundLimits, service::Input};
use serde_json::json;

use self::{
    asker::{Server, ask, yes},
    rounds::{asked, asks, call, done, refused, retry, state, text, waits},
};

use crate::support::{asker, rounds};

#[test]
fn with_a_full_table_a_tool_that_forbids_replay_can_not_ask() {
    let mut server = Server::with(RoundLimits { suspended_limit: 1, ..RoundLimits::default() });
    let (_, first) = asked(&mut server, 1, "forbids", &["a"]);
    server.receive(&call(2, "forbids", &json!({})));
    let run = server.running();
    server.handle(ask(&run, 0, "a"));
    let problem = server.answered.pop().unwrap().unwrap_err();
    assert!(problem.contains("too many handlers wait"), "{problem}");
    server.handle(waits(&run));
    assert!(server.sent.is_empty());
    // A tool that allows replays asks anyway, and is replayed.
    let (run, state) = asked(&mut server, 3, "tool", &["a"]);
    assert_eq!(server.cancelled, [run.id]);
    server.receive(&retry(4, "tool", &state, &json!({"a": yes()})));
    assert_eq!(server.runs.len(), 1);
    server.receive(&retry(5, "forbids", &first, &json!({"a": yes()})));
    assert_eq!(server.resumed.len(), 1);
}

#[test]
fn threads_of_tools_that_forbid_replay_are_limited() {
    let mut server = Server::with(RoundLimits { suspended_threads: 1, ..RoundLimits::default() });
    let blocking = |server: &mut Server, id, tool| {
        server.receive(&call(id, tool, &json!({})));
        let run = server.running();
        server.handle(ask(&run, 0, "a"));
        server.handle(ask(&run, 1, "b"));
        server.handle(Input::Handler(run.id, HandlerEvent::Waits { blocks: true }));
        run
    };
    blocking(&mut server, 1, "forbids");
    state(&mut server, &["a", "b"]);
    let run = blocking(&mut server, 2, "forbids");
    assert!(server.sent.is_empty(), "it is not asked, since it could not wait");
    for _ in 0..2 {
        let problem = server.answered.pop().unwrap().unwrap_err();
        assert!(problem.contains("too many handlers wait"), "{problem}");
    }
    done(&mut server, &run, "later, then");
    assert_eq!(text(&server.next_sent()), (2, "later, then"));
    // Others hold no thread, or run again.
    asked(&mut server, 3, "forbids", &["a"]);
    let run = blocking(&mut server, 4, "tool");
    assert_eq!(server.cancelled, [run.id]);
}

#[test]
fn overlong_durations_mean_no_limit() {
    let limits = RoundLimits {
        state_ttl: Duration::MAX,
        suspended_ttl: Duration::MAX,
        ..RoundLimits::default()
    };
    let mut server = Server::with(limits);
    let (run, state) = asked(&mut server, 1, "tool", &["a"]);
    server.receive(&retry(2, "tool", &state, &json!({"a": yes()})));
    assert_eq!(server.resumed.len(), 1);
    done(&mut server, &run, "at last");
    assert_eq!(text(&server.next_sent()), (2, "at last"));
}

#[test]
fn the_oldest_suspended_handler_is_evicted_for_the_newest() {
    let limits = RoundLimits { suspended_limit: 3, suspended_threads: 1, ..RoundLimits::default() };
    let mut server = Server::with(limits);
    let mut calls = Vec::new();
    for id in 1..=4 {
        calls.push(asked(&mut server, id, "tool", &["a"]).0.id);
    }
    assert_eq!(server.cancelled, calls[..1]);
    // The limit includes handlers that hold a thread.
    let mut blocking = |id| {
        server.receive(&call(id, "tool", &json!({})));
        let run = server.running();
        server.handle(ask(&run, 0, "a"));
        server.handle(Input::Handler(run.id, HandlerEvent::Waits { blocks: true }));
        state(&mut server, &["a"]);
        run.id
    };
    let (first, second): (RunId, RunId) = (blocking(5), blocking(6));
    assert_eq!(server.cancelled, [calls[0], calls[1], calls[2], first]);
    assert!(!server.cancelled.contains(&second));
}

#[test]
fn handlers_that_hold_threads_are_limited() {
    let mut server = Server::new();
    let mut states = Vec::new();
    for id in 0..1_000 {
        server.receive(&call(id, "tool", &json!({})));
        let run = server.running();
        server.handle(ask(&run, 0, "a"));
        server.handle(Input::Handler(run.id, HandlerEvent::Waits { blocks: true }));
        states.push(state(&mut server, &["a"]));
    }
    assert_eq!(server.cancelled.len(), 1_000 - RoundLimits::default().suspended_threads);
    for (id, state) in (1_000..).zip(&states) {
        server.receive(&retry(id, "tool", state, &json!({"a": yes()})));
    }
    assert_eq!(server.resumed.len(), RoundLimits::default().suspended_threads);
    assert_eq!(server.resumed.len() + server.runs.len(), 1_000);
}

#[test]
fn suspended_handlers_are_limited_by_bytes_as_well() {
    let mut server = Server::new();
    let long = "x".repeat(1024 * 1024);
    for id in 1..=40 {
        server.receive(&call(id, "tool", &json!({"arguments": {"long": long}})));
        let run = server.running();
        asks(&mut server, &run, &["a"]);
    }
    // Each is kept twice, as it came and as its handler was given it.
    assert_eq!(server.cancelled.len(), 9, "64 MiB hold 31 of them");
    assert_eq!(server.cancelled[0], RunId(0));
}

#[test]
fn suspension_ends_after_its_time_to_live() {
    let mut server = Server::new();
    let limits = RoundLimits::default();
    let (run, state) = asked(&mut server, 1, "tool", &["a"]);
    assert_eq!(server.service.deadline(), Some(server.now + limits.suspended_ttl));
    server.now += limits.suspended_ttl;
    server.handle(Input::Tick);
    assert_eq!(server.cancelled, [run.id]);
    // Its later messages are dropped.
    done(&mut server, &run, "too late");
    assert!(server.sent.is_empty());
    server.receive(&retry(2, "tool", &state, &json!({"a": yes()})));
    assert_eq!(server.runs.len(), 1, "its client may still answer");
    server.now += limits.state_ttl;
    server.receive(&retry(3, "tool", &state, &json!({"a": yes()})));
    assert!(refused(&server.next_sent()));
    assert!(server.reports.pop().unwrap().contains("expired"));
}

#[test]
fn waiting_counts_against_neither_the_timeout_nor_the_limit_of_calls_at_once() {
    let mut server = Server::new();
    let (run, state) = asked(&mut server, 1, "slow", &["a"]);
    server.now += Duration::from_secs(60);
    server.handle(Input::Tick);
    assert!(server.cancelled.is_empty());
    server.receive(&retry(2, "slow", &state, &json!({"a": yes()})));
    server.now += Duration::from_secs(9);
    server.handle(Input::Tick);
    assert!(server.sent.is_empty());
    server.now += Duration::from_secs(1);
    server.handle(Input::Tick);
    assert_eq!(server.next_sent()["result"]["isError"], true);
    assert_eq!(server.cancelled, [run.id]);

    let (first, state) = asked(&mut server, 3, "alone", &["a"]);
    server.receive(&call(4, "alone", &json!({})));
    let second = server.running();
    server.receive(&retry(5, "alone", &state, &json!({"a": yes()})));
    assert!(server.resumed.len() == 1, "it waits in line");
    done(&mut server, &second, "second");
    assert_eq!(text(&server.next_sent()), (4, "second"));
    assert_eq!(server.resumed.last().unwrap().0, first.id);
    done(&mut server, &first, "first");
    assert_eq!(text(&server.next_sent()), (5, "first"));
}
