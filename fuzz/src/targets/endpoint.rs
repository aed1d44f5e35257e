//! An [`Endpoint`]: HTTP requests, sessions with their streams, and message connections.
//!
//! `>` POSTs a message with the headers that belong to it, `H` sends a request with headers of the script's choice, `G` and
//! `D` are GET and DELETE of a session, `K` closes an exchange, `O`, `M`, `k` and `e` open, use, close and half-close a
//! message connection, `+` moves the clock, and the operations of [`Host`].

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    net::{IpAddr, Ipv4Addr},
    time::{Duration, Instant},
};

use gudgeon::{
    engine::Load,
    framing::{SseDecoder, SseItem},
    http::{
        ConnectionId, Endpoint, EndpointConfig, EndpointInput, EndpointOutput, ExchangeId, Part,
        Reader,
    },
    protocol::Frame,
};
use http::{HeaderMap, Request};
use serde_json::Value;

use crate::{
    script::{Ledger, check_frame, epoch, number, pick, span, steps},
    server::{Host, HostInput, SUSPENDED_LIMIT, SUSPENDED_THREADS, components},
};

pub(super) const SEEDS: &[&str] = &[
    r#"> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{},"roots":{}},"clientInfo":{"name":"c","version":"1"}}}
> {"jsonrpc":"2.0","method":"notifications/initialized"}
G0
> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"confirm","arguments":{},"_meta":{"progressToken":"t"}}}
p0 half
K3
G0 1-1
> {"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"value":true}}}
u fixture://about
c1
D0"#,
    r#"O0
M0 {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}
M0 {"jsonrpc":"2.0","id":2,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}
c1
!0 tdone
e0
k0
> {"jsonrpc":"2.0","id":3,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}
c0
H10010 {"jsonrpc":"2.0","id":4,"method":"ping"}
H02200 
+ 20000"#,
];

const METHODS: [&str; 5] = ["GET", "POST", "DELETE", "OPTIONS", "PUT"];
const PATHS: [&str; 5] = ["/mcp", "/mcp/", "/sse", "/sse?session_id=1", "/other"];
const VERSIONS: [&str; 5] = ["", "2026-07-28", "2025-11-25", "2025-03-26", "v999"];
const ACCEPTS: [&str; 4] =
    ["application/json, text/event-stream", "", "text/event-stream", "text/html"];
const ORIGINS: [&str; 4] = ["", "http://localhost:1", "https://evil.example", "null"];

/// Runs a script twice, with the same outcome.
pub(super) fn run(input: &[u8]) {
    let first = Run::new().all(input);
    let again = Run::new().all(input);
    assert!(first == again, "another outcome of the same input:\n{first}\n--- again\n{again}");
}

/// An HTTP request and its answer so far.
#[derive(Default)]
struct Exchange {
    /// Responses that the answer may hold; `None` for a stream, which may repeat what an earlier one had.
    ledger: Option<Ledger>,
    status: u16,
    decoder: Option<SseDecoder>,
    is_complete: bool,
    is_closed: bool,
}

struct Run {
    endpoint: Endpoint,
    now: Instant,
    host: Host,
    exchanges: Vec<Exchange>,
    sessions: Vec<String>,
    connections: BTreeMap<u64, Ledger>,
    state: String,
    sent: usize,
    trace: String,
}

impl Run {
    fn new() -> Self {
        let config = EndpointConfig {
            legacy_sse: true,
            max_body: 4_096,
            max_sessions: 3,
            max_streams: 2,
            max_in_flight: 8,
            session_idle: Duration::from_secs(60),
            ..EndpointConfig::default()
        };
        let start = gudgeon::test_pair::start(epoch());
        Self {
            endpoint: Endpoint::new(components(), config, &start),
            now: epoch(),
            host: Host::default(),
            exchanges: Vec::new(),
            sessions: Vec::new(),
            connections: BTreeMap::new(),
            state: String::new(),
            sent: 0,
            trace: String::new(),
        }
    }

    fn all(mut self, input: &[u8]) -> String {
        for (name, argument) in steps(input) {
            self.perform(name, argument);
        }
        self.settle();
        self.trace
    }

    fn perform(&mut self, name: u8, argument: &[u8]) {
        let (at, rest) = number(argument);
        match name {
            b'>' => {
                let body = self.with_state(argument);
                let headers = self.headers_of(&body);
                self.send("POST", "/mcp", headers, &body, at);
            }
            b'H' => {
                let code = argument.get(..5).unwrap_or(b"00000");
                let word = |at: usize| usize::from(code[at]);
                let mut headers = vec![
                    ("mcp-protocol-version", VERSIONS[word(2) % VERSIONS.len()].to_owned()),
                    ("accept", ACCEPTS[word(3) % ACCEPTS.len()].to_owned()),
                    ("origin", ORIGINS[word(4) % ORIGINS.len()].to_owned()),
                    ("content-type", "application/json".to_owned()),
                ];
                headers.extend(self.session(word(4)));
                let body = self.with_state(argument.get(5..).unwrap_or_default());
                let (method, path) =
                    (METHODS[word(0) % METHODS.len()], PATHS[word(1) % PATHS.len()]);
                self.send(method, path, headers, body.trim_start(), word(4));
            }
            b'G' | b'D' => {
                let mut headers = vec![("accept", ACCEPTS[0].to_owned())];
                headers.extend(self.session(at));
                if !rest.is_empty() {
                    headers.push(("last-event-id", String::from_utf8_lossy(rest).into_owned()));
                }
                self.send(if name == b'G' { "GET" } else { "DELETE" }, "/mcp", headers, "", at);
            }
            b'K' => self.disconnect(at),
            b'O' => {
                let id = at as u64 % 3;
                if let std::collections::btree_map::Entry::Vacant(entry) =
                    self.connections.entry(id)
                {
                    entry.insert(Ledger::default());
                    self.handle(EndpointInput::Opened(ConnectionId(id), None, None));
                }
            }
            b'M' => {
                let id = at as u64 % 3;
                let message = self.with_state(rest);
                if let Some(ledger) = self.connections.get_mut(&id) {
                    ledger.sent(message.as_bytes());
                    self.sent += message.len();
                    let frame = Frame::parse(message.as_bytes());
                    self.handle(EndpointInput::Message(ConnectionId(id), frame));
                }
            }
            b'k' => {
                let id = at as u64 % 3;
                if self.connections.remove(&id).is_some() {
                    self.handle(EndpointInput::ConnectionClosed(ConnectionId(id)));
                }
            }
            b'e' => self.handle(EndpointInput::EndOfInput(ConnectionId(at as u64 % 3))),
            b'L' if self.connections.contains_key(&(at as u64)) => {
                self.handle(EndpointInput::CutSubscriptions(Reader::Connection(ConnectionId(
                    at as u64,
                ))));
            }
            b'L' => {
                let id = ExchangeId(at as u64);
                self.handle(EndpointInput::CutSubscriptions(Reader::Exchange(id)));
            }
            b'E' => self.handle(EndpointInput::EndStreams),
            b'P' => self.handle(EndpointInput::PageDone(&String::from_utf8_lossy(argument))),
            b'+' => self.advance(argument),
            b'~' => self.advance(b"3600000"),
            _ => self.host.perform(name, argument),
        }
        self.carry();
        let Load { suspended, suspended_threads, bytes, .. } = self.endpoint.load();
        assert!(
            bytes <= self.sent + 2_000 * (self.exchanges.len() + 100),
            "{bytes} of {}",
            self.sent
        );
        assert!(suspended <= SUSPENDED_LIMIT, "{suspended} suspended");
        assert!(
            suspended_threads <= SUSPENDED_THREADS,
            "{suspended_threads} threads of suspended handlers"
        );
    }

    fn with_state(&self, text: &[u8]) -> String {
        String::from_utf8_lossy(text).replace("<state>", &self.state)
    }

    fn session(&self, at: usize) -> Option<(&'static str, String)> {
        pick(&self.sessions, at).map(|session| ("mcp-session-id", session.clone()))
    }

    /// Returns the headers that a client would send with this message.
    fn headers_of(&self, body: &str) -> Vec<(&'static str, String)> {
        let mut headers = vec![
            ("accept", ACCEPTS[0].to_owned()),
            ("content-type", "application/json".to_owned()),
        ];
        let value: Value = serde_json::from_str(body).unwrap_or_default();
        let params = &value["params"];
        let version = &params["_meta"]["io.modelcontextprotocol/protocolVersion"];
        if let Some(version) = version.as_str() {
            headers.push(("mcp-protocol-version", version.to_owned()));
            let name = params["name"].as_str().or(params["uri"].as_str());
            let name = name.map(|name| ("mcp-name", name.to_owned()));
            headers
                .extend(value["method"].as_str().map(|method| ("mcp-method", method.to_owned())));
            headers.extend(name);
        } else if value["method"] != "initialize" {
            headers.extend(self.sessions.last().map(|session| ("mcp-session-id", session.clone())));
        }
        headers
    }

    fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: Vec<(&'static str, String)>,
        body: &str,
        from: usize,
    ) {
        let mut request = Request::builder().method(method).uri(path).header("host", "localhost");
        let is_sayable = |value: &str| {
            !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ')
        };
        for (name, value) in headers.into_iter().filter(|(_, value)| is_sayable(value)) {
            request = request.header(name, value);
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        let id = self.exchanges.len();
        let mut ledger = Ledger::default();
        ledger.sent(body.as_bytes());
        let ledger = (method == "POST" && path.starts_with("/mcp")).then_some(ledger);
        self.exchanges.push(Exchange { ledger, ..Exchange::default() });
        self.sent += body.len();
        let remote = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 1 + u8::from(from % 2 == 1)));
        let admitted = self.endpoint.admission().head_from(head, Some(remote));
        match admitted.and_then(|head| head.body(body.as_bytes())) {
            Ok(request) => self.handle(EndpointInput::Request(ExchangeId(id as u64), request)),
            Err(refusal) => self.receive(id, refusal),
        }
    }

    fn disconnect(&mut self, id: usize) {
        if let Some(exchange) = self.exchanges.get_mut(id).filter(|exchange| !exchange.is_closed) {
            exchange.is_closed = true;
            self.handle(EndpointInput::Disconnected(ExchangeId(id as u64)));
        }
    }

    fn advance(&mut self, argument: &[u8]) {
        let end = self.now + span(argument);
        while let Some(due) = self.endpoint.deadline().filter(|deadline| *deadline <= end) {
            self.now = self.now.max(due);
            self.handle(EndpointInput::Tick);
            self.carry();
            assert!(
                self.endpoint.deadline().is_none_or(|deadline| deadline > self.now),
                "a deadline was missed"
            );
        }
        self.now = end;
    }

    /// Ends all that is under way: every request was answered, and nothing is left.
    fn settle(&mut self) {
        for _ in 0..16 {
            let had_work = self.host.finish_all();
            self.carry();
            self.advance(b"100000");
            if !had_work {
                break;
            }
        }
        for id in self.connections.keys().copied().collect::<Vec<_>>() {
            self.handle(EndpointInput::EndOfInput(ConnectionId(id)));
        }
        self.handle(EndpointInput::EndStreams);
        self.carry();
        self.connections.values().for_each(Ledger::settle);
        for (id, exchange) in self.exchanges.iter().enumerate() {
            assert!(exchange.is_closed || exchange.status != 0, "exchange {id} has no answer");
        }
        for id in 0..self.exchanges.len() {
            self.disconnect(id);
        }
        for id in std::mem::take(&mut self.connections).into_keys() {
            self.handle(EndpointInput::ConnectionClosed(ConnectionId(id)));
        }
        self.advance(b"3600000");
        assert_eq!(self.host.running(), 0, "handlers still run");
        assert_eq!(self.endpoint.load(), Load::default(), "something is kept");
        assert!(self.endpoint.keeps_no_call(), "something is left of a call");
        assert_eq!(self.endpoint.deadline(), None, "something waits");
    }

    fn carry(&mut self) {
        for _ in 0..10_000 {
            let Some(next) = self.host.next.pop_front() else { return };
            self.handle(match next {
                HostInput::Handler(run, event) => EndpointInput::Handler(run, event),
                HostInput::Host(ticket, reply) => EndpointInput::Host(ticket, reply),
                HostInput::Computed(job) => EndpointInput::Computed(job.run()),
                HostInput::Components(components, kinds) => {
                    EndpointInput::Components(components, kinds)
                }
                HostInput::Updated(ref uri) => EndpointInput::Updated(uri),
            });
        }
        panic!("the endpoint never comes to rest");
    }

    fn handle(&mut self, input: EndpointInput<'_>) {
        self.endpoint.handle(self.now, input);
        while let Some(output) = self.endpoint.poll() {
            if !matches!(output, EndpointOutput::Compute(_)) {
                let _ = writeln!(self.trace, "{output:?}");
            }
            match output {
                EndpointOutput::Exchange(ExchangeId(id), part) => {
                    self.receive(usize::try_from(id).unwrap(), part);
                }
                EndpointOutput::Change(Reader::Exchange(ExchangeId(id)), bytes) => {
                    self.receive(usize::try_from(id).unwrap(), Part::Bytes(bytes));
                }
                EndpointOutput::Change(Reader::Connection(id), frame)
                | EndpointOutput::Connection(id, Part::Bytes(frame)) => {
                    let text = check_frame(&frame);
                    self.connections.get_mut(&id.0).expect("it is open").received(text);
                }
                EndpointOutput::Connection(_, _)
                | EndpointOutput::Expired(_)
                | EndpointOutput::Publish(_)
                | EndpointOutput::Store(..)
                | EndpointOutput::Workers(_) => (),
                EndpointOutput::Effect(effect) => self.host.take(effect),
                EndpointOutput::Compute(computation) => self.host.compute(*computation),
            }
        }
    }

    fn receive(&mut self, id: usize, part: Part) {
        let exchange = &mut self.exchanges[id];
        assert!(!exchange.is_complete, "more after the end of {id}: {part:?}");
        match part {
            Part::Head { status, headers, body, more } => {
                assert_eq!(exchange.status, 0, "a second head for {id}");
                exchange.status = status.as_u16();
                exchange.is_complete = !more;
                self.open(id, &headers);
                self.body(id, &body, more);
            }
            Part::Bytes(bytes) => {
                assert_ne!(exchange.status, 0, "no head of {id}");
                self.body(id, &bytes, true);
            }
            Part::End => exchange.is_complete = true,
        }
    }

    fn open(&mut self, id: usize, headers: &HeaderMap) {
        let header = |name: &str| {
            headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
        };
        if header("content-type") == "text/event-stream" {
            self.exchanges[id].decoder = Some(SseDecoder::new(1024 * 1024));
        }
        let session = header("mcp-session-id").to_owned();
        if !session.is_empty() && !self.sessions.contains(&session) {
            self.sessions.push(session);
        }
    }

    /// Reads a body, or a piece of a stream of events.
    fn body(&mut self, id: usize, bytes: &[u8], more: bool) {
        let exchange = &mut self.exchanges[id];
        let mut messages = Vec::new();
        if let Some(decoder) = &mut exchange.decoder {
            let mut rest = bytes;
            while let Some(item) = decoder.next(&mut rest) {
                match item {
                    SseItem::Event { data, event, .. } if !data.is_empty() && event.is_none() => {
                        messages.push(data);
                    }
                    SseItem::TooLong => panic!("an event is too long"),
                    SseItem::Event { .. } | SseItem::Retry(_) => (),
                }
            }
        } else if !bytes.is_empty() {
            assert!(!more, "a body in pieces");
            messages.push(String::from_utf8(bytes.to_vec()).unwrap());
        }
        for message in messages {
            let text = check_frame(message.as_bytes());
            if let Some((_, state)) = text.split_once(r#""requestState":""#) {
                state.split('"').next().unwrap_or_default().clone_into(&mut self.state);
            }
            let exchange = &mut self.exchanges[id];
            // Refusals before the protocol, as for a wrong host, have a body of their own.
            if let Some(ledger) = exchange.ledger.as_mut().filter(|_| text.contains(r#""jsonrpc""#))
            {
                ledger.received(text);
            }
        }
    }
}
