//! A [`ClientSession`] against any server.
//!
//! `o` chooses the revisions, `<` is a frame of the server, `>` a request or notification of the program as its frame would be,
//! `=` answers a question, `x` cancels a request, `f` fails one, `A` ends the exchange of one with a frame, `L` is the end of a
//! stream, `+` moves the clock, `R` a new session, `X` closes.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    sync::Arc,
    time::{Duration, Instant},
};

use gudgeon::{
    error::{Error, ErrorKind},
    framing::TooLong,
    protocol::{
        ClientCapabilities, Dialect, ErrorObject, Implementation, Method, MethodName, Revision,
        RootsCapability, json,
    },
    session::{
        InboundKey,
        client::{ClientConfig, ClientSession, Input, Output, RequestKey, RequestOptions},
    },
};
use serde_json::Value;

use crate::script::{check_frame, epoch, json_or_string, members, number, pick, span, steps};

pub(super) const SEEDS: &[&str] = &[
    r#"o0
< {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}
< {"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{"subscribe":true},"prompts":{},"logging":{},"completions":{}},"serverInfo":{"name":"s","version":"1"}}}
> {"method":"tools/call","params":{"name":"a"}}
< {"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}
= 0 {"action":"accept","content":{}}
< {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":3,"progress":1}}
< {"jsonrpc":"2.0","id":3,"result":{"content":[]}}
> {"method":"resources/subscribe","params":{"uri":"a://b"}}
+ 70000
< [7,{"jsonrpc":"2.0","id":4,"result":{
> {"method":"tools/list","params":{}}
A5 {"jsonrpc":"2.0","id":5,"method":null,"result":{}}
> {"method":"tools/list","params":{}}
x1
R
X"#,
    r#"o1
< {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}}
> {"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true}}}
< {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/subscriptionId":2}}}
< {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":2}}}
f2"#,
];

/// Runs a script twice, with the same outcome.
pub(super) fn run(input: &[u8]) {
    let first = Run::new(input).all(input);
    let again = Run::new(input).all(input);
    assert!(first == again, "another outcome of the same input:\n{first}\n--- again\n{again}");
}

struct Run {
    session: ClientSession,
    now: Instant,
    requests: u64,
    /// Requests without an outcome.
    open: BTreeSet<RequestKey>,
    asks: Vec<InboundKey>,
    /// The ids of requests that were sent.
    ids: BTreeSet<String>,
    /// The session may be a new one: the transport opened it, or dialect 0.7 may have.
    is_renewed: bool,
    /// The number of negotiations that ended.
    negotiated: usize,
    starts: usize,
    trace: String,
}

fn config(input: &[u8]) -> ClientConfig {
    let chosen =
        steps(input).find(|step| step.0 == b'o').map_or(0, |(_, argument)| number(argument).0);
    let (revisions, dialect) = match chosen % 8 {
        0 => (Revision::ALL.to_vec(), None),
        1 => (vec![Revision::V2026_07_28], None),
        2 => (vec![Revision::V2025_11_25], None),
        3 => (vec![Revision::V2024_11_05], None),
        4 => (vec![Revision::V2025_03_26, Revision::V2025_06_18], None),
        5 => (vec![Revision::V2026_07_28, Revision::V2025_06_18], None),
        6 => (Revision::ALL.to_vec(), Some(Dialect::V0_7)),
        _ => (Revision::ALL.to_vec(), Some(Dialect::Bare)),
    };
    ClientConfig {
        info: Implementation::new("c", "1"),
        capabilities: ClientCapabilities {
            roots: Some(RootsCapability { list_changed: Some(true) }),
            ..ClientCapabilities::default()
        },
        revisions,
        last_revision: None,
        dialect,
        probe_timeout: Some(Duration::from_secs(5)),
        connect_timeout: Some(Duration::from_secs(60)),
        log_level: None,
    }
}

impl Run {
    fn new(input: &[u8]) -> Self {
        Self {
            session: ClientSession::new(Arc::new(config(input))),
            now: epoch(),
            requests: 0,
            open: BTreeSet::new(),
            asks: Vec::new(),
            ids: BTreeSet::new(),
            is_renewed: config(input).dialect == Some(Dialect::V0_7),
            negotiated: 0,
            starts: 0,
            trace: String::new(),
        }
    }

    fn all(mut self, input: &[u8]) -> String {
        self.starts += 1;
        self.handle(Input::Start);
        for (name, argument) in steps(input) {
            self.perform(name, argument);
            assert!(
                self.session.in_flight() <= self.open.len() + 1,
                "more in flight than was sent"
            );
        }
        // Every request has a time limit.
        self.advance(Duration::from_secs(3600));
        assert!(self.open.is_empty(), "without an outcome: {:?}", self.open);
        assert_eq!(self.session.in_flight(), 0);
        self.handle(Input::Closed("gone"));
        assert_eq!(self.session.deadline(), None);
        self.trace
    }

    fn perform(&mut self, name: u8, argument: &[u8]) {
        let (at, rest) = number(argument);
        match name {
            b'<' => self.handle(Input::Frame(argument)),
            b'L' => self.handle(Input::LastLine(argument)),
            b'A' => {
                self.handle(Input::Response { id: at as u64, frame: rest });
                let in_flight = self.session.in_flight();
                let error = Error::new(ErrorKind::Lost, "again");
                self.handle(Input::Failed { id: at as u64, error });
                assert!(
                    self.is_renewed || self.session.in_flight() == in_flight,
                    "it has not ended"
                );
            }
            b'>' => self.send(argument),
            b'=' => {
                let Some(key) = pick(&self.asks, at).copied() else { return };
                self.asks.retain(|ask| *ask != key);
                let answer = json::raw(json_or_string(rest));
                let refusal = ErrorObject::new(-1, "no");
                self.handle(Input::Answer(
                    key,
                    if rest.is_empty() { Err(refusal) } else { Ok(answer) },
                ));
            }
            b'x' => {
                let key = RequestKey(at as u64);
                self.handle(Input::Cancel(key, None));
                self.open.remove(&key);
            }
            b'f' => {
                let error = Error::new(ErrorKind::Lost, "no");
                self.handle(Input::Failed { id: at as u64, error });
            }
            b'+' => self.advance(span(argument)),
            b'T' => self.handle(Input::TooLong(TooLong::new(9, argument))),
            b'R' => {
                self.is_renewed = true;
                self.handle(Input::Renewed);
            }
            b'r' => self.handle(Input::DeclareRoots),
            b'V' => self.handle(Input::Leave("done")),
            b'X' => self.handle(Input::Closed("gone")),
            _ => (),
        }
    }

    /// Makes the request or notification whose frame this is.
    fn send(&mut self, frame: &[u8]) {
        let value: Value = serde_json::from_slice(frame).unwrap_or_default();
        let Some(name) = value["method"].as_str() else { return };
        let method = MethodName::parse(name);
        let params = match &value["params"] {
            Value::Object(params) => Value::Object(params.clone()).to_string(),
            _ => "{}".into(),
        };
        if name.starts_with("notifications/") {
            return self.handle(Input::Notify { method, params: &params });
        }
        // The session sends these by itself, and a subscription has no time limit.
        if matches!(method, MethodName::Standard(Method::Initialize | Method::Listen))
            && self.open.len() > 3
        {
            return;
        }
        self.requests += 1;
        let key = RequestKey(self.requests);
        self.open.insert(key);
        let is_listen = method == MethodName::Standard(Method::Listen);
        let options = RequestOptions {
            timeout: Some(Duration::from_secs(10)),
            max_timeout: Some(Duration::from_secs(600)),
            wants_progress: self.requests.is_multiple_of(2) && !is_listen,
            is_passed_on: false,
            times: None,
        };
        self.handle(Input::Request { key, method, params: &params, options });
    }

    fn advance(&mut self, by: Duration) {
        let end = self.now + by;
        while let Some(due) = self.session.deadline().filter(|deadline| *deadline <= end) {
            self.now = self.now.max(due);
            self.handle(Input::Tick);
            assert!(
                self.session.deadline().is_none_or(|deadline| deadline > self.now),
                "a deadline was missed"
            );
        }
        self.now = end;
    }

    fn handle(&mut self, input: Input<'_>) {
        self.session.handle(self.now, input);
        let mut restart = false;
        while let Some(output) = self.session.poll() {
            let _ = writeln!(self.trace, "{output:?}");
            match output {
                Output::Send(frame) => {
                    let text = check_frame(&frame);
                    for members in
                        members(text).iter().filter(|members| members.contains_key("method"))
                    {
                        let Some(id) = members.get("id") else { continue };
                        // In a new session requests are repeated as they were.
                        let is_new = self.ids.insert(id.get().to_owned());
                        assert!(is_new || self.is_renewed, "an id is used twice: {text}");
                    }
                }
                Output::Done(key, _) => assert!(self.open.remove(&key), "{key:?} has two outcomes"),
                Output::Ready(_) | Output::Failed(_) => {
                    self.negotiated += 1;
                    assert!(self.negotiated <= self.starts, "negotiated twice");
                }
                Output::Ask(ask) => self.asks.push(ask.id),
                Output::AskCancelled(key) => self.asks.retain(|ask| *ask != key),
                Output::Restart => restart = true,
                _ => (),
            }
        }
        if restart {
            self.ids.clear();
            self.handle(Input::Start);
        }
    }
}
