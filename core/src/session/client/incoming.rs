//! Frames from the server: responses, notifications and requests.

use std::time::Instant;

use serde_json::value::RawValue;

use super::{
    ClientSession, LogMessage, Output, Progress, modern,
    negotiate::Phase,
    partial::{self, Partial},
    stray_output,
    tolerance::{number, number_of},
};
use crate::{
    error::{Error, ErrorKind},
    framing::TooLong,
    protocol::{
        BYTE_ORDER_MARK, Dialect, ErrorObject, Frame, Id, LoggingLevel, MAX_BATCH, Malformed,
        Members, Message, Method, MethodName, Params, Raw, code, json,
    },
    wire,
};

/// The maximum length of the message of a server's error in bytes; the rest is cut off.
const MAX_ERROR_MESSAGE: usize = 64 * 1024;

impl ClientSession {
    pub(super) fn handle_frame(&mut self, now: Instant, bytes: &[u8]) {
        if bytes.starts_with(BYTE_ORDER_MARK) {
            self.tolerance.note("a byte order mark before a message");
        }
        match Frame::parse(bytes) {
            Frame::One(Err(malformed)) => {
                self.report_malformed(&malformed, bytes);
                let problem = malformed.unreadable.then(|| malformed.message.clone());
                self.handle_message(now, Err(malformed));
                if let Some(problem) = problem {
                    self.fail_responses(now, bytes, &problem);
                }
            }
            Frame::One(message) => self.handle_message(now, message),
            Frame::Batch(members) => {
                let mut problem = None;
                if members.len() > MAX_BATCH {
                    tracing::warn!("dropped messages of a batch of more than {MAX_BATCH}");
                    problem = Some(format!("its batch has more than {MAX_BATCH} messages"));
                }
                for member in members.into_iter().take(MAX_BATCH) {
                    if let Err(malformed) = &member {
                        self.report_malformed(malformed, bytes);
                        if malformed.unreadable {
                            problem.get_or_insert_with(|| malformed.message.clone());
                        }
                    }
                    self.handle_message(now, member);
                }
                if let Some(problem) = problem {
                    self.fail_responses(now, bytes, &problem);
                }
            }
        }
    }

    /// Handles a frame that ended the exchange of a request, to which an error without an id belongs.
    pub(super) fn handle_exchange(&mut self, now: Instant, id: u64, frame: &[u8]) {
        self.exchange = Some(id);
        self.handle_frame(now, frame);
        self.exchange = None;
        self.end_exchange(now, id);
    }

    /// Handles a line that may be cut. The request that a cut one answers fails with the connection, because that is why it
    /// can't be read.
    pub(super) fn handle_last_line(&mut self, now: Instant, line: &[u8]) {
        match Frame::parse(line) {
            Frame::One(Err(malformed)) if malformed.unreadable => {
                self.report_malformed(&malformed, line);
                self.handle_message(now, Err(malformed));
            }
            _ => self.handle_frame(now, line),
        }
    }

    /// Fails the requests that a frame answers, except those whose response was read.
    fn fail_responses(&mut self, now: Instant, frame: &[u8], problem: &str) {
        if matches!(self.phase, Phase::Idle | Phase::Closed(_)) {
            return;
        }
        partial::responses(frame, |id| {
            let message = format!("the server's answer can't be read: {problem}");
            let error = ErrorObject::new(code::PARSE_ERROR, message);
            self.handle_response(now, Some(&Id::number(id)), Err(error));
        });
    }

    /// Fails a request whose exchange ended, unless its response was read.
    fn end_exchange(&mut self, now: Instant, id: u64) {
        let is_open = self.calls.contains(id)
            || self.negotiating() == Some(id)
            || self.renewal.is_negotiating(id);
        if is_open && !self.renewal.will_repeat(id) {
            let message = "the server's answer can't be read: it is not a JSON-RPC response";
            let error = ErrorObject::new(code::INVALID_REQUEST, message);
            self.handle_response(now, Some(&Id::number(id)), Err(error));
        }
    }

    /// Fails the requests that the message may answer: the one that its beginning or end names, or, for a batch and for a
    /// message without a known beginning, all in flight. If a single message does not identify the request, fails the request in
    /// flight if there is only one.
    pub(super) fn handle_too_long(&mut self, now: Instant, message: TooLong<'_>) {
        let TooLong { limit, beginning, .. } = message;
        tracing::warn!(limit, "dropped a message of the server that is too long");
        let ids = match Partial::from_ends(message) {
            Partial::Response(id) => vec![id],
            Partial::NoResponse => Vec::new(),
            Partial::Unclear if beginning.is_empty() || is_batch(beginning) => {
                self.negotiating().into_iter().chain(self.calls.asking()).collect()
            }
            Partial::Unclear => self.calls.only().into_iter().collect(),
        };
        let subject = match ids.len() {
            1 => "the server's answer",
            _ => "a message of the server, which may have contained the answer,",
        };
        for id in ids {
            let message = format!("{subject} is longer than {limit} bytes");
            let error = Error::new(ErrorKind::Protocol, message).limited_by("max_message");
            self.fail_request(now, id, error);
        }
    }

    /// Logs a frame that is not a message, and keeps it for the error of a connection that can't be established.
    fn report_malformed(&mut self, malformed: &Malformed, frame: &[u8]) {
        if matches!(self.phase, Phase::Idle | Phase::Closed(_)) {
            return;
        }
        let (is_text, is_open) = (malformed.unreadable, self.server.is_some());
        if !is_open {
            self.stray_output.push(frame, is_text);
        }
        // Text during the negotiation is in the error, or logged once the connection is established.
        if is_text && !is_open {
            return;
        }
        self.malformed += 1;
        // A server can send millions.
        if !self.malformed.is_power_of_two() {
            return;
        }
        let (problem, count) = (&*malformed.message, self.malformed);
        if is_text {
            stray_output::warn(&stray_output::quoted(frame));
        } else {
            tracing::warn!(problem, count, "dropped a malformed frame of the server");
        }
    }

    fn handle_message(&mut self, now: Instant, message: Result<Message<'_>, Malformed>) {
        if matches!(self.phase, Phase::Idle | Phase::Closed(_)) {
            return;
        }
        match message {
            Ok(Message::Response { id, outcome, has_both }) => {
                if has_both {
                    self.tolerance.note("both \"result\" and \"error\", one of which is null");
                }
                if id.as_ref().is_some_and(|id| id.as_json().starts_with('"')) {
                    self.tolerance.note("the numbers of requests as strings");
                }
                self.handle_response(now, id.as_ref(), outcome);
            }
            // Modern servers ask inside results, and clients MUST NOT send responses (Transports).
            Ok(Message::Request { method, .. })
                if self.is_modern() && matches!(self.phase, Phase::Open) =>
            {
                tracing::warn!(%method, "dropped a request of the server");
            }
            Ok(Message::Request { id, method, params }) => {
                self.handle_ask(id, &method, &params);
                self.hold_calls(now);
            }
            Ok(Message::Notification { method, params }) => {
                self.handle_notification(now, &method, &params);
            }
            Err(malformed) => {
                // Without a method it can only be meant as the response to the request with its id.
                if malformed.lacks_method && malformed.id.is_some() {
                    let message =
                        format!("the server's answer can't be read: {}", malformed.message);
                    let error = ErrorObject::new(code::INVALID_REQUEST, message);
                    self.handle_response(now, malformed.id.as_ref(), Err(error));
                }
            }
        }
    }

    fn handle_response(
        &mut self,
        now: Instant,
        id: Option<&Id>,
        outcome: Result<&RawValue, ErrorObject>,
    ) {
        let id = match id {
            None => None,
            Some(id) => match number(id) {
                Some(id) => Some(id),
                None => return,
            },
        };
        if self.negotiated(now, id, outcome.as_ref().map(|result| result.get())) {
            return;
        }
        // A gateway that refuses a request sends an error without an id. Late and unsolicited responses are ignored.
        let Some(id) = id.or(self.exchange.filter(|_| outcome.is_err())) else {
            let problem = outcome.err().map(|error| error.message).unwrap_or_default();
            tracing::warn!(problem, "dropped a response of the server without an id");
            return;
        };
        if self.renewed(id, outcome.as_ref().map(|result| result.get())) {
            return;
        }
        let Some((key, method)) = self.calls.complete(id) else { return };
        let uri = self.renewal.forget(id);
        let outcome = match outcome {
            Ok(result) => self
                .read_result(&method, result)
                .and_then(|()| self.lift_result(&method, uri.as_deref(), result)),
            Err(error) => {
                self.pages.refused(&error);
                let lifted = self.lift_error(&method, &error);
                lifted.ok_or_else(|| self.read_error(&method, error))
            }
        };
        self.outputs.push_back(Output::Done(key, outcome));
    }

    fn read_result(&self, method: &MethodName, result: &RawValue) -> Result<(), Error> {
        if !result.get().starts_with('{') {
            let message = format!("{}: the server's result is not an object", method.as_str());
            return Err(Error::new(ErrorKind::Protocol, message));
        }
        match self.is_modern() {
            true => modern::check_result(method, result.get()),
            false => Ok(()),
        }
    }

    /// Converts the result of a dialect into the newest vocabulary.
    fn lift_result(
        &self,
        method: &MethodName,
        uri: Option<&str>,
        result: &RawValue,
    ) -> Result<Raw, Error> {
        match method {
            MethodName::Standard(standard) if self.wire.dialect == Some(Dialect::V0_7) => {
                wire::lift_result(*standard, uri, result.get()).map_err(|problem| {
                    Error::new(ErrorKind::Protocol, format!("{}: {problem}", method.as_str()))
                })
            }
            _ => Ok(result.to_owned()),
        }
    }

    fn lift_error(&self, method: &MethodName, error: &ErrorObject) -> Option<Raw> {
        match method {
            MethodName::Standard(method) if self.wire.dialect == Some(Dialect::V0_7) => {
                wire::lift_error(*method, error)
            }
            MethodName::Standard(Method::CallTool) => wire::lift_invalid_arguments(error),
            _ => None,
        }
    }

    fn read_error(&self, method: &MethodName, error: ErrorObject) -> Error {
        let names_uri = || {
            error.data.as_ref().is_some_and(|data| {
                #[derive(serde::Deserialize)]
                struct Data {
                    #[serde(rename = "uri")]
                    _uri: String,
                }
                serde_json::from_str::<Data>(data.get()).is_ok()
            })
        };
        let is_read = matches!(
            method,
            MethodName::Standard(Method::ReadResource | Method::Subscribe | Method::Unsubscribe)
        );
        let not_found = error.code == code::RESOURCE_NOT_FOUND
            || (error.code == self.wire.codes.resource_not_found && names_uri());
        let kind = match is_read && not_found {
            true => ErrorKind::NotFound,
            false => ErrorKind::Protocol,
        };
        let message = shortened(error.message);
        Error::new(kind, message)
            .with(|details| (details.code, details.data) = (Some(error.code), error.data))
    }

    fn handle_notification(&mut self, now: Instant, name: &str, params: &Params<'_>) {
        let method = self
            .wire
            .method(name)
            .map_or_else(|| MethodName::Vendor(name.into()), MethodName::Standard);
        let output = match &method {
            MethodName::Standard(Method::Progress) => self.read_progress(now, params),
            MethodName::Standard(Method::Cancelled) => {
                self.handle_cancelled(params);
                return self.hold_calls(now);
            }
            MethodName::Standard(Method::LogMessage) => read_log(params),
            MethodName::Standard(Method::ElicitationComplete) if !self.pages.finish(params) => {
                return tracing::debug!("ignored the completion of an unknown page");
            }
            MethodName::Standard(Method::SubscriptionsAcknowledged) => {
                self.read_acknowledged(params)
            }
            MethodName::Standard(
                method @ (Method::ToolListChanged
                | Method::ResourceListChanged
                | Method::PromptListChanged
                | Method::ResourceUpdated),
            ) => self.read_change(*method, params),
            _ => Some(Output::Notified { params: whole(params), method }),
        };
        self.outputs.extend(output);
    }

    fn read_progress(&mut self, now: Instant, params: &Params<'_>) -> Option<Output> {
        let token = match params.get("progressToken") {
            Some(token) => number_of(token.get())?,
            None if self.wire.dialect == Some(Dialect::Bare) => self.calls.only()?,
            None => return None,
        };
        let progress: f64 = member(params, "progress")?;
        let key = self.calls.progress(now, token)?;
        let step = Progress {
            progress,
            total: member(params, "total"),
            message: member(params, "message"),
        };
        Some(Output::Progress(key, step))
    }

    /// Handles a cancellation: a legacy server withdraws a question, a modern one ends a subscription.
    fn handle_cancelled(&mut self, params: &Params<'_>) {
        let Some(id) = params.get("requestId").and_then(|id| Id::parse(id.get())) else { return };
        if let Some((ask, ())) = self.asks.cancel(&id) {
            let reason: Option<String> = member(params, "reason");
            tracing::debug!(reason, "the server withdrew a question");
            return self.outputs.push_back(Output::AskCancelled(ask));
        }
        self.end_listen(&id, params);
    }
}

/// Returns whether this is the beginning of an array of objects. Logs, whose lines often begin with "[", are none.
fn is_batch(beginning: &[u8]) -> bool {
    let members = beginning.trim_ascii_start().strip_prefix(b"[").map(<[u8]>::trim_ascii_start);
    members.is_some_and(|rest| matches!(rest, [] | [b'{', ..]))
}

/// Cuts the message of a server's error, which is copied into the texts of several errors and logs.
fn shortened(mut message: String) -> String {
    if message.len() > MAX_ERROR_MESSAGE {
        let end = (0..=MAX_ERROR_MESSAGE).rev().find(|index| message.is_char_boundary(*index));
        message.truncate(end.unwrap_or_default());
        message.push('…');
        message.shrink_to_fit();
    }
    message
}

fn read_log(params: &Params<'_>) -> Option<Output> {
    let level: LoggingLevel = member(params, "level")?;
    let data = params.get("data")?.to_owned();
    Some(Output::Log(LogMessage { level, logger: member(params, "logger"), data }))
}

pub(super) fn member<T: for<'de> serde::Deserialize<'de>>(
    params: &Params<'_>,
    name: &str,
) -> Option<T> {
    serde_json::from_str(params.get(name)?.get()).ok()
}

/// Returns the params as JSON text.
fn whole(params: &Params<'_>) -> Raw {
    match params {
        Params::Object(members) => json::to_raw(
            &members.iter().map(|(key, value)| (&**key, *value)).collect::<Members<_>>(),
        ),
        Params::Absent | Params::Other => json::raw("{}".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_of_an_error_is_cut_between_characters() {
        let text = shortened("ä".repeat(MAX_ERROR_MESSAGE));
        assert_eq!(text, "ä".repeat(MAX_ERROR_MESSAGE / 2) + "…");
        let text = shortened("x".to_owned() + &"ä".repeat(MAX_ERROR_MESSAGE));
        assert_eq!(text.len(), MAX_ERROR_MESSAGE - 1 + "…".len());
        assert_eq!(shortened("short".into()), "short");
    }
}
