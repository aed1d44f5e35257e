//! Errors of handlers.

use std::{any::type_name, error::Error as StdError, fmt};

use serde::Serialize;

use super::{
    Context,
    ask::{self, QuestionRequest, Questions},
};
use crate::{
    protocol::{Raw, exact, json},
    router::{Failure, Reply},
};

/// The error of a handler, and the part of it that callers may see (Tools, "Error Handling").
///
/// Every [`std::error::Error`] is converted by `?`. Its text may contain secrets, so callers get only its type and a
/// reference id, and the text is logged under that id. Use [`ToolError::new`] for a message that callers may read:
///
/// ```
/// # use gudgeon::ToolError;
/// fn shelf(number: &str) -> Result<u8, ToolError> {
///     let shelf: u8 = number.parse().map_err(|_| ToolError::new(format!("{number:?} is not a shelf: give 1 to 9")))?;
///     std::fs::metadata(".")?; // an error here is sent without its details
///     Ok(shelf)
/// }
/// assert!(shelf("x").unwrap_err().to_string().contains("give 1 to 9"));
/// ```
#[derive(Debug)]
pub struct ToolError(Box<Reason>);

#[derive(Debug)]
enum Reason {
    Failed(Failure),
    /// Not an error: the handler asks its client questions first.
    Asks(Vec<QuestionRequest>),
    /// Questions of a handler that runs inside middleware.
    Asked(Reply),
}

/// The resource does not exist: error -32002 up to revision 2025-11-25, -32602 with `data.uri` since 2026-07-28.
///
/// ```
/// # use gudgeon::{ResourceNotFound, ToolError};
/// fn read(title: &str) -> Result<String, ToolError> {
///     Err(ResourceNotFound { uri: format!("shelf://{title}"), message: None })?
/// }
/// assert_eq!(read("dune").unwrap_err().to_string(), "Resource not found: shelf://dune");
/// ```
#[derive(Clone, Debug)]
pub struct ResourceNotFound {
    pub uri: String,
    /// The message in place of "Resource not found: …".
    pub message: Option<String>,
}

impl ToolError {
    /// Creates an error whose message is sent to the model, which can often correct its call.
    pub fn new(message: impl fmt::Display) -> Self {
        Self::from_failure(Failure::Tool { message: message.to_string(), meta: None })
    }

    /// Creates a JSON-RPC error instead of a result: it reaches the client program, and usually not the model.
    ///
    /// `data` is included if it is `Some`. If it can't be serialized, it is left out and the reason is logged.
    ///
    /// ```
    /// # use gudgeon::{ToolError, protocol::ErrorCode};
    /// let error = ToolError::protocol(ErrorCode::InvalidParams, "there is no shelf 12", None::<()>);
    /// assert_eq!(error.to_string(), "there is no shelf 12");
    /// ```
    pub fn protocol(
        code: impl Into<i64>,
        message: impl fmt::Display,
        data: Option<impl Serialize>,
    ) -> Self {
        let code = code.into();
        let data = data.and_then(|data| carried("data", &data));
        Self::from_failure(Failure::Protocol { code, message: message.to_string(), data })
    }

    /// Asks the client these questions; the handler is then run again with the answers. A single question is
    /// converted by `question.into()`.
    pub fn ask(questions: impl Questions) -> Self {
        Self(Box::new(Reason::Asks(questions.into_requests())))
    }

    /// Creates an error whose text is only logged, for types that `?` does not convert: `anyhow::Error`, `Box<dyn
    /// Error>`, …
    pub fn hidden(error: impl fmt::Display) -> Self {
        Self::from_failure(Failure::Exception {
            kind: "error".into(),
            message: error.to_string(),
            traceback: String::new(),
        })
    }

    /// Sets the `_meta` of the failed result, if callers see the error's text.
    #[must_use]
    pub fn with_meta(mut self, meta: impl Serialize) -> Self {
        let object = carried("_meta", &meta);
        if let Reason::Failed(Failure::Tool { meta, .. }) = &mut *self.0 {
            *meta = object.filter(|raw: &Raw| raw.get().starts_with('{'));
        }
        self
    }

    pub(super) fn from_failure(failure: Failure) -> Self {
        Self(Box::new(Reason::Failed(failure)))
    }

    /// Wraps a handler's questions, which pass through middleware as an error.
    pub(super) fn questions(reply: Reply) -> Self {
        Self(Box::new(Reason::Asked(reply)))
    }

    /// Returns whether this is a JSON-RPC error with this code and message.
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
            | Failure::Dismissed(message)
            | Failure::MissingCapability { message, .. }
            | Failure::NotSupported(message)
            | Failure::Exception { message, .. } => f.write_str(message),
            Failure::Cancelled => f.write_str("cancelled"),
            Failure::TimedOut(seconds) => write!(f, "took longer than {seconds} s"),
            Failure::Unanswered(seconds) => write!(f, "no answer came for {seconds} s"),
        }
    }
}

/// An error that `?` converts to a [`ToolError`]: every [`std::error::Error`].
#[diagnostic::on_unimplemented(
    message = "`?` can't convert `{Self}` to a `ToolError`",
    label = "write `.map_err(ToolError::new)?` for a message that callers see, `.map_err(ToolError::hidden)?` for one that is only logged",
    note = "it converts every `std::error::Error`; for other types write `.map_err(ToolError::new)?`, whose message callers see, \
            or `.map_err(ToolError::hidden)?`, whose message is only logged"
)]
pub trait HandlerError: StdError {}

#[diagnostic::do_not_recommend]
impl<E: StdError> HandlerError for E {}

impl<E: HandlerError> From<E> for ToolError {
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            message.push_str(": ");
            message.push_str(&error.to_string());
            cause = error.source();
        }
        Self::from_failure(Failure::Exception {
            kind: type_name::<E>().into(),
            message,
            traceback: String::new(),
        })
    }
}

impl From<ResourceNotFound> for ToolError {
    fn from(error: ResourceNotFound) -> Self {
        Self::from_failure(Failure::NotFound { uri: error.uri, message: error.message })
    }
}

/// Serializes a user's value; a value that JSON can't represent is an error of the handler.
pub(super) fn to_json<T: Serialize>(value: &T) -> Result<String, Failure> {
    exact::to_string(value, "the result").map_err(|error| Failure::Exception {
        kind: type_name::<T>().into(),
        message: error.to_string(),
        traceback: String::new(),
    })
}

/// Serializes a value that accompanies an error; returns `None` if JSON can't represent it.
fn carried<T: Serialize>(what: &str, value: &T) -> Option<Raw> {
    exact::to_raw(value, &format!("the error's {what}"))
        .inspect_err(|why| tracing::error!("left out a part of an error: {why}"))
        .ok()
}

/// Serializes the data of a log message; a value that JSON can't represent is replaced by the reason.
pub(super) fn log_data<T: Serialize>(value: &T) -> Raw {
    exact::to_raw(value, "the logged value")
        .unwrap_or_else(|error| json::to_raw(&format!("the value can't be logged: {error}")))
}
