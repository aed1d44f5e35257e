//! Reads inputs as scripts: one operation on each line, its name in the first byte, its argument after it.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use serde_json::{Value, value::RawValue};

/// Operations after these are not run, so that no input takes long.
const MAX_STEPS: usize = 400;

/// Returns the operations of a script with their arguments.
pub(crate) fn steps(input: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    let lines = input.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.take(MAX_STEPS).map(|line| (line[0], line[1..].strip_prefix(b" ").unwrap_or(&line[1..])))
}

/// Returns the number at the beginning of an argument, 0 without one, and the rest.
pub(crate) fn number(argument: &[u8]) -> (usize, &[u8]) {
    let digits = argument.iter().take(9).take_while(|byte| byte.is_ascii_digit()).count();
    let (number, rest) = argument.split_at(digits);
    let number = number.iter().fold(0, |sum, digit| sum * 10 + usize::from(digit - b'0'));
    (number, rest.strip_prefix(b" ").unwrap_or(rest))
}

/// Returns the element that a number names; any number names one.
pub(crate) fn pick<T>(items: &[T], number: usize) -> Option<&T> {
    (!items.is_empty()).then(|| &items[number % items.len()])
}

/// Returns the start of every run's clock. It is one for the whole process, so that outputs can be compared.
pub(crate) fn epoch() -> Instant {
    static EPOCH: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    *EPOCH.get_or_init(Instant::now)
}

/// Returns a time span of a script, in milliseconds, at most an hour.
pub(crate) fn span(argument: &[u8]) -> Duration {
    Duration::from_millis(number(argument).0.min(3_600_000) as u64)
}

/// Returns a string for raw JSON: the argument if it is JSON, else as a JSON string.
pub(crate) fn json_or_string(argument: &[u8]) -> String {
    let text = String::from_utf8_lossy(argument).into_owned();
    match serde_json::from_str::<&RawValue>(&text) {
        Ok(_) => text,
        Err(_) => Value::String(text).to_string(),
    }
}

/// Panics unless a frame is one JSON text without a newline; returns the text.
pub(crate) fn check_frame(frame: &[u8]) -> &str {
    let text = std::str::from_utf8(frame).expect("UTF-8");
    assert!(!text.contains('\n'), "two lines: {text}");
    assert!(serde_json::from_str::<&RawValue>(text).is_ok(), "no JSON: {text}");
    text
}

/// Returns the members of a frame that is an object, or of each object of a batch.
pub(crate) fn members(text: &str) -> Vec<Members> {
    match serde_json::from_str::<Vec<&RawValue>>(text) {
        Ok(batch) => batch.iter().map(|message| members_of(message.get())).collect(),
        Err(_) => vec![members_of(text)],
    }
}

/// The values of an object by name.
type Members = BTreeMap<String, Box<RawValue>>;

fn members_of(text: &str) -> Members {
    // No text holds the name of a member with half of a surrogate pair. Servers read the other members of such an object.
    let with_whole_names = || text.replace("\\ud", "\\u0").replace("\\uD", "\\u0");
    serde_json::from_str(text)
        .or_else(|_| serde_json::from_str(&with_whole_names()))
        .unwrap_or_default()
}

/// The requests of one peer that wait for their answer.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// The id of each message that may be answered, `None` for one that has no readable id, and whether it must be.
    open: Vec<(Option<String>, bool)>,
    /// The ids of subscriptions, which the server may cancel.
    listening: Vec<String>,
}

impl Ledger {
    /// Notes a frame that is sent to a server.
    pub(crate) fn sent(&mut self, frame: &[u8]) {
        let text = String::from_utf8_lossy(frame);
        // Servers skip one byte order mark.
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let is_batch = text.trim_start().starts_with('[');
        // An empty batch is answered with one error, and a batch may be.
        self.open.extend(is_batch.then_some((None, false)));
        for members in members(text) {
            let id = members.get("id").map(|id| id.get().to_owned());
            let is = |name: &str, value: &str| {
                members.get(name).is_some_and(|member| member.get() == value)
            };
            // Only strings and integers are ids.
            let is_integer =
                |id: &str| id.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit());
            let id = id.filter(|id| id.starts_with('"') || is_integer(id));
            let is_id = id.as_ref().is_some_and(|id| id.len() < 1_000);
            let method =
                members.get("method").and_then(|method| serde_json::from_str(method.get()).ok());
            let method: Option<String> = method;
            let must = !is_batch
                && is_id
                && is("jsonrpc", r#""2.0""#)
                && method.is_some()
                && std::str::from_utf8(frame).is_ok();
            if method.as_deref() == Some("subscriptions/listen") {
                self.listening.extend(id.clone());
            }
            self.open.push((id, must));
        }
        // A cancelled request may be answered or not, and members of a batch may be.
        if text.contains("ancelled") || text.contains("\\u") {
            self.open.iter_mut().for_each(|request| request.1 = false);
        }
    }

    /// Notes a response. Panics if nothing was open under its id.
    pub(crate) fn answered(&mut self, id: Option<&str>) {
        let id = id.filter(|id| *id != "null");
        // A malformed message with the same id may have no answer.
        let find = |must: bool| {
            self.open.iter().position(|request| request.1 == must && request.0.as_deref() == id)
        };
        let found = find(true).or_else(|| find(false));
        // An error without an id answers a message whose id can't be read.
        let unreadable = || self.open.iter().rposition(|(_, must)| !must).filter(|_| id.is_none());
        let found = found.or_else(unreadable);
        let Some(found) = found else {
            panic!("answered twice, or never asked: {id:?}, open {:?}", self.open)
        };
        self.open.swap_remove(found);
    }

    /// Reads a frame of a server, and notes the responses in it.
    pub(crate) fn received(&mut self, text: &str) {
        for members in members(text) {
            if members.contains_key("result") || members.contains_key("error") {
                self.answered(members.get("id").map(|id| id.get()));
            }
            self.cancelled(&members);
        }
    }

    /// Notes a cancellation by the server. It may end a subscription whose client does not read, which is not answered then,
    /// or withdraw a request of its own with the same id.
    fn cancelled(&mut self, members: &Members) {
        let is_cancelled =
            members.get("method").is_some_and(|method| method.get().contains("cancelled"));
        let params = members.get("params").filter(|_| is_cancelled);
        let params = params.and_then(|params| serde_json::from_str(params.get()).ok());
        let params: Members = params.unwrap_or_default();
        let Some(id) = params.get("requestId") else { return };
        let id = id.get();
        if self.listening.iter().any(|listener| listener == id) {
            let of = self.open.iter_mut().filter(|request| request.0.as_deref() == Some(id));
            of.for_each(|request| request.1 = false);
        }
    }

    /// Panics if a request that must be answered is not.
    pub(crate) fn settle(&self) {
        let left: Vec<_> = self.open.iter().filter(|request| request.1).collect();
        assert!(left.is_empty(), "never answered: {left:?}");
    }
}
