//! How a handler says that it failed.

use std::{any::type_name, error::Error as StdError, fmt};

use serde::Serialize;

use super::{
    Context,
    ask::{self, Put, Questions},
};
use crate::{
    protocol::{Raw, exact, json},
    router::{Failure, Reply},
};

/// Why a handler failed, and what the caller is told of it (Tools, "Error Handling").
///
/// Any [`std::error::Error`] becomes one through `?`. Such an error may hold what no caller should see: callers get its
/// type and a reference, the log gets its text under that reference. Say with [`ToolError::new`] what they may read:
///
/// ```
/// # use gudgeon::ToolError;
/// fn shelf(number: &str) -> Result<u8, ToolError> {
///     let shelf: u8 = number.parse().map_err(|_| ToolError::new(format!("{number:?} is no shelf: give 1 to 9")))?;
///     std::fs::metadata(".")?; // a failure here is told without its details
///     Ok(shelf)
/// }
/// assert!(shelf("x").unwrap_err().to_string().contains("give 1 to 9"));
/// ```
#[derive(Debug)]
pub struct ToolError(Box<Reason>);

#[derive(Debug)]
enum Reason {
    Failed(Failure),
    /// It did not fail: it asks its client first.
    Asks(Vec<Put>),
    /// The same, of a handler that middleware runs around.
    Asked(Reply),
}

/// There is no such resource: -32002 up to revision 2025-11-25, -32602 with `data.uri` from 2026-07-28 on.
///
/// ```
/// # use gudgeon::{ResourceNotFound, ToolError};
/// fn read(title: &str) -> Result<String, ToolError> {
///     Err(ResourceNotFound::new(format!("shelf://{title}")))?
/// }
/// assert_eq!(read("dune").unwrap_err().to_string(), "Resource not found: shelf://dune");
/// ```
#[derive(Clone, Debug)]
pub struct ResourceNotFound {
    uri: String,
    message: Option<String>,
}

impl ToolError {
    /// What went wrong, for the model to read: it can often mend its call.
    pub fn new(message: impl fmt::Display) -> Self {
        Self::of(Failure::Tool { message: message.to_string(), meta: None })
    }

    /// A JSON-RPC error in place of a result: the client's program sees it, the model seldom does.
    ///
    /// `data` is sent along where it is `Some`; one that can't be written as JSON is left out, and the log says why.
    ///
    /// ```
    /// # use gudgeon::ToolError;
    /// let error = ToolError::protocol(-32602, "there is no shelf 12", None::<()>);
    /// assert_eq!(error.to_string(), "there is no shelf 12");
    /// ```
    pub fn protocol(code: i64, message: impl fmt::Display, data: Option<impl Serialize>) -> Self {
        let data = data.and_then(|it| carried("data", &it));
        Self::of(Failure::Protocol { code, message: message.to_string(), data })
    }

    /// No failure: the client is asked these questions first, and the handler is then run again with the answers. A
    /// single question becomes this with `question.into()`.
    pub fn ask(questions: impl Questions) -> Self {
        Self(Box::new(Reason::Asks(questions.into_puts())))
    }

    /// An error that only the log may read, for those that `?` does not take: `anyhow::Error`, `Box<dyn Error>`, …
    pub fn hidden(error: impl fmt::Display) -> Self {
        Self::of(Failure::Exception {
            kind: "error".into(),
            message: error.to_string(),
            traceback: String::new(),
        })
    }

    /// Adds `_meta` to the failed result, where callers are told the text.
    #[must_use]
    pub fn with_meta(mut self, meta: impl Serialize) -> Self {
        let object = carried("_meta", &meta);
        if let Reason::Failed(Failure::Tool { meta, .. }) = &mut *self.0 {
            *meta = object.filter(|it: &Raw| it.get().starts_with('{'));
        }
        self
    }

    pub(super) fn of(failure: Failure) -> Self {
        Self(Box::new(Reason::Failed(failure)))
    }

    /// What a handler asks, on its way back through middleware.
    pub(super) fn questions(reply: Reply) -> Self {
        Self(Box::new(Reason::Asked(reply)))
    }

    /// Whether it is this JSON-RPC error.
    pub(super) fn is(&self, code: i64, message: &str) -> bool {
        matches!(
            &*self.0,
            Reason::Failed(Failure::Protocol { code: own, message: text, .. }) if *own == code && text == message
        )
    }

    pub(super) fn into_reply(self, call: &Context) -> Result<Reply, Failure> {
        match *self.0 {
            Reason::Failed(failure) => Err(failure),
            Reason::Asked(reply) => Ok(reply),
            Reason::Asks(questions) => Ok(Reply::Questions(ask::as_json(&questions, call))),
        }
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let failure = match &*self.0 {
            Reason::Failed(failure) => failure,
            Reason::Asks(_) | Reason::Asked(_) => {
                return f.write_str("the handler asks its client first");
            }
        };
        match failure {
            Failure::NotFound { uri, message: None } => write!(f, "Resource not found: {uri}"),
            Failure::Tool { message, .. }
            | Failure::Protocol { message, .. }
            | Failure::NotFound { message: Some(message), .. }
            | Failure::Invalid(message)
            | Failure::Exposed(message)
            | Failure::Declined(message)
            | Failure::MissingCapability { message, .. }
            | Failure::NotSupported(message)
            | Failure::Exception { message, .. } => f.write_str(message),
            Failure::Cancelled => f.write_str("cancelled"),
            Failure::TimedOut(seconds) => write!(f, "took longer than {seconds} s"),
            Failure::Unanswered(seconds) => write!(f, "no answer came for {seconds} s"),
        }
    }
}

impl<E: StdError> From<E> for ToolError {
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            message.push_str(": ");
            message.push_str(&error.to_string());
            cause = error.source();
        }
        Self::of(Failure::Exception {
            kind: type_name::<E>().into(),
            message,
            traceback: String::new(),
        })
    }
}

impl ResourceNotFound {
    /// That there is nothing under this URI.
    pub fn new(uri: impl Into<String>) -> Self {
        Self { uri: uri.into(), message: None }
    }

    /// What to say in place of "Resource not found: …".
    #[must_use]
    pub fn with_message(mut self, message: impl fmt::Display) -> Self {
        self.message = Some(message.to_string());
        self
    }
}

impl From<ResourceNotFound> for ToolError {
    fn from(error: ResourceNotFound) -> Self {
        Self::of(Failure::NotFound { uri: error.uri, message: error.message })
    }
}

/// A value of the user's as JSON; what JSON can't say is the handler's fault.
pub(super) fn to_json<T: Serialize>(value: &T) -> Result<String, Failure> {
    exact::to_string(value, "the result").map_err(|error| Failure::Exception {
        kind: type_name::<T>().into(),
        message: error.to_string(),
        traceback: String::new(),
    })
}

/// What goes along with an error, which is told without it where JSON can't say it.
fn carried<T: Serialize>(what: &str, value: &T) -> Option<Raw> {
    exact::to_raw(value, &format!("the error's {what}"))
        .inspect_err(|why| tracing::error!("what an error carries is left out: {why}"))
        .ok()
}

/// The data of a log message; what JSON can't say is replaced by the reason.
pub(super) fn log_data<T: Serialize>(value: &T) -> Raw {
    exact::to_raw(value, "what is logged")
        .unwrap_or_else(|error| json::to_raw(&format!("this can't be logged: {error}")))
}
