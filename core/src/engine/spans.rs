//! Requests that are answered without a handler, for the spans of hosts that trace.

use std::time::{Duration, Instant};

use super::{Effect, Engine};
use crate::{
    error::Fault,
    protocol::{Method, MethodName, Request, Response},
    session::server::{CallContext, CallTrace},
    wire::{self, Lowered},
};

/// A request that was answered without a handler, such as a list, or one with invalid arguments.
#[derive(Debug)]
pub struct AnsweredRequest {
    pub subject: SpanSubject,
    pub context: CallContext,
    pub error: Option<AnswerError>,
    pub duration: Duration,
}

/// The error that a request was answered with.
#[derive(Debug)]
pub struct AnswerError {
    /// The code of the JSON-RPC error; `None` for a result with `isError`.
    pub code: Option<i64>,
    pub message: String,
}

/// The part of a request that its span names.
#[derive(Clone, Debug)]
pub struct SpanSubject {
    pub method: MethodName,
    /// The name of the tool or prompt, if the server has it.
    pub name: Option<String>,
    /// The URI of the resource.
    pub uri: Option<String>,
}

/// A span of a request, as OpenTelemetry's conventions for MCP describe it. It does not name the session, whose id is a secret.
#[derive(Debug)]
pub struct SpanDescription {
    pub title: String,
    pub attributes: Vec<(&'static str, String)>,
    pub trace: CallTrace,
}

impl SpanDescription {
    /// Describes the span of a request for this method: of the tool or prompt `name`, or the resource at `uri`.
    pub fn new(method: &str, name: Option<&str>, uri: Option<&str>, context: &CallContext) -> Self {
        let mut attributes = vec![
            ("mcp.method.name", method.to_owned()),
            ("mcp.protocol.version", context.spoken().to_owned()),
        ];
        if let Some(id) = &context.request_id {
            let json = id.as_json();
            let text = serde_json::from_str(json).unwrap_or_else(|_| json.to_owned());
            attributes.push(("jsonrpc.request.id", text));
        }
        match (method, name) {
            ("tools/call", Some(name)) => attributes.extend([
                ("gen_ai.tool.name", name.to_owned()),
                ("gen_ai.operation.name", "execute_tool".to_owned()),
            ]),
            ("prompts/get", Some(name)) => {
                attributes.push(("gen_ai.prompt.name", name.to_owned()));
            }
            _ => (),
        }
        attributes.extend(uri.map(|uri| ("mcp.resource.uri", uri.to_owned())));
        if context.http.is_some() {
            attributes.push(("network.protocol.name", "http".to_owned()));
        }
        let address = context.remote.map(|address| address.to_canonical().to_string());
        attributes.extend(address.map(|address| ("client.address", address)));
        let title = match name {
            Some(name) => format!("{method} {name}"),
            None => method.to_owned(),
        };
        Self { title, attributes, trace: context.trace() }
    }
}

impl AnsweredRequest {
    /// Describes the span, with the error if there is one.
    pub fn span(&self) -> SpanDescription {
        let SpanSubject { method, name, uri } = &self.subject;
        let (name, uri) = (name.as_deref(), uri.as_deref());
        let mut span = SpanDescription::new(method.as_str(), name, uri, &self.context);
        match self.error.as_ref().map(|error| error.code) {
            Some(Some(code)) => span.attributes.extend([
                ("error.type", code.to_string()),
                ("rpc.response.status_code", code.to_string()),
            ]),
            Some(None) => span.attributes.push(("error.type", "tool_error".to_owned())),
            None => (),
        }
        span
    }
}

/// The subject of the span of a request, and the time at which it came.
#[derive(Debug)]
pub(super) struct SpanStart {
    pub(super) subject: SpanSubject,
    begun: Instant,
}

impl SpanSubject {
    pub(super) fn new(request: &Request) -> Self {
        let (name, uri) = match request {
            Request::CallTool { name, .. } | Request::GetPrompt { name, .. } => (Some(name), None),
            Request::ReadResource { uri, .. }
            | Request::Subscribe { uri }
            | Request::Unsubscribe { uri } => (None, Some(uri)),
            _ => (None, None),
        };
        let (name, uri) = (name.cloned(), uri.cloned());
        Self { method: request.method(), name, uri }
    }
}

impl Engine {
    /// Returns the subject of the span of this request, if the host traces. The handshake and `ping` have none: a client makes them
    /// for itself, and not for its user.
    pub(super) fn span_start(&self, now: Instant, request: &Request) -> Option<Box<SpanStart>> {
        let is_for_client = |method: &MethodName| {
            [Method::Initialize, Method::Discover, Method::Ping]
                .iter()
                .any(|own| *method == MethodName::Standard(*own))
        };
        let is_on = self.components.server.traces.is_on() && !is_for_client(&request.method());
        is_on.then(|| Box::new(SpanStart { subject: SpanSubject::new(request), begun: now }))
    }

    /// Has the host make the span of a request that was answered without a handler.
    pub(super) fn trace_answer(
        &mut self,
        now: Instant,
        start: SpanStart,
        context: CallContext,
        answer: &Result<Response, Fault>,
    ) {
        let SpanStart { mut subject, begun } = start;
        let error = answer.as_ref().err().map(|fault| {
            match wire::lower_fault(context.wire(), Some(&subject.method), fault.clone()) {
                Lowered::Error(error) => {
                    AnswerError { code: Some(error.code), message: error.message }
                }
                Lowered::Tool(_) => AnswerError { code: None, message: fault.message.clone() },
            }
        });
        // A span's name must not be one of unlimited many, which clients choose.
        let is_unknown = |fault: &Fault| {
            let component = fault.component.as_deref();
            component.is_some_and(|component| !component.exists)
        };
        subject.name = subject.name.filter(|_| !answer.as_ref().is_err_and(is_unknown));
        let duration = now.saturating_duration_since(begun);
        let request = AnsweredRequest { subject, context, error, duration };
        self.effects.push_back(Effect::Span(Box::new(request)));
    }
}
