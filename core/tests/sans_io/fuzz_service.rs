//! Random and mutated frames against a whole [`Service`]: no panic, one reply to each request, and only JSON out.

use std::{
    collections::{BTreeMap, HashSet},
    fmt,
    sync::{Arc, OnceLock},
    time::Instant,
};

use gudgeon::{
    engine::{Effect, HandlerEvent, Run, RunId},
    protocol::{LoggingLevel, Method, json::to_raw},
    router::{Components, Failure, Middleware, Reply},
    service::{Input, Output, Service},
    session::server::{Log, Progress},
};
use proptest::{collection::vec, prelude::*, sample::Index};
use serde::de::IgnoredAny;
use serde_json::{json, value::RawValue};

use crate::support::fixture;

const MODERN: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

/// Valid frames of both eras; `MODERN` stands for the modern envelope.
const FRAMES: [&str; 32] = [
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#,
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#,
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
    r#"{"jsonrpc":"2.0","id":"two","method":"tools/list","params":{"cursor":"x"}}"#,
    r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"add","arguments":{"a":1,"b":"2"}}}"#,
    r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"wait","arguments":{},"_meta":{"progressToken":9007199254740993}}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4,"reason":"enough"}}"#,
    r#"{"jsonrpc":"2.0","id":5,"method":"logging/setLevel","params":{"level":"debug"}}"#,
    r#"{"jsonrpc":"2.0","id":6,"method":"resources/read","params":{"uri":"fixture://items/7"}}"#,
    r#"{"jsonrpc":"2.0","id":7,"method":"prompts/get","params":{"name":"greet","arguments":{"name":"Ada"}}}"#,
    r#"{"jsonrpc":"2.0","id":8,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"name","value":"A"}}}"#,
    r#"{"jsonrpc":"2.0","id":9,"method":"acme/echo","params":{"text":"\u00e9\ud83d\ude00"}}"#,
    r#"{"jsonrpc":"2.0","id":10,"result":{}}"#,
    r#"{"jsonrpc":"2.0","id":11,"error":{"code":-32603,"message":"no"}}"#,
    r#"[{"jsonrpc":"2.0","id":12,"method":"ping"},{"jsonrpc":"2.0","id":13,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"}}}]"#,
    r#"[{"jsonrpc":"2.0","id":14,"method":"tools/call","params":{"name":"wait"}},{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":14}},1,{}]"#,
    r"[]",
    r#"{"jsonrpc":"2.0","id":"m1","method":"server/discover","params":{MODERN}}"#,
    r#"{"jsonrpc":"2.0","id":"m2","method":"tools/list","params":{MODERN}}"#,
    r#"{"jsonrpc":"2.0","id":"m3","method":"tools/call","params":{MODERN,"name":"book","arguments":{"id":1}}}"#,
    r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{MODERN,"name":"wait","arguments":{}}}"#,
    r#"{"jsonrpc":"2.0","id":-5,"method":"resources/read","params":{MODERN,"uri":"fixture://about"}}"#,
    r#"{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"prompts/get","params":{"name":"greet","arguments":{"name":"Ada"},MODERN}}"#,
    r#"{"jsonrpc":"2.0","id":"","method":"acme/echo","params":{MODERN,"text":"x"}}"#,
    r#"{"jsonrpc":"2.0","id":"m4","method":"resources/templates/list","params":{MODERN}}"#,
    r#"{"jsonrpc":"2.0","id":20,"method":"initialize","params":{"minVersion":"0.2.0","maxVersion":"0.9.0"}}"#,
    r#"{"jsonrpc":"2.0","method":"initialized"}"#,
    r#"{"jsonrpc":"2.0","id":21,"method":"call_tool","params":{"name":"book","arguments":{"id":1}}}"#,
    r#"{"jsonrpc":"2.0","id":22,"method":"read_resource","params":{"uri":"fixture://search{?q,limit}","arguments":{"q":"a","limit":1}}}"#,
    r#"{"jsonrpc":"2.0","id":23,"method":"render_prompt","params":{"name":"greet","arguments":{"name":"Ada"}}}"#,
];

/// The replacement for a part of a frame.
const PIECES: [&[u8]; 16] = [
    b"null",
    b"true",
    b"-0",
    b"1e999",
    b"{}",
    b"[]",
    b"\"\"",
    b"\"\\ud800\"",
    b"\\",
    b"\"",
    b",",
    b"}",
    b"[",
    b"\xff",
    b"\0",
    b" ",
];

/// The bytes of one input, shown as text when a test fails.
#[derive(Clone)]
struct Line(Vec<u8>);

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.escape_ascii())
    }
}

#[derive(Clone, Debug)]
enum Mutation {
    Remove(Index, usize),
    Replace(Index, u8),
    Insert(Index, usize),
    Truncate(Index),
    Repeat(Index, Index),
}

fn line() -> impl Strategy<Value = Line> {
    let frame =
        (0..FRAMES.len()).prop_map(|index| FRAMES[index].replace("MODERN", MODERN).into_bytes());
    let place = any::<Index>;
    let mutation = prop_oneof![
        (place(), 1_usize..12).prop_map(|(at, count)| Mutation::Remove(at, count)),
        (place(), any::<u8>()).prop_map(|(at, byte)| Mutation::Replace(at, byte)),
        (place(), 0..PIECES.len()).prop_map(|(at, piece)| Mutation::Insert(at, piece)),
        place().prop_map(Mutation::Truncate),
        (place(), place()).prop_map(|(from, to)| Mutation::Repeat(from, to)),
    ];
    let nested = (prop_oneof![Just("["), Just("{\"a\":")], 1_usize..2_000).prop_map(|(open, depth)| {
        let close = if open == "[" { "]" } else { "}" };
        let deep = format!("{}1{}", open.repeat(depth), close.repeat(depth));
        format!(r#"{{"jsonrpc":"2.0","id":20,"method":"tools/call","params":{{"name":"echo","arguments":{{"text":{deep}}}}}}}"#)
            .into_bytes()
    });
    prop_oneof![
        1 => vec(any::<u8>(), 0..200),
        1 => nested,
        4 => frame.clone(),
        6 => (frame, vec(mutation, 1..4)).prop_map(|(frame, mutations)| mutations.iter().fold(frame, mutate)),
    ]
    .prop_map(|line| Line(line.into_iter().filter(|byte| *byte != b'\n').collect()))
}

fn mutate(mut line: Vec<u8>, mutation: &Mutation) -> Vec<u8> {
    if line.is_empty() {
        return line;
    }
    match mutation {
        Mutation::Remove(at, count) => {
            let at = at.index(line.len());
            drop(line.drain(at..(at + count).min(line.len())));
        }
        Mutation::Replace(at, byte) => *at.get_mut(&mut line) = *byte,
        Mutation::Insert(at, piece) => {
            let at = at.index(line.len());
            drop(line.splice(at..at, PIECES[*piece].iter().copied()));
        }
        Mutation::Truncate(at) => line.truncate(at.index(line.len())),
        Mutation::Repeat(from, to) => {
            let (from, to) = (from.index(line.len()), to.index(line.len()));
            let piece = line[from.min(to)..from.max(to)].to_vec();
            line.extend(piece);
        }
    }
    line
}

proptest! {
    #[test]
    fn any_lines_leave_a_service_that_answers(
        handshake in proptest::option::of(0_usize..3),
        lines in vec(line(), 1..24),
        answers in vec(any::<u8>(), 1..24),
    ) {
        let mut shell = Shell::new(answers);
        if let Some(handshake) = handshake {
            shell.check(FRAMES[handshake].as_bytes());
        }
        for Line(line) in &lines {
            shell.check(line);
        }
        shell.finish();
    }

    #[test]
    fn random_bytes_are_an_error_each(lines in vec(vec(128..=255_u8, 1..100), 1..8)) {
        let mut shell = Shell::new(vec![0]);
        for line in &lines {
            shell.check(line);
        }
        shell.finish();
    }
}

#[test]
fn nesting_of_any_depth_is_one_reply() {
    for handshake in &FRAMES[..3] {
        let mut shell = Shell::new(vec![0]);
        shell.check(handshake.as_bytes());
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let deep = format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
            for frame in [
                r"DEEP",
                r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":DEEP}"#,
                r#"{"jsonrpc":"2.0","id":1,"method":DEEP}"#,
                r#"{"jsonrpc":"2.0","id":DEEP,"method":"ping"}"#,
                r#"[DEEP,{"jsonrpc":"2.0","id":1,"method":"ping","params":DEEP}]"#,
                r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":DEEP}}"#,
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":DEEP}}"#,
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{MODERN,"name":"echo","arguments":DEEP}}"#,
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{MODERN,"name":"add","arguments":{"a":DEEP,"b":1}}}"#,
                r#"{"jsonrpc":"2.0","id":1,"method":"acme/echo","params":{MODERN,"text":DEEP}}"#,
            ] {
                shell.check(frame.replace("MODERN", MODERN).replace("DEEP", &deep).as_bytes());
            }
            shell.check(open.repeat(100_000).as_bytes());
        }
        shell.finish();
    }
}

/// A shell whose handlers answer what the test was dealt, some of them only at the end.
struct Shell {
    service: Service,
    answers: std::iter::Cycle<std::vec::IntoIter<u8>>,
    /// Handlers that have not answered yet.
    waiting: HashSet<RunId>,
    /// Handlers whose answers nobody waits for any more.
    cancelled: usize,
    expected: usize,
    replied: usize,
    /// Requests that may have been cancelled within their batch, before they were handed to anybody.
    withdrawn: usize,
}

impl Shell {
    fn new(answers: Vec<u8>) -> Self {
        static OFFERS: [OnceLock<Arc<Components>>; 2] = [const { OnceLock::new() }; 2];
        let passes = answers.first().is_some_and(|answer| answer % 2 == 1);
        let components = OFFERS[usize::from(passes)].get_or_init(|| {
            let mut components = fixture::components_in(gudgeon::protocol::Dialect::ALL.to_vec());
            // Every request but those that tell whether it still serves passes middleware, which answers as the test likes.
            if passes {
                let handler = components.tools.find("echo").unwrap().handler.clone();
                let methods = Method::ALL
                    .iter()
                    .filter(|method| !matches!(method, Method::Ping | Method::Discover));
                let methods = methods.map(|method| method.as_str()).chain(["acme/echo", "no/such"]);
                components.set_middleware(Some(Middleware::new(handler, methods, false)));
            }
            Arc::new(components)
        });
        Self {
            service: Service::new(
                Arc::clone(components),
                &gudgeon::test_pair::start(Instant::now()),
            ),
            answers: answers.into_iter().cycle(),
            waiting: HashSet::new(),
            cancelled: 0,
            expected: 0,
            replied: 0,
            withdrawn: 0,
        }
    }

    /// Sends one line and holds what comes back against what was sent.
    fn check(&mut self, line: &[u8]) {
        let (waiting, cancelled) = (self.waiting.len(), self.cancelled);
        let replies = self.exchange(Input::Frame(line));
        let text = std::str::from_utf8(line).unwrap_or("no UTF-8");
        if text.trim_ascii_start().starts_with('[') {
            let refused =
                replies.iter().any(|reply| reply.starts_with('{') && reply.contains(r#""error""#));
            if refused {
                self.expected += replies.len();
            } else {
                let members = serde_json::from_str::<Vec<&RawValue>>(text).unwrap_or_default();
                self.expected +=
                    members.iter().filter(|member| expects_reply(member.get())).count();
                self.withdrawn +=
                    members.iter().filter(|member| member.get().contains("cancelled")).count();
            }
            return;
        }
        let expects = expects_reply(text);
        self.expected += usize::from(expects);
        let settled = replies.len()
            + (self.waiting.len() + self.cancelled).saturating_sub(waiting + cancelled);
        if expects {
            assert_eq!(settled, 1, "{text} got {replies:?}");
        }
        if let (Some(id), Some(reply)) = (request_id(text), replies.first()) {
            let reply: BTreeMap<String, &RawValue> = serde_json::from_str(reply).unwrap();
            assert_eq!(reply["id"].get(), id);
        }
    }

    /// The replies; notifications are looked at and left out.
    fn exchange(&mut self, input: Input<'_>) -> Vec<String> {
        let mut replies = Vec::new();
        self.service.handle(Instant::now(), input);
        while let Some(output) = self.service.poll() {
            match output {
                Output::Send(frame) | Output::Change(frame) => {
                    let frame = String::from_utf8(frame).unwrap();
                    assert!(serde_json::from_str::<IgnoredAny>(&frame).is_ok(), "no JSON: {frame}");
                    assert!(!frame.contains('\n'), "two lines: {frame}");
                    let batch = serde_json::from_str::<Vec<&RawValue>>(&frame);
                    if batch.is_err() && frame.starts_with(r#"{"jsonrpc":"2.0","method":""#) {
                        continue;
                    }
                    self.replied += batch.map_or(1, |members| members.len());
                    replies.push(frame);
                }
                Output::Effect(Effect::Run(run)) => self.run(&run),
                Output::Effect(Effect::Cancel(call)) => {
                    self.waiting.remove(&call);
                    self.cancelled += 1;
                }
                Output::Compute(job) => {
                    self.service.handle(Instant::now(), Input::Computed(job.run()));
                }
                Output::Effect(
                    Effect::Log(_)
                    | Effect::Span(_)
                    | Effect::Answered { .. }
                    | Effect::Resume { .. }
                    | Effect::Subscribed { .. }
                    | Effect::Host(..)
                    | Effect::CancelHost(_),
                ) => (),
            }
        }
        replies
    }

    fn run(&mut self, run: &Run) {
        assert!(serde_json::from_str::<IgnoredAny>(&run.input).is_ok(), "no JSON: {}", run.input);
        let (now, call) = (Instant::now(), run.id);
        let outcome = match self.answers.next().unwrap_or(0) % 8 {
            0 => Ok(Reply::Text("\u{1}\"\\\u{2028}".into())),
            1 => Ok(Reply::Json(r#"{"id":1,"title":"Dune"}"#.into())),
            2 => Ok(Reply::Json("3".into())),
            3 => Err(Failure::Tool { message: "no".into(), meta: None }),
            4 => Err(Failure::Exception {
                kind: "E".into(),
                message: "m".into(),
                traceback: "t".into(),
            }),
            5 => Err(Failure::Protocol {
                code: 7,
                message: "no".into(),
                data: Some(to_raw(&json!([1]))),
            }),
            6 => {
                let progress =
                    Progress { progress: f64::NAN, total: Some(f64::INFINITY), message: None };
                self.service.handle(now, Input::Handler(call, HandlerEvent::Progress(progress)));
                let data = to_raw(&json!("told"));
                self.service.handle(
                    now,
                    Input::Handler(
                        call,
                        HandlerEvent::Log(Log { level: LoggingLevel::Error, logger: None, data }),
                    ),
                );
                Ok(Reply::Text("told".into()))
            }
            _ => {
                self.waiting.insert(call);
                return;
            }
        };
        self.service.handle(now, Input::Handler(call, HandlerEvent::Done(outcome)));
    }

    /// Lets every handler answer: then no reply is missing, none too many, and both eras are still served.
    fn finish(mut self) {
        for call in std::mem::take(&mut self.waiting) {
            self.exchange(Input::Handler(call, HandlerEvent::Done(Ok(Reply::Text("late".into())))));
        }
        let settled = self.replied + self.cancelled;
        assert!(settled <= self.expected && self.expected <= settled + self.withdrawn);
        assert_eq!(self.service.in_flight(), 0);
        for (id, frame) in [
            ("\"last\"", r#"{"jsonrpc":"2.0","id":"last","method":"ping"}"#.to_owned()),
            (
                "\"newest\"",
                format!(
                    r#"{{"jsonrpc":"2.0","id":"newest","method":"server/discover","params":{{{MODERN}}}}}"#
                ),
            ),
        ] {
            let replies = self.exchange(Input::Frame(frame.as_bytes()));
            let reply: BTreeMap<String, &RawValue> = serde_json::from_str(&replies[0]).unwrap();
            assert_eq!((replies.len(), reply["id"].get()), (1, id));
            assert!(reply.contains_key("result"));
        }
        assert_eq!(self.exchange(Input::Closed).len(), 0);
    }
}

/// Returns whether this text requires a reply: it is a request or not a valid message.
fn expects_reply(text: &str) -> bool {
    let Ok(members) = serde_json::from_str::<BTreeMap<String, &RawValue>>(text) else {
        return true;
    };
    match members.get("method") {
        Some(_) => members.contains_key("id") || !is_notification(&members),
        None => !(members.contains_key("result") || members.contains_key("error")),
    }
}

fn is_notification(members: &BTreeMap<String, &RawValue>) -> bool {
    let is_string = |name| {
        members.get(name).is_some_and(|value| serde_json::from_str::<String>(value.get()).is_ok())
    };
    members.get("jsonrpc").is_some_and(|value| value.get() == r#""2.0""#) && is_string("method")
}

/// The id of a well-formed request, as it is written.
fn request_id(text: &str) -> Option<&str> {
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(text).ok()?;
    let id = members.get("id")?.get();
    let is_id =
        id.starts_with('"') || id.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit());
    (is_id && is_notification(&members)).then_some(id)
}
