//! The seam to handlers: what they are given, what they answer, how they fail, and what that makes of the request.

use std::{any::Any, sync::Arc, time::Duration};

use serde_json::value::RawValue;

use super::{Prepared, Resolution, middleware, prompt, resource, tool};
use crate::{
    error::{Fault, FaultKind},
    protocol::{
        CacheHint, ElicitRequestParams, ElicitRequestUrlParams, MethodName, Raw, Response,
        UrlElicitationRequiredData, code,
    },
};

/// What a shell registered, given back to it when it is to run. The router never looks inside.
pub type Handler = Arc<dyn Any + Send + Sync>;

/// What a handler answered, before anybody knows what that means for its method.
#[derive(Debug)]
pub enum Reply {
    Nothing,
    Text(String),
    /// Any value, as JSON.
    Json(String),
    /// Bytes, in base64.
    Blob(String),
    /// A JSON array of content blocks, messages or resource contents; strings among them stand for texts.
    Parts(String),
    /// The whole result of the method, in the newest vocabulary.
    Result(String),
    /// It wants to know more of its client first: a JSON array of `{"key", "method", "params"}`. Whoever runs the call
    /// asks them, and then the handler again.
    Questions(String),
}

/// How a handler failed.
#[derive(Debug)]
pub enum Failure {
    /// It says so itself; the model reads it. `meta` becomes the result's `_meta`.
    Tool {
        message: String,
        meta: Option<Raw>,
    },
    /// It chose a JSON-RPC error.
    Protocol {
        code: i64,
        message: String,
        data: Option<Raw>,
    },
    NotFound {
        uri: String,
        message: Option<String>,
    },
    /// Its arguments passed the schema and were refused by the type behind it.
    Invalid(String),
    /// An exception whose text callers may see.
    Exposed(String),
    Declined(String),
    /// It asked its client something that this did not declare it can answer; `data` holds what is missing.
    MissingCapability {
        message: String,
        data: Option<Raw>,
    },
    /// It wanted what this call, this connection or this revision can't do.
    NotSupported(String),
    /// It was cancelled by its own side.
    Cancelled,
    /// It ran longer than it may: seconds.
    TimedOut(f64),
    /// Its client did not answer it for so long: seconds.
    Unanswered(f64),
    /// Anything else: callers see the type and a reference, the log sees all.
    Exception {
        kind: String,
        message: String,
        traceback: String,
    },
}

/// What becomes of a handler's reply.
#[derive(Clone, Debug)]
pub enum ResultBuilder {
    Tool(Arc<super::RegisteredTool>),
    /// Boxed, because what waits for a handler is moved often, and most of it is tools.
    Resource(Box<Reading>),
    Prompt(Arc<super::RegisteredPrompt>),
    Completion,
    /// A vendor's.
    Method(Box<MethodName>),
    /// Middleware has its word, or a handler answers in the router's place.
    Prepared(Arc<Prepared>),
}

/// What is known of a resource while it is read.
#[derive(Clone, Debug)]
pub struct Reading {
    pub uri: String,
    pub mime_type: Option<String>,
    pub cache: CacheHint,
    /// How long the server itself keeps it.
    pub keep: Option<Duration>,
}

/// Something for the log only, under a reference that the caller was given.
#[derive(Debug)]
pub struct Report {
    pub place: String,
    pub text: String,
}

impl From<Fault> for Failure {
    /// Why a question got no answer, for the handler that asked it.
    fn from(Fault { kind, message, data }: Fault) -> Self {
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
    /// Whether its handler may answer with [`Reply::Questions`] (Multi Round-Trip Requests, "Supported Requests").
    pub fn may_ask(&self) -> bool {
        match self {
            Self::Tool(_) | Self::Resource(_) | Self::Prompt(_) => true,
            Self::Prepared(prepared) => prepared.may_ask(),
            Self::Completion | Self::Method(_) => false,
        }
    }

    /// Whether a handler answers, which may be waiting for the client; or middleware only, what the core says.
    pub fn is_handlers(&self) -> bool {
        match self {
            Self::Prepared(prepared) => prepared.is_handlers(),
            _ => true,
        }
    }

    /// Whether a run must not be repeated from its top when its client answers.
    pub fn forbids_replay(&self) -> bool {
        matches!(self, Self::Tool(component) if component.forbids_replay)
    }

    /// The response that this reply makes, or what the handler did wrong. Questions are no response: they are asked first.
    pub fn response(&self, reply: Reply) -> Result<Response, Failure> {
        match self {
            Self::Tool(component) => tool::outcome(Some(component), reply).map(Response::Tool),
            Self::Resource(it) => {
                resource::contents(&it.uri, it.mime_type.as_deref(), it.cache, reply)
            }
            Self::Prompt(_) => prompt::messages(reply),
            Self::Completion => super::completion::response(reply),
            Self::Method(_) => middleware::plain(reply),
            Self::Prepared(prepared) => prepared.response(reply),
        }
    }

    /// What comes of the request with this reply.
    pub fn resolve(&self, reply: Reply) -> Result<Resolution, Failure> {
        match self {
            Self::Prepared(prepared) => prepared.resolve(reply),
            _ => self.response(reply).map(|it| Resolution::Answer(Ok(it))),
        }
    }

    /// The fault that a failure makes. `reference` names it in the log.
    pub fn fault(&self, failure: Failure, debug: bool, reference: &str) -> (Fault, Option<Report>) {
        let fault = match failure {
            Failure::Tool { message, meta } => {
                let (meta, report) = match own_meta(meta.as_deref()) {
                    Ok(meta) => (meta, None),
                    Err(_) => (
                        None,
                        Some(self.report(
                            "raised a tool error whose meta is no object: it was left out",
                        )),
                    ),
                };
                return (Fault::new(FaultKind::Tool, message).with_data(meta), report);
            }
            Failure::Protocol { code, message, data } => {
                Fault::new(FaultKind::Protocol(code), message).with_data(data)
            }
            Failure::NotFound { uri, message } => resource::not_found(&uri, message),
            Failure::Invalid(message) => Fault::new(FaultKind::InvalidArguments, message),
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
                    "{} waited {seconds} s for its client's answer, and none came (option park_ttl)",
                    self.place()
                ),
            ),
            Failure::Exception { kind, message, traceback } => {
                let said = match debug {
                    true => format!("{kind}: {message}\n{traceback}"),
                    false => format!("{} failed: {kind} (reference {reference})", self.place()),
                };
                let text = match traceback.is_empty() {
                    true => format!(
                        "{} failed (reference {reference}): {kind}: {message}",
                        self.place()
                    ),
                    false => {
                        format!("{} failed (reference {reference})\n{traceback}", self.place())
                    }
                };
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

    /// Whose answer it is, for a log.
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
    /// An error that sends to pages must name them; one that does not is the handler's mistake.
    #[must_use]
    pub fn checked(self) -> Self {
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

/// 2025-11-25, Elicitation, "URL Elicitation Required Error".
fn names_pages(data: Option<&Raw>) -> bool {
    let said = data.and_then(|it| serde_json::from_str(it.get()).ok());
    said.is_some_and(|UrlElicitationRequiredData { elicitations }| {
        let is_page = |it: &ElicitRequestParams| {
            matches!(it, ElicitRequestParams::Url(page)
                if page.elicitation_id.is_some() && ElicitRequestUrlParams::is_address(&page.url))
        };
        !elicitations.is_empty() && elicitations.iter().all(is_page)
    })
}

/// A result's `_meta`, where it has one.
pub(super) fn own_meta(meta: Option<&RawValue>) -> Result<Option<Raw>, Failure> {
    match meta.map(|it| (it, it.get().as_bytes().first())) {
        None | Some((_, Some(b'n'))) => Ok(None),
        Some((meta, Some(b'{'))) => Ok(Some(meta.to_owned())),
        Some(_) => Err(bad_result("the result's \"_meta\" is no object")),
    }
}

/// A result that its method can't carry.
pub(super) fn bad_result(message: impl Into<String>) -> Failure {
    Failure::Exception {
        kind: "invalid result".into(),
        message: message.into(),
        traceback: String::new(),
    }
}

/// Questions where there is nobody to ask them.
pub(super) fn nobody_to_ask() -> Failure {
    bad_result("questions can't be asked here")
}
