//! A manually driven service whose handlers ask questions.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use crate::support::{Handler, kept, logs::report};
use gudgeon::{
    engine::{Effect, HandlerEvent, Run, RunId},
    protocol::{Implementation, Method, Question, Tool, json::to_raw},
    router::{Components, Failure, RegisteredTool, Reply, RoundLimits, ServerFacts},
    service::{Input, Output, Service},
    session::{asking::AskId, server::CallContext},
};
use serde_json::{Value, json};

pub(crate) struct Server {
    pub(crate) service: Service,
    pub(crate) runs: Vec<Run>,
    pub(crate) sent: Vec<Value>,
    pub(crate) answered: Vec<Result<Value, String>>,
    pub(crate) reports: Vec<String>,
    pub(crate) cancelled: Vec<RunId>,
    pub(crate) resumed: Vec<(RunId, CallContext)>,
    pub(crate) now: Instant,
}

impl Server {
    pub(crate) fn new() -> Self {
        Self::with(RoundLimits::default())
    }

    pub(crate) fn with(rounds: RoundLimits) -> Self {
        Self::with_components(rounds, |_| ())
    }

    /// With more that it offers.
    pub(crate) fn with_components(
        rounds: RoundLimits,
        component: impl FnOnce(&mut Components),
    ) -> Self {
        let mut components = Components::new(ServerFacts {
            request_state_keys: vec![b"one".to_vec()],
            rounds,
            ..ServerFacts::from(Implementation::new("asker", "1"))
        });
        for name in ["tool", "other", "forbids", "slow", "alone"] {
            let tool = Tool::new(name, to_raw(&json!({"type": "object"})));
            let mut component = RegisteredTool::new(tool, kept(Handler::Plain)).unwrap();
            component.options.forbids_replay = name == "forbids";
            component.options.timeout = (name == "slow").then_some(Duration::from_secs(10));
            component.options.concurrency = (name == "alone").then_some(1);
            components.tools.add(component, true).unwrap();
        }
        component(&mut components);
        let now = Instant::now();
        Self {
            service: Service::new(Arc::new(components), &gudgeon::test_pair::start(now)),
            runs: Vec::new(),
            sent: Vec::new(),
            answered: Vec::new(),
            reports: Vec::new(),
            cancelled: Vec::new(),
            resumed: Vec::new(),
            now,
        }
    }

    pub(crate) fn handle(&mut self, input: Input<'_>) {
        self.service.handle(self.now, input);
        while let Some(output) = self.service.poll() {
            match output {
                Output::Send(frame) | Output::Change(frame) => {
                    self.sent.push(serde_json::from_slice(&frame).unwrap());
                }
                Output::Effect(Effect::Run(run)) => self.runs.push(*run),
                Output::Effect(Effect::Answered { outcome, .. }) => self.answered.push(
                    outcome
                        .map(|result| serde_json::from_str(result.get()).unwrap())
                        .map_err(|error| error.message),
                ),
                Output::Effect(Effect::Log(event)) => self.reports.extend(report(&event)),
                Output::Effect(Effect::Cancel(call)) => self.cancelled.push(call),
                Output::Effect(Effect::Subscribed { .. } | Effect::Span(_)) => (),
                Output::Effect(Effect::Resume { run: call, context }) => {
                    self.resumed.push((call, *context));
                }
                Output::Compute(job) => {
                    self.service.handle(self.now, Input::Computed(job.run()));
                }
                Output::Effect(Effect::Host(..) | Effect::CancelHost(_)) => {
                    panic!("everyone sees every component")
                }
            }
        }
    }

    pub(crate) fn receive(&mut self, frame: &Value) {
        self.handle(Input::Frame(frame.to_string().as_bytes()));
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.service.in_flight()
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.service.deadline()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.service.is_full()
    }

    pub(crate) fn next_sent(&mut self) -> Value {
        assert!(!self.sent.is_empty(), "nothing was said");
        self.sent.remove(0)
    }

    pub(crate) fn running(&mut self) -> Run {
        self.runs.pop().expect("a handler runs")
    }

    pub(crate) fn done(&mut self, run: &Run, reply: Result<Reply, Failure>) {
        self.handle(Input::Handler(run.id, HandlerEvent::Done(reply)));
    }

    pub(crate) fn open(&mut self, revision: &str, capabilities: &Value) {
        self.receive(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": revision, "capabilities": capabilities, "clientInfo": {"name": "c", "version": "1"},
        }}));
        self.next_sent();
        self.receive(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    }
}

pub(crate) fn form() -> Value {
    json!({"mode": "form", "message": "Sure?", "requestedSchema": {
        "type": "object", "properties": {"value": {"type": "boolean"}}, "required": ["value"],
    }})
}

pub(crate) fn questions(keys: &[&str]) -> Reply {
    let all: Vec<_> = keys
        .iter()
        .map(|key| json!({"key": key, "method": "elicitation/create", "params": form()}))
        .collect();
    Reply::Questions(Value::Array(all).to_string())
}

/// A running handler asks the form under this key.
pub(crate) fn ask(run: &Run, number: u64, key: &str) -> Input<'static> {
    let question = Question { key: key.into(), method: Method::Elicit, params: to_raw(&form()) };
    Input::Handler(run.id, HandlerEvent::Ask { ask: AskId(number), question })
}

pub(crate) fn yes() -> Value {
    json!({"action": "accept", "content": {"value": true}})
}

pub(crate) fn legacy(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "tool"}})
}

pub(crate) fn modern(id: u64, capabilities: &Value, rest: &Value) -> Value {
    let mut params = json!({"name": "tool", "arguments": {"x": 1}, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    }});
    for (key, value) in rest.as_object().unwrap() {
        params[key] = value.clone();
    }
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}
