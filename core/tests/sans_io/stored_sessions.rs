//! Sessions whose process is gone, with a store: their clients go on at another process.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use gudgeon::{
    engine::{HandlerEvent, Start},
    http::{EndpointConfig, EndpointInput, ExchangeId},
    router::Reply,
    session::server::{ListKind, Progress},
    store::{StoreOperation, StoreReply},
};
use serde_json::{Value, json};

use crate::support::{
    fixture,
    request::{Request, message},
    visitor::Visitor,
};

/// The time after which a stream whose process says nothing has failed.
const LONG: Duration = Duration::from_secs(11);

/// Processes that exchange messages and have a store.
struct Replicas {
    processes: Vec<Option<Visitor>>,
    logs: BTreeMap<String, Vec<Vec<u8>>>,
    /// `true` while the store can't be reached.
    is_away: bool,
}

impl Replicas {
    fn new() -> Self {
        let processes = (0..3).map(|number| Some(process(number))).collect();
        Self { processes, logs: BTreeMap::new(), is_away: false }
    }

    fn at<T>(&mut self, process: usize, act: impl FnOnce(&mut Visitor) -> T) -> T {
        let done = act(self.get_mut(process));
        self.settle();
        done
    }

    fn get_mut(&mut self, process: usize) -> &mut Visitor {
        self.processes[process].as_mut().expect("it lives")
    }

    /// Carries out operations and passes messages on until there are no more.
    fn settle(&mut self) {
        for _ in 0..20 {
            for from in 0..self.processes.len() {
                let Some(process) = &mut self.processes[from] else { continue };
                let operations = std::mem::take(&mut process.stored);
                let messages = std::mem::take(&mut process.published);
                for (ticket, operation) in operations {
                    let reply = self.carry_out(operation);
                    self.get_mut(from).handle(EndpointInput::Stored(ticket, reply));
                }
                for message in messages {
                    let others = self.processes.iter_mut().enumerate();
                    let others = others.filter(|(to, _)| *to != from);
                    for process in others.filter_map(|(_, process)| process.as_mut()) {
                        process.handle(EndpointInput::Published(&message));
                    }
                }
            }
        }
        let is_quiet =
            |process: &Visitor| process.stored.is_empty() && process.published.is_empty();
        assert!(self.processes.iter().flatten().all(is_quiet), "they go on for ever");
    }

    fn carry_out(&mut self, operation: StoreOperation) -> StoreReply {
        if self.is_away {
            return StoreReply::Failed("it is away".into());
        }
        match operation {
            StoreOperation::Append { log, event, max_events, .. } => {
                let log = self.logs.entry(log).or_default();
                log.push(event);
                assert!(log.len() as u64 <= max_events);
                StoreReply::Appended(log.len() as u64)
            }
            StoreOperation::Read { log, after: 0 } => {
                let events = self.logs.get(&log).cloned().unwrap_or_default();
                StoreReply::Events((1..).zip(events).collect())
            }
            StoreOperation::Get { .. } => StoreReply::Found(None),
            other => panic!("nothing else is stored: {other:?}"),
        }
    }

    /// Ends a process as `kill -9` does.
    fn kill(&mut self, process: usize) {
        self.processes[process] = None;
    }

    fn advance(&mut self, by: Duration) {
        let step = Duration::from_secs(1);
        for _ in 0..by.as_secs() {
            self.processes.iter_mut().flatten().for_each(|process| process.advance(step));
            self.settle();
        }
    }

    fn messages(&self, process: usize, exchange: u64) -> Vec<Value> {
        self.processes[process].as_ref().expect("it lives").reply(exchange).messages()
    }

    /// Sends a request that succeeds once the store has replied.
    fn serves(&mut self, process: usize, request: &Request) {
        let asked = self.at(process, |process| process.request(request));
        let reply = self.get_mut(process).reply(asked);
        assert!(reply.status == 200 && reply.json().get("result").is_some(), "{reply:?}");
    }

    fn updates(&self, process: usize, exchange: u64) -> usize {
        let messages = self.messages(process, exchange);
        let is_update = |message: &&Value| message["method"] == "notifications/resources/updated";
        messages.iter().filter(is_update).count()
    }

    /// Opens a session, and a call in process 1 that reports progress once. Returns the session, the exchange, and the id of the
    /// event.
    fn call(&mut self) -> (String, u64, String) {
        let session = self.at(0, |process| process.open("2025-11-25", json!({})));
        let exchange = self.at(1, |process| process.call(&session, 7, "wait"));
        self.report(1, 1.0);
        let (event, _) = self.get_mut(1).reply(exchange).events()[0].clone();
        (session, exchange, event)
    }

    /// Reports progress of the call of a process.
    fn report(&mut self, process: usize, amount: f64) {
        self.report_only(process, amount);
        self.settle();
    }

    /// Reports progress; the store does not reply yet.
    fn report_only(&mut self, process: usize, amount: f64) {
        let process = self.get_mut(process);
        let progress = Progress { progress: amount, total: None, message: None };
        let run = process.runs[0].id;
        process.handle(EndpointInput::Handler(run, HandlerEvent::Progress(progress)));
    }

    fn finish(&mut self, process: usize) {
        self.at(process, |process| process.finish(Ok(Reply::Text("done".into()))));
    }
}

fn process(number: u8) -> Visitor {
    let start = Start { now: Instant::now(), unix: 1_000_000, seed: [number; 32], test_mode: None };
    let mut visitor = Visitor::started(fixture::components(), EndpointConfig::default(), &start);
    visitor.endpoint.use_store();
    visitor.endpoint.share();
    visitor
}

fn progress_of(messages: &[Value]) -> Vec<&Value> {
    messages.iter().map(|message| &message["params"]["progress"]).collect()
}

#[test]
fn a_stream_goes_on_at_another_process_while_its_own_lives() {
    let mut replicas = Replicas::new();
    let (session, exchange, event) = replicas.call();
    replicas.at(1, |process| process.handle(EndpointInput::Disconnected(ExchangeId(exchange))));
    replicas.report(1, 2.0);
    let resumed = replicas.at(2, |process| process.get(&session, &event));
    replicas.report(1, 3.0);
    assert_eq!(progress_of(&replicas.messages(2, resumed)), [&json!(2), &json!(3)]);
    // It is asked again and again whether it lives.
    replicas.advance(4 * LONG);
    replicas.finish(1);
    let messages = replicas.messages(2, resumed);
    assert_eq!(messages[2]["result"]["content"][0]["text"], "done", "{messages:?}");
    assert_eq!(messages[2]["id"], 7);
    let reply = replicas.get_mut(2).reply(resumed);
    assert!(reply.complete);
    let ids: Vec<_> = reply.events().into_iter().map(|(id, _)| id).collect();
    // Another process has all of it as well, after each of its events.
    for (at, id) in ids.iter().enumerate() {
        let again = replicas.at(0, |process| process.get(&session, id));
        assert_eq!(replicas.messages(0, again), messages[at + 1..]);
        assert!(replicas.get_mut(0).reply(again).complete);
    }
}

#[test]
fn a_stream_moves_also_before_its_old_connection_is_known_to_be_broken() {
    let mut replicas = Replicas::new();
    let (session, exchange, event) = replicas.call();
    let resumed = replicas.at(2, |process| process.get(&session, &event));
    assert!(replicas.get_mut(1).reply(exchange).complete, "the connection is not needed");
    // And on to a third one, and back.
    let third = replicas.at(0, |process| process.get(&session, &event));
    assert!(replicas.get_mut(2).reply(resumed).complete);
    replicas.report(1, 2.0);
    assert_eq!(progress_of(&replicas.messages(0, third)), [&json!(2)]);
    let back = replicas.at(1, |process| process.get(&session, &event));
    replicas.finish(1);
    let messages = replicas.messages(1, back);
    assert_eq!(messages[0]["params"]["progress"], 2);
    assert_eq!(messages[1]["result"]["content"][0]["text"], "done");
}

#[test]
fn a_request_fails_when_its_process_is_gone() {
    let mut replicas = Replicas::new();
    let (session, _, event) = replicas.call();
    replicas.kill(1);
    let resumed = replicas.at(2, |process| process.get(&session, &event));
    assert!(replicas.messages(2, resumed).is_empty());
    replicas.advance(LONG);
    let messages = replicas.messages(2, resumed);
    assert_eq!((&messages[0]["id"], &messages[0]["error"]["code"]), (&json!(7), &json!(-32603)));
    let text = messages[0]["error"]["message"].as_str().unwrap();
    assert!(text.contains("the process that handled this request is gone"), "{text}");
    assert!(replicas.get_mut(2).reply(resumed).complete);
}

#[test]
fn a_request_fails_also_when_its_process_ends_while_its_stream_is_followed() {
    let mut replicas = Replicas::new();
    let (session, _, event) = replicas.call();
    let resumed = replicas.at(2, |process| process.get(&session, &event));
    replicas.advance(LONG);
    replicas.kill(1);
    replicas.advance(2 * LONG);
    assert_eq!(replicas.messages(2, resumed)[0]["error"]["code"], -32603);
}

#[test]
fn an_answer_outlives_its_process() {
    let mut replicas = Replicas::new();
    let (session, _, event) = replicas.call();
    replicas.finish(1);
    replicas.kill(1);
    let resumed = replicas.at(2, |process| process.get(&session, &event));
    let messages = replicas.messages(2, resumed);
    assert_eq!(messages[0]["result"]["content"][0]["text"], "done");
    assert!(replicas.get_mut(2).reply(resumed).complete);
}

#[test]
fn an_event_that_came_before_the_store_had_it_is_known() {
    let mut replicas = Replicas::new();
    let (session, exchange, event) = replicas.call();
    replicas.is_away = true;
    replicas.report(1, 2.0);
    replicas.report(1, 3.0);
    let (unstored, _) = replicas.get_mut(1).reply(exchange).events()[2].clone();
    replicas.is_away = false;
    replicas.kill(1);
    let resumed = replicas.at(2, |process| process.get(&session, &unstored));
    replicas.advance(LONG);
    assert_eq!(replicas.messages(2, resumed)[0]["error"]["code"], -32603);
    assert_ne!(event, unstored);
}

#[test]
fn an_event_is_stored_before_its_id_is_sent() {
    let mut replicas = Replicas::new();
    let session = replicas.at(0, |process| process.open("2025-11-25", json!({})));
    let exchange = replicas.at(1, |process| process.call(&session, 7, "wait"));
    replicas.report_only(1, 1.0);
    let reply = replicas.get_mut(1).reply(exchange);
    assert!(reply.is_stream() && reply.body.is_empty(), "{reply:?}");
    replicas.settle();
    assert_eq!(progress_of(&replicas.messages(1, exchange)), [&json!(1)]);
    let (event, _) = replicas.get_mut(1).reply(exchange).events()[0].clone();
    replicas.get_mut(1).finish(Ok(Reply::Text("done".into())));
    let reply = replicas.get_mut(1).reply(exchange);
    assert!(reply.messages().len() == 1 && !reply.complete, "{reply:?}");
    replicas.settle();
    let reply = replicas.get_mut(1).reply(exchange);
    assert!(reply.messages().len() == 2 && reply.complete, "{reply:?}");
    replicas.kill(1);
    let resumed = replicas.at(2, |process| process.get(&session, &event));
    assert_eq!(replicas.messages(2, resumed)[0]["result"]["content"][0]["text"], "done");
}

#[test]
fn events_keep_their_order_whichever_the_store_has_first() {
    let mut replicas = Replicas::new();
    let (_, exchange, _) = replicas.call();
    for amount in [2.0, 3.0, 4.0] {
        replicas.report_only(1, amount);
    }
    let mut appends = std::mem::take(&mut replicas.get_mut(1).stored);
    assert_eq!(appends.len(), 3, "none of them waits for another one");
    let mut told = Vec::new();
    for at in [1, 0, 0] {
        let (ticket, operation) = appends.remove(at);
        let reply = replicas.carry_out(operation);
        replicas.get_mut(1).handle(EndpointInput::Stored(ticket, reply));
        told.push(replicas.messages(1, exchange).len());
    }
    assert_eq!(told, [1, 3, 4]);
    let messages = replicas.messages(1, exchange);
    assert_eq!(progress_of(&messages), [&json!(1), &json!(2), &json!(3), &json!(4)]);
}

#[test]
fn a_store_that_never_replies_delays_events_and_loses_none() {
    let mut replicas = Replicas::new();
    let (_, exchange, _) = replicas.call();
    replicas.report_only(1, 2.0);
    replicas.get_mut(1).finish(Ok(Reply::Text("done".into())));
    let lost = std::mem::take(&mut replicas.get_mut(1).stored);
    replicas.get_mut(1).advance(Duration::from_secs(4));
    assert_eq!(replicas.messages(1, exchange).len(), 1);
    replicas.get_mut(1).advance(Duration::from_secs(1));
    let messages = replicas.messages(1, exchange);
    assert_eq!(messages[1]["params"]["progress"], 2);
    assert_eq!(messages[2]["result"]["content"][0]["text"], "done");
    assert!(replicas.get_mut(1).reply(exchange).complete);
    // A late reply is for nobody.
    for (ticket, _) in lost {
        replicas.get_mut(1).handle(EndpointInput::Stored(ticket, StoreReply::Appended(1)));
    }
    assert_eq!(replicas.messages(1, exchange).len(), 3);
}

#[test]
fn a_client_that_comes_back_waits_for_the_store_as_well() {
    let mut replicas = Replicas::new();
    let (session, exchange, event) = replicas.call();
    replicas.report_only(1, 2.0);
    let process = replicas.get_mut(1);
    process.handle(EndpointInput::Disconnected(ExchangeId(exchange)));
    let resumed = process.get(&session, &event);
    assert!(process.reply(resumed).messages().is_empty());
    replicas.settle();
    assert_eq!(progress_of(&replicas.messages(1, resumed)), [&json!(2)]);
    assert_eq!(replicas.messages(1, exchange).len(), 1);
    // The connection before is not known to be broken.
    replicas.report_only(1, 3.0);
    let again = replicas.get_mut(1).get(&session, &event);
    assert!(replicas.get_mut(1).reply(resumed).complete);
    replicas.settle();
    assert_eq!(progress_of(&replicas.messages(1, again)), [&json!(2), &json!(3)]);
    assert_eq!(replicas.messages(1, resumed).len(), 1);
}

#[test]
fn another_process_gets_an_event_that_was_not_stored_when_it_looked() {
    let mut replicas = Replicas::new();
    let (session, _, event) = replicas.call();
    replicas.report_only(1, 2.0);
    replicas.get_mut(1).finish(Ok(Reply::Text("done".into())));
    let appends = std::mem::take(&mut replicas.get_mut(1).stored);
    let resumed = replicas.at(2, |process| process.get(&session, &event));
    assert!(replicas.messages(2, resumed).is_empty());
    replicas.get_mut(1).stored = appends;
    replicas.settle();
    let messages = replicas.messages(2, resumed);
    assert_eq!(messages[0]["params"]["progress"], 2);
    assert_eq!(messages[1]["result"]["content"][0]["text"], "done");
    assert!(replicas.get_mut(2).reply(resumed).complete);
}

#[test]
fn what_waits_for_the_store_is_bounded_and_sent_when_the_server_stops() {
    let mut replicas = Replicas::new();
    let (_, exchange, _) = replicas.call();
    let process = replicas.get_mut(1);
    let run = process.runs[0].id;
    let log = || {
        HandlerEvent::Log(gudgeon::session::server::Log {
            level: gudgeon::protocol::LoggingLevel::Error,
            logger: None,
            data: gudgeon::protocol::json::to_raw(&"x".repeat(100_000)),
        })
    };
    for _ in 0..10 {
        process.handle(EndpointInput::Handler(run, log()));
    }
    assert_eq!(process.reply(exchange).messages().len(), 1);
    for _ in 0..10 {
        process.handle(EndpointInput::Handler(run, log()));
    }
    assert_eq!(process.reply(exchange).messages().len(), 11);
    process.handle(EndpointInput::Closed);
    let reply = process.reply(exchange);
    assert!(reply.complete && reply.messages().len() >= 21, "{}", reply.messages().len());
}

#[test]
fn a_subscription_is_stored_and_told_to_all_before_it_is_confirmed() {
    let mut replicas = Replicas::new();
    let session = replicas.at(0, |process| process.open("2025-11-25", json!({})));
    let process = replicas.get_mut(1);
    // Restored from its id.
    process.serves(&Request::of_session(&session, &message("ping", json!({}))));
    replicas.settle();
    let process = replicas.get_mut(1);
    let subscribe = message("resources/subscribe", json!({"uri": "fixture://about"}));
    let subscribed = process.request(&Request::of_session(&session, &subscribe));
    let other = process.request(&Request::of_session(&session, &message("ping", json!({}))));
    assert_eq!((process.published.len(), process.stored.len()), (1, 1));
    assert!([subscribed, other].iter().all(|id| !process.replies.contains_key(id)));
    replicas.settle();
    assert!([subscribed, other].iter().all(|id| replicas.get_mut(1).reply(*id).complete));
    // A store that never replies does not hold it up for long.
    let process = replicas.get_mut(1);
    let again = process.request(&Request::of_session(&session, &subscribe));
    process.stored.clear();
    process.advance(Duration::from_secs(5));
    assert!(process.reply(again).complete);
}

#[test]
fn events_that_are_missing_are_no_secret() {
    let mut replicas = Replicas::new();
    let (session, _, event) = replicas.call();
    replicas.is_away = true;
    replicas.report(1, 2.0);
    replicas.is_away = false;
    replicas.report(1, 3.0);
    let resume = Request::new("GET", "/mcp")
        .header("accept", "text/event-stream")
        .header("mcp-session-id", &session);
    for unknown in [&event, "98-1", "0-999"] {
        let resumed = replicas
            .at(2, |process| process.request(&resume.clone().header("last-event-id", unknown)));
        assert_eq!(replicas.get_mut(2).reply(resumed).status, 400, "{unknown}");
    }
}

#[test]
fn a_store_that_is_away_makes_the_client_try_again_and_costs_calls_nothing() {
    let mut replicas = Replicas::new();
    let (session, _, event) = replicas.call();
    replicas.is_away = true;
    let resumed = replicas.at(2, |process| process.get(&session, &event));
    let reply = replicas.get_mut(2).reply(resumed);
    assert_eq!((reply.status, reply.header("retry-after")), (503, "1"));
    // What answers no request begins anew instead.
    let stream = replicas.at(2, |process| process.get(&session, "1-1"));
    assert_eq!(replicas.get_mut(2).reply(stream).status, 200);
    let ping = Request::of_session(&session, &message("ping", json!({})));
    replicas.at(0, |process| process.serves(&ping));
    let subscribe = message("resources/subscribe", json!({"uri": "fixture://about"}));
    replicas.serves(0, &Request::of_session(&session, &subscribe));
}

#[test]
fn a_process_that_starts_later_knows_which_sessions_have_ended() {
    let mut replicas = Replicas::new();
    let session = replicas.at(0, |process| process.open("2025-11-25", json!({})));
    replicas.kill(2);
    let ended = replicas.at(1, |process| process.ask(&Request::bare("DELETE", &session)).status);
    assert_eq!(ended, 204);
    replicas.processes[2] = Some(process(9));
    replicas.at(2, |process| process.handle(EndpointInput::MessagesLost));
    let ping = Request::of_session(&session, &message("ping", json!({})));
    replicas.at(2, |process| process.refuses(&ping, 404, -32600));
}

#[test]
fn subscriptions_and_the_log_level_outlive_their_process() {
    let mut replicas = Replicas::new();
    let session = replicas.at(0, |process| process.open("2025-11-25", json!({})));
    for (method, params) in [
        ("resources/subscribe", json!({"uri": "fixture://about"})),
        ("resources/subscribe", json!({"uri": "fixture://bytes"})),
        ("resources/unsubscribe", json!({"uri": "fixture://bytes"})),
        ("logging/setLevel", json!({"level": "error"})),
    ] {
        let request = Request::of_session(&session, &message(method, params));
        replicas.serves(1, &request);
    }
    replicas.kill(1);
    let stream = replicas.at(2, |process| process.get(&session, ""));
    let updates = |replicas: &Replicas| -> Vec<Value> {
        let messages = replicas.messages(2, stream);
        let is_update = |message: &&Value| message["method"] == "notifications/resources/updated";
        messages.iter().filter(is_update).map(|message| message["params"]["uri"].clone()).collect()
    };
    assert_eq!(updates(&replicas), ["fixture://about"], "it may have changed in the meantime");
    replicas.at(0, |process| process.handle(EndpointInput::Updated("fixture://about")));
    replicas.at(0, |process| process.handle(EndpointInput::Updated("fixture://bytes")));
    assert_eq!(updates(&replicas), ["fixture://about", "fixture://about"]);
    let call = replicas.at(2, |process| process.call(&session, 1, "wait"));
    replicas.at(2, |process| {
        let log = |level, text| {
            HandlerEvent::Log(gudgeon::session::server::Log {
                level,
                logger: None,
                data: gudgeon::protocol::json::to_raw(&text),
            })
        };
        let run = process.runs[0].id;
        for event in [
            log(gudgeon::protocol::LoggingLevel::Info, "quiet"),
            log(gudgeon::protocol::LoggingLevel::Error, "loud"),
        ] {
            process.handle(EndpointInput::Handler(run, event));
        }
    });
    let logged: Vec<_> = replicas.messages(2, call);
    assert_eq!(logged.len(), 1, "{logged:?}");
    assert_eq!(logged[0]["params"]["data"], "loud");
}

#[test]
fn an_update_is_told_once_wherever_client_change_and_subscription_are() {
    let mut replicas = Replicas::new();
    let session = replicas.at(0, |process| process.open("2025-11-25", json!({})));
    let subscribe = message("resources/subscribe", json!({"uri": "fixture://about"}));
    replicas.serves(1, &Request::of_session(&session, &subscribe));
    let stream = replicas.at(2, |process| process.get(&session, ""));
    let before = replicas.messages(2, stream).len();
    for (at, expected) in [(0, 1), (1, 2), (2, 3)] {
        replicas.at(at, |process| process.handle(EndpointInput::Updated("fixture://about")));
        assert_eq!(replicas.messages(2, stream).len(), before + expected);
    }
    // A later stream of the process of the subscription tells nothing twice.
    replicas.at(2, |process| process.handle(EndpointInput::Disconnected(ExchangeId(stream))));
    let later = replicas.at(1, |process| process.get(&session, ""));
    replicas.at(0, |process| process.handle(EndpointInput::Updated("fixture://about")));
    let last = replicas.messages(1, later).pop().unwrap();
    assert_eq!(last["method"], "notifications/resources/updated");
}

#[test]
fn a_stream_that_answers_no_request_loses_nothing_when_it_moves() {
    let mut replicas = Replicas::new();
    let session = replicas.at(0, |process| process.open("2025-11-25", json!({})));
    let subscribe = message("resources/subscribe", json!({"uri": "fixture://about"}));
    replicas.serves(1, &Request::of_session(&session, &subscribe));
    let stream = replicas.at(1, |process| process.get(&session, ""));
    replicas.at(1, |process| process.handle(EndpointInput::Updated("fixture://about")));
    let (event, _) = replicas.get_mut(1).reply(stream).events().last().unwrap().clone();
    // The connection is broken, and nobody knows yet.
    replicas.at(1, |process| process.handle(EndpointInput::Updated("fixture://about")));
    let resumed = replicas.at(2, |process| process.get(&session, &event));
    assert!(replicas.get_mut(1).reply(stream).complete);
    let updated = json!("notifications/resources/updated");
    let methods: Vec<_> =
        replicas.messages(2, resumed).iter().map(|message| message["method"].clone()).collect();
    assert!(methods.contains(&updated), "{methods:?}");
    replicas.at(0, |process| process.handle(EndpointInput::Updated("fixture://about")));
    assert_eq!(replicas.messages(2, resumed).len(), methods.len() + 1);
}

#[test]
fn after_lost_messages_everything_counts_as_changed() {
    let mut replicas = Replicas::new();
    let session = replicas.at(0, |process| process.open("2025-11-25", json!({})));
    let subscribe = message("resources/subscribe", json!({"uri": "fixture://about"}));
    replicas.serves(0, &Request::of_session(&session, &subscribe));
    let stream = replicas.at(0, |process| process.get(&session, ""));
    let listen = json!({"notifications": {
        "toolsListChanged": true, "resourceSubscriptions": ["fixture://about"],
    }});
    let listening = replicas.at(0, |process| process.modern("subscriptions/listen", listen));
    let before = replicas.messages(0, listening).len();
    replicas.at(0, |process| process.handle(EndpointInput::MessagesLost));
    let told: Vec<_> = replicas.messages(0, stream);
    let methods = |messages: &[Value]| -> Vec<String> {
        let mut methods: Vec<_> =
            messages.iter().map(|message| message["method"].as_str().unwrap().to_owned()).collect();
        methods.sort();
        methods
    };
    let all = ["notifications/resources/updated", "notifications/tools/list_changed"];
    assert!(all.iter().all(|method| methods(&told).contains(&(*method).to_owned())), "{told:?}");
    assert_eq!(methods(&replicas.messages(0, listening)[before..]), all);
}

#[test]
fn a_store_that_comes_back_empty_gets_subscriptions_and_log_levels_again() {
    let mut replicas = Replicas::new();
    let session = replicas.at(0, |process| process.open("2025-11-25", json!({})));
    for (method, params) in [
        ("resources/subscribe", json!({"uri": "fixture://about"})),
        ("logging/setLevel", json!({"level": "error"})),
    ] {
        let request = Request::of_session(&session, &message(method, params));
        replicas.serves(1, &request);
    }
    replicas.logs.clear();
    for process in 0..3 {
        replicas.at(process, |process| process.handle(EndpointInput::MessagesLost));
    }
    let stored: Vec<_> = replicas.logs.values().flatten().collect();
    let has_level =
        |event: &&Vec<u8>| String::from_utf8_lossy(event).contains(r#""level":"error""#);
    assert!(stored.into_iter().any(|event| has_level(&event)));
    replicas.kill(1);
    let stream = replicas.at(2, |process| process.get(&session, ""));
    assert_eq!(replicas.updates(2, stream), 1, "it may have changed in the meantime");
    replicas.at(0, |process| process.handle(EndpointInput::Updated("fixture://about")));
    assert_eq!(replicas.updates(2, stream), 2);
}

#[test]
fn a_subscription_whose_message_was_lost_is_known_after_all() {
    let mut replicas = Replicas::new();
    let session = replicas.at(0, |process| process.open("2025-11-25", json!({})));
    let stream = replicas.at(2, |process| process.get(&session, ""));
    let subscribe = message("resources/subscribe", json!({"uri": "fixture://about"}));
    let process = replicas.get_mut(1);
    let asked = process.request(&Request::of_session(&session, &subscribe));
    process.published.clear();
    replicas.settle();
    assert_eq!(replicas.get_mut(1).reply(asked).status, 200);
    replicas.at(0, |process| process.handle(EndpointInput::Updated("fixture://about")));
    assert_eq!(replicas.updates(2, stream), 0);
    replicas.at(2, |process| process.handle(EndpointInput::MessagesLost));
    assert_eq!(replicas.updates(2, stream), 1);
}

#[test]
fn the_changes_of_many_sessions_are_read_some_at_a_time() {
    let mut replicas = Replicas::new();
    for _ in 0..200 {
        let session = replicas.at(0, |process| process.open("2025-11-25", json!({})));
        replicas.at(0, |process| process.get(&session, ""));
    }
    let process = replicas.get_mut(0);
    process.handle(EndpointInput::MessagesLost);
    let is_read = |operation: &StoreOperation| matches!(operation, StoreOperation::Read { log, .. } if log.starts_with("changes:"));
    let (mut at_once, mut all) = (0, 0);
    while !replicas.get_mut(0).stored.is_empty() {
        let operations = std::mem::take(&mut replicas.get_mut(0).stored);
        let reading = operations.iter().filter(|(_, operation)| is_read(operation)).count();
        (at_once, all) = (at_once.max(reading), all + reading);
        for (ticket, operation) in operations {
            let reply = replicas.carry_out(operation);
            replicas.get_mut(0).handle(EndpointInput::Stored(ticket, reply));
        }
    }
    assert_eq!((at_once, all), (64, 200));
}

#[test]
fn streams_that_are_followed_count_and_end_with_their_client_and_server() {
    let mut replicas = Replicas::new();
    let (session, _, event) = replicas.call();
    let resumed = replicas.at(2, |process| process.get(&session, &event));
    replicas.at(2, |process| process.handle(EndpointInput::Disconnected(ExchangeId(resumed))));
    replicas.report(1, 2.0);
    assert!(replicas.messages(2, resumed).is_empty());
    let again = replicas.at(2, |process| process.get(&session, &event));
    replicas.at(2, |process| process.handle(EndpointInput::ShutDown));
    assert!(replicas.get_mut(2).reply(again).complete);
    let max = EndpointConfig::default().max_streams;
    for number in 0..=max {
        // Each is another stream, which nobody has.
        let resumed =
            replicas.at(0, |process| process.get(&session, &format!("{}-0", 2 * number + 100)));
        assert_eq!(replicas.get_mut(0).reply(resumed).status, 400);
    }
    replicas.at(0, |process| {
        let components = Arc::new(fixture::components());
        process.handle(EndpointInput::Components(components, vec![ListKind::Tools]));
    });
}

#[test]
fn ten_thousand_streams_of_other_processes_are_followed_and_no_more() {
    let start = gudgeon::test_pair::start(Instant::now());
    let config = EndpointConfig { max_streams: 20_000, ..EndpointConfig::default() };
    let mut process = Visitor::started(fixture::components(), config, &start);
    process.endpoint.use_store();
    process.endpoint.share();
    let session = process.open("2025-11-25", json!({}));
    // The store says nothing, so that none of them is answered.
    let follow = |process: &mut Visitor, number: u64| {
        process.get(&session, &format!("{}-0", 2 * number + 100))
    };
    let first = follow(&mut process, 0);
    let answered = process.replies.len();
    for number in 1..10_000 {
        follow(&mut process, number);
    }
    assert_eq!(process.replies.len(), answered);
    let refused = follow(&mut process, 10_000);
    assert_eq!(process.reply(refused).status, 503);
    process.handle(EndpointInput::Disconnected(ExchangeId(first)));
    let next = follow(&mut process, 10_001);
    assert!(!process.replies.contains_key(&next), "there is room for one again");
}

#[test]
fn what_a_session_stores_is_bounded() {
    let mut replicas = Replicas::new();
    let (session, ..) = replicas.call();
    let subscribe = message("resources/subscribe", json!({"uri": "fixture://about"}));
    let process = replicas.get_mut(1);
    process.request(&Request::of_session(&session, &subscribe));
    let progress = Progress { progress: 2.0, total: None, message: None };
    let run = process.runs[0].id;
    process.handle(EndpointInput::Handler(run, HandlerEvent::Progress(progress)));
    process.ask(&Request::bare("DELETE", &session));
    let mut limits: Vec<_> = std::mem::take(&mut process.stored)
        .into_iter()
        .filter_map(|(_, operation)| match operation {
            StoreOperation::Append { log, max_events, max_bytes, ttl, .. } => {
                let (purpose, _) = log.split_once(':').unwrap_or((&log, ""));
                Some((purpose.to_owned(), max_events, max_bytes, ttl.as_secs()))
            }
            _ => None,
        })
        .collect();
    limits.sort();
    let (mib, month) = (1024 * 1024, 30 * 24 * 60 * 60);
    assert_eq!(
        limits,
        [
            ("changes".into(), 10_000, mib, month),
            ("ended-sessions".into(), 32_768, 4 * mib, month),
            ("events".into(), 256, mib, 60 * 60),
        ]
    );
}

/// Carries out the operations of a process whose store has nothing else.
fn store_everything(process: &mut Visitor) {
    while let Some((ticket, operation)) = process.stored.pop() {
        let reply = match operation {
            StoreOperation::Read { .. } => StoreReply::Events(Vec::new()),
            _ => StoreReply::Appended(1),
        };
        process.handle(EndpointInput::Stored(ticket, reply));
    }
}

/// A writer to the channel of a store that has no keys must not cause work without end.
#[test]
fn messages_that_cannot_be_opened_are_announced_together() {
    let mut server = process(0);
    let session = server.open("2025-11-25", json!({}));
    let stream = server.get(&session, "");
    let announced = |server: &Visitor| {
        let messages = server.reply(stream).messages();
        let is_change = |message: &&Value| message["method"] == "notifications/tools/list_changed";
        messages.iter().filter(is_change).count()
    };
    let logged = |server: &Visitor| -> Vec<Value> {
        let events = server.events.iter().map(gudgeon::log_events::LogEvent::fields);
        let unreadable = events.filter(|fields| fields["event"] == "store.unreadable");
        unreadable.map(|fields| fields["messages"].clone()).collect()
    };
    server.handle(EndpointInput::MessagesUnreadable(1));
    store_everything(&mut server);
    assert_eq!((announced(&server), logged(&server)), (1, vec![json!(1)]));
    for _ in 0..59 {
        server.advance(Duration::from_secs(1));
        server.handle(EndpointInput::MessagesUnreadable(1_000));
        store_everything(&mut server);
    }
    assert_eq!((announced(&server), logged(&server)), (1, vec![json!(1)]));
    // The last ones are not lost, although none follows.
    server.advance(Duration::from_secs(1));
    store_everything(&mut server);
    assert_eq!((announced(&server), logged(&server)), (2, vec![json!(1), json!(59_000)]));
    server.advance(Duration::from_secs(600));
    assert_eq!(announced(&server), 2);
    server.handle(EndpointInput::MessagesUnreadable(2));
    store_everything(&mut server);
    assert_eq!((announced(&server), logged(&server).last()), (3, Some(&json!(2))));
}
