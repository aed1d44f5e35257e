//! Answers to the questions of a handler that waits in another process (2026-07-28, Multi Round-Trip Requests): the handler goes
//! on there, also one that must not run twice.

use std::time::{Duration, Instant};

use gudgeon::{
    engine::{HandlerEvent, Start},
    http::{EndpointConfig, EndpointInput, ExchangeId},
    protocol::{Implementation, Method, Question, Tool, json::to_raw},
    router::{Components, RegisteredTool, Reply, ServerFacts},
    session::{asking::AskId, server::Progress},
};
use serde_json::{Value, json};

use crate::support::{
    Handler,
    asker::{form, yes},
    kept,
    visitor::Visitor,
};

struct Processes(Vec<Option<Visitor>>);

impl Processes {
    fn new() -> Self {
        Self((0..3).map(|number| Some(process(number))).collect())
    }

    fn at<T>(&mut self, process: usize, act: impl FnOnce(&mut Visitor) -> T) -> T {
        let done = act(self.0[process].as_mut().expect("it lives"));
        self.settle();
        done
    }

    fn settle(&mut self) {
        for _ in 0..20 {
            for from in 0..self.0.len() {
                let Some(process) = &mut self.0[from] else { continue };
                for message in std::mem::take(&mut process.published) {
                    let others = self.0.iter_mut().enumerate().filter(|(to, _)| *to != from);
                    for process in others.filter_map(|(_, process)| process.as_mut()) {
                        process.handle(EndpointInput::Published(&message));
                    }
                }
            }
        }
    }

    fn advance(&mut self, by: Duration) {
        let step = Duration::from_millis(500);
        for _ in 0..by.as_millis() / step.as_millis() {
            self.0.iter_mut().flatten().for_each(|process| process.advance(step));
            self.settle();
        }
    }

    /// Calls a tool in process 0, whose handler asks and waits. Returns the state for the answer.
    fn asked(&mut self, tool: &str) -> String {
        let exchange = self.at(0, |process| call(process, tool, &json!({})));
        self.ask(0, exchange, "sure")
    }

    /// Has the handler of a process ask and wait. Returns the state for the answer to this exchange.
    fn ask(&mut self, process: usize, exchange: u64, key: &str) -> String {
        self.at(0, |process| {
            let run = process.runs[0].id;
            let params = to_raw(&form());
            let question = Question { key: key.into(), method: Method::Elicit, params };
            let event = HandlerEvent::Ask { ask: AskId(1), question };
            process.handle(EndpointInput::Handler(run, event));
            process.handle(EndpointInput::Handler(run, HandlerEvent::Waits { blocks: false }));
        });
        let result = self.reply(process, exchange)["result"].clone();
        assert_eq!(result["resultType"], "input_required", "{result}");
        result["requestState"].as_str().unwrap().to_owned()
    }

    /// Sends the answer to a process.
    fn answer(&mut self, process: usize, tool: &str, state: &str) -> u64 {
        self.bring(process, tool, state, &json!({"sure": yes()}))
    }

    fn bring(&mut self, process: usize, tool: &str, state: &str, answers: &Value) -> u64 {
        let rest = json!({"requestState": state, "inputResponses": answers});
        self.at(process, |process| call(process, tool, &rest))
    }

    fn finish(&mut self, process: usize) {
        self.at(process, |process| process.finish(Ok(Reply::Text("deleted".into()))));
    }

    fn reply(&self, process: usize, exchange: u64) -> Value {
        self.0[process].as_ref().expect("it lives").reply(exchange).json()
    }

    fn runs(&self, process: usize) -> usize {
        self.0[process].as_ref().expect("it lives").runs.len()
    }
}

fn process(number: u8) -> Visitor {
    let mut components = Components::new(ServerFacts {
        request_state_keys: vec![b"one".to_vec()],
        ..ServerFacts::from(Implementation::new("asker", "1"))
    });
    for name in ["tool", "forbids"] {
        let tool = Tool::new(name, to_raw(&json!({"type": "object"})));
        let mut component = RegisteredTool::new(tool, kept(Handler::Plain)).unwrap();
        component.options.forbids_replay = name == "forbids";
        components.tools.add(component, true).unwrap();
    }
    let start = Start { now: Instant::now(), unix: 1_000_000, seed: [number; 32], test_mode: None };
    let mut visitor = Visitor::started(components, EndpointConfig::default(), &start);
    visitor.endpoint.share();
    visitor
}

fn call(process: &mut Visitor, tool: &str, rest: &Value) -> u64 {
    let mut params = json!({"name": tool, "arguments": {}, "_meta": {
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
        "progressToken": "p",
    }});
    for (key, value) in rest.as_object().unwrap() {
        params[key] = value.clone();
    }
    process.modern_with("tools/call", params, &[("mcp-name", tool)])
}

#[test]
fn an_answer_goes_to_the_handler_that_waits_wherever_it_comes() {
    for tool in ["tool", "forbids"] {
        let mut processes = Processes::new();
        let state = processes.asked(tool);
        let exchange = processes.answer(2, tool, &state);
        assert_eq!(processes.0[0].as_ref().unwrap().answers.len(), 1);
        assert_eq!((processes.runs(1), processes.runs(2)), (0, 0), "it runs once");
        // It asks once more, and the answer comes to another process.
        let state = processes.ask(2, exchange, "again");
        let exchange = processes.bring(1, tool, &state, &json!({"again": yes()}));
        processes.finish(0);
        let reply = processes.reply(1, exchange);
        assert_eq!(reply["result"]["content"][0]["text"], "deleted", "{reply}");
        assert!(processes.0[1].as_ref().unwrap().reply(exchange).complete);
    }
}

#[test]
fn progress_comes_on_the_stream_of_the_other_process() {
    let mut processes = Processes::new();
    let state = processes.asked("forbids");
    let exchange = processes.answer(2, "forbids", &state);
    processes.at(0, |process| {
        let progress = Progress { progress: 1.0, total: None, message: None };
        let run = process.runs[0].id;
        process.handle(EndpointInput::Handler(run, HandlerEvent::Progress(progress)));
    });
    processes.finish(0);
    let reply = processes.0[2].as_ref().unwrap().reply(exchange);
    assert!(reply.is_stream() && reply.complete);
    let messages = reply.messages();
    assert_eq!(messages[0]["params"]["progress"], 1);
    assert_eq!(messages[1]["result"]["content"][0]["text"], "deleted");
}

#[test]
fn a_handler_whose_process_is_gone_is_replayed_unless_it_forbids_that() {
    for (tool, runs) in [("tool", 1), ("forbids", 0)] {
        let mut processes = Processes::new();
        let state = processes.asked(tool);
        processes.0[0] = None;
        let exchange = processes.answer(2, tool, &state);
        assert_eq!(processes.runs(2), 0, "the process may be there");
        processes.advance(Duration::from_secs(2));
        assert_eq!(processes.runs(2), runs);
        if runs == 0 {
            let reply = processes.reply(2, exchange);
            assert_eq!(reply["error"]["message"], "Invalid or expired requestState");
        }
    }
}

#[test]
fn a_process_whose_handler_is_gone_says_so_at_once() {
    let mut processes = Processes::new();
    let state = processes.asked("tool");
    processes.at(0, |process| process.advance(Duration::from_secs(301)));
    processes.answer(2, "tool", &state);
    assert_eq!(processes.runs(2), 1);
}

#[test]
fn a_request_fails_when_its_process_ends_before_it_answers() {
    let mut processes = Processes::new();
    let state = processes.asked("tool");
    let exchange = processes.answer(2, "tool", &state);
    processes.advance(Duration::from_secs(8));
    assert!(!processes.0[2].as_ref().unwrap().replies.contains_key(&exchange));
    processes.0[0] = None;
    processes.advance(Duration::from_secs(12));
    let reply = processes.0[2].as_ref().unwrap().reply(exchange);
    assert_eq!((reply.status, reply.error()), (500, -32603));
    assert_eq!(processes.runs(2), 0, "it may have taken effect");
}

#[test]
fn a_client_that_leaves_cancels_the_call_in_the_other_process() {
    let mut processes = Processes::new();
    let state = processes.asked("tool");
    let exchange = processes.answer(2, "tool", &state);
    processes.at(2, |process| process.handle(EndpointInput::Disconnected(ExchangeId(exchange))));
    assert_eq!(processes.0[0].as_ref().unwrap().cancelled.len(), 1);
    assert!(processes.0[0].as_ref().unwrap().endpoint.keeps_no_call());
}

#[test]
fn a_part_that_is_lost_fails_the_request_instead_of_spoiling_its_answer() {
    let mut processes = Processes::new();
    let state = processes.asked("tool");
    let exchange = processes.answer(2, "tool", &state);
    let progress = |process: &mut Visitor| {
        let progress = Progress { progress: 1.0, total: None, message: None };
        let run = process.runs[0].id;
        process.handle(EndpointInput::Handler(run, HandlerEvent::Progress(progress)));
    };
    processes.at(0, |process| {
        progress(process);
        process.published.clear();
    });
    processes.finish(0);
    let reply = processes.0[2].as_ref().unwrap().reply(exchange);
    assert_eq!((reply.status, reply.error()), (500, -32603));
}

#[test]
fn a_server_that_stops_ends_what_nobody_has_taken() {
    let mut processes = Processes::new();
    let state = processes.asked("tool");
    processes.0[0] = None;
    let exchange = processes.answer(2, "tool", &state);
    processes.at(2, |process| process.handle(EndpointInput::ShutDown));
    assert_eq!(processes.0[2].as_ref().unwrap().reply(exchange).status, 503);
}

#[test]
fn a_thousand_requests_wait_for_other_processes_and_no_more() {
    let mut processes = Processes::new();
    let state = processes.asked("tool");
    processes.0[0] = None;
    let first = processes.answer(2, "tool", &state);
    for _ in 1..1_000 {
        processes.answer(2, "tool", &state);
    }
    assert_eq!(processes.runs(2), 0);
    processes.answer(2, "tool", &state);
    assert_eq!(processes.runs(2), 1, "it runs here, from the beginning");
    processes.at(2, |process| process.handle(EndpointInput::Disconnected(ExchangeId(first))));
    processes.answer(2, "tool", &state);
    assert_eq!(processes.runs(2), 1, "there is room for one again");
}
