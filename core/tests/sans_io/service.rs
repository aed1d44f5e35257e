//! Pending calls: timeouts, concurrency, and notifications of changed components, with a manual clock.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use gudgeon::{
    engine::{Effect, HandlerEvent, Run},
    framing::TooLong,
    protocol::{Implementation, Tool, json},
    router::{Components, Failure, RegisteredTool, Reply, ServerFacts},
    service::{Input, Output, Service},
    session::server::ListKind,
};
use serde_json::{Value, json};

use crate::support::{Handler, fixture, kept, logs::report};

struct Shell {
    service: Service,
    now: Instant,
    sent: Vec<Value>,
    runs: Vec<Run>,
    cancelled: Vec<u64>,
    reports: Vec<String>,
}

impl Shell {
    fn new(components: Components) -> Self {
        let mut shell = Self::unconfirmed(components);
        shell.receive(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        shell
    }

    fn unconfirmed(components: Components) -> Self {
        let service =
            Service::new(Arc::new(components), &gudgeon::test_pair::start(Instant::now()));
        let mut shell = Self {
            service,
            now: Instant::now(),
            sent: Vec::new(),
            runs: Vec::new(),
            cancelled: Vec::new(),
            reports: Vec::new(),
        };
        shell.receive(r#"{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#);
        shell.sent.clear();
        shell
    }

    fn receive(&mut self, frame: &str) {
        self.handle(Input::Frame(frame.as_bytes()));
    }

    fn call(&mut self, id: u64, tool: &str) {
        self.receive(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{}}}}}}"#
        ));
    }

    fn handle(&mut self, input: Input<'_>) {
        self.service.handle(self.now, input);
        while let Some(output) = self.service.poll() {
            match output {
                Output::Send(frame) | Output::Change(frame) => {
                    self.sent.push(serde_json::from_slice(&frame).unwrap());
                }
                Output::Effect(Effect::Run(run)) => self.runs.push(*run),
                Output::Effect(Effect::Cancel(call)) => self.cancelled.push(call.0),
                Output::Effect(Effect::Log(event)) => self.reports.extend(report(&event)),
                Output::Compute(job) => {
                    self.service.handle(self.now, Input::Computed(job.run()));
                }
                Output::Effect(
                    Effect::Answered { .. }
                    | Effect::Resume { .. }
                    | Effect::Subscribed { .. }
                    | Effect::Host(..)
                    | Effect::Span(_)
                    | Effect::CancelHost(_),
                ) => (),
            }
        }
    }

    fn finish(&mut self, run: usize, outcome: Result<Reply, Failure>) {
        let call = self.runs[run].id;
        self.handle(Input::Handler(call, HandlerEvent::Done(outcome)));
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.handle(Input::Tick);
    }
}

fn tool(name: &str) -> RegisteredTool {
    let handler: Handler = Handler::Plain;
    RegisteredTool::new(Tool::new(name, json::raw(r#"{"type":"object"}"#.into())), kept(handler))
        .unwrap()
}

fn with(component: RegisteredTool) -> Components {
    let mut components = fixture::components();
    components.tools.add(component, true).unwrap();
    components
}

#[test]
fn a_call_that_takes_too_long_is_answered_and_stopped() {
    let mut slow = tool("slow");
    slow.options.timeout = Some(Duration::from_secs(5));
    let mut shell = Shell::new(with(slow));
    shell.call(1, "slow");
    assert_eq!(shell.service.deadline(), Some(shell.now + Duration::from_secs(5)));
    shell.pass(Duration::from_millis(4_999));
    assert!(shell.sent.is_empty());
    shell.pass(Duration::from_millis(1));
    assert_eq!(shell.sent[0]["result"]["isError"], true);
    assert_eq!(
        shell.sent[0]["result"]["content"][0]["text"],
        "tool \"slow\" took longer than its 5 s"
    );
    assert_eq!(shell.cancelled.len(), 1);
    assert_eq!(shell.service.deadline(), None);
    shell.finish(0, Ok(Reply::Text("late".into())));
    assert_eq!(shell.sent.len(), 1, "a late reply is nobody's");
}

#[test]
fn a_call_that_ends_in_time_leaves_no_deadline() {
    let mut slow = tool("slow");
    slow.options.timeout = Some(Duration::from_secs(5));
    let mut shell = Shell::new(with(slow));
    shell.call(1, "slow");
    shell.finish(0, Ok(Reply::Nothing));
    assert_eq!(shell.service.deadline(), None);
    shell.pass(Duration::from_secs(6));
    assert_eq!(shell.sent.len(), 1);
}

#[test]
fn only_so_many_calls_run_at_once_and_the_others_wait_in_line() {
    let mut narrow = tool("narrow");
    narrow.options.concurrency = Some(2);
    let mut shell = Shell::new(with(narrow));
    for id in 1..=4 {
        shell.call(id, "narrow");
    }
    assert_eq!(shell.runs.len(), 2);
    shell.call(9, "content");
    assert_eq!(shell.runs.len(), 3, "other tools don't wait");
    shell.receive(
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}"#,
    );
    shell.finish(0, Ok(Reply::Text("1".into())));
    assert_eq!(shell.runs.len(), 4);
    assert_eq!(
        shell.runs[3].context.request_id.as_ref().unwrap().as_json(),
        "4",
        "3 was given up in line"
    );
    shell.receive(
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#,
    );
    shell.finish(3, Ok(Reply::Text("4".into())));
    let answered: Vec<_> = shell.sent.iter().map(|reply| reply["id"].as_u64().unwrap()).collect();
    assert_eq!(answered, [1, 4]);
    shell.call(5, "narrow");
    assert_eq!(shell.runs.len(), 5, "all places are free again");
}

#[test]
fn a_change_of_offers_is_told_and_takes_effect() {
    let mut shell = Shell::new(fixture::components());
    let mut next = fixture::components();
    next.tools.set_enabled(&["hidden".into()], &[], true).unwrap();
    next.tools.remove("wait").unwrap();
    shell.handle(Input::Components(Arc::new(next), vec![ListKind::Tools]));
    assert_eq!(shell.sent[0]["method"], "notifications/tools/list_changed");
    shell.call(1, "hidden");
    shell.call(2, "wait");
    assert_eq!(shell.runs.len(), 1);
    assert_eq!(shell.sent[1]["error"]["message"], "Unknown tool: wait");
}

#[test]
fn a_change_before_the_handshake_is_confirmed_is_told_right_after() {
    let mut shell = Shell::unconfirmed(fixture::components());
    for _ in 0..2 {
        let kinds = vec![ListKind::Prompts, ListKind::Tools];
        shell.handle(Input::Components(Arc::new(fixture::components()), kinds));
    }
    assert!(shell.sent.is_empty());
    shell.receive(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    let methods: Vec<_> =
        shell.sent.iter().map(|message| message["method"].as_str().unwrap()).collect();
    assert_eq!(methods, ["notifications/prompts/list_changed", "notifications/tools/list_changed"]);
}

#[test]
fn what_a_server_declared_no_capability_for_is_no_method_of_it() {
    let mut few = Components::new(ServerFacts::from(Implementation::new("few", "1")));
    few.tools.add(tool("alone"), true).unwrap();
    let mut shell = Shell::new(few);
    let complete =
        r#"{"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"a","value":""}}"#;
    for (method, params) in [
        ("prompts/list", "{}"),
        ("resources/list", "{}"),
        ("resources/templates/list", "{}"),
        ("completion/complete", complete),
    ] {
        shell.receive(&format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#
        ));
        let error = shell.sent.pop().unwrap()["error"].take();
        assert_eq!(error["code"], -32601, "{error}");
        assert_eq!(error["message"], format!("method not found: {method}"));
    }
}

#[test]
fn a_list_whose_last_offer_is_gone_is_an_empty_list() {
    let mut few = Components::new(ServerFacts::from(Implementation::new("few", "1")));
    few.tools.add(tool("alone"), true).unwrap();
    let mut shell = Shell::new(few.clone());
    few.tools.remove("alone").unwrap();
    shell.handle(Input::Components(Arc::new(few), vec![ListKind::Tools]));
    assert_eq!(shell.sent[0]["method"], "notifications/tools/list_changed");
    shell.receive(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    assert_eq!(shell.sent[1]["result"]["tools"], serde_json::json!([]));
    shell.receive(r#"{"jsonrpc":"2.0","id":2,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#);
    assert_eq!(shell.sent[2]["result"]["capabilities"]["tools"]["listChanged"], true);
}

#[test]
fn only_lists_that_the_handshake_declared_are_told_to_have_changed() {
    let mut few = Components::new(ServerFacts::from(Implementation::new("few", "1")));
    few.tools.add(tool("alone"), true).unwrap();
    let mut shell = Shell::new(few);
    let kinds = vec![ListKind::Resources, ListKind::Prompts, ListKind::Tools];
    shell.handle(Input::Components(Arc::new(fixture::components()), kinds));
    let methods: Vec<_> =
        shell.sent.iter().map(|message| message["method"].as_str().unwrap()).collect();
    assert_eq!(methods, ["notifications/tools/list_changed"]);
    shell.receive(r#"{"jsonrpc":"2.0","id":1,"method":"resources/list"}"#);
    assert_eq!(shell.sent[1]["result"]["resources"].as_array().unwrap().len(), 2);
}

#[test]
fn why_a_client_gives_a_request_up_is_told_to_those_who_look_closely() {
    let mut shell = Shell::new(fixture::components());
    shell.call(1, "wait");
    let long = "x".repeat(1000);
    for (id, reason) in [("7", "nobody asked that"), ("1", &format!("no\nway {long}"))] {
        shell.receive(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":{}}}}}"#,
            serde_json::to_string(reason).unwrap()
        ));
    }
    assert_eq!(shell.reports.len(), 1, "{:?}", shell.reports);
    let report = &shell.reports[0];
    assert!(
        report.starts_with(r#"request 1 was cancelled by its client: "no\nway xx"#),
        "{report}"
    );
    assert!(report.len() < 300, "it is one line, and none without an end");
}

#[test]
fn a_closed_peer_cancels_everything() {
    let mut shell = Shell::new(fixture::components());
    shell.call(1, "wait");
    shell.call(2, "wait");
    shell.handle(Input::Closed);
    assert_eq!(shell.cancelled.len(), 2);
    assert_eq!(shell.service.in_flight(), 0);
    shell.finish(0, Ok(Reply::Nothing));
    assert!(shell.sent.is_empty());
}

#[test]
fn an_exception_is_told_by_type_and_reference_and_reported_whole() {
    let mut shell = Shell::new(fixture::components());
    shell.call(1, "crash");
    let failure = Failure::Exception {
        kind: "KeyError".into(),
        message: "'token'".into(),
        traceback: "Traceback: token=hunter2".into(),
    };
    shell.finish(0, Err(failure));
    let text = shell.sent[0]["result"]["content"][0]["text"].as_str().unwrap();
    assert_eq!(text, "tool \"crash\" failed: KeyError (reference 95075878-1)");
    assert!(shell.reports[0].contains("95075878-1") && shell.reports[0].contains("hunter2"));
}

#[test]
fn a_result_that_breaks_its_own_schema_is_the_servers_fault() {
    let mut shell = Shell::new(fixture::components());
    shell.receive(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":1,"b":2}}}"#);
    shell.finish(0, Ok(Reply::Text("three".into())));
    assert_eq!(shell.sent[0]["result"]["isError"], true);
    let text = shell.sent[0]["result"]["content"][0]["text"].as_str().unwrap();
    assert!(!text.contains("three") && text.contains("reference"), "{text}");
    assert!(shell.reports[0].contains("output schema"), "{}", shell.reports[0]);
}

#[test]
fn what_cannot_be_encoded_is_one_error_reply() {
    let mut shell = Shell::new(fixture::components());
    for (id, reply) in [
        (1, Reply::Json("{".into())),
        (2, Reply::Parts("[1]".into())),
        (3, Reply::Result("[]".into())),
        (4, Reply::Blob("AA==".into())),
    ] {
        shell.receive(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"add","arguments":{{"a":1,"b":2}}}}}}"#));
        shell.finish(id - 1, Ok(reply));
        assert_eq!(shell.sent.len(), id);
        assert_eq!(shell.sent[id - 1]["result"]["isError"], true, "{id}");
    }
}

#[test]
fn a_request_over_the_limit_is_answered_with_its_id() {
    let mut shell = Shell::new(with(tool("n")));
    // The id comes first in the messages of some clients and last in those of others, and a notification has none.
    for (message, id) in [
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"n","arguments":{"text":"PAD"}}}"#,
            json!(7),
        ),
        (
            r#"{"method":"tools/call","params":{"name":"n","arguments":{"text":"PAD"}},"jsonrpc":"2.0","id":"a"}"#,
            json!("a"),
        ),
        (r#"{"arguments":"PAD"}"#, json!(null)),
        (r#"[{"jsonrpc":"2.0","id":7,"method":"ping","params":{"text":"PAD"}}]"#, json!(null)),
    ] {
        let message = message.replace("PAD", &"x".repeat(2000));
        shell.handle(Input::TooLong(TooLong::new(1000, message.as_bytes())));
        let answer = shell.sent.pop().unwrap();
        assert_eq!(answer["id"], id, "{message}");
        assert!(
            answer["error"]["message"].as_str().unwrap().contains("longer than 1000 bytes"),
            "{answer}"
        );
        assert!(shell.sent.is_empty() && shell.runs.is_empty());
    }
}
