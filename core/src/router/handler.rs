//! The interface to handlers: reply, failure, and the conversion of both into a response or fault. A handler itself is a
//! value of the host's own type, a [`Handler`](super::Handler), which the core only stores and hands back.

use std::{sync::Arc, time::Duration};

use serde_json::value::RawValue;

use super::{Prepared, Resolution, hidden_error, middleware, prompt, resource, tool};
use crate::{
    error::{ComponentName, Fault, FaultKind, Language, option_name},
    protocol::{
        CacheHint, ElicitRequestParams, ElicitRequestUrlParams, MethodName, Raw, Response,
        UrlElicitationRequiredData, code,
    },
};

/// The reply of a handler, before it is interpreted for a method.
#[derive(Debug)]
pub enum Reply {
    Nothing,
    Text(String),
    /// Any JSON value.
    Json(String),
    /// Binary data, base64-encoded.
    Blob(String),
    /// A JSON array of content blocks, messages or resource contents; plain strings in it are text.
    Parts(String),
    /// The complete result of the method, as JSON of the newest revision.
    Result(String),
    /// Questions to the client: a JSON array of `{"key", "method", "params"}`. The engine asks them and runs the
    /// handler again.
    Questions(String),
}

impl Reply {
    /// Returns the bytes of text to be converted. Questions count as none: the engine reads them itself.
    #[doc(hidden)] // For the drivers and the language bindings.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Nothing | Self::Questions(_) => 0,
            Self::Text(text)
            | Self::Json(text)
            | Self::Blob(text)
            | Self::Parts(text)
            | Self::Result(text) => text.len(),
        }
    }
}

/// The failure of a handler.
#[derive(Debug)]
pub enum Failure {
    /// A failure raised for the model to read. `meta` becomes the `_meta` of the result.
    Tool {
        message: String,
        meta: Option<Raw>,
    },
    /// A JSON-RPC error raised by the handler.
    Protocol {
        code: i64,
        message: String,
        data: Option<Raw>,
    },
    NotFound {
        uri: String,
        message: Option<String>,
    },
    /// Arguments that satisfied the schema and were rejected by the handler's own types.
    Invalid(String),
    /// An exception whose message callers may see.
    Exposed(String),
    /// The user declined this question.
    Declined(String),
    /// The user closed this question without an answer.
    Dismissed(String),
    /// A question that needs a capability the client did not declare; `data` names the missing capability.
    MissingCapability {
        message: String,
        data: Option<Raw>,
    },
    /// An operation that this call, connection or revision does not support.
    NotSupported(String),
    /// The handler was cancelled on the server side.
    Cancelled,
    /// The handler exceeded its timeout, in seconds.
    TimedOut(f64),
    /// The client did not answer the handler's question within the timeout, in seconds.
    Unanswered(f64),
    /// Any other failure: callers see its type and a reference id, the log shows the details.
    Exception {
        kind: String,
        message: String,
        traceback: String,
    },
}

/// Builds the result of a request from the handler's reply.
#[derive(Clone, Debug)]
pub enum ResultBuilder {
    Tool(Arc<super::RegisteredTool>),
    /// Boxed to keep the enum small: values are moved often, and most are tools.
    Resource(Box<Reading>),
    Prompt(Arc<super::RegisteredPrompt>),
    Completion,
    /// A vendor method.
    Method(Box<MethodName>),
    /// Middleware, or a handler that replaces the router's answer.
    Prepared(Arc<Prepared>),
}

/// The properties of a resource that is being read.
#[derive(Clone, Debug)]
pub struct Reading {
    pub uri: String,
    pub mime_type: Option<String>,
    pub cache: CacheHint,
    /// The time that the server caches the result for.
    pub keep: Option<Duration>,
}

/// A log entry, stored under the reference id that the caller received.
#[derive(Debug)]
pub struct Report {
    pub place: String,
    pub text: String,
}

impl From<Fault> for Failure {
    /// Converts the fault of an unanswered question into the failure of the handler that asked it.
    fn from(Fault { kind, message, data, .. }: Fault) -> Self {
        match kind {
            FaultKind::MissingCapability => Self::MissingCapability { message, data },
            FaultKind::Declined => Self::Declined(message),
            FaultKind::Protocol(code) => Self::Protocol { code, message, data },
            FaultKind::InvalidParams => {
                Self::Protocol { code: code::INVALID_PARAMS, message, data }
            }
            _ => Self::NotSupported(message),
        }
    }
}

impl ResultBuilder {
    /// Returns `true` if the handler may return [`Reply::Questions`] (Multi Round-Trip Requests, "Supported Requests").
    pub fn may_ask(&self) -> bool {
        match self {
            Self::Tool(_) | Self::Resource(_) | Self::Prompt(_) => true,
            Self::Prepared(prepared) => prepared.may_ask(),
            Self::Completion | Self::Method(_) => false,
        }
    }

    /// Returns the tool whose concurrency limit a run counts against, and that limit.
    pub(crate) fn concurrency(&self) -> Option<(String, usize)> {
        let Self::Tool(component) = self else { return None };
        component.options.concurrency.map(|limit| (component.tool.name.clone(), limit))
    }

    /// Returns `true` if a handler computes the answer, and `false` if only middleware runs around the core's answer.
    pub(crate) fn runs_handler(&self) -> bool {
        match self {
            Self::Prepared(prepared) => prepared.runs_handler(),
            _ => true,
        }
    }

    /// Returns whether the check of a small reply may take long.
    pub(crate) fn checks_slowly(&self) -> bool {
        matches!(self, Self::Tool(component) if component.output_schema().is_some_and(|schema| schema.is_slow()))
    }

    /// Returns `true` if the handler must not be run again from its start after the client answers.
    pub fn forbids_replay(&self) -> bool {
        matches!(self, Self::Tool(component) if component.options.forbids_replay)
    }

    /// Converts a reply into a response. Errors if the reply does not suit the method, or is [`Reply::Questions`].
    pub fn response(&self, reply: Reply) -> Result<Response, Failure> {
        match self {
            Self::Tool(component) => {
                tool::outcome(component.output.as_ref(), reply).map(Response::Tool)
            }
            Self::Resource(it) => {
                resource::contents(&it.uri, it.mime_type.as_deref(), it.cache, reply)
            }
            Self::Prompt(_) => prompt::messages(reply),
            Self::Completion => super::completion::response(reply),
            Self::Method(_) => middleware::plain(reply),
            Self::Prepared(prepared) => prepared.response(reply),
        }
    }

    /// Converts a reply into the resolution of the request.
    pub fn resolve(&self, reply: Reply) -> Result<Resolution, Failure> {
        match self {
            Self::Prepared(prepared) => prepared.resolve(reply),
            _ => self.response(reply).map(|response| Resolution::Answer(Ok(response))),
        }
    }

    /// Converts a failure into a fault and an optional log entry. `reference` is the id shared by both.
    pub fn fault(&self, failure: Failure, debug: bool, reference: &str) -> (Fault, Option<Report>) {
        let fault = match failure {
            Failure::Tool { message, meta } => {
                let (meta, report) = match own_meta(meta.as_deref()) {
                    Ok(meta) => (meta, None),
                    Err(_) => (
                        None,
                        Some(self.report(
                            "raised a tool error whose meta is not an object: it was left out",
                        )),
                    ),
                };
                return (Fault::new(FaultKind::Tool, message).with_data(meta), report);
            }
            Failure::Protocol { code, message, data } => {
                Fault::new(FaultKind::Protocol(code), message).with_data(data)
            }
            Failure::NotFound { uri, message } => resource::not_found(&uri, message),
            Failure::Invalid(message) => {
                let message = match self {
                    Self::Tool(_) | Self::Prompt(_) => {
                        format!("Invalid arguments for {}: {message}", self.place())
                    }
                    _ => message,
                };
                Fault::new(FaultKind::InvalidArguments, message)
            }
            Failure::Exposed(message) | Failure::NotSupported(message) => {
                Fault::new(FaultKind::Handler, message)
            }
            Failure::Declined(question) => Fault::new(
                FaultKind::Handler,
                match question.is_empty() {
                    true => "The user declined".to_owned(),
                    false => format!("The user declined: {question}"),
                },
            ),
            Failure::Dismissed(question) => Fault::new(
                FaultKind::Handler,
                match question.is_empty() {
                    true => "The user dismissed the question".to_owned(),
                    false => format!("The user dismissed: {question}"),
                },
            ),
            Failure::MissingCapability { message, data } => {
                Fault::new(FaultKind::MissingCapability, message).with_data(data)
            }
            Failure::Cancelled => {
                Fault::new(FaultKind::Handler, "the call was cancelled on the server")
            }
            Failure::TimedOut(seconds) => Fault::new(
                FaultKind::TimedOut,
                format!("{} took longer than its {seconds} s", self.place()),
            ),
            Failure::Unanswered(seconds) => Fault::new(
                FaultKind::TimedOut,
                format!(
                    "{} waited {seconds} s for its client's answer, and none came (option {})",
                    self.place(),
                    option_name("suspended_ttl")
                ),
            ),
            Failure::Exception { kind, message, traceback } => {
                let said = match debug {
                    true => format!("{kind}: {message}\n{traceback}"),
                    false => format!("{} failed: {kind} (reference {reference})", self.place()),
                };
                let advice = match debug {
                    true => None,
                    false => hidden_error::advice(Language::of_build(), &kind),
                };
                let advice = advice.map(|advice| format!("; {advice}")).unwrap_or_default();
                let reason = match traceback.is_empty() {
                    true => format!(": {kind}: {message}"),
                    false => String::new(),
                };
                let mut text =
                    format!("{} failed (reference {reference}){reason}{advice}", self.place());
                if !traceback.is_empty() {
                    text.push('\n');
                    text.push_str(&traceback);
                }
                let report = Report { place: self.place(), text };
                return (Fault::new(FaultKind::Handler, said), Some(report));
            }
        };
        (fault, None)
    }

    fn report(&self, problem: &str) -> Report {
        let place = self.place();
        Report { text: format!("{place} {problem}"), place }
    }

    /// Returns the component whose handler it is; `None` for other handlers.
    pub(crate) fn component(&self) -> Option<ComponentName> {
        match self {
            Self::Tool(component) => Some(ComponentName::new("tool", &component.tool.name)),
            Self::Resource(reading) => Some(ComponentName::new("resource", &reading.uri)),
            Self::Prompt(component) => Some(ComponentName::new("prompt", &component.prompt.name)),
            Self::Completion | Self::Method(_) | Self::Prepared(_) => None,
        }
    }

    /// Returns the handler's name for log messages, such as `tool "add"`.
    pub fn place(&self) -> String {
        match self {
            Self::Tool(component) => format!("tool {:?}", component.tool.name),
            Self::Resource(it) => format!("resource {:?}", it.uri),
            Self::Prompt(component) => format!("prompt {:?}", component.prompt.name),
            Self::Completion => "completion".into(),
            Self::Method(name) => format!("method {:?}", name.as_str()),
            Self::Prepared(prepared) => prepared.method().to_owned(),
        }
    }
}

impl Failure {
    /// Checks that an error -32042 lists its pages; otherwise it becomes an exception of the handler.
    #[must_use]
    pub(crate) fn checked(self) -> Self {
        match &self {
            Self::Protocol { code: code::URL_ELICITATION_REQUIRED, data, .. }
                if !names_pages(data.as_ref()) =>
            {
                bad_result(
                    "error -32042 names the pages to visit: one at least, each of the mode \"url\" with its message, url and \
                     elicitationId",
                )
            }
            _ => self,
        }
    }
}

/// Returns `true` if the data lists valid pages (2025-11-25, Elicitation, "URL Elicitation Required Error").
fn names_pages(data: Option<&Raw>) -> bool {
    let said = data.and_then(|data| serde_json::from_str(data.get()).ok());
    said.is_some_and(|UrlElicitationRequiredData { elicitations }| {
        let is_page = |elicitation: &ElicitRequestParams| {
            matches!(elicitation, ElicitRequestParams::Url(page)
                if page.elicitation_id.is_some() && ElicitRequestUrlParams::is_address(&page.url))
        };
        !elicitations.is_empty() && elicitations.iter().all(is_page)
    })
}

/// Returns the `_meta` of a result; errors if it is not an object.
pub(super) fn own_meta(meta: Option<&RawValue>) -> Result<Option<Raw>, Failure> {
    match meta.map(|meta| (meta, meta.get().as_bytes().first())) {
        None | Some((_, Some(b'n'))) => Ok(None),
        Some((meta, Some(b'{'))) => Ok(Some(meta.to_owned())),
        Some(_) => Err(bad_result("the result's \"_meta\" is not an object")),
    }
}

/// Returns the failure of a handler whose result its method can't carry.
pub(super) fn bad_result(message: impl Into<String>) -> Failure {
    Failure::Exception {
        kind: "invalid result".into(),
        message: message.into(),
        traceback: String::new(),
    }
}

/// Returns the failure for questions in a place where the client can't be asked.
pub(super) fn cannot_ask() -> Failure {
    bad_result("questions are not supported here")
}
