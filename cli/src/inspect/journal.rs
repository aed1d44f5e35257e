//! The events since the inspector started, which pages follow, and the bodies of messages and results.
//!
//! Both are bounded; the oldest are dropped.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Instant, SystemTime},
};

use bytes::Bytes;
use gudgeon::protocol::Sender;
use serde::{Deserialize, Serialize, de::IgnoredAny};
use serde_json::{Value, json, value::RawValue};
use tokio::sync::watch;

use crate::{render::Repeated, transcript};

/// The maximum number of events, and of their bytes.
const MAX_EVENTS: usize = 20_000;
const MAX_EVENT_BYTES: usize = 32 * 1024 * 1024;
/// The maximum number of bytes of messages and results.
const MAX_BODY_BYTES: usize = 128 * 1024 * 1024;
/// The size in bytes up to which a message or result is part of its event.
const INLINE: usize = 8 * 1024;
/// The size in bytes of the beginning that a longer message's event shows.
const PREVIEW: usize = 1024;

/// The log of one inspector. Events have numbers from 1, without gaps.
pub struct Journal {
    started: Instant,
    inner: Mutex<Inner>,
    /// The number of the last event.
    last: watch::Sender<u64>,
}

#[derive(Default)]
struct Inner {
    last: u64,
    events: VecDeque<Event>,
    event_bytes: usize,
    bodies: VecDeque<Body>,
    body_bytes: usize,
}

/// An event as JSON.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Event {
    pub number: u64,
    pub json: Bytes,
}

/// A message or a result.
struct Body {
    number: u64,
    /// The sender and the time of a message; `None` for a result.
    message: Option<(Sender, f64)>,
    json: Bytes,
}

impl Journal {
    pub fn new() -> Self {
        let (last, _) = watch::channel(0);
        Self { started: Instant::now(), inner: Mutex::default(), last }
    }

    /// Returns a receiver of the number of the last event.
    pub fn follow(&self) -> watch::Receiver<u64> {
        self.last.subscribe()
    }

    /// Returns the number of the last event.
    pub fn last(&self) -> u64 {
        self.lock().last
    }

    /// Adds an event: the members of `value` with its type, time and number.
    pub fn add(&self, kind: &str, value: Value) {
        let time = self.time();
        let mut inner = self.lock();
        inner.push(kind, time, value);
        self.announce(inner);
    }

    /// Adds a message of the connection.
    pub fn add_message(&self, sender: Sender, message: &[u8]) {
        let time = self.time();
        let summary = Summary::from_message(message);
        let from = name(sender);
        let mut inner = self.lock();
        let (number, size) = (inner.last + 1, message.len());
        inner.keep(Body {
            number,
            message: Some((sender, time)),
            json: Bytes::copy_from_slice(message),
        });
        let mut value = json!({ "from": from, "size": size, "summary": summary });
        let (member, end) = if size <= INLINE { ("text", size) } else { ("preview", PREVIEW) };
        value[member] = String::from_utf8_lossy(&message[..end]).into();
        inner.push("message", time, value);
        self.announce(inner);
    }

    /// Adds the event of a call that ended with this result, JSON. The page leaves out the part that is
    /// `repeated`.
    pub fn add_result(&self, call: &str, result: &str, repeated: Option<Repeated>) {
        let time = self.time();
        let parsed = if result.len() <= INLINE {
            serde_json::from_str::<&RawValue>(result).ok()
        } else {
            None
        };
        let mut inner = self.lock();
        let number = inner.last + 1;
        if let Some(result) = parsed {
            // The numbers of the result are to stay as the server wrote them.
            let done = Done { kind: "done", number, time, call, repeated, result };
            let event = serde_json::to_string(&done);
            inner.push_json(event.unwrap_or_default());
        } else {
            inner.keep(Body {
                number,
                message: None,
                json: Bytes::copy_from_slice(result.as_bytes()),
            });
            let done = json!({ "call": call, "body": number, "repeated": repeated });
            inner.push("done", time, done);
        }
        self.announce(inner);
    }

    /// Returns the next events after the one with this number, up to about 1 MiB, and the number of those that are
    /// missing because they were dropped.
    pub fn after(&self, number: u64) -> (Vec<Event>, u64) {
        let inner = self.lock();
        let first = inner.last + 1 - inner.events.len() as u64;
        let missing = first.saturating_sub(number + 1);
        let skipped = usize::try_from((number + 1).saturating_sub(first)).unwrap_or(usize::MAX);
        let mut size = 0;
        let events = inner.events.iter().skip(skipped).take_while(|event| {
            let fits = size < 1024 * 1024;
            size += event.json.len();
            fits
        });
        (events.cloned().collect(), missing)
    }

    /// Returns the message or result that belongs to an event, if it is still there.
    pub fn body(&self, number: u64) -> Option<Bytes> {
        let inner = self.lock();
        let at = inner.bodies.binary_search_by_key(&number, |body| body.number).ok()?;
        Some(inner.bodies[at].json.clone())
    }

    /// Returns the numbers of the messages that contain a string, regardless of the case of ASCII letters.
    pub fn search(&self, text: &str) -> Vec<u64> {
        // The lock is not held while megabytes are searched.
        let messages: Vec<_> = {
            let inner = self.lock();
            let messages = inner.bodies.iter().filter(|body| body.message.is_some());
            messages.map(|body| (body.number, body.json.clone())).collect()
        };
        let found = messages.iter().filter(|(_, json)| contains(json, text.as_bytes()));
        found.map(|(number, _)| *number).collect()
    }

    /// Returns all messages that are still there as a transcript, which `gudgeon replay` reads.
    pub fn transcript(&self) -> Vec<Bytes> {
        let now = SystemTime::now();
        let started = now.checked_sub(self.started.elapsed()).unwrap_or(now);
        let first_line = transcript::first_line(started, None);
        let inner = self.lock();
        let messages = inner.bodies.iter().filter_map(|body| Some((body.message?, &body.json)));
        let lines = messages.flat_map(|((sender, time), json)| {
            let start =
                format!("{{\"time\":{:.3},\"from\":\"{}\",\"message\":", time / 1e3, name(sender));
            [Bytes::from(start), json.clone(), Bytes::from_static(b"}\n")]
        });
        std::iter::once(Bytes::from(first_line)).chain(lines).collect()
    }

    /// Returns the time since the start in milliseconds.
    fn time(&self) -> f64 {
        (self.started.elapsed().as_secs_f64() * 1e6).round() / 1e3
    }

    fn announce(&self, inner: MutexGuard<'_, Inner>) {
        let last = inner.last;
        drop(inner);
        self.last.send_replace(last);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn push(&mut self, kind: &str, time: f64, mut value: Value) {
        value["type"] = kind.into();
        value["time"] = time.into();
        value["number"] = (self.last + 1).into();
        self.push_json(value.to_string());
    }

    fn push_json(&mut self, json: String) {
        self.last += 1;
        self.event_bytes += json.len();
        self.events.push_back(Event { number: self.last, json: json.into() });
        while self.events.len() > MAX_EVENTS || self.event_bytes > MAX_EVENT_BYTES {
            let Some(oldest) = self.events.pop_front() else { return };
            self.event_bytes -= oldest.json.len();
        }
    }

    fn keep(&mut self, body: Body) {
        self.body_bytes += body.json.len();
        self.bodies.push_back(body);
        while self.body_bytes > MAX_BODY_BYTES || self.bodies.len() > MAX_EVENTS {
            let Some(oldest) = self.bodies.pop_front() else { return };
            self.body_bytes -= oldest.json.len();
        }
    }
}

#[derive(Serialize)]
struct Done<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    number: u64,
    time: f64,
    call: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    repeated: Option<Repeated>,
    result: &'a RawValue,
}

/// The parts of a message that the timeline shows without parsing it.
#[derive(Debug, Default, Eq, PartialEq, Serialize)]
struct Summary {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<String>,
    /// The id as JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// The tool, resource or prompt of a request, or the message of an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<String>,
}

#[derive(Deserialize)]
struct Members<'a> {
    method: Option<String>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    result: Option<IgnoredAny>,
    error: Option<ErrorMembers>,
    params: Option<Params>,
}

#[derive(Deserialize)]
struct ErrorMembers {
    message: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Params {
    Named { name: String },
    Located { uri: String },
    Other(IgnoredAny),
}

impl Summary {
    fn from_message(message: &[u8]) -> Self {
        let Ok(members) = serde_json::from_slice::<Members<'_>>(message) else {
            let kind = if message.starts_with(b"[") { "batch" } else { "invalid" };
            return Self { kind, ..Self::default() };
        };
        let kind = match (&members.method, &members.id) {
            (Some(_), Some(_)) => "request",
            (Some(_), None) => "notification",
            _ if members.error.is_some() => "error",
            _ if members.result.is_some() => "result",
            _ => "invalid",
        };
        let subject = match members.params {
            Some(Params::Named { name } | Params::Located { uri: name }) => Some(name),
            _ => members.error.and_then(|error| error.message),
        };
        let subject = subject.map(|subject| subject.chars().take(200).collect());
        Self { kind, method: members.method, id: members.id.map(|id| id.get().to_owned()), subject }
    }
}

fn name(sender: Sender) -> &'static str {
    if matches!(sender, Sender::Client) { "client" } else { "server" }
}

fn contains(bytes: &[u8], text: &[u8]) -> bool {
    let Some(first) = text.first() else { return true };
    let (lower, upper) = (first.to_ascii_lowercase(), first.to_ascii_uppercase());
    memchr::memchr2_iter(lower, upper, bytes).any(|at| {
        bytes.get(at..at + text.len()).is_some_and(|part| part.eq_ignore_ascii_case(text))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_numbers_without_gaps() {
        let journal = Journal::new();
        journal.add("status", json!({ "state": "connecting" }));
        journal.add_message(
            Sender::Client,
            br#"{"id":1,"method":"tools/call","params":{"name":"add"}}"#,
        );
        let (events, missing) = journal.after(0);
        assert_eq!((events.len(), missing), (2, 0));
        let event: Value = serde_json::from_slice(&events[1].json).unwrap();
        assert_eq!(event["number"], 2);
        assert_eq!(
            event["summary"],
            json!({ "kind": "request", "method": "tools/call", "id": "1", "subject": "add" })
        );
        assert_eq!(journal.after(1).0, events[1..]);
        assert_eq!(journal.after(2), (Vec::new(), 0));
    }

    #[test]
    fn a_long_message_is_kept_beside_its_event() {
        let journal = Journal::new();
        let message =
            format!(r#"{{"id":"a","result":{{"text":"{}needle"}}}}"#, "x".repeat(1024 * 1024));
        journal.add_message(Sender::Server, message.as_bytes());
        let (events, _) = journal.after(0);
        assert!(events[0].json.len() < 2 * PREVIEW);
        assert_eq!(journal.body(1).unwrap(), message.as_bytes());
        assert_eq!((journal.search("NEEDLE"), journal.search("nail")), (vec![1], vec![]));
    }

    #[test]
    fn the_oldest_events_and_messages_are_dropped() {
        let journal = Journal::new();
        for _ in 0..MAX_EVENTS + 5 {
            journal.add_message(Sender::Server, br#"{"method":"notifications/message"}"#);
        }
        let (events, missing) = journal.after(0);
        assert_eq!((events[0].number, missing), (6, 5));
        assert_eq!(journal.body(5), None);
        let big = vec![b' '; MAX_BODY_BYTES / 2];
        journal.add_message(Sender::Server, &big);
        journal.add_message(Sender::Server, &big);
        let last = journal.last();
        assert!(journal.body(last - 2).is_none() && journal.body(last - 1).is_some());
    }

    #[test]
    fn a_result_keeps_its_numbers() {
        let journal = Journal::new();
        journal.add_result("c1", r#"{"n":12345678901234567890.10}"#, Some(Repeated::Content));
        let (events, _) = journal.after(0);
        let json = String::from_utf8(events[0].json.to_vec()).unwrap();
        let expected = r#""repeated":"content","result":{"n":12345678901234567890.10}"#;
        assert!(json.contains(expected), "{json}");
    }

    #[test]
    fn summaries_name_the_kind_of_a_message() {
        let kind = |message: &str| Summary::from_message(message.as_bytes()).kind;
        assert_eq!(kind(r#"{"method":"x"}"#), "notification");
        assert_eq!(kind(r#"{"id":1,"result":{}}"#), "result");
        assert_eq!(kind(r#"{"id":1,"error":{"code":1,"message":"no"}}"#), "error");
        assert_eq!(kind("[]"), "batch");
        assert_eq!(kind("garbage"), "invalid");
    }

    #[test]
    fn a_transcript_is_lines_of_json() {
        let journal = Journal::new();
        journal.add_message(Sender::Client, br#"{"id":1,"method":"ping"}"#);
        journal.add("status", json!({}));
        let text = journal.transcript().concat();
        let lines: Vec<Value> = text
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| serde_json::from_slice(line).unwrap())
            .collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[1]["from"], "client");
        assert_eq!(lines[1]["message"], json!({ "id": 1, "method": "ping" }));
    }
}
