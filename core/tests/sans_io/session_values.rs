//! The values of `ctx.session`, with a store: they are there at whichever process the client's next request comes to.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use gudgeon::{
    driver::SessionTable,
    engine::Start,
    http::{EndpointConfig, EndpointInput},
    router::Reply,
    session::server::ValueChanges,
    store::{Expect, StoreOperation, StoreReply},
};
use serde_json::{Value, json};

use crate::support::{fixture, request::Request, visitor::Visitor};

/// The time after which a process does not believe any more that there are no values.
const MOMENT: Duration = Duration::from_millis(250);

/// Two processes with a store.
struct Replicas {
    processes: [Visitor; 2],
    values: BTreeMap<String, (Vec<u8>, u64)>,
    /// The values that each host has.
    hosts: [SessionTable<()>; 2],
    version: u64,
    gets: usize,
    is_away: bool,
}

impl Replicas {
    fn new() -> Self {
        let mut replicas = Self {
            processes: [process(0), process(1)],
            values: BTreeMap::new(),
            hosts: [SessionTable::default(), SessionTable::default()],
            version: 0,
            gets: 0,
            is_away: false,
        };
        replicas.settle();
        replicas
    }

    /// Carries out operations and passes messages on until there are no more.
    fn settle(&mut self) {
        for _ in 0..200 {
            for from in 0..2 {
                for (ticket, operation) in std::mem::take(&mut self.processes[from].stored) {
                    let reply = self.carry_out(operation);
                    self.processes[from].handle(EndpointInput::Stored(ticket, reply));
                }
            }
        }
    }

    fn carry_out(&mut self, operation: StoreOperation) -> StoreReply {
        if self.is_away {
            return StoreReply::Failed("it is away".into());
        }
        match operation {
            StoreOperation::Get { key } => {
                self.gets += 1;
                StoreReply::Found(self.values.get(&key).cloned())
            }
            StoreOperation::Put { key, value, expect, .. } => {
                let found = self.values.get(&key).map(|(_, version)| *version);
                let is_expected = match expect {
                    Expect::Any => true,
                    Expect::Absent => found.is_none(),
                    Expect::Version(version) => found == Some(version),
                };
                if !is_expected {
                    return StoreReply::Conflict;
                }
                self.version += 1;
                self.values.insert(key, (value, self.version));
                StoreReply::Stored(self.version)
            }
            StoreOperation::Delete { key } => {
                self.values.remove(&key);
                StoreReply::Deleted
            }
            StoreOperation::Append { .. } => StoreReply::Appended(1),
            StoreOperation::Read { .. } => StoreReply::Events(Vec::new()),
            other => panic!("nothing else is stored: {other:?}"),
        }
    }

    fn advance(&mut self, by: Duration) {
        self.processes.iter_mut().for_each(|process| process.advance(by));
        self.settle();
    }

    fn open(&mut self) -> String {
        let session = self.processes[0].open("2025-11-25", json!({}));
        self.settle();
        session
    }

    /// Begins a call. Returns its exchange.
    fn call(&mut self, process: usize, session: &str) -> u64 {
        let exchange = self.processes[process].call(session, 7, "wait");
        self.settle();
        exchange
    }

    /// Returns the values with which the handler of a process began.
    fn values(&self, process: usize) -> Result<Value, String> {
        let run = self.processes[process].runs.first().expect("a handler runs");
        let values = run.context.session_values.as_deref().expect("the store has the values");
        let values = values.as_ref().map_err(ToString::to_string)?;
        let mut table = SessionTable::default();
        let values = table.with_values(&run.context.client, values, || ()).1.changes;
        let values = values.into_iter().map(|(name, value)| {
            let value: Value = serde_json::from_str(value.expect("it is new").get()).unwrap();
            (name, value)
        });
        Ok(values.collect())
    }

    /// Ends the handler of a process, which leaves these values.
    fn finish(&mut self, process: usize, values: &Value) {
        let left = self.left(process, &values.to_string());
        let visitor = &mut self.processes[process];
        let run = visitor.runs[0].id;
        visitor.handle(EndpointInput::LeftValues(run, left));
        visitor.finish(Ok(Reply::Text("done".into())));
    }

    /// Returns what the handler of a process has changed, which leaves these values.
    fn left(&mut self, process: usize, values: &str) -> Result<ValueChanges, String> {
        let context = &self.processes[process].runs[0].context;
        let host = &mut self.hosts[process];
        let Some(Ok(read)) = context.session_values.as_deref() else { panic!("it has no values") };
        let _ = host.with_values(&context.client, read, || ());
        host.changes_of(&context.client, values)
    }

    /// Has a handler of a process leave these values.
    fn set(&mut self, process: usize, session: &str, values: &Value) -> u64 {
        let exchange = self.call(process, session);
        self.finish(process, values);
        self.settle();
        self.advance(MOMENT);
        exchange
    }
}

fn process(number: u8) -> Visitor {
    let start = Start { now: Instant::now(), unix: 1_000_000, seed: [number; 32], test_mode: None };
    let mut visitor = Visitor::started(fixture::components(), EndpointConfig::default(), &start);
    visitor.endpoint.set_state_keys(&[vec![7; 32]]);
    visitor.endpoint.share();
    visitor.endpoint.use_store();
    visitor
}

#[test]
fn the_next_request_finds_the_values_at_any_process() {
    let mut replicas = Replicas::new();
    let session = replicas.open();
    replicas.set(0, &session, &json!({"cart": ["apple"], "visits": 1}));
    replicas.call(1, &session);
    assert_eq!(replicas.values(1), Ok(json!({"cart": ["apple"], "visits": 1})));
    replicas.finish(1, &json!({"visits": 2}));
    replicas.advance(MOMENT);
    replicas.call(0, &session);
    assert_eq!(replicas.values(0), Ok(json!({"visits": 2})));
    let other = replicas.open();
    replicas.call(1, &other);
    assert_eq!(replicas.values(1), Ok(json!({})), "each session has its own");
}

#[test]
fn a_reply_waits_until_the_values_are_stored() {
    let mut replicas = Replicas::new();
    let session = replicas.open();
    let exchange = replicas.call(0, &session);
    replicas.finish(0, &json!({"a": 1}));
    assert!(!replicas.processes[0].replies.contains_key(&exchange));
    replicas.settle();
    replicas.advance(MOMENT);
    assert_eq!(replicas.processes[0].reply(exchange).status, 200);
}

#[test]
fn values_that_other_processes_change_at_the_same_time_are_kept() {
    let mut replicas = Replicas::new();
    let session = replicas.open();
    replicas.set(0, &session, &json!({"old": 0, "gone": 0}));
    let exchanges = [replicas.call(0, &session), replicas.call(1, &session)];
    replicas.finish(0, &json!({"old": 0, "gone": 0, "a": 1}));
    replicas.finish(1, &json!({"old": 5, "b": 2}));
    replicas.settle();
    replicas.advance(MOMENT);
    for (process, exchange) in exchanges.into_iter().enumerate() {
        assert_eq!(replicas.processes[process].reply(exchange).status, 200);
    }
    replicas.call(0, &session);
    assert_eq!(replicas.values(0), Ok(json!({"old": 5, "a": 1, "b": 2})));
}

#[test]
fn a_name_that_another_process_removed_is_gone() {
    let mut replicas = Replicas::new();
    let session = replicas.open();
    replicas.set(0, &session, &json!({"user": "ada"}));
    replicas.set(1, &session, &json!({}));
    replicas.call(0, &session);
    assert_eq!(replicas.values(0), Ok(json!({})));
    replicas.finish(0, &json!({}));
    replicas.settle();
    replicas.call(1, &session);
    assert_eq!(replicas.values(1), Ok(json!({})));
}

#[test]
fn many_handlers_of_one_session_may_end_at_once() {
    let mut replicas = Replicas::new();
    let session = replicas.open();
    replicas.set(0, &session, &json!({"n": 0}));
    let exchanges: Vec<_> = (0..40)
        .map(|id| {
            let exchange = replicas.processes[0].call(&session, 100 + id, "wait");
            replicas.settle();
            exchange
        })
        .collect();
    for number in 1..=40 {
        replicas.finish(0, &json!({"n": number}));
    }
    replicas.settle();
    for exchange in exchanges {
        let reply = replicas.processes[0].reply(exchange);
        assert!(reply.body.contains("done"), "{reply:?}");
    }
    replicas.call(1, &session);
    assert_eq!(replicas.values(1), Ok(json!({"n": 40})));
}

#[test]
fn a_server_without_values_asks_for_them_now_and_then() {
    let mut replicas = Replicas::new();
    let session = replicas.open();
    let finish = |replicas: &mut Replicas| {
        replicas.processes[1].finish(Ok(Reply::Text("done".into())));
    };
    replicas.call(1, &session);
    finish(&mut replicas);
    let before = replicas.gets;
    for _ in 0..10 {
        replicas.call(1, &session);
        assert_eq!(replicas.values(1), Ok(json!({})));
        finish(&mut replicas);
        replicas.set(1, &session, &json!({}));
        // The clock of the processes has moved.
        replicas.call(1, &session);
        finish(&mut replicas);
    }
    assert_eq!(replicas.gets, before + 20, "it reads two values in each moment");
    assert!(replicas.values.is_empty());
}

#[test]
fn the_first_values_are_stored_once_all_processes_look_for_them() {
    let mut replicas = Replicas::new();
    let session = replicas.open();
    replicas.call(1, &session);
    replicas.processes[1].finish(Ok(Reply::Text("it believes that there are no values".into())));
    let exchange = replicas.call(0, &session);
    replicas.finish(0, &json!({"a": 1}));
    replicas.settle();
    let not_yet = MOMENT.checked_sub(Duration::from_millis(1)).unwrap();
    replicas.advance(not_yet);
    assert!(!replicas.processes[0].replies.contains_key(&exchange));
    replicas.advance(Duration::from_millis(1));
    assert_eq!(replicas.processes[0].reply(exchange).status, 200);
    replicas.call(1, &session);
    assert_eq!(replicas.values(1), Ok(json!({"a": 1})));
    replicas.finish(1, &json!({"a": 2}));
    replicas.advance(MOMENT);
    let exchange = replicas.call(0, &session);
    replicas.finish(0, &json!({"a": 3}));
    replicas.settle();
    assert_eq!(replicas.processes[0].reply(exchange).status, 200, "all others at once");
}

#[test]
fn without_its_store_only_the_values_are_missing() {
    let mut replicas = Replicas::new();
    let session = replicas.open();
    replicas.set(0, &session, &json!({"a": 1}));
    replicas.is_away = true;
    let exchange = replicas.call(1, &session);
    let reason = replicas.values(1).expect_err("there are no values");
    assert_eq!(reason, "the store failed: it is away");
    replicas.processes[1].finish(Ok(Reply::Text("done".into())));
    assert_eq!(replicas.processes[1].reply(exchange).status, 200);
}

#[test]
fn a_store_that_does_not_reply_holds_up_handlers_once() {
    let mut replicas = Replicas::new();
    let session = replicas.open();
    replicas.set(0, &session, &json!({"a": 1}));
    let visitor = &mut replicas.processes[1];
    visitor.call(&session, 7, "wait");
    assert!(visitor.runs.is_empty());
    visitor.advance(Duration::from_secs(1));
    visitor.call(&session, 8, "wait");
    assert_eq!(visitor.runs.len(), 2, "it waits no longer");
    while let Some(run) = visitor.runs.last() {
        let values = run.context.session_values.as_deref().expect("the store has the values");
        let reason = values.as_ref().expect_err("it is silent");
        assert_eq!(&**reason, "the store does not reply within 1s");
        visitor.finish(Ok(Reply::Text("done".into())));
    }
    replicas.settle();
    replicas.call(1, &session);
    assert_eq!(replicas.values(1), Ok(json!({"a": 1})), "the store is back");
}

#[test]
fn a_value_that_is_something_else_concerns_its_session_only() {
    let mut replicas = Replicas::new();
    let [broken, other] = [replicas.open(), replicas.open()];
    replicas.set(0, &broken, &json!({"a": 1}));
    for (value, _) in replicas.values.values_mut().filter(|(value, _)| !value.is_empty()) {
        *value = b"[1]".to_vec();
    }
    replicas.call(1, &broken);
    assert_eq!(replicas.values(1), Err("the store has something else in their place".into()));
    replicas.processes[1].runs.clear();
    replicas.call(1, &other);
    assert_eq!(replicas.values(1), Ok(json!({})));
}

#[test]
fn a_handler_whose_values_are_not_stored_fails() {
    let mut replicas = Replicas::new();
    let session = replicas.open();
    let away = replicas.call(0, &session);
    replicas.is_away = true;
    replicas.finish(0, &json!({"a": 1}));
    replicas.settle();
    replicas.is_away = false;
    let large = replicas.set(0, &session, &json!({"a": "x".repeat(256 * 1024)}));
    let invalid = replicas.call(0, &session);
    let left = replicas.left(0, "[]");
    let run = replicas.processes[0].runs[0].id;
    replicas.processes[0].handle(EndpointInput::LeftValues(run, left));
    replicas.processes[0].finish(Ok(Reply::Text("done".into())));
    let reports = replicas.processes[0].reports.join("\n");
    for (exchange, reason) in [
        (away, "the store failed: it is away"),
        (large, "take 262152 bytes, and 262144 can be stored"),
        (invalid, "invalid type: sequence"),
    ] {
        let reply = replicas.processes[0].reply(exchange).json();
        assert_eq!(reply["result"]["isError"], true, "{reply}");
        assert!(reports.contains(reason), "{reports}");
    }
    assert!(replicas.values.values().all(|(value, _)| value.is_empty()));
}

#[test]
fn a_call_that_is_cancelled_while_its_values_are_read_never_runs() {
    let mut replicas = Replicas::new();
    let session = replicas.open();
    replicas.set(0, &session, &json!({"a": 1}));
    replicas.processes[1].call(&session, 7, "wait");
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
    replicas.processes[1].ask(&Request::of_session(&session, &cancel));
    replicas.settle();
    assert!(replicas.processes[1].runs.is_empty());
    assert!(replicas.processes[1].endpoint.keeps_no_call());
}

#[test]
fn values_end_with_their_session() {
    let mut replicas = Replicas::new();
    let session = replicas.open();
    replicas.set(0, &session, &json!({"a": 1}));
    replicas.set(1, &session, &json!({"a": 2}));
    assert_eq!(replicas.values.len(), 2);
    replicas.processes[1].ask(&Request::bare("DELETE", &session));
    replicas.settle();
    assert_eq!(replicas.values.len(), 1);
}

#[test]
fn a_session_whose_values_are_stored_costs_no_memory() {
    let mut replicas = Replicas::new();
    let session = replicas.open();
    replicas.set(0, &session, &json!({"a": 1}));
    replicas.processes[0].advance(Duration::from_secs(60 * 60));
    replicas.settle();
    assert!(!replicas.processes[0].endpoint.holds_session(&session));
    replicas.call(0, &session);
    assert_eq!(replicas.values(0), Ok(json!({"a": 1})));
}
