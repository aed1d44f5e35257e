//! A client of the sans-IO endpoint: sends HTTP requests and collects the responses, with a manual clock.

#![allow(clippy::needless_pass_by_value, reason = "`json!` at the call reads best by value")]

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use gudgeon::{
    engine::{AnsweredRequest, Effect, HandlerEvent, HostReply, HostRequest, Run, Start, Ticket},
    http::{
        ConnectionId, Endpoint, EndpointConfig, EndpointInput, EndpointOutput, ExchangeId, Part,
        Peer, Reader, StoreTicket, WorkersRequest,
    },
    log_events::LogEvent,
    protocol::{Principal, TraceContext},
    router::{Components, Failure, Reply},
    store::StoreOperation,
};
use http::HeaderMap;
use serde_json::{Value, json};

pub(crate) use super::request::{BOTH, modern_body};
use super::{logs::report, request::Request};

pub(crate) struct Visitor {
    pub(crate) endpoint: Endpoint,
    pub(crate) now: Instant,
    pub(crate) runs: Vec<Run>,
    pub(crate) cancelled: Vec<u64>,
    /// Requests to the host that are not answered.
    pub(crate) host_requests: Vec<(Ticket, HostRequest)>,
    /// Requests to the host that were cancelled.
    pub(crate) host_cancels: Vec<Ticket>,
    pub(crate) reports: Vec<String>,
    pub(crate) events: Vec<LogEvent>,
    /// Requests that were answered without a handler, for a host that traces.
    pub(crate) spans: Vec<AnsweredRequest>,
    pub(crate) answers: Vec<(u64, Result<String, String>)>,
    pub(crate) replies: BTreeMap<u64, Answered>,
    /// Messages sent to message connections.
    pub(crate) frames: Vec<(ConnectionId, Value)>,
    /// The principal that the host has authenticated.
    pub(crate) principal: Option<Arc<Principal>>,
    /// The address that connections come from.
    pub(crate) remote: Option<IpAddr>,
    /// The trace context that is active in the host.
    pub(crate) ambient: Option<TraceContext>,
    /// The time at which the access tokens of requests expire.
    pub(crate) expires: Option<Instant>,
    /// The message connections that ended because their access token has expired.
    pub(crate) expired: Vec<ConnectionId>,
    /// Messages to the other processes that serve the address.
    pub(crate) published: Vec<Vec<u8>>,
    /// Operations on the store that are not carried out.
    pub(crate) stored: Vec<(StoreTicket, StoreOperation)>,
    /// Requests about the processes that serve the address, which are not carried out.
    pub(crate) workers: Vec<WorkersRequest>,
    next: u64,
}

/// The response to a request, as received so far.
#[derive(Debug, Default)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
    pub(crate) complete: bool,
}

impl Answered {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    pub(crate) fn error(&self) -> i64 {
        self.json()["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn is_stream(&self) -> bool {
        self.header("content-type") == "text/event-stream"
    }

    /// The messages of a stream, and the ids of their events.
    pub(crate) fn events(&self) -> Vec<(String, Value)> {
        self.body
            .split("\n\n")
            .filter_map(|event| {
                let field = |name: &str| {
                    event.lines().find_map(|line| line.strip_prefix(name)).map(str::trim_start)
                };
                let data = field("data:").filter(|data| !data.is_empty())?;
                let value = serde_json::from_str(data).unwrap_or_else(|_| json!(data));
                Some((field("id:").unwrap_or_default().to_owned(), value))
            })
            .collect()
    }

    pub(crate) fn messages(&self) -> Vec<Value> {
        self.events().into_iter().map(|(_, message)| message).collect()
    }
}

impl Visitor {
    pub(crate) fn new(components: Components, config: EndpointConfig) -> Self {
        let start = gudgeon::test_pair::start(Instant::now());
        Self::started(components, config, &start)
    }

    /// A process of its own, with this start.
    pub(crate) fn started(components: Components, config: EndpointConfig, start: &Start) -> Self {
        Self {
            endpoint: Endpoint::new(Arc::new(components), config, start),
            now: start.now,
            runs: Vec::new(),
            cancelled: Vec::new(),
            host_requests: Vec::new(),
            host_cancels: Vec::new(),
            reports: Vec::new(),
            events: Vec::new(),
            spans: Vec::new(),
            answers: Vec::new(),
            replies: BTreeMap::new(),
            frames: Vec::new(),
            principal: None,
            remote: None,
            ambient: None,
            expires: None,
            expired: Vec::new(),
            published: Vec::new(),
            stored: Vec::new(),
            workers: Vec::new(),
            next: 0,
        }
    }

    pub(crate) fn handle(&mut self, input: EndpointInput<'_>) {
        self.endpoint.handle(self.now, input);
        while let Some(output) = self.endpoint.poll() {
            match output {
                EndpointOutput::Exchange(ExchangeId(id), part) => self.note(id, part),
                EndpointOutput::Change(Reader::Exchange(ExchangeId(id)), bytes) => {
                    self.note(id, Part::Bytes(bytes));
                }
                EndpointOutput::Change(Reader::Connection(id), frame)
                | EndpointOutput::Connection(id, Part::Bytes(frame)) => {
                    self.frames.push((id, serde_json::from_slice(&frame).unwrap()));
                }
                EndpointOutput::Expired(id) => self.expired.push(id),
                EndpointOutput::Publish(message) => self.published.push(message),
                EndpointOutput::Store(ticket, operation) => self.stored.push((ticket, operation)),
                EndpointOutput::Workers(request) => self.workers.push(request),
                EndpointOutput::Connection(_, Part::Head { .. } | Part::End)
                | EndpointOutput::Effect(Effect::Resume { .. } | Effect::Subscribed { .. }) => (),
                EndpointOutput::Effect(Effect::Span(request)) => self.spans.push(*request),
                EndpointOutput::Effect(Effect::Log(event)) => {
                    self.reports.extend(report(&event));
                    self.events.push(*event);
                }
                EndpointOutput::Effect(Effect::Run(run)) => self.runs.push(*run),
                EndpointOutput::Effect(Effect::Cancel(call)) => self.cancelled.push(call.0),
                EndpointOutput::Effect(Effect::Host(ticket, request)) => {
                    self.host_requests.push((ticket, *request));
                }
                EndpointOutput::Compute(job) => {
                    let input = EndpointInput::Computed(job.run());
                    self.endpoint.handle(self.now, input);
                }
                EndpointOutput::Effect(Effect::CancelHost(ticket)) => {
                    self.host_cancels.push(ticket);
                }
                EndpointOutput::Effect(Effect::Answered { ask, outcome, .. }) => {
                    let outcome = outcome
                        .map(|result| result.get().to_owned())
                        .map_err(|error| error.message);
                    self.answers.push((ask.0, outcome));
                }
            }
        }
    }

    fn note(&mut self, id: u64, part: Part) {
        let reply = self.replies.entry(id).or_default();
        assert!(!reply.complete, "more after the end: {part:?}");
        match part {
            Part::Head { status, headers, body, more } => {
                assert_eq!(reply.status, 0, "a second head");
                *reply = Answered {
                    status: status.as_u16(),
                    headers,
                    body: String::from_utf8(body).unwrap(),
                    complete: !more,
                };
            }
            Part::Bytes(bytes) => {
                assert_ne!(reply.status, 0, "no head");
                reply.body.push_str(&String::from_utf8(bytes).unwrap());
            }
            Part::End => reply.complete = true,
        }
    }

    /// Sends a request; its number.
    pub(crate) fn send(
        &mut self,
        method: &'static str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> u64 {
        let request = Request::new(method, path).body(body);
        let send = |request: Request, (name, value): &(&str, &str)| request.also(name, value);
        self.request(&headers.iter().fold(request, send))
    }

    /// Sends a request; its number.
    pub(crate) fn request(&mut self, request: &Request) -> u64 {
        let id = self.next;
        self.next += 1;
        let Request { method, path, headers, body } = request;
        let mut request = http::Request::builder().method(*method).uri(path);
        if !headers.iter().any(|(name, _)| name == "host") {
            request = request.header("host", "localhost");
        }
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let (mut head, ()) = request.body(()).unwrap().into_parts();
        if let Some(principal) = &self.principal {
            head.extensions.insert(Arc::clone(principal));
        }
        if let Some(ambient) = &self.ambient {
            head.extensions.insert(ambient.clone());
        }
        let exchange = ExchangeId(id);
        let admission = self.endpoint.admission();
        let remote = admission.client_address(&mut head, self.remote.map(Peer::Address));
        let admitted = admission.head_from(head, remote);
        #[cfg(feature = "auth")]
        let admitted = admitted.map(|mut head| {
            if let Some(expires) = self.expires {
                head.set_expiry(expires);
            }
            head
        });
        match admitted.and_then(|head| head.body(body)) {
            Ok(request) => self.handle(EndpointInput::Request(exchange, request)),
            Err(refusal) => self.note(id, refusal),
        }
        id
    }

    pub(crate) fn reply(&self, id: u64) -> &Answered {
        self.replies.get(&id).unwrap_or_else(|| panic!("nothing came back of {id}"))
    }

    /// A modern POST with the headers that belong to it.
    pub(crate) fn modern(&mut self, method: &str, params: Value) -> u64 {
        self.modern_with(method, params, &[])
    }

    pub(crate) fn modern_with(
        &mut self,
        method: &str,
        params: Value,
        more: &[(&str, &str)],
    ) -> u64 {
        let request = Request::modern(method, params);
        let change = |request: Request, (name, value): &(&str, &str)| match *value {
            "-" => request.without(name),
            value => request.header(name, value),
        };
        self.request(&more.iter().fold(request, change))
    }

    /// Opens a session of this revision; its id.
    pub(crate) fn open(&mut self, revision: &str, capabilities: Value) -> String {
        let body = json!({
            "jsonrpc": "2.0", "id": "init", "method": "initialize",
            "params": {
                "protocolVersion": revision, "capabilities": capabilities,
                "clientInfo": {"name": "c", "version": "1"},
            },
        });
        let id = self.legacy("", &body);
        let session = self.reply(id).header("mcp-session-id").to_owned();
        self.legacy(&session, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        session
    }

    /// A POST of a session.
    pub(crate) fn legacy(&mut self, session: &str, body: &Value) -> u64 {
        let mut headers = vec![("content-type", "application/json"), ("accept", BOTH)];
        if !session.is_empty() {
            headers.push(("mcp-session-id", session));
        }
        self.send("POST", "/mcp", &headers, &body.to_string())
    }

    pub(crate) fn call(&mut self, session: &str, id: u64, tool: &str) -> u64 {
        let params = json!({"name": tool, "arguments": {}, "_meta": {"progressToken": id}});
        let body = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        self.legacy(session, &body)
    }

    pub(crate) fn get(&mut self, session: &str, last_event: &str) -> u64 {
        let mut headers = vec![("accept", "text/event-stream"), ("mcp-session-id", session)];
        if !last_event.is_empty() {
            headers.push(("last-event-id", last_event));
        }
        self.send("GET", "/mcp", &headers, "")
    }

    /// Ends the handler that was started last.
    pub(crate) fn finish(&mut self, outcome: Result<Reply, Failure>) {
        let run = self.runs.pop().expect("a handler runs");
        self.handle(EndpointInput::Handler(run.id, HandlerEvent::Done(outcome)));
    }

    /// Replies to the last request to the host.
    pub(crate) fn reply_as_host(&mut self, reply: HostReply) {
        let (ticket, _) = self.host_requests.pop().expect("the host is asked");
        self.handle(EndpointInput::Host(ticket, reply));
    }

    /// Moves the clock; deadlines on the way are kept.
    pub(crate) fn advance(&mut self, by: Duration) {
        let end = self.now + by;
        while let Some(due) = self.endpoint.deadline().filter(|deadline| *deadline <= end) {
            self.now = self.now.max(due);
            self.handle(EndpointInput::Tick);
        }
        self.now = end;
    }
}
