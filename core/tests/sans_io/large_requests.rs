//! Large requests, whose dispatch the driver runs outside its lock.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use gudgeon::{
    engine::{
        DispatchJob, Effect, HandlerEvent, Input, Load, MAX_UNDER_LOCK, Output, Run, Service,
        Ticket,
    },
    protocol::{Implementation, Tool, json},
    router::{Components, RegisteredTool, Reply, ServerFacts},
};
use serde_json::{Value, json};

struct Host {
    service: Service<&'static str>,
    now: Instant,
    jobs: Vec<(Ticket, Box<DispatchJob<&'static str>>)>,
    cancelled: Vec<Ticket>,
    runs: Vec<Run<&'static str>>,
    sent: Vec<Value>,
    reports: Vec<String>,
}

impl Host {
    fn new() -> Self {
        let schema = r#"{"type":"object","properties":{"text":{"type":"string"}}}"#;
        let tool = Tool::new("count", json::raw(schema.into()));
        let mut components = Components::new(ServerFacts::from(Implementation::new("host", "1")));
        components.tools.add(RegisteredTool::new(tool, "count").unwrap(), true).unwrap();
        let now = Instant::now();
        let mut host = Self {
            service: Service::new(Arc::new(components), &gudgeon::testing::start(now)),
            now,
            jobs: Vec::new(),
            cancelled: Vec::new(),
            runs: Vec::new(),
            sent: Vec::new(),
            reports: Vec::new(),
        };
        host.send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "c", "version": "1"},
        }}));
        host.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        host.sent.clear();
        host
    }

    fn call(&mut self, id: u64, text: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
            "name": "count", "arguments": {"text": text},
        }}));
    }

    fn send(&mut self, message: &Value) {
        self.handle(Input::Frame(message.to_string().as_bytes()));
    }

    fn handle(&mut self, input: Input<'_, &'static str>) {
        self.service.handle(self.now, input);
        while let Some(output) = self.service.poll() {
            match output {
                Output::Send(frame) => self.sent.push(serde_json::from_slice(&frame).unwrap()),
                Output::Effect(Effect::Run(run)) => self.runs.push(run),
                Output::Effect(Effect::Dispatch(ticket, job)) => self.jobs.push((ticket, job)),
                Output::Effect(Effect::CancelHost(ticket)) => self.cancelled.push(ticket),
                Output::Effect(Effect::Report(text)) => self.reports.push(text),
                other => panic!("{other:?}"),
            }
        }
    }

    /// Runs the oldest dispatch, and reports it.
    fn dispatch(&mut self) {
        let (ticket, job) = self.jobs.remove(0);
        self.handle(Input::Dispatched(ticket, job.run()));
    }

    fn finish(&mut self) {
        let run = self.runs.remove(0);
        let done = HandlerEvent::Done(Ok(Reply::Text("done".into())));
        self.handle(Input::Handler(run.id, done));
    }
}

fn large() -> Value {
    "x".repeat(MAX_UNDER_LOCK).into()
}

#[test]
fn other_requests_are_served_while_a_large_one_is_dispatched() {
    let mut host = Host::new();
    host.call(1, &large());
    assert_eq!((host.jobs.len(), host.runs.len(), host.service.in_flight()), (1, 0, 1));
    host.call(2, &"x".into());
    assert_eq!((host.jobs.len(), host.runs.len()), (1, 1), "a small one is dispatched at once");
    host.finish();
    assert_eq!(host.sent[0]["id"], 2);
    host.dispatch();
    assert!(host.runs[0].input.len() > MAX_UNDER_LOCK);
    host.finish();
    assert_eq!(host.sent[1]["id"], 1);
    assert_eq!(host.sent[1]["result"]["content"][0]["text"], "done");
    assert_eq!(host.service.load(), Load::default());
}

#[test]
fn arguments_of_a_large_request_are_checked() {
    let mut host = Host::new();
    host.call(1, &json!([large()]));
    host.dispatch();
    assert!(host.runs.is_empty());
    let said = host.sent[0].to_string();
    assert!(said.contains("Invalid arguments for tool"), "{}", &said[..200]);
    assert_eq!(host.service.load(), Load::default());
}

#[test]
fn a_large_request_that_is_cancelled_does_not_run() {
    let mut host = Host::new();
    host.call(1, &large());
    let cancelled = json!({"requestId": 1});
    host.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled}));
    assert_eq!(host.cancelled, [host.jobs[0].0]);
    host.dispatch();
    assert!(host.runs.is_empty() && host.sent.is_empty());
    assert_eq!(host.service.load(), Load::default());
}

#[test]
fn a_large_request_that_nobody_dispatches_fails_in_the_end() {
    let mut host = Host::new();
    host.call(1, &large());
    assert_eq!(host.service.deadline(), Some(host.now + Duration::from_secs(30)));
    host.now += Duration::from_secs(30);
    host.handle(Input::Tick);
    assert_eq!(host.sent[0]["error"]["code"], -32603);
    assert_eq!(
        host.reports,
        ["a request was not dispatched: the host has not answered within 30 s"]
    );
    host.dispatch();
    assert!(host.runs.is_empty());
}
