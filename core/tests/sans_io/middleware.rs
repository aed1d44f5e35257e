//! Requests that pass a shell's middleware, and standard methods that a handler answers instead of the core. The shell
//! sees the newest vocabulary, the client its own revision.

use std::{sync::Arc, time::Instant};

use crate::support::{Handler, kept, logs::report};
use gudgeon::{
    engine::{Effect, HandlerEvent, Run},
    protocol::{Implementation, Tool, json},
    router::{Components, Definition, Failure, Middleware, RegisteredTool, Reply, ServerFacts},
    service::{Input, Output, Service},
    session::server::ListKind,
};
use serde_json::{Value, json};

#[derive(Debug, PartialEq)]
enum Who {
    Middleware,
    Handler,
}

struct Shell {
    service: Service,
    now: Instant,
    sent: Vec<Value>,
    runs: Vec<Run>,
    reports: Vec<String>,
    next: u64,
}

impl Shell {
    fn new(components: Components) -> Self {
        let now = Instant::now();
        let service = Service::new(Arc::new(components), &gudgeon::test_pair::start(now));
        Self { service, now, sent: Vec::new(), runs: Vec::new(), reports: Vec::new(), next: 0 }
    }

    fn open(components: Components, revision: &str) -> Self {
        let mut shell = Self::new(components);
        shell.ask("initialize", &initialize(revision));
        shell
    }

    fn feed(&mut self, input: Input<'_>) {
        self.service.handle(self.now, input);
        while let Some(output) = self.service.poll() {
            match output {
                Output::Send(frame) | Output::Change(frame) => {
                    self.sent.push(serde_json::from_slice(&frame).unwrap());
                }
                Output::Effect(Effect::Run(run)) => self.runs.push(*run),
                Output::Effect(Effect::Log(event)) => self.reports.extend(report(&event)),
                Output::Effect(_) | Output::Compute(_) => (),
            }
        }
    }

    fn ask(&mut self, method: &str, params: &Value) {
        self.next += 1;
        let frame = json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params});
        self.feed(Input::Frame(frame.to_string().as_bytes()));
    }

    /// A request of 2026-07-28.
    fn ask_modern(&mut self, method: &str, mut params: Value) {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
        });
        self.ask(method, &params);
    }

    /// The handler that waits to be run, and what it is given.
    fn running(&self) -> (Who, Value) {
        let run = self.runs.last().expect("nothing is to be run");
        let who = match Handler::from_kept(&run.handler).is("middleware") {
            true => Who::Middleware,
            false => Who::Handler,
        };
        (who, serde_json::from_str(&run.input).unwrap())
    }

    fn finish(&mut self, outcome: Result<Reply, Failure>) {
        let run = self.runs.pop().expect("nothing runs");
        self.feed(Input::Handler(run.id, HandlerEvent::Done(outcome)));
    }

    fn last(&self) -> &Value {
        self.sent.last().expect("nothing was said")
    }
}

fn initialize(revision: &str) -> Value {
    json!({"protocolVersion": revision, "capabilities": {"roots": {}}, "clientInfo": {"name": "c", "version": "1"}})
}

fn handler() -> Handler {
    Handler::Plain
}

fn bare() -> Components {
    Components::new(ServerFacts {
        instructions: Some("Ask.".into()),
        ..ServerFacts::from(Implementation::new("t", "1"))
    })
}

/// A tool, and middleware on these methods.
fn components(methods: &[&str]) -> Components {
    let mut components = bare();
    let mut tool = Tool::new("open", json::raw(r#"{"type":"object"}"#.into()));
    tool.title = Some("Open".into());
    components.tools.add(RegisteredTool::new(tool, kept(handler())).unwrap(), true).unwrap();
    let middleware =
        Middleware::new(kept(Handler::Named("middleware")), methods.iter().copied(), false);
    components.set_middleware(Some(middleware));
    components
}

fn result(value: &Value) -> Reply {
    Reply::Result(value.to_string())
}

#[test]
fn an_unchanged_list_passes_middleware_unchanged() {
    let mut shell = Shell::open(components(&["tools/list"]), "2024-11-05");
    shell.ask("tools/list", &json!({}));
    let (who, input) = shell.running();
    assert_eq!(who, Who::Middleware);
    assert_eq!(input["method"], "tools/list");
    assert_eq!(input["params"], json!({}));
    assert_eq!(input["result"]["tools"][0]["title"], "Open", "the newest vocabulary");
    shell.finish(Ok(Reply::Nothing));
    let said = shell.last();
    assert_eq!(said["result"]["tools"][0]["name"], "open");
    assert_eq!(said["result"]["tools"][0].get("title"), None, "2024-11-05 has no titles");
}

#[test]
fn a_changed_list_is_sent_in_the_clients_revision() {
    for (revision, title) in [("2024-11-05", Value::Null), ("2025-11-25", json!("Shut"))] {
        let mut shell = Shell::open(components(&["*"]), revision);
        shell.finish(Ok(Reply::Nothing));
        shell.ask("tools/list", &json!({}));
        let tools = json!([{"name": "shut", "title": "Shut", "inputSchema": {"type": "object"}}]);
        shell.finish(Ok(result(&json!({"tools": tools, "nextCursor": "more"}))));
        let said = &shell.last()["result"];
        assert_eq!(said["tools"][0]["name"], "shut");
        assert_eq!(said["tools"][0]["title"], title);
        assert_eq!(said["nextCursor"], "more");
    }
}

#[test]
fn further_members_of_a_changed_list_are_sent() {
    let said = json!({"acme/by": "us"});
    for (method, own) in [
        ("tools/list", json!({"tools": []})),
        ("prompts/list", json!({"prompts": []})),
        ("resources/list", json!({"resources": []})),
        ("resources/templates/list", json!({"resourceTemplates": []})),
        ("completion/complete", json!({"completion": {"values": []}})),
        ("server/discover", json!({})),
    ] {
        let mut changed = own.clone();
        changed["_meta"] = said.clone();
        let mut shell = Shell::new(components(&["*"]));
        let target = json!({"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}});
        shell.ask_modern(method, target);
        shell.finish(Ok(result(&changed)));
        assert_eq!(shell.last()["result"]["_meta"]["acme/by"], "us", "{method}");
        changed["_meta"] = json!(7);
        shell.ask_modern(method, json!({}));
        if !shell.runs.is_empty() {
            shell.finish(Ok(result(&changed)));
            assert_eq!(shell.last()["error"]["code"], -32603, "{method}: {}", shell.last());
        }
    }
    let mut shell = Shell::open(components(&["tools/list"]), "2025-11-25");
    shell.ask("tools/list", &json!({}));
    shell.finish(Ok(result(&json!({"tools": [], "_meta": said}))));
    assert_eq!(shell.last()["result"], json!({"tools": [], "_meta": said}));
}

#[test]
fn an_invalid_result_is_a_server_error() {
    let mut shell = Shell::open(components(&["tools/list"]), "2025-11-25");
    shell.ask("tools/list", &json!({}));
    shell.finish(Ok(result(&json!({"things": []}))));
    assert_eq!(shell.last()["error"]["code"], -32603, "{}", shell.last());
}

#[test]
fn middleware_may_refuse_what_the_core_would_answer() {
    let mut shell = Shell::open(components(&["tools/list"]), "2025-11-25");
    shell.ask("tools/list", &json!({}));
    let refusal = Failure::Protocol { code: -32000, message: "not now".into(), data: None };
    shell.finish(Err(refusal));
    assert_eq!(shell.last()["error"], json!({"code": -32000, "message": "not now"}));
}

#[test]
fn requests_with_handlers_are_left_to_the_shell() {
    let mut shell = Shell::open(components(&["tools/call", "tools/list"]), "2025-11-25");
    shell.ask("tools/call", &json!({"name": "open", "arguments": {"a": 1}}));
    assert_eq!(shell.running(), (Who::Handler, json!({"a": 1})));
    assert!(shell.runs[0].middleware_frame.is_none());
}

#[test]
fn a_shell_that_wants_it_gets_a_passage_around_handlers() {
    let mut components = components(&[]);
    let middleware = Middleware::new(kept(Handler::Named("middleware")), ["tools/call"], true);
    components.set_middleware(Some(middleware));
    let mut shell = Shell::open(components, "2025-11-25");
    shell.ask("tools/call", &json!({"name": "open", "arguments": {"a": 1}}));
    assert_eq!(shell.running().0, Who::Handler);
    let middleware_frame = shell.runs[0].middleware_frame.clone().expect("a middleware frame");
    assert_eq!(middleware_frame.method.as_ref(), "tools/call");
    let params: Value = serde_json::from_str(&middleware_frame.params).unwrap();
    assert_eq!(params, json!({"name": "open", "arguments": {"a": 1}}));
    let said: Value =
        serde_json::from_str(&middleware_frame.result(Reply::Text("ok".into())).unwrap()).unwrap();
    assert_eq!(said, json!({"content": [{"type": "text", "text": "ok"}]}));
    let other = middleware_frame.input(r#"{"name":"open","arguments":{"a":2}}"#).unwrap();
    assert_eq!(other.as_deref(), Some(r#"{"a":2}"#));
}

#[test]
fn requests_for_unknown_components_pass_with_their_error() {
    let mut shell = Shell::open(components(&["*"]), "2025-11-25");
    shell.finish(Ok(Reply::Nothing));
    shell.ask("tools/call", &json!({"name": "shut", "arguments": {"a": 1}}));
    let (_, input) = shell.running();
    assert_eq!(input["params"], json!({"name": "shut", "arguments": {"a": 1}}));
    assert_eq!(input["error"], json!({"code": -32602, "message": "Unknown tool: shut"}));
    shell.finish(Ok(Reply::Nothing));
    assert_eq!(shell.last()["error"]["message"], "Unknown tool: shut");
    shell.ask("tools/call", &json!({"name": "shut"}));
    shell.finish(Ok(result(&json!({"content": ["instead"]}))));
    assert_eq!(shell.last()["result"]["content"], json!([{"type": "text", "text": "instead"}]));
    shell.ask("resources/read", &json!({"uri": "a://b"}));
    assert_eq!(shell.running().1["error"]["code"], -32602, "the newest code");
    shell.finish(Ok(Reply::Nothing));
    assert_eq!(shell.last()["error"]["code"], -32002, "the client's code");
    shell.ask("acme/none", &json!({"x": 1}));
    assert_eq!(shell.running().1["params"], json!({"x": 1}));
    shell.finish(Ok(Reply::Json(r#"{"some":1}"#.into())));
    assert_eq!(shell.last()["result"], json!({"some": 1}));
}

#[test]
fn initialize_passes_middleware_and_can_be_rejected() {
    let mut shell = Shell::new(components(&["initialize"]));
    shell.ask("initialize", &initialize("2025-06-18"));
    let (_, input) = shell.running();
    assert_eq!(input["params"], initialize("2025-06-18"));
    assert_eq!(input["result"]["instructions"], "Ask.");
    let refusal = Failure::Protocol { code: -32000, message: "closed".into(), data: None };
    shell.finish(Err(refusal));
    assert_eq!(shell.last()["error"]["message"], "closed");
    shell.ask("tools/list", &json!({}));
    assert_eq!(shell.last()["error"]["code"], -32600, "the handshake has failed");
    shell.ask("initialize", &initialize("2025-06-18"));
    let mut changed = shell.running().1["result"].clone();
    changed["instructions"] = json!("Ask twice.");
    shell.finish(Ok(result(&changed)));
    let said = &shell.last()["result"];
    assert_eq!(said["instructions"], "Ask twice.");
    assert_eq!(said["protocolVersion"], "2025-06-18");
    assert_eq!(said["capabilities"]["tools"]["listChanged"], true);
}

#[test]
fn discover_ping_and_the_log_level_pass() {
    let mut shell =
        Shell::open(components(&["server/discover", "ping", "logging/setLevel"]), "2025-11-25");
    shell.ask_modern("server/discover", json!({}));
    shell.finish(Ok(result(&json!({"capabilities": {}, "ttlMs": 5, "cacheScope": "private"}))));
    let said = &shell.last()["result"];
    assert_eq!(said["capabilities"], json!({}));
    assert_eq!((&said["ttlMs"], &said["cacheScope"]), (&json!(5), &json!("private")));
    assert_eq!(said["supportedVersions"][0], "2026-07-28");
    shell.ask("ping", &json!({}));
    assert_eq!(shell.running().1["result"], json!({}));
    shell.finish(Ok(Reply::Nothing));
    assert_eq!(shell.last()["result"], json!({}));
    shell.ask("logging/setLevel", &json!({"level": "error"}));
    assert_eq!(shell.running().1["params"], json!({"level": "error"}));
    shell.finish(Ok(result(&json!({}))));
    assert_eq!(shell.last()["result"], json!({}));
}

#[test]
fn a_subscription_begins_once_middleware_lets_it() {
    let mut shell = Shell::new(components(&["subscriptions/listen"]));
    let wish = json!({"notifications": {"toolsListChanged": true, "promptsListChanged": true}});
    shell.ask_modern("subscriptions/listen", wish.clone());
    let (_, input) = shell.running();
    assert_eq!(input["params"], wish);
    assert_eq!(input["result"], json!({"notifications": {"toolsListChanged": true}}));
    assert_eq!(shell.sent.len(), 0, "nothing is acknowledged yet");
    shell.finish(Ok(Reply::Nothing));
    assert_eq!(shell.last()["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(shell.last()["params"]["notifications"], json!({"toolsListChanged": true}));
    shell.ask_modern("subscriptions/listen", wish);
    shell.finish(Ok(result(&json!({"notifications": {}}))));
    assert_eq!(shell.last()["params"]["notifications"], json!({}));
}

#[test]
fn a_handler_answers_in_the_cores_place() {
    let mut components = bare();
    components.add(Definition::Method("tools/list".into()), kept(handler())).unwrap();
    components.add(Definition::Method("tools/call".into()), kept(handler())).unwrap();
    let mut shell = Shell::open(components, "2024-11-05");
    assert_eq!(shell.last()["result"]["capabilities"]["tools"]["listChanged"], true);
    shell.ask("tools/list", &json!({"cursor": "c", "own": 1}));
    assert_eq!(shell.running().1, json!({"cursor": "c", "own": 1}), "as they came");
    let tools = json!([{"name": "a", "title": "A", "inputSchema": {"type": "object"}}]);
    shell.finish(Ok(result(&json!({"tools": tools}))));
    assert_eq!(
        shell.last()["result"]["tools"],
        json!([{"name": "a", "inputSchema": {"type": "object"}}])
    );
    shell.ask("tools/call", &json!({"name": "a", "arguments": {"x": 1}, "task": {}}));
    assert_eq!(shell.running().1, json!({"name": "a", "arguments": {"x": 1}, "task": {}}));
    shell.finish(Ok(result(&json!({"content": [], "structuredContent": {"y": 2}}))));
    assert_eq!(
        shell.last()["result"]["content"][0]["text"],
        r#"{"y":2}"#,
        "2024-11-05 has text only"
    );
    shell.ask("tools/call", &json!({"arguments": {}}));
    assert_eq!(shell.last()["error"]["code"], -32602, "the core still checks the shape");
    shell.ask("tools/call", &json!({"name": "a"}));
    shell.finish(Err(Failure::Tool { message: "broken".into(), meta: None }));
    assert_eq!(shell.last()["result"]["isError"], true);
}

#[test]
fn a_result_with_the_wrong_shape_is_a_server_error() {
    let mut components = bare();
    components.add(Definition::Method("tools/call".into()), kept(handler())).unwrap();
    let mut shell = Shell::open(components, "2025-11-25");
    for (said, problem) in [
        (json!({"made": "up"}), "has no \"content\""),
        (json!({"resultType": "input_required", "inputRequests": {}}), "call ctx.elicit"),
    ] {
        shell.ask("tools/call", &json!({"name": "a"}));
        shell.finish(Ok(result(&said)));
        assert_eq!(shell.last()["result"]["isError"], true, "{said}");
        let report = shell.reports.pop().unwrap();
        assert!(report.contains(problem), "{report}");
    }
    shell.ask("tools/call", &json!({"name": "a"}));
    shell.finish(Ok(result(&json!({"resultType": "complete", "content": []}))));
    assert_eq!(shell.last()["result"], json!({"content": []}));
}

#[test]
fn a_session_sees_methods_that_are_replaced_later() {
    let mut shell = Shell::open(components(&[]), "2025-11-25");
    let mut more = bare();
    more.add(Definition::Method("resources/subscribe".into()), kept(handler())).unwrap();
    shell.feed(Input::Components(Arc::new(more), vec![ListKind::Resources]));
    shell.ask("resources/subscribe", &json!({"uri": "a://b", "own": 1}));
    assert_eq!(shell.running().1, json!({"uri": "a://b", "own": 1}));
    shell.finish(Ok(Reply::Nothing));
    assert_eq!(shell.last()["result"], json!({}));
    shell.feed(Input::Updated("a://b"));
    assert_eq!(
        shell.last()["params"],
        json!({"uri": "a://b"}),
        "the session keeps the subscription"
    );
}

#[test]
fn methods_of_the_core_can_not_be_replaced() {
    let mut components = bare();
    for name in ["initialize", "subscriptions/listen"] {
        let refused = components.add(Definition::Method(name.into()), kept(handler())).unwrap_err();
        assert!(refused.message.contains("middleware"), "{refused}");
    }
    for name in ["sampling/createMessage", "notifications/progress"] {
        let refused = components.add(Definition::Method(name.into()), kept(handler())).unwrap_err();
        assert!(refused.message.contains("not a request that clients send"), "{refused}");
    }
}
