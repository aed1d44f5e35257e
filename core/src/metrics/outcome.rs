//! The outcomes of requests, by which metrics count them.

use serde::{Deserialize, Serialize};

use crate::{
    error::{Fault, FaultKind},
    protocol::Response,
};

macro_rules! outcomes {
    ($($(#[doc = $doc:literal])+ $name:ident = $text:literal;)*) => {
        /// The outcome of a request.
        #[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
        #[serde(rename_all = "camelCase")]
        pub enum Outcome { $($(#[doc = $doc])+ $name),* }

        impl Outcome {
            /// All outcomes.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// Returns the name of the outcome.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text),* }
            }

            /// Returns the sentence that documents it.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$name => concat!($($doc),+).trim_ascii()),* }
            }
        }
    };
}

outcomes! {
    /// The result was sent, or the questions that the client has to answer first.
    Ok = "ok";
    /// The handler failed, or the result of a tool is an error.
    Error = "error";
    /// The request has an unknown name, invalid arguments, or is not allowed as it was sent.
    Invalid = "invalid";
    /// The handler exceeded its time limit, or its client did not answer a question in time.
    Timeout = "timeout";
    /// The client cancelled the request or left, or the server stopped.
    Cancelled = "cancelled";
    /// The caller lacks scopes.
    Refused = "refused";
}

impl Outcome {
    /// Returns the outcome of a request that got this answer.
    pub(crate) fn of_answer(answer: &Result<Response, Fault>) -> Self {
        match answer {
            Ok(Response::Tool(tool)) if tool.is_error => Self::Error,
            Ok(_) => Self::Ok,
            Err(fault) => Self::of_fault(fault.kind),
        }
    }

    /// Returns the outcome of a request that got an error of this kind.
    pub(crate) fn of_fault(kind: FaultKind) -> Self {
        match kind {
            FaultKind::TimedOut => Self::Timeout,
            FaultKind::InsufficientScope => Self::Refused,
            FaultKind::UnknownTool
            | FaultKind::UnknownMethod
            | FaultKind::ResourceNotFound
            | FaultKind::InvalidArguments
            | FaultKind::InvalidParams
            | FaultKind::Unreadable
            | FaultKind::InvalidRequest
            | FaultKind::TooLarge
            | FaultKind::NotInitialized
            | FaultKind::SessionExpired
            | FaultKind::UnsupportedRevision
            | FaultKind::HeaderMismatch => Self::Invalid,
            FaultKind::MissingCapability
            | FaultKind::Tool
            | FaultKind::Handler
            | FaultKind::Declined
            | FaultKind::Protocol(_)
            | FaultKind::Internal => Self::Error,
        }
    }
}
