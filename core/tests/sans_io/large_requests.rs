//! Computations that the driver runs outside its lock: those of large requests, replies and answers, and of tools whose
//! schemas need more than linear time.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use crate::support::{kept, logs::report};
use gudgeon::{
    engine::{Computation, Effect, HandlerEvent, Load, MAX_UNDER_LOCK, Run, Ticket},
    protocol::{Implementation, Method, Question, Tool, json},
    router::{Components, RegisteredTool, Reply, ServerFacts},
    service::{Input, Output, Service},
    session::asking::AskId,
};
use serde_json::{Value, json};

struct Host {
    service: Service,
    now: Instant,
    jobs: Vec<Computation>,
    cancelled: Vec<Ticket>,
    runs: Vec<Run>,
    sent: Vec<Value>,
    reports: Vec<String>,
    answered: Vec<Result<Value, String>>,
}

impl Host {
    fn new() -> Self {
        let schema = r#"{"type":"object","properties":{"text":{"type":"string"}}}"#;
        let tool = Tool::new("count", json::raw(schema.into()));
        let mut components = Components::new(ServerFacts::from(Implementation::new("host", "1")));
        components.tools.add(RegisteredTool::new(tool, kept("count")).unwrap(), true).unwrap();
        let strong =
            r#"{"type":"object","properties":{"word":{"type":"string","pattern":"^(?=.*a).+$"}}}"#;
        let plain = r#"{"type":"object"}"#;
        for (name, input, output) in [("reads", strong, None), ("writes", plain, Some(strong))] {
            let mut tool = Tool::new(name, json::raw(input.into()));
            tool.output_schema = output.map(|schema| json::raw(schema.into()));
            components.tools.add(RegisteredTool::new(tool, kept(name)).unwrap(), true).unwrap();
        }
        let now = Instant::now();
        let mut host = Self {
            service: Service::new(Arc::new(components), &gudgeon::test_pair::start(now)),
            now,
            jobs: Vec::new(),
            cancelled: Vec::new(),
            runs: Vec::new(),
            sent: Vec::new(),
            reports: Vec::new(),
            answered: Vec::new(),
        };
        host.send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "c", "version": "1"},
        }}));
        host.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        host.sent.clear();
        host
    }

    fn call(&mut self, id: u64, text: &Value) {
        self.call_tool(id, "count", &json!({"text": text}));
    }

    fn call_tool(&mut self, id: u64, name: &str, arguments: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
            "name": name, "arguments": arguments,
        }}));
    }

    fn send(&mut self, message: &Value) {
        self.handle(Input::Frame(message.to_string().as_bytes()));
    }

    fn handle(&mut self, input: Input<'_>) {
        self.service.handle(self.now, input);
        while let Some(output) = self.service.poll() {
            match output {
                Output::Send(frame) => self.sent.push(serde_json::from_slice(&frame).unwrap()),
                Output::Effect(Effect::Run(run)) => self.runs.push(*run),
                Output::Compute(job) => self.jobs.push(*job),
                Output::Effect(Effect::CancelHost(ticket)) => self.cancelled.push(ticket),
                // The handler has ended.
                Output::Effect(Effect::Cancel(_)) => (),
                Output::Effect(Effect::Log(event)) => self.reports.extend(report(&event)),
                Output::Effect(Effect::Answered { outcome, .. }) => self.answered.push(
                    outcome
                        .map(|result| serde_json::from_str(result.get()).unwrap())
                        .map_err(|error| error.message),
                ),
                other => panic!("{other:?}"),
            }
        }
    }

    /// Runs the oldest computation, and reports it.
    fn compute(&mut self) {
        let job = self.jobs.remove(0);
        self.handle(Input::Computed(job.run()));
    }

    fn finish(&mut self) {
        self.finish_with(Reply::Text("done".into()));
    }

    fn finish_with(&mut self, reply: Reply) {
        let run = self.runs.remove(0);
        self.handle(Input::Handler(run.id, HandlerEvent::Done(Ok(reply))));
    }

    /// The running handler asks for a text.
    fn ask(&mut self) {
        let form = json!({"mode": "form", "message": "Which?", "requestedSchema": {
            "type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"],
        }});
        let question =
            Question { key: "a".into(), method: Method::Elicit, params: json::to_raw(&form) };
        let ask = HandlerEvent::Ask { ask: AskId(1), question };
        self.handle(Input::Handler(self.runs[0].id, ask));
        self.handle(Input::Handler(self.runs[0].id, HandlerEvent::Waits { blocks: false }));
    }

    fn answer(&mut self, text: &Value) {
        let id = self.sent.pop().unwrap()["id"].clone();
        let result = json!({"action": "accept", "content": {"text": text}});
        self.send(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
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
    host.compute();
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
    host.compute();
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
    assert_eq!(host.cancelled, [host.jobs[0].ticket().unwrap()]);
    host.compute();
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
    host.compute();
    assert!(host.runs.is_empty());
}

#[test]
fn a_large_reply_is_converted_outside_the_lock() {
    let mut host = Host::new();
    host.call(1, &"x".into());
    host.finish_with(Reply::Text("x".repeat(MAX_UNDER_LOCK + 1)));
    assert!(host.sent.is_empty() && host.jobs.len() == 1 && host.service.in_flight() == 1);
    host.compute();
    assert_eq!(host.sent[0]["id"], 1);
    let text = host.sent[0]["result"]["content"][0]["text"].as_str().unwrap();
    assert_eq!(text.len(), MAX_UNDER_LOCK + 1);
    assert_eq!(host.service.load(), Load::default());
}

#[test]
fn a_large_reply_to_a_cancelled_request_is_dropped() {
    let mut host = Host::new();
    host.call(1, &"x".into());
    host.finish_with(Reply::Text("x".repeat(MAX_UNDER_LOCK + 1)));
    let cancelled = json!({"requestId": 1});
    host.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled}));
    host.compute();
    assert!(host.sent.is_empty());
    assert_eq!(host.service.load(), Load::default());
}

#[test]
fn small_arguments_and_replies_are_checked_outside_the_lock_where_a_pattern_looks_around() {
    let mut host = Host::new();
    host.call_tool(1, "reads", &json!({"word": "banana"}));
    assert_eq!((host.jobs.len(), host.runs.len()), (1, 0));
    host.compute();
    host.finish_with(Reply::Text("done".into()));
    assert!(host.jobs.is_empty(), "its reply has no schema");
    assert_eq!(host.sent[0]["result"]["content"][0]["text"], "done");
    host.call_tool(2, "reads", &json!({"word": "xyz"}));
    host.compute();
    assert!(host.runs.is_empty());
    assert!(host.sent[1].to_string().contains("expected a string that matches"));

    for (word, is_error) in [("banana", false), ("xyz", true)] {
        host.sent.clear();
        host.call_tool(3, "writes", &json!({}));
        assert!(host.jobs.is_empty(), "its arguments have no pattern");
        host.finish_with(Reply::Json(json!({"word": word}).to_string()));
        assert_eq!((host.jobs.len(), host.sent.len()), (1, 0));
        host.compute();
        assert_eq!(host.sent[0]["result"]["isError"] == true, is_error, "{}", host.sent[0]);
    }
    assert_eq!(host.service.load(), Load::default());
}

#[test]
fn a_large_answer_to_a_question_is_checked_outside_the_lock() {
    let mut host = Host::new();
    host.call(1, &"x".into());
    host.ask();
    host.answer(&json!([large()]));
    assert!(host.jobs.len() == 1 && host.sent.is_empty());
    host.compute();
    assert_eq!(
        host.sent[0]["method"], "elicitation/create",
        "an invalid answer is asked for again"
    );
    host.answer(&large());
    assert!(host.jobs.len() == 1 && host.answered.is_empty());
    host.compute();
    assert_eq!(host.answered[0].as_ref().unwrap()["content"]["text"], large());
    host.finish();
    assert_eq!(host.service.load(), Load::default());
}

#[test]
fn a_large_answer_for_a_handler_that_has_ended_is_dropped() {
    let mut host = Host::new();
    host.call(1, &"x".into());
    host.ask();
    host.answer(&large());
    host.finish();
    host.compute();
    assert!(host.answered.is_empty());
    assert_eq!(host.service.load(), Load::default());
}
