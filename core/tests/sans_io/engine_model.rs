//! Random sequences of everything that peers, handlers, the host and the clock can do, against a model of a few lines:
//! each request is answered exactly once, none after it was cancelled, no deadline is missed, and nothing is left of a call.
//! The host replies late, twice or never.

mod steps;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, Instant},
};

use gudgeon::{
    engine::{
        Computation, ConnectionId, Effect, HandlerEvent, HostReply, Load, MAX_UNDER_LOCK, Run,
        RunId, Ticket,
    },
    http::{Endpoint, EndpointConfig, EndpointInput, EndpointOutput, Part, Reader},
    protocol::{
        Frame, Implementation, LoggingLevel, Method, Question, Resource, Tool, json::to_raw,
    },
    router::{
        Components, Definition, Failure, RegisteredResource, RegisteredTool, Reply, RoundLimits,
        ServerFacts,
    },
    session::{
        asking::AskId,
        server::{Log, Progress},
    },
};
use proptest::{collection::vec, prelude::*, sample::Index};
use serde_json::{Value, json};

use self::steps::{Brought, Decision, KEYS, ModelStep, Outcome, PEERS, TARGETS, step};
use crate::support::{
    Handler,
    asker::{form, questions, yes},
    kept,
};

const SUSPENDED_TTL: Duration = Duration::from_secs(20);

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn every_request_is_answered_once_and_nothing_is_left(steps in vec(step(), 1..60), limit in 0_usize..4) {
        let mut model = Model::new(limit);
        for step in steps {
            model.perform(step);
        }
        model.settle();
    }
}

/// Found by the test above: closing the connection ends the call that runs, so the queued one goes on and asks again in
/// the same moment.
#[test]
fn a_queued_handler_with_another_question_ends_with_its_connection() {
    const ALONE: usize = 2;
    let mut model = Model::new(1);
    model.call(0, ALONE, true, &json!({}));
    let asker = *model.runs.first().unwrap();
    model.ask_question(asker, 0, false);
    model.handle(EndpointInput::Handler(asker, HandlerEvent::Waits { blocks: false }));
    let (_, state) = model.rounds.pop().unwrap();
    model.call(1, ALONE, false, &json!({}));
    let answered = json!({"requestState": state, "inputResponses": {"a": yes()}});
    model.call(1, ALONE, true, &answered);
    model.ask_question(asker, 1, false);
    model.handle(EndpointInput::Handler(asker, HandlerEvent::Waits { blocks: false }));
    assert_eq!(model.runs.len(), 2, "the handler with the answer waits for its turn");
    model.reopen(1);
    assert_eq!(model.runs.len(), 0, "nobody can answer the question");
    model.settle();
}

/// One connection, as its client knows it.
struct Peer {
    connection: ConnectionId,
    /// Requests that are neither answered nor cancelled.
    open: BTreeSet<u64>,
    /// The target of each open request.
    targets: BTreeMap<u64, usize>,
    /// Requests of the server's.
    questions: BTreeSet<String>,
}

struct Model {
    endpoint: Endpoint,
    now: Instant,
    peers: Vec<Peer>,
    /// Handlers that run.
    runs: BTreeSet<RunId>,
    /// Handlers of notifications among them.
    notified: BTreeSet<RunId>,
    /// Requests to the host that are open.
    tickets: BTreeSet<Ticket>,
    /// All requests to the host so far.
    issued: Vec<Ticket>,
    /// Computations that were handed out, with those whose requests have ended.
    jobs: Vec<Computation>,
    /// Sealed states, with what they were given for.
    rounds: Vec<(usize, String)>,
    next: u64,
}

impl Model {
    fn new(limit: usize) -> Self {
        let now = Instant::now();
        let rounds = RoundLimits {
            suspended_limit: limit,
            suspended_threads: 1,
            suspended_ttl: SUSPENDED_TTL,
            ..RoundLimits::default()
        };
        let config = EndpointConfig::default();
        let start = gudgeon::test_pair::start(now);
        let mut model = Self {
            endpoint: Endpoint::new(Arc::new(components(rounds)), config, &start),
            now,
            peers: Vec::new(),
            runs: BTreeSet::new(),
            notified: BTreeSet::new(),
            tickets: BTreeSet::new(),
            issued: Vec::new(),
            jobs: Vec::new(),
            rounds: Vec::new(),
            next: 0,
        };
        for _ in 0..PEERS {
            let peer = model.connect();
            model.peers.push(peer);
            model.open(model.peers.len() - 1);
        }
        model
    }

    fn perform(&mut self, step: ModelStep) {
        match step {
            ModelStep::Call { peer, target, is_modern, is_large } => {
                let rest = match is_large {
                    true => json!({"padding": "x".repeat(MAX_UNDER_LOCK)}),
                    false => json!({}),
                };
                self.call(peer, target, is_modern, &rest);
            }
            ModelStep::Retry { peer, round, answers } => self.retry(peer, round, answers),
            ModelStep::Cancel { peer, request } => {
                let open: Vec<u64> = self.peers[peer].open.iter().copied().collect();
                if let Some(id) = pick(request, &open) {
                    self.peers[peer].open.remove(&id);
                    let params = json!({"requestId": id});
                    self.send(peer, &message("notifications/cancelled", params));
                }
            }
            ModelStep::Notify { peer } => self.send(peer, &message("acme/changed", json!({}))),
            ModelStep::Finish { run, outcome } => {
                if let Some(run) = self.pick_run(run) {
                    self.finish(run, outcome);
                }
            }
            ModelStep::Host { ticket, reply } => {
                if let Some(ticket) = pick(ticket, &self.issued) {
                    self.decide(ticket, reply);
                }
            }
            ModelStep::Dispatch { job } => {
                if !self.jobs.is_empty() {
                    let job = self.jobs.swap_remove(job.index(self.jobs.len()));
                    self.tickets.remove(&job.ticket().unwrap());
                    self.handle(EndpointInput::Computed(job.run()));
                }
            }
            ModelStep::Ask { run, key } => self.ask(run, key, false),
            ModelStep::AskAgain { run, key } => self.ask(run, key, true),
            ModelStep::Wait { run, blocks } => {
                if let Some(run) = self.pick_run(run) {
                    self.handle(EndpointInput::Handler(run, HandlerEvent::Waits { blocks }));
                }
            }
            ModelStep::Report { run } => {
                let Some(run) = self.pick_run(run) else { return };
                let progress = Progress { progress: 1.0, total: None, message: None };
                let log = Log { level: LoggingLevel::Error, logger: None, data: to_raw(&json!(1)) };
                let value = to_raw(&json!({"x": 1}));
                for event in [
                    HandlerEvent::Progress(progress),
                    HandlerEvent::Log(log),
                    HandlerEvent::Step { key: "s".into(), value },
                ] {
                    self.handle(EndpointInput::Handler(run, event));
                }
            }
            ModelStep::Answer { question, answers } => self.answer(question, answers),
            ModelStep::Advance { seconds } => self.advance(Duration::from_secs(seconds)),
            ModelStep::Reopen { peer } => self.reopen(peer),
        }
    }

    /// Ends everything that is under way, and holds what is left against nothing.
    fn settle(&mut self) {
        // Clients that are asked and do not answer are waited for so long, and those in line after them as well.
        for _ in 0..8 {
            self.advance(SUSPENDED_TTL + Duration::from_secs(20));
            while let Some(run) = self.runs.first().copied() {
                self.finish(run, Outcome::Text);
            }
        }
        // The host never replied to the others; their time limit ended them.
        assert!(self.tickets.is_empty(), "without an end: {:?}", self.tickets);
        for peer in &self.peers {
            assert!(peer.open.is_empty(), "without an answer: {:?}", peer.open);
        }
        assert_eq!(self.endpoint.load(), Load::default());
        for peer in 0..PEERS {
            self.reopen(peer);
        }
        assert!(self.endpoint.keeps_no_call(), "something is left of a call");
    }

    fn connect(&mut self) -> Peer {
        self.next += 1;
        let connection = ConnectionId(self.next);
        Peer {
            connection,
            open: BTreeSet::new(),
            targets: BTreeMap::new(),
            questions: BTreeSet::new(),
        }
    }

    fn open(&mut self, peer: usize) {
        self.handle(EndpointInput::Opened(self.peers[peer].connection, None, None));
        self.next += 1;
        let id = self.next;
        self.peers[peer].open.insert(id);
        let initialize = json!({"jsonrpc": "2.0", "id": id, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "c", "version": "1"},
        }});
        self.send(peer, &initialize);
        self.send(peer, &message("notifications/initialized", json!({})));
    }

    fn reopen(&mut self, peer: usize) {
        self.handle(EndpointInput::ConnectionClosed(self.peers[peer].connection));
        self.peers[peer] = self.connect();
        self.open(peer);
    }

    fn call(&mut self, peer: usize, target: usize, is_modern: bool, rest: &Value) {
        self.next += 1;
        let id = self.next;
        let name = TARGETS[target];
        let (method, mut params) = match name.contains(':') {
            true => ("resources/read", json!({"uri": name})),
            false => ("tools/call", json!({"name": name, "arguments": {}})),
        };
        if is_modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
            });
        }
        for (key, value) in rest.as_object().unwrap() {
            params[key] = value.clone();
        }
        self.peers[peer].open.insert(id);
        self.peers[peer].targets.insert(id, target);
        let mut request = message(method, params);
        request["id"] = json!(id);
        self.send(peer, &request);
    }

    fn retry(&mut self, peer: usize, round: Index, answers: Brought) {
        let Some((target, state)) = pick(round, &self.rounds) else { return };
        let mut rest = json!({"requestState": state});
        match answers {
            Brought::Fitting => rest["inputResponses"] = json!({"a": yes(), "b": yes()}),
            Brought::Invalid => rest["inputResponses"] = json!({"a": invalid(), "b": yes()}),
            Brought::Nothing => (),
        }
        self.call(peer, target, true, &rest);
    }

    fn finish(&mut self, run: RunId, outcome: Outcome) {
        let outcome = match outcome {
            Outcome::Text => Ok(Reply::Text("done".into())),
            Outcome::Questions => Ok(questions(&KEYS)),
            Outcome::Failed => Err(Failure::Tool { message: "no".into(), meta: None }),
            Outcome::Cancelled => Err(Failure::Cancelled),
        };
        self.runs.remove(&run);
        self.notified.remove(&run);
        self.handle(EndpointInput::Handler(run, HandlerEvent::Done(outcome)));
    }

    /// Replies as the host. A request that has ended is replied to as well, and again, which must have no effect.
    fn decide(&mut self, ticket: Ticket, reply: Decision) {
        let was_open = self.tickets.remove(&ticket);
        let before = (self.runs.clone(), self.endpoint.load());
        let reply = match reply {
            Decision::Shown => HostReply::Visible(vec![true]),
            Decision::Hidden => HostReply::Visible(vec![false]),
            Decision::Short => HostReply::Visible(Vec::new()),
            Decision::Failed => HostReply::Failed("no".into()),
        };
        self.handle(EndpointInput::Host(ticket, reply));
        if !was_open {
            assert_eq!((self.runs.clone(), self.endpoint.load()), before, "{ticket:?} had ended");
        }
    }

    fn ask(&mut self, run: Index, key: usize, again: bool) {
        if let Some(run) = self.pick_run(run) {
            self.ask_question(run, key, again);
        }
    }

    fn ask_question(&mut self, run: RunId, key: usize, again: bool) {
        self.next += 1;
        let ask = AskId(self.next);
        let question =
            Question { key: KEYS[key].into(), method: Method::Elicit, params: to_raw(&form()) };
        let event = match again {
            true => HandlerEvent::AskAgain { ask, question, problem: "no".into() },
            false => HandlerEvent::Ask { ask, question },
        };
        self.handle(EndpointInput::Handler(run, event));
    }

    fn answer(&mut self, question: Index, answers: Brought) {
        let open: Vec<(usize, String)> = (0..PEERS)
            .flat_map(|peer| self.peers[peer].questions.iter().map(move |id| (peer, id.clone())))
            .collect();
        let Some((peer, id)) = pick(question, &open) else { return };
        self.peers[peer].questions.remove(&id);
        let id: Value = serde_json::from_str(&id).unwrap();
        let answer = match answers {
            Brought::Fitting => json!({"jsonrpc": "2.0", "id": id, "result": yes()}),
            Brought::Invalid => json!({"jsonrpc": "2.0", "id": id, "result": invalid()}),
            Brought::Nothing => {
                json!({"jsonrpc": "2.0", "id": id, "error": {"code": -1, "message": "no"}})
            }
        };
        self.send(peer, &answer);
    }

    /// Moves the clock. Every deadline on the way is kept, and none stays behind.
    fn advance(&mut self, by: Duration) {
        let end = self.now + by;
        while let Some(due) = self.endpoint.deadline().filter(|deadline| *deadline <= end) {
            self.now = self.now.max(due);
            self.handle(EndpointInput::Tick);
            let next = self.endpoint.deadline();
            assert!(next.is_none_or(|deadline| deadline > self.now), "a deadline was missed");
        }
        self.now = end;
    }

    fn pick_run(&self, run: Index) -> Option<RunId> {
        pick(run, &self.runs.iter().copied().collect::<Vec<_>>())
    }

    fn send(&mut self, peer: usize, message: &Value) {
        let connection = self.peers[peer].connection;
        self.handle(EndpointInput::Message(
            connection,
            Frame::parse(message.to_string().as_bytes()),
        ));
    }

    fn handle(&mut self, input: EndpointInput<'_>) {
        self.endpoint.handle(self.now, input);
        while let Some(output) = self.endpoint.poll() {
            match output {
                EndpointOutput::Connection(_, Part::End)
                | EndpointOutput::Expired(_)
                | EndpointOutput::Publish(_)
                | EndpointOutput::Store(..)
                | EndpointOutput::Workers(_) => (),
                EndpointOutput::Connection(connection, Part::Bytes(frame))
                | EndpointOutput::Change(Reader::Connection(connection), frame) => {
                    self.receive(connection, &frame);
                }
                EndpointOutput::Effect(effect) => self.check(&effect),
                EndpointOutput::Compute(job) => {
                    let ticket = job.ticket().unwrap();
                    assert!(self.tickets.insert(ticket), "{ticket:?} is dispatched twice");
                    self.issued.push(ticket);
                    self.jobs.push(*job);
                }
                other => panic!("nothing came over HTTP: {other:?}"),
            }
        }
    }

    fn check(&mut self, effect: &Effect) {
        match *effect {
            Effect::Run(ref run) => {
                let Run { id, is_notification, .. } = **run;
                assert!(self.runs.insert(id), "{id:?} runs twice");
                if is_notification {
                    self.notified.insert(id);
                }
            }
            Effect::Cancel(run) => assert!(self.runs.remove(&run), "{run:?} had ended"),
            Effect::Resume { run, .. } | Effect::Answered { run, .. } => {
                assert!(self.runs.contains(&run), "{run:?} had ended");
            }
            Effect::Host(ticket, _) => {
                assert!(self.tickets.insert(ticket), "{ticket:?} is asked twice");
                self.issued.push(ticket);
            }
            Effect::CancelHost(ticket) => {
                assert!(self.tickets.remove(&ticket), "{ticket:?} had ended");
            }
            Effect::Log(_) | Effect::Span(_) | Effect::Subscribed { .. } => (),
        }
    }

    fn receive(&mut self, connection: ConnectionId, frame: &[u8]) {
        let said: Value = serde_json::from_slice(frame).unwrap();
        let Some(peer) = self.peers.iter_mut().find(|peer| peer.connection == connection) else {
            panic!("a frame for a closed connection: {said}");
        };
        match (said["method"].as_str(), said.get("id")) {
            (Some("notifications/cancelled"), _) => {
                let id = said["params"]["requestId"].to_string();
                assert!(peer.questions.remove(&id), "{id} was not asked, or is answered");
            }
            (Some(_), Some(id)) => {
                assert!(peer.questions.insert(id.to_string()), "{id} is asked twice");
            }
            (Some(_), None) => (),
            (None, id) => {
                let id = id.and_then(Value::as_u64).unwrap_or_else(|| panic!("{said}"));
                assert!(peer.open.remove(&id), "answered twice, or after it was cancelled: {said}");
                let target = peer.targets.remove(&id);
                if let (Some(target), Some(state)) =
                    (target, said["result"]["requestState"].as_str())
                {
                    self.rounds.push((target, state.to_owned()));
                }
            }
        }
    }
}

fn pick<T: Clone>(place: Index, all: &[T]) -> Option<T> {
    (!all.is_empty()).then(|| place.get(all).clone())
}

fn message(method: &str, params: Value) -> Value {
    let mut message = json!({"jsonrpc": "2.0", "method": method});
    message["params"] = params;
    message
}

fn invalid() -> Value {
    json!({"action": "accept", "content": {"value": 5}})
}

fn components(rounds: RoundLimits) -> Components {
    let mut components = Components::new(ServerFacts {
        request_state_keys: vec![b"one".to_vec()],
        rounds,
        ..ServerFacts::from(Implementation::new("model", "1"))
    });
    for name in &TARGETS[..5] {
        let tool = Tool::new(*name, to_raw(&json!({"type": "object"})));
        let mut component = RegisteredTool::new(tool, kept(Handler::Plain)).unwrap();
        component.options.forbids_replay = *name == "forbids";
        component.options.concurrency = (*name == "alone").then_some(1);
        component.options.timeout =
            ["timed", "alone"].contains(name).then_some(Duration::from_secs(10));
        if *name == "guarded" {
            component.options.is_guarded = true;
        }
        components.tools.add(component, true).unwrap();
    }
    let resource: Resource =
        serde_json::from_value(json!({"uri": TARGETS[5], "name": "kept"})).unwrap();
    let mut component = RegisteredResource::new(resource, kept(Handler::Plain)).unwrap();
    component.options.keep = Some(Duration::from_secs(5));
    components.resources.add(component, true).unwrap();
    components.add(Definition::Notification("acme/changed".into()), kept(Handler::Plain)).unwrap();
    components
}
