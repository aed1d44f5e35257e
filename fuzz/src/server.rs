//! The server under test, with the names of the transcripts' fixture, and what its handlers do.

use std::{
    collections::VecDeque,
    sync::{Arc, OnceLock},
    time::Duration,
};

use gudgeon::{
    engine::{Computation, Effect, HandlerEvent, HostReply, Run, RunId, Ticket},
    protocol::{
        Dialect, Implementation, LoggingLevel, Method, Question, ResourceTemplate, Tool, json,
    },
    router::{
        Components, Definition, Failure, Handler, RegisteredPrompt, RegisteredResource,
        RegisteredTemplate, RegisteredTool, Reply, RoundLimits, ServerFacts,
    },
    session::{
        asking::AskId,
        server::{ListKind, Log, Progress},
    },
};
use serde_json::{Value, json};

use crate::script::{json_or_string, number, pick};

/// Returns a handler, which is its name, as the core keeps it.
fn kept(name: &'static str) -> Handler {
    Arc::new(name)
}

/// Returns the name of a handler.
pub(crate) fn name_of(handler: &Handler) -> &'static str {
    handler.downcast_ref::<&'static str>().expect("a handler of these targets")
}

/// Suspended handlers are bounded by these, so that inputs reach the limits.
pub(crate) const SUSPENDED_LIMIT: usize = 3;
pub(crate) const SUSPENDED_THREADS: usize = 1;

const FORM: &str = r#"{"mode":"form","message":"Sure?","requestedSchema":{"type":"object","properties":{"value":{"type":"boolean"}},"required":["value"]}}"#;

/// Returns what the server offers, which is made once.
pub(crate) fn components() -> Arc<Components> {
    static COMPONENTS: OnceLock<Arc<Components>> = OnceLock::new();
    Arc::clone(COMPONENTS.get_or_init(|| Arc::new(new_components())))
}

fn new_components() -> Components {
    let mut components = Components::new(ServerFacts {
        request_state_keys: vec![b"the key of every fixture which is long".to_vec()],
        page_size: 5,
        dialects: Dialect::ALL.to_vec(),
        rounds: RoundLimits {
            suspended_limit: SUSPENDED_LIMIT,
            suspended_threads: SUSPENDED_THREADS,
            suspended_ttl: Duration::from_secs(60),
            max_state: 4_096,
            ..RoundLimits::default()
        },
        ..ServerFacts::from(Implementation::new("fixture", "1.0"))
    });
    let object = |properties: Value| json!({"type": "object", "properties": properties, "additionalProperties": false});
    let text = json!({"type": "string", "maxLength": 1000, "pattern": "^(?!no).*"});
    let integer = json!({"type": "integer"});
    let book = json!({"type": "object", "properties": {"id": integer, "title": text}, "required": ["id", "title"]});
    let tools: [(&'static str, Value, Option<&Value>); 14] = [
        ("add", object(json!({"a": integer, "b": integer})), Some(&integer)),
        ("echo", object(json!({"text": text})), None),
        ("book", object(json!({"id": integer})), Some(&book)),
        ("content", object(json!({})), None),
        ("fail", object(json!({"message": text})), None),
        ("crash", object(json!({})), None),
        ("refuse", object(json!({})), None),
        ("count", object(json!({"steps": integer})), None),
        ("say", object(json!({"level": text, "text": text})), None),
        ("wait", object(json!({})), None),
        ("confirm", object(json!({})), None),
        ("interview", object(json!({})), None),
        ("drop", object(json!({})), None),
        ("slow", object(json!({})), None),
    ];
    for (name, input, output) in tools {
        let mut tool = Tool::new(name, json::to_raw(&input));
        tool.output_schema = output.map(json::to_raw);
        let mut tool = RegisteredTool::new(tool, kept(name)).unwrap();
        tool.options.is_guarded = name == "drop";
        tool.options.timeout = (name == "slow").then_some(Duration::from_secs(3));
        tool.options.concurrency = (name == "slow").then_some(1);
        tool.options.forbids_replay = name == "interview";
        components.tools.add(tool, true).unwrap();
    }
    for (uri, name) in
        [("fixture://about", "about"), ("fixture://bytes", "bytes"), ("staff://pay", "wait")]
    {
        let listed = serde_json::from_value(json!({"uri": uri, "name": name})).unwrap();
        let mut resource = RegisteredResource::new(listed, kept(name)).unwrap();
        resource.options.is_guarded = name == "wait";
        resource.options.keep = (name == "bytes").then_some(Duration::from_secs(10));
        components.resources.add(resource, true).unwrap();
    }
    for template in ["fixture://items/{id}", "fixture://search{?q,limit}", "files://{+path}"] {
        let template: ResourceTemplate =
            serde_json::from_value(json!({"uriTemplate": template, "name": "items"})).unwrap();
        components
            .templates
            .add(RegisteredTemplate::new(template, kept("item")).unwrap(), true)
            .unwrap();
    }
    for name in ["greet", "talk"] {
        let prompt = json!({"name": name, "arguments": [{"name": "name", "required": true}, {"name": "style"}]});
        let prompt = serde_json::from_value(prompt).unwrap();
        components.prompts.add(RegisteredPrompt::new(prompt, kept(name)).unwrap(), true).unwrap();
    }
    components
        .add(
            Definition::Completion { target: "greet".into(), argument: "name".into() },
            kept("names"),
        )
        .unwrap();
    components.add(Definition::Method("acme/echo".into()), kept("acme")).unwrap();
    components
        .add(Definition::Notification("notifications/roots/list_changed".into()), kept("changed"))
        .unwrap();
    components.add(Definition::Notification("acme/changed".into()), kept("wait")).unwrap();
    components
}

/// An input of a machine that does not come from a peer.
pub(crate) enum HostInput {
    Handler(RunId, HandlerEvent),
    Host(Ticket, HostReply),
    Computed(Box<Computation>),
    Components(Arc<Components>, Vec<ListKind>),
    Updated(String),
}

/// The host of a machine: handlers that run, requests to the host and large messages that wait.
#[derive(Default)]
pub(crate) struct Host {
    runs: Vec<Run>,
    tickets: Vec<Ticket>,
    jobs: Vec<Computation>,
    asked: u64,
    /// The inputs to pass to the machine next.
    pub(crate) next: VecDeque<HostInput>,
}

impl Host {
    /// Takes an effect of a machine.
    pub(crate) fn take(&mut self, effect: Effect) {
        match effect {
            Effect::Run(run) => {
                assert!(
                    self.runs.iter().all(|running| running.id != run.id),
                    "{:?} runs twice",
                    run.id
                );
                assert!(
                    serde_json::from_str::<Value>(&run.input).is_ok(),
                    "no JSON: {}",
                    run.input
                );
                self.start(*run);
            }
            Effect::Cancel(run) => {
                assert!(self.is_known(run), "{run:?} had ended");
                self.runs.retain(|running| running.id != run);
            }
            Effect::Answered { run, outcome, .. } => {
                assert!(self.is_known(run) || outcome.is_err(), "{run:?} had ended");
                if self.is_running(run) && self.asked.is_multiple_of(2) {
                    let done = outcome.map_err(Failure::from);
                    let reply = done.map(|result| Reply::Json(result.get().to_owned()));
                    self.finish(run, reply);
                }
            }
            Effect::Resume { run, .. } => assert!(self.is_known(run), "{run:?} had ended"),
            Effect::Host(ticket, _) => self.tickets.push(ticket),
            Effect::CancelHost(ticket) => {
                self.tickets.retain(|other| *other != ticket);
                self.jobs.retain(|job| job.ticket() != Some(ticket));
            }
            Effect::Log(_) | Effect::Span(_) | Effect::Subscribed { .. } => (),
        }
    }

    pub(crate) fn compute(&mut self, computation: Computation) {
        self.jobs.push(computation);
    }

    /// Performs one operation of a script, if it is one of the host.
    pub(crate) fn perform(&mut self, name: u8, argument: &[u8]) {
        let (at, rest) = number(argument);
        let run = pick(&self.runs, at).map(|run| run.id);
        match (name, run) {
            (b'!', Some(run)) => self.finish(run, outcome(rest)),
            (b'?', Some(run)) => self.ask(run, rest, false),
            (b'a', Some(run)) => self.ask(run, rest, true),
            (b'w', Some(run)) => {
                let blocks = rest.first() == Some(&b'b');
                self.next.push_back(HostInput::Handler(run, HandlerEvent::Waits { blocks }));
            }
            (b'p', Some(run)) => {
                let message =
                    (!rest.is_empty()).then(|| String::from_utf8_lossy(rest).into_owned());
                #[expect(clippy::cast_precision_loss, reason = "a small number")]
                let progress =
                    Progress { progress: at as f64, total: Some(f64::INFINITY), message };
                self.next.push_back(HostInput::Handler(run, HandlerEvent::Progress(progress)));
            }
            (b'l', Some(run)) => {
                let data = json::raw(json_or_string(rest));
                let log = Log { level: LoggingLevel::Error, logger: None, data };
                self.next.push_back(HostInput::Handler(run, HandlerEvent::Log(log)));
            }
            (b's', Some(run)) => {
                let key = String::from_utf8_lossy(rest).into_owned();
                let value = json::raw("[1]".into());
                self.next.push_back(HostInput::Handler(run, HandlerEvent::Step { key, value }));
            }
            (b'h', _) => {
                let Some(ticket) = pick(&self.tickets, at).copied() else { return };
                self.tickets.retain(|other| *other != ticket);
                self.next.push_back(HostInput::Host(ticket, decision(rest)));
            }
            (b'd', _) => self.dispatch(at),
            (b'u', _) => {
                self.next.push_back(HostInput::Updated(String::from_utf8_lossy(rest).into_owned()));
            }
            (b'c', _) => {
                let mut components = components().as_ref().clone();
                let changed = components.tools.set_enabled(&["echo".into()], &[], at % 2 == 1);
                assert!(changed.is_ok());
                let kinds = vec![[ListKind::Tools, ListKind::Resources, ListKind::Prompts][at % 3]];
                self.next.push_back(HostInput::Components(Arc::new(components), kinds));
            }
            _ => (),
        }
    }

    /// Ends everything that waits; returns whether anything did.
    pub(crate) fn finish_all(&mut self) -> bool {
        for run in self.runs.iter().map(|run| run.id).collect::<Vec<_>>() {
            self.finish(run, Ok(Reply::Text("late".into())));
        }
        for ticket in std::mem::take(&mut self.tickets) {
            self.next.push_back(HostInput::Host(ticket, HostReply::Visible(vec![true])));
        }
        while !self.jobs.is_empty() {
            self.dispatch(0);
        }
        !self.next.is_empty()
    }

    /// Returns the number of handlers that run.
    pub(crate) fn running(&self) -> usize {
        self.runs.len()
    }

    /// Returns whether a handler runs, or has ended and the machine has not its result yet.
    fn is_known(&self, run: RunId) -> bool {
        let ends = |input: &HostInput| matches!(input, HostInput::Handler(id, HandlerEvent::Done(_)) if *id == run);
        let is_resolved = |job: &Computation| job.resolves() == Some(run);
        let is_waiting =
            |input: &HostInput| matches!(input, HostInput::Computed(job) if is_resolved(job));
        self.is_running(run)
            || self.next.iter().any(|input| ends(input) || is_waiting(input))
            || self.jobs.iter().any(is_resolved)
    }

    fn is_running(&self, run: RunId) -> bool {
        self.runs.iter().any(|running| running.id == run)
    }

    fn dispatch(&mut self, at: usize) {
        if !self.jobs.is_empty() {
            let job = self.jobs.swap_remove(at % self.jobs.len());
            self.next.push_back(HostInput::Computed(Box::new(job)));
        }
    }

    fn finish(&mut self, run: RunId, outcome: Result<Reply, Failure>) {
        self.runs.retain(|running| running.id != run);
        self.next.push_back(HostInput::Handler(run, HandlerEvent::Done(outcome)));
    }

    fn ask(&mut self, run: RunId, key: &[u8], again: bool) {
        self.asked += 1;
        let ask = AskId(self.asked);
        let (method, params) = match key.first() {
            Some(b'r') => (Method::ListRoots, "{}"),
            Some(b's') => (Method::CreateMessage, r#"{"messages":[],"maxTokens":1}"#),
            _ => (Method::Elicit, FORM),
        };
        let key = String::from_utf8_lossy(&key[..key.len().min(20)]).into_owned();
        let question = Question { key, method, params: json::raw(params.into()) };
        self.next.push_back(HostInput::Handler(
            run,
            match again {
                true => HandlerEvent::AskAgain { ask, question, problem: "no".into() },
                false => HandlerEvent::Ask { ask, question },
            },
        ));
    }

    /// Runs a handler: most end at once, and the script decides about the others.
    fn start(&mut self, run: Run) {
        let id = run.id;
        let handler = name_of(&run.handler);
        self.runs.push(run);
        let reply = match handler {
            "wait" | "slow" | "drop" => return,
            "confirm" => {
                self.ask(id, b"elicit-1", false);
                self.next.push_back(HostInput::Handler(id, HandlerEvent::Waits { blocks: false }));
                return;
            }
            "interview" => Ok(questions()),
            "add" => Ok(Reply::Json("3".into())),
            "book" => Ok(Reply::Json(r#"{"id":1,"title":"Dune"}"#.into())),
            "content" => Ok(Reply::Parts(r#"["Here",{"type":"acme/thing"}]"#.into())),
            "bytes" => Ok(Reply::Blob("AAEC".into())),
            "fail" => Err(Failure::Tool { message: "no".into(), meta: None }),
            "refuse" => Err(Failure::Protocol { code: 1, message: "no".into(), data: None }),
            "crash" => Err(Failure::Exception {
                kind: "E".into(),
                message: "a secret".into(),
                traceback: "t".into(),
            }),
            "names" => Ok(Reply::Json(r#"["Ada"]"#.into())),
            _ => Ok(Reply::Text("done \u{1}\"\\\u{2028}".into())),
        };
        self.finish(id, reply);
    }
}

fn questions() -> Reply {
    Reply::Questions(format!(r#"[{{"key":"name","method":"elicitation/create","params":{FORM}}}]"#))
}

fn outcome(argument: &[u8]) -> Result<Reply, Failure> {
    let rest = argument.get(1..).unwrap_or_default();
    let text = || String::from_utf8_lossy(rest).into_owned();
    let json = || json_or_string(rest);
    match argument.first() {
        Some(b'j') => Ok(Reply::Json(json())),
        Some(b'p') => Ok(Reply::Parts(json())),
        Some(b'r') => Ok(Reply::Result(json())),
        Some(b'q') => Ok(questions()),
        Some(b'Q') => Ok(Reply::Questions(json())),
        Some(b'n') => Ok(Reply::Nothing),
        Some(b'b') => Ok(Reply::Blob("AAEC".into())),
        Some(b'c') => Err(Failure::Cancelled),
        Some(b't') => Err(Failure::TimedOut(1.0)),
        Some(b'e') => Err(Failure::Tool { message: text(), meta: None }),
        Some(b'f') => Err(Failure::NotFound { uri: text(), message: None }),
        Some(b'E') => {
            Err(Failure::Protocol { code: -32_000, message: text(), data: Some(json::raw(json())) })
        }
        _ => Ok(Reply::Text(text())),
    }
}

fn decision(argument: &[u8]) -> HostReply {
    match argument.first() {
        Some(b'f') => HostReply::Failed("no".into()),
        _ => HostReply::Visible(argument.iter().map(|byte| *byte == b'1').collect()),
    }
}
