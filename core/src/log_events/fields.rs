//! The fields of an event, as hosts and subscribers get them.

use std::borrow::Cow;

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::{EventKind, LogEvent};
use crate::{
    log_text::{beginning, single_line},
    protocol::Id,
};

/// The length in bytes to which a name is cut that a peer chose.
const MAX_NAME: usize = 200;

/// The values of all fields that an event may have.
#[derive(Debug, Default)]
pub(super) struct FieldValues {
    pub(super) reason: Option<&'static str>,
    pub(super) limit: Option<&'static str>,
    pub(super) status: Option<u64>,
    pub(super) outcome: Option<&'static str>,
    pub(super) method: Option<String>,
    pub(super) request_id: Option<String>,
    pub(super) session: Option<String>,
    pub(super) client: Option<String>,
    pub(super) principal: Option<String>,
    pub(super) remote: Option<String>,
    pub(super) trace_id: Option<String>,
    pub(super) span_id: Option<String>,
    pub(super) tool: Option<String>,
    pub(super) prompt: Option<String>,
    pub(super) resource: Option<String>,
    pub(super) duration_ms: Option<u64>,
    pub(super) reference: Option<String>,
    pub(super) server: Option<String>,
    pub(super) url: Option<String>,
    pub(super) in_flight: Option<u64>,
    pub(super) worker: Option<u64>,
    pub(super) exit_code: Option<i64>,
    pub(super) messages: Option<u64>,
    /// The number of equal events that were left out before this one.
    pub(super) left_out: Option<u64>,
}

impl LogEvent {
    /// Returns the values of the fields, with the number of equal events that were left out before.
    pub(super) fn values(&self, left_out: usize) -> FieldValues {
        let facts = &self.facts;
        let component = |kind: &str| {
            let component = facts.component.as_ref().filter(|component| component.kind == kind);
            component.map(|component| name(&component.name).into_owned())
        };
        let reason = Some(self.reason).filter(|reason| !reason.is_empty());
        let is_limit = matches!(self.kind, EventKind::HttpOverloaded | EventKind::SessionEvicted);
        let is_outcome = self.kind == EventKind::RequestDone;
        let number = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let text = |text: &Option<String>| text.as_deref().map(|text| name(text).into_owned());
        FieldValues {
            reason: reason.filter(|_| !is_limit && !is_outcome),
            limit: reason.filter(|_| is_limit),
            outcome: reason.filter(|_| is_outcome),
            method: text(&facts.method),
            status: facts.status.map(u64::from),
            request_id: facts.request_id.as_ref().map(request_id),
            session: facts.session.as_deref().map(digest),
            client: text(&facts.client),
            principal: facts.principal.as_ref().map(|caller| name(&caller.subject).into_owned()),
            remote: facts.remote.map(|address| address.to_canonical().to_string()),
            trace_id: facts.trace.map(|ids| format!("{:032x}", ids.trace)),
            span_id: facts.trace.map(|ids| format!("{:016x}", ids.span)),
            tool: component("tool"),
            prompt: component("prompt"),
            resource: component("resource"),
            duration_ms: facts
                .duration
                .map(|duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)),
            reference: facts.reference.clone(),
            server: text(&facts.server),
            url: facts.url.clone(),
            in_flight: facts.in_flight.map(number),
            messages: facts.messages,
            worker: facts.worker.map(|(process, _)| process.into()),
            exit_code: facts.worker.map(|(_, code)| code.into()),
            left_out: Some(number(left_out)).filter(|count| *count > 0),
        }
    }

    /// Returns the fields with their names, `event` first.
    pub fn fields(&self) -> Map<String, Value> {
        let values = self.values(0);
        let declaration = self.declaration();
        let mut fields = Map::new();
        fields.insert("event".to_owned(), declaration.name.into());
        for field in declaration.fields {
            if let Some(value) = values.get(field) {
                fields.insert((*field).to_owned(), value);
            }
        }
        fields
    }
}

impl FieldValues {
    fn get(&self, field: &str) -> Option<Value> {
        let text = |text: &Option<String>| text.as_deref().map(Value::from);
        match field {
            "reason" => self.reason.map(Value::from),
            "limit" => self.limit.map(Value::from),
            "status" => self.status.map(Value::from),
            "outcome" => self.outcome.map(Value::from),
            "method" => text(&self.method),
            "request_id" => text(&self.request_id),
            "session" => text(&self.session),
            "client" => text(&self.client),
            "principal" => text(&self.principal),
            "remote" => text(&self.remote),
            "trace_id" => text(&self.trace_id),
            "span_id" => text(&self.span_id),
            "tool" => text(&self.tool),
            "prompt" => text(&self.prompt),
            "resource" => text(&self.resource),
            "duration_ms" => self.duration_ms.map(Value::from),
            "reference" => text(&self.reference),
            "server" => text(&self.server),
            "url" => text(&self.url),
            "in_flight" => self.in_flight.map(Value::from),
            "worker" => self.worker.map(Value::from),
            "exit_code" => self.exit_code.map(Value::from),
            "messages" => self.messages.map(Value::from),
            "left_out" => self.left_out.map(Value::from),
            _ => None,
        }
    }
}

/// Returns a name that a peer chose as logs have it: on one line and not long.
pub(super) fn name(name: &str) -> Cow<'_, str> {
    single_line(beginning(name, MAX_NAME))
}

/// Returns the id of a request as logs have it.
pub(super) fn request_id(id: &Id) -> String {
    name(id.as_json().trim_matches('"')).into_owned()
}

/// Returns the first eight hexadecimal digits of the SHA-256 hash of a session's id, by which logs name the session.
pub(super) fn digest(id: &str) -> String {
    let hash: [u8; 32] = Sha256::digest(id).into();
    let [first, second, third, fourth, ..] = hash;
    let beginning = u32::from_be_bytes([first, second, third, fourth]);
    format!("{beginning:08x}")
}
