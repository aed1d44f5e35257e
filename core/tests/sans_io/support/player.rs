//! The sans-IO fixture server behind one of its transports, with a manual clock.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use gudgeon::{
    engine::{Effect, HandlerEvent, Run, RunId, Start},
    framing::TooLong,
    http::{
        ConnectionId, Endpoint, EndpointConfig, EndpointInput, EndpointOutput, ExchangeId, Part,
    },
    protocol::{Frame, LoggingLevel, Method, Question, json::to_raw},
    router::{Components, Failure, Reply},
    service::{Input, Output, Service},
    session::{
        asking::AskId,
        server::{ListKind, Log, Progress},
    },
};
use http::Request;
use serde_json::{Value, json};

use crate::support::{
    Handler,
    fixture::{HandlerMessage, Then},
};

/// The time limit for the server's next frame.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longer than a session may be idle.
const IDLE: Duration = Duration::from_secs(40 * 60);
const CONNECTION: ConnectionId = ConnectionId(1);
const BOTH: &str = "application/json, text/event-stream";

/// The transport of a transcript's frames.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum TransportKind {
    Stdio,
    WebSocket,
    /// The pair of endpoints of 2024-11-05.
    Sse,
    Http,
}

impl TransportKind {
    pub(crate) fn named(name: &str) -> Self {
        match name {
            "stdio" => Self::Stdio,
            "websocket" => Self::WebSocket,
            "sse" => Self::Sse,
            "http" => Self::Http,
            _ => panic!("no wire is called {name:?}"),
        }
    }
}

pub(crate) struct Player {
    wire: TransportKind,
    machine: Machine,
    components: Components,
    /// The longest message, in bytes.
    limit: usize,
    /// Sent with every POST: name and value.
    header: Option<(String, String)>,
    now: Instant,
    starts: u8,
    /// Received frames that were not taken yet.
    sent: Vec<String>,
    /// The reply of a handler to the answer that it waits for.
    waiting: Option<Then>,
    /// The handler of a notification that ran last.
    listener: Option<RunId>,
    next_exchange: u64,
    /// The URL for messages of HTTP+SSE, or the session of an HTTP client.
    address: String,
}

enum Machine {
    Stream(Box<Service>),
    Endpoint(Box<Endpoint>),
}

/// An input for the state machine.
enum Deed {
    Handler(RunId, HandlerEvent),
    Components(Arc<Components>, ListKind),
    Updated(String),
    Tick,
}

impl Player {
    pub(crate) fn new(wire: TransportKind, components: Components, limit: Option<usize>) -> Self {
        let now = Instant::now();
        let mut player = Self {
            wire,
            machine: machine(wire, &components, &start(now, 0)),
            components,
            limit: limit.unwrap_or(usize::MAX),
            header: None,
            now,
            starts: 0,
            sent: Vec::new(),
            waiting: None,
            listener: None,
            next_exchange: 0,
            address: String::new(),
        };
        player.open();
        player
    }

    /// Sends this with every POST, too.
    pub(crate) fn with_header(mut self, name: &str, value: &str) -> Self {
        self.header = Some((name.to_owned(), value.to_owned()));
        self
    }

    /// Sends a frame and returns the received ones; advances the clock if an expected frame is missing.
    pub(crate) fn exchange(&mut self, frame: &str, expected: usize) -> Vec<String> {
        self.send(frame);
        let end = self.now + PATIENCE;
        while self.sent.len() < expected && self.tick_before(end) {}
        std::mem::take(&mut self.sent)
    }

    /// Advances the clock until an idle session expires.
    pub(crate) fn idle(&mut self) -> Vec<String> {
        let end = self.now + IDLE;
        while self.tick_before(end) {}
        self.now = end;
        std::mem::take(&mut self.sent)
    }

    /// Another process goes on in the place of this one.
    pub(crate) fn restart(&mut self) {
        self.starts += 1;
        self.machine = machine(self.wire, &self.components, &start(self.now, self.starts));
        self.open();
    }

    fn tick_before(&mut self, end: Instant) -> bool {
        let deadline = match &mut self.machine {
            Machine::Stream(service) => service.deadline(),
            Machine::Endpoint(endpoint) => endpoint.deadline(),
        };
        let Some(deadline) = deadline.filter(|deadline| *deadline <= end) else { return false };
        self.now = self.now.max(deadline);
        self.feed(Deed::Tick);
        self.drain();
        true
    }

    fn open(&mut self) {
        match (self.wire, &mut self.machine) {
            (TransportKind::WebSocket, Machine::Endpoint(endpoint)) => {
                endpoint.handle(self.now, EndpointInput::Opened(CONNECTION, None, None));
                self.drain();
            }
            (TransportKind::Sse, _) => {
                self.request("GET", "/sse", "");
                self.address = self.sent.pop().expect("no address came");
            }
            _ => (),
        }
    }

    fn send(&mut self, frame: &str) {
        let (bytes, limit, now) = (frame.as_bytes(), self.limit, self.now);
        let is_long = bytes.len() > limit;
        match (self.wire, &mut self.machine) {
            (_, Machine::Stream(service)) => service.handle(
                now,
                if is_long {
                    Input::TooLong(TooLong::new(limit, bytes))
                } else {
                    Input::Frame(bytes)
                },
            ),
            (TransportKind::WebSocket, Machine::Endpoint(endpoint)) if is_long => {
                endpoint
                    .handle(now, EndpointInput::TooLong(CONNECTION, TooLong::new(limit, bytes)));
            }
            (TransportKind::WebSocket, Machine::Endpoint(endpoint)) => {
                endpoint.handle(now, EndpointInput::Message(CONNECTION, Frame::parse(bytes)));
            }
            (TransportKind::Sse, _) => {
                let address = self.address.clone();
                self.request("POST", &address, frame);
            }
            _ => {
                let had_session = !self.address.is_empty();
                self.request("POST", "/mcp", frame);
                // Messages that belong to no request are sent on a separate stream.
                if !had_session && !self.address.is_empty() {
                    self.request("GET", "/mcp", "");
                }
            }
        }
        self.drain();
    }

    fn request(&mut self, method: &str, path: &str, body: &str) {
        let accept = if method == "GET" { "text/event-stream" } else { BOTH };
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "localhost")
            .header("accept", accept)
            .header("content-type", "application/json");
        if self.wire == TransportKind::Http && !self.address.is_empty() {
            request = request.header("mcp-session-id", &self.address);
        }
        if let Some((name, value)) = self.header.as_ref().filter(|_| method == "POST") {
            request = request.header(name, value);
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        let exchange = ExchangeId(self.next_exchange);
        self.next_exchange += 1;
        let Machine::Endpoint(endpoint) = &mut self.machine else { unreachable!() };
        match endpoint.admission().head(head).and_then(|head| head.body(body.as_bytes())) {
            Ok(request) => endpoint.handle(self.now, EndpointInput::Request(exchange, request)),
            Err(refusal) => self.hear_part(refusal),
        }
        self.drain();
    }

    fn drain(&mut self) {
        loop {
            let effect = match &mut self.machine {
                Machine::Stream(service) => match service.poll() {
                    None => return,
                    Some(Output::Send(frame) | Output::Change(frame)) => {
                        self.sent.push(String::from_utf8(frame).unwrap());
                        continue;
                    }
                    Some(Output::Effect(effect)) => effect,
                    Some(Output::Compute(_)) => continue,
                },
                Machine::Endpoint(endpoint) => match endpoint.poll() {
                    None => return,
                    Some(EndpointOutput::Effect(effect)) => effect,
                    Some(EndpointOutput::Compute(_)) => continue,
                    Some(EndpointOutput::Change(_, bytes)) => {
                        self.receive(&bytes);
                        continue;
                    }
                    Some(EndpointOutput::Expired(_)) => panic!("no token is sent"),
                    Some(
                        EndpointOutput::Publish(_)
                        | EndpointOutput::Store(..)
                        | EndpointOutput::Workers(_),
                    ) => {
                        panic!("there are no other processes")
                    }
                    Some(
                        EndpointOutput::Exchange(_, part) | EndpointOutput::Connection(_, part),
                    ) => {
                        self.hear_part(part);
                        continue;
                    }
                },
            };
            match effect {
                Effect::Run(run) => self.run(&run),
                Effect::Answered { run: call, outcome, .. } => {
                    let then = self.waiting.take().unwrap();
                    let reply = outcome
                        .map_err(Failure::from)
                        .and_then(|result| then(&serde_json::from_str(result.get()).unwrap()));
                    if self.listener == Some(call)
                        && let Ok(Reply::Text(text)) = &reply
                    {
                        let event = log(LoggingLevel::Info, &json!(text));
                        self.feed(Deed::Handler(call, event));
                    }
                    self.feed(Deed::Handler(call, HandlerEvent::Done(reply)));
                }
                _ => (),
            }
        }
    }

    fn hear_part(&mut self, part: Part) {
        match part {
            Part::Head { headers, body, .. } => {
                if let Some(session) = headers.get("mcp-session-id") {
                    session.to_str().unwrap().clone_into(&mut self.address);
                }
                self.receive(&body);
            }
            Part::Bytes(bytes) => self.receive(&bytes),
            Part::End => (),
        }
    }

    /// A frame, or events with one each.
    fn receive(&mut self, bytes: &[u8]) {
        let text = std::str::from_utf8(bytes).unwrap();
        let events: Vec<_> = text
            .lines()
            .filter_map(|line| line.strip_prefix("data:"))
            .map(|data| data.trim_start().to_owned())
            .filter(|data| !data.is_empty())
            .collect();
        let is_frame = text.starts_with(['{', '[']);
        self.sent.extend(if is_frame { vec![text.to_owned()] } else { events });
    }

    fn run(&mut self, run: &Run) {
        let act = Handler::from_kept(&run.handler).act();
        let call = run.id;
        self.listener = run.is_notification.then_some(call).or(self.listener);
        let mut emitted = Vec::new();
        let outcome = act(&serde_json::from_str(&run.input).unwrap(), &mut emitted);
        for emitted in emitted {
            let event = match emitted {
                HandlerMessage::Progress { progress, total, message } => {
                    HandlerEvent::Progress(Progress {
                        progress,
                        total: Some(total),
                        message: Some(message),
                    })
                }
                HandlerMessage::Log { level, data } => {
                    log(LoggingLevel::parse(&level).unwrap(), &data)
                }
                HandlerMessage::Ask { method, params, then } => {
                    self.waiting = Some(then);
                    let key = key(method).to_owned();
                    let question = Question { key, method, params: to_raw(&params) };
                    let ask = AskId(0);
                    self.feed(Deed::Handler(call, HandlerEvent::Ask { ask, question }));
                    HandlerEvent::Waits { blocks: false }
                }
                HandlerMessage::Interview { questions } => {
                    HandlerEvent::Done(interview(run, &questions))
                }
                HandlerMessage::Change(what) => {
                    let deed = self.change(what);
                    self.feed(deed);
                    continue;
                }
            };
            self.feed(Deed::Handler(call, event));
        }
        if let Some(outcome) = outcome {
            self.feed(Deed::Handler(call, HandlerEvent::Done(outcome)));
        }
    }

    fn change(&mut self, what: String) -> Deed {
        let components = &mut self.components;
        let (changed, list) = match what.as_str() {
            "tools" => {
                (components.tools.set_enabled(&["hidden".into()], &[], true), ListKind::Tools)
            }
            "resources" => (
                components.resources.set_enabled(&["fixture://bytes".into()], &[], false),
                ListKind::Resources,
            ),
            "prompts" => {
                (components.prompts.set_enabled(&["greet".into()], &[], false), ListKind::Prompts)
            }
            _ => return Deed::Updated(what),
        };
        assert!(changed.unwrap(), "{what} had changed before");
        Deed::Components(Arc::new(components.clone()), list)
    }

    fn feed(&mut self, deed: Deed) {
        let now = self.now;
        match &mut self.machine {
            Machine::Stream(service) => match deed {
                Deed::Handler(call, event) => service.handle(now, Input::Handler(call, event)),
                Deed::Components(components, list) => {
                    service.handle(now, Input::Components(components, vec![list]));
                }
                Deed::Updated(uri) => service.handle(now, Input::Updated(&uri)),
                Deed::Tick => service.handle(now, Input::Tick),
            },
            Machine::Endpoint(endpoint) => match deed {
                Deed::Handler(call, event) => {
                    endpoint.handle(now, EndpointInput::Handler(call, event));
                }
                Deed::Components(components, list) => {
                    endpoint.handle(now, EndpointInput::Components(components, vec![list]));
                }
                Deed::Updated(uri) => endpoint.handle(now, EndpointInput::Updated(&uri)),
                Deed::Tick => endpoint.handle(now, EndpointInput::Tick),
            },
        }
    }
}

fn log(level: LoggingLevel, data: &Value) -> HandlerEvent {
    HandlerEvent::Log(Log { level, logger: Some("fixture".to_owned()), data: to_raw(data) })
}

fn machine(wire: TransportKind, components: &Components, start: &Start) -> Machine {
    let components = Arc::new(components.clone());
    if wire == TransportKind::Stdio {
        return Machine::Stream(Box::new(Service::new(components, start)));
    }
    let config = EndpointConfig { legacy_sse: true, ..EndpointConfig::default() };
    Machine::Endpoint(Box::new(Endpoint::new(components, config, start)))
}

/// The key of a handler's first question.
fn key(method: Method) -> &'static str {
    match method {
        Method::CreateMessage => "sample-1",
        Method::ListRoots => "roots-1",
        _ => "elicit-1",
    }
}

/// Each start has secrets of its own.
fn start(now: Instant, starts: u8) -> Start {
    Start { seed: [starts; 32], ..gudgeon::test_pair::start(now) }
}

/// The first question that has no answer yet, or the answers.
fn interview(run: &Run, questions: &[(&str, Value); 2]) -> Result<Reply, Failure> {
    let mut answers = Vec::new();
    for (key, params) in questions {
        let known = &run.context.answers;
        let question = json!({"key": key, "method": "elicitation/create", "params": params});
        let open = || Ok(Reply::Questions(json!([question]).to_string()));
        let found = known.get(key, Method::Elicit, &params.to_string());
        let Some(found) = found else { return open() };
        let found: Value = serde_json::from_str(found.get()).unwrap();
        match found["content"]["value"].as_str() {
            Some("none") if *key == "colour" => {
                let asked =
                    Question { key: (*key).into(), method: Method::Elicit, params: to_raw(params) };
                return known
                    .refuse(&asked, "no such colour")
                    .map_err(Failure::from)
                    .and_then(|()| open());
            }
            Some(answer) => answers.push(answer.to_owned()),
            None => return Err(Failure::Declined(params["message"].as_str().unwrap().into())),
        }
    }
    Ok(Reply::Text(answers.join(" likes ")))
}
