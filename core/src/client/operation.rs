//! The operations of a client, their options and their outcomes, with JSON in and out, as used by the bindings.

use std::{fmt, sync::Arc, time::Duration};

use super::connection::{BoxFuture, OnProgress, Question};
use crate::{
    error::Error,
    peer::{ListKind, ToolData},
    protocol::{self, CompletionTarget, LoggingLevel, Method, Raw},
};

/// An operation. All `Raw` values are JSON objects.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub enum Operation {
    /// Lists all pages; the result is a JSON array.
    List(ListKind),
    /// Fetches a page; the result is `{"items": […], "nextCursor": …}`.
    ListPage(ListKind, Option<String>),
    /// Calls a tool and answers the server's questions.
    CallTool {
        name: String,
        arguments: Option<Raw>,
    },
    /// Runs a single round of a call; the result may be `input_required`. `answers` maps question keys to results.
    CallToolRound {
        name: String,
        arguments: Option<Raw>,
        answers: Option<Raw>,
        state: Option<String>,
    },
    /// Reads a resource; with `variables`, `uri` is a template to expand with them.
    ReadResource {
        uri: String,
        variables: Option<Raw>,
    },
    /// Gets a prompt; the arguments are strings.
    GetPrompt {
        name: String,
        arguments: Option<Raw>,
    },
    /// Completes an argument; `given` maps arguments that are already filled in to strings.
    Complete {
        target: CompletionTarget,
        argument: String,
        value: String,
        given: Option<Raw>,
    },
    SetLogLevel(LoggingLevel),
    Ping,
    /// Sends a request with any method; the result is returned unchanged.
    Request {
        method: String,
        params: Option<Raw>,
    },
}

impl Operation {
    /// Returns the method of the operation's requests.
    pub(super) fn method(&self) -> &str {
        match self {
            Self::List(kind) | Self::ListPage(kind, _) => kind.method().as_str(),
            Self::CallTool { .. } | Self::CallToolRound { .. } => Method::CallTool.as_str(),
            Self::ReadResource { .. } => Method::ReadResource.as_str(),
            Self::GetPrompt { .. } => Method::GetPrompt.as_str(),
            Self::Complete { .. } => Method::Complete.as_str(),
            Self::SetLogLevel(_) => Method::SetLevel.as_str(),
            Self::Ping => Method::Ping.as_str(),
            Self::Request { method, .. } => method,
        }
    }

    /// Returns the methods of the lists that may be out of date when the server rejects the operation's params.
    pub(super) fn lists(&self) -> &'static [Method] {
        match self {
            Self::CallTool { .. } | Self::CallToolRound { .. } => &[Method::ListTools],
            Self::GetPrompt { .. } => &[Method::ListPrompts],
            Self::ReadResource { .. } => &[Method::ListResources, Method::ListResourceTemplates],
            _ => &[],
        }
    }

    /// Returns the method with the tool, resource or prompt that it is about, for errors.
    pub(super) fn subject(&self) -> String {
        match self {
            Self::CallTool { name, .. }
            | Self::CallToolRound { name, .. }
            | Self::ReadResource { uri: name, .. }
            | Self::GetPrompt { name, .. } => format!("{} {name:?}", self.method()),
            _ => self.method().to_owned(),
        }
    }
}

/// The options of requests, for [`Client::with_options`](super::Client::with_options).
#[derive(Clone)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct CallOptions {
    /// The time limit without a response or progress; `None` means no limit. All pages of a list share it. It is
    /// suspended while the user answers the server's questions.
    pub timeout: Option<Duration>,
    /// The total time limit of a call with all its pages and rounds of questions, regardless of progress.
    pub max_timeout: Option<Duration>,
    /// A callback for progress. It must not block.
    pub on_progress: Option<OnProgress>,
    /// Members for the request's `_meta`, a JSON object.
    pub meta: Option<Raw>,
    /// If true, a tool result with `isError` becomes an error of kind [`ErrorKind::Tool`](crate::error::ErrorKind::Tool), and one
    /// that does not fit the tool's output schema an error of kind [`ErrorKind::Protocol`](crate::error::ErrorKind::Protocol).
    pub raise_on_error: bool,
    /// Answers the questions in results in place of the client's callbacks. They and their answers are not checked.
    pub(crate) questioner: Option<Questioner>,
    /// If true, the result of a tool is for another program: it is not checked, and has no `data`.
    pub(crate) is_passed_on: bool,
}

/// A function that answers the questions of a round, in their order.
pub(crate) type Questioner =
    Arc<dyn Fn(Vec<Question>) -> BoxFuture<Result<Vec<Raw>, Error>> + Send + Sync>;

/// The outcome of an operation.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct OperationReply {
    /// The server's result, or the JSON that the operation defines.
    pub result: Raw,
    /// A tool's data; `None` if it is the text as it is.
    pub data: Option<ToolData>,
    /// True if the server requires answers first; only for [`Operation::CallToolRound`].
    pub is_input_required: bool,
}

impl OperationReply {
    /// Returns a tool's structured content without its wrapper, or the text that stands for it, as JSON; `None` if the data
    /// is the text as it is.
    pub fn data(&self) -> Option<&str> {
        match self.data.as_ref()? {
            ToolData::Structured { range, .. } => self.result.get().get(range.clone()),
            ToolData::Text(json) => Some(json),
        }
    }
}

impl fmt::Debug for CallOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallOptions")
            .field("timeout", &self.timeout)
            .field("max_timeout", &self.max_timeout)
            .field("raise_on_error", &self.raise_on_error)
            .finish_non_exhaustive()
    }
}

impl From<&protocol::Question> for Question {
    fn from(asked: &protocol::Question) -> Self {
        let protocol::Question { key, method, params } = asked.clone();
        Self { key: Some(key), method, params }
    }
}

impl From<Raw> for OperationReply {
    fn from(result: Raw) -> Self {
        Self { result, data: None, is_input_required: false }
    }
}
