//! Metrics of several processes that serve one address: whichever is asked answers for all of them.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use gudgeon::{
    engine::Start,
    http::{EndpointConfig, EndpointInput, ExchangeId, WorkersReply, WorkersRequest},
    metrics::{GoneProcesses, KeptNumbers, ProcessNumbers, added_up, text},
};
use serde_json::json;

use crate::support::{fixture, visitor::Visitor};

/// The number of the first process in the system.
const FIRST: u32 = 100;

/// Processes that exchange messages, and their driver.
struct Workers {
    processes: Vec<Visitor>,
    /// The numbers that processes have kept.
    kept: BTreeMap<u64, ProcessNumbers>,
    /// Processes that take nothing.
    stalled: Vec<usize>,
    /// Processes that were killed, which shows when a message is sent to them.
    killed: Vec<usize>,
}

impl Workers {
    fn new() -> Self {
        let process = |number| {
            let start =
                Start { now: Instant::now(), unix: 1_000_000, seed: [number; 32], test_mode: None };
            let metrics = Some("/metrics".into());
            let config = EndpointConfig { metrics, max_in_flight: 1, ..EndpointConfig::default() };
            let mut visitor = Visitor::started(fixture::components(), config, &start);
            visitor.endpoint.join_workers();
            visitor
        };
        Self {
            processes: (0..3).map(process).collect(),
            kept: BTreeMap::new(),
            stalled: Vec::new(),
            killed: Vec::new(),
        }
    }

    fn number(&self, process: usize) -> u64 {
        self.processes[process].endpoint.process()
    }

    /// Has a process do something, and carries out what follows from it.
    fn at<T>(&mut self, process: usize, act: impl FnOnce(&mut Visitor) -> T) -> T {
        let done = act(&mut self.processes[process]);
        self.settle();
        done
    }

    fn settle(&mut self) {
        for _ in 0..10 {
            for from in 0..self.processes.len() {
                for request in std::mem::take(&mut self.processes[from].workers) {
                    self.carry_out(from, request);
                }
            }
        }
        assert!(self.processes.iter().all(|process| process.workers.is_empty()));
    }

    fn carry_out(&mut self, from: usize, request: WorkersRequest) {
        match request {
            WorkersRequest::List { message } => {
                let all =
                    (0..self.processes.len()).zip(FIRST..).filter(|(other, _)| *other != from);
                let listed = all.map(|(other, worker)| (self.number(other), worker)).collect();
                self.reply(from, WorkersReply::Listed(listed));
                self.send(from, &message);
            }
            WorkersRequest::Keep { message } => {
                self.kept.insert(self.number(from), self.numbers(from));
                if let Some(message) = message {
                    self.send(from, &message);
                }
            }
            WorkersRequest::AddUp { collection, answered, missing } => {
                let others: Vec<_> = self
                    .kept
                    .iter()
                    .filter(|(process, _)| **process != self.number(from))
                    .map(|(process, numbers)| KeptNumbers {
                        process: *process,
                        numbers: numbers.clone(),
                    })
                    .collect();
                let all = added_up(self.numbers(from), &others, &answered, &missing);
                self.reply(from, WorkersReply::AddedUp(collection, text(&all)));
            }
        }
    }

    fn send(&mut self, from: usize, message: &[u8]) {
        for to in (0..self.processes.len()).filter(|to| *to != from) {
            if self.killed.contains(&to) {
                let gone = self.number(to);
                self.reply(from, WorkersReply::Gone(gone));
            } else if !self.stalled.contains(&to) {
                self.processes[to].handle(EndpointInput::Published(message));
            }
        }
    }

    fn reply(&mut self, process: usize, reply: WorkersReply) {
        self.processes[process].handle(EndpointInput::Workers(reply));
    }

    fn numbers(&self, process: usize) -> ProcessNumbers {
        self.processes[process].endpoint.metrics().numbers(&GoneProcesses::default())
    }

    fn call(&mut self, process: usize, times: usize) {
        for _ in 0..times {
            self.at(process, |process| process.modern("tools/call", json!({"name": "nil"})));
        }
    }

    /// Asks a process for the metrics. Returns the exchange.
    fn read(&mut self, process: usize) -> u64 {
        self.at(process, |process| process.send("GET", "/metrics", &[], ""))
    }

    fn advance(&mut self, process: usize, by: Duration) {
        self.at(process, |process| process.advance(by));
    }

    /// Returns the lines of an answer that begin like this, without that.
    fn lines(&self, process: usize, exchange: u64, beginning: &str) -> Vec<String> {
        let reply = self.processes[process].reply(exchange);
        assert_eq!((reply.status, reply.complete), (200, true));
        assert_eq!(reply.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
        let lines = reply.body.lines().filter_map(|line| line.strip_prefix(beginning));
        lines.map(str::to_owned).collect()
    }

    /// Returns the number of calls, the number of processes whose numbers are new, and the processes that are missing.
    fn told(&self, process: usize, exchange: u64) -> (String, String, Vec<String>) {
        let labels = r#"{method="tools/call",name="",outcome="invalid",revision="2026-07-28"} "#;
        let calls = self.lines(process, exchange, &format!("gudgeon_calls_total{labels}"));
        let workers = self.lines(process, exchange, "gudgeon_workers ");
        let missing = self.lines(process, exchange, "gudgeon_workers_missing{");
        (calls.concat(), workers.concat(), missing)
    }
}

fn told(calls: &str, workers: &str, missing: &[&str]) -> (String, String, Vec<String>) {
    (calls.into(), workers.into(), missing.iter().map(|one| (*one).to_owned()).collect())
}

#[test]
fn whichever_process_is_asked_answers_for_all_of_them() {
    let mut workers = Workers::new();
    for (process, times) in [(0, 1), (1, 10), (2, 100)] {
        workers.call(process, times);
    }
    // Also where nothing else is served, because too much is in flight.
    workers.at(1, |process| process.modern("tools/call", json!({"name": "wait"})));
    assert!(workers.processes[1].endpoint.is_full());
    for process in 0..3 {
        let answer = workers.read(process);
        assert_eq!(workers.told(process, answer), told("111", "3", &[]));
        let count = r#"gudgeon_call_duration_seconds_count{method="tools/call",name="",outcome="invalid"} "#;
        assert_eq!(workers.lines(process, answer, count), ["111"]);
    }
}

#[test]
fn a_process_that_does_not_answer_in_time_is_named_and_counts_as_it_did() {
    let mut workers = Workers::new();
    workers.call(2, 10);
    workers.read(0);
    workers.call(2, 100);
    workers.stalled.push(2);
    let answer = workers.read(1);
    assert!(!workers.processes[1].replies.contains_key(&answer));
    workers.advance(1, Duration::from_millis(1_010));
    assert_eq!(workers.told(1, answer), told("10", "2", &[r#"worker="102"} 1"#]));
    workers.stalled.clear();
    let answer = workers.read(1);
    assert_eq!(workers.told(1, answer), told("110", "3", &[]));
}

#[test]
fn processes_that_are_gone_still_count_and_nobody_waits_for_them() {
    let mut workers = Workers::new();
    workers.call(2, 10);
    workers.read(0);
    workers.killed.push(2);
    for process in 0..2 {
        let answer = workers.read(process);
        assert_eq!(workers.told(process, answer), told("10", "2", &[]));
    }
    // The last numbers of one that ends by itself are those of its end.
    workers.call(1, 100);
    workers.at(1, |process| process.handle(EndpointInput::Closed));
    workers.killed.push(1);
    let answer = workers.read(0);
    assert_eq!(workers.told(0, answer), told("110", "1", &[]));
}

#[test]
fn readers_that_come_during_a_collection_get_newer_numbers() {
    let mut workers = Workers::new();
    workers.stalled.push(2);
    let first = workers.read(0);
    workers.call(0, 1);
    let (left, second) = (workers.read(0), workers.read(0));
    workers.at(0, |process| process.handle(EndpointInput::Disconnected(ExchangeId(left))));
    workers.stalled.clear();
    workers.advance(0, Duration::from_millis(1_010));
    assert_eq!(workers.told(0, first).1, "2");
    assert_eq!(workers.told(0, second), told("1", "3", &[]));
    assert!(!workers.processes[0].replies.contains_key(&left));
}

#[test]
fn a_hundred_readers_wait_for_a_driver_that_says_nothing_and_no_more() {
    let mut workers = Workers::new();
    let process = &mut workers.processes[0];
    let waiting: Vec<_> = (0..100).map(|_| process.send("GET", "/metrics", &[], "")).collect();
    let refused = process.send("GET", "/metrics", &[], "");
    assert_eq!(
        (process.reply(refused).status, process.reply(refused).header("retry-after")),
        (503, "1")
    );
    let left = *waiting.last().unwrap();
    process.handle(EndpointInput::Disconnected(ExchangeId(left)));
    process.send("GET", "/metrics", &[], "");
    for _ in 0..10 {
        process.advance(Duration::from_millis(1_010));
    }
    for reader in &waiting[..99] {
        assert_eq!(process.reply(*reader).status, 503);
    }
    assert!(!process.replies.contains_key(&left));
}

#[test]
fn a_process_that_stops_answers_for_all_of_them_to_the_end() {
    let mut workers = Workers::new();
    workers.at(0, |process| process.handle(EndpointInput::ShutDown));
    let answer = workers.read(0);
    assert_eq!(workers.told(0, answer), told("", "3", &[]));
    workers.stalled.push(1);
    let waits = workers.read(0);
    workers.at(0, |process| process.handle(EndpointInput::Closed));
    assert_eq!(workers.processes[0].reply(waits).status, 503);
}

#[test]
fn ages_are_the_greatest_and_all_else_is_added_up() {
    let numbers = |process, age| {
        let numbers = json!({
            "totals": {"refusals": {"host": 2}},
            "amounts": {
                "key_sets": {"a": {"secs": age, "nanos": 0}},
                "streams": age,
                "in_flight": {"now": age, "limit": 1_000},
            },
        });
        KeptNumbers { process, numbers: serde_json::from_value(numbers).unwrap() }
    };
    let own = numbers(1, 5).numbers;
    let others = [numbers(2, 20), numbers(3, 7), numbers(4, 100)];
    let text = text(&added_up(own, &others, &[2, 3], &[]));
    for line in [
        r#"gudgeon_key_set_age_seconds{issuer="a"} 20"#,
        "gudgeon_streams 32",
        "gudgeon_in_flight 32",
        "gudgeon_in_flight_limit 3000",
        r#"gudgeon_refusals_total{reason="host"} 8"#,
        "gudgeon_workers 3",
    ] {
        assert!(text.lines().any(|own| own == line), "{line}: {text}");
    }
}
