//! Messages between processes that serve one address together, such as the workers of a server.

use serde::{Deserialize, Serialize};

use super::{
    Endpoint,
    shared_exchange::{SharedPart, SharedRequest},
};
use crate::{
    http::EndpointOutput,
    protocol::{ErrorObject, Raw, json},
    session::server::{ListKind, SessionChange},
};

/// A message to all other processes.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum ProcessMessage {
    /// Lists have changed.
    Changed(Vec<List>),
    /// The resource with this URI has changed.
    Updated(String),
    /// The page with this id is done.
    PageDone(String),
    /// A client answered a question that another process asked.
    Answer { session: String, question: Raw, outcome: Outcome },
    /// A client cancelled a request that came to another process.
    Cancel { session: String, request: Raw },
    /// A client ended its session.
    Ended { session: String },
    /// A client opened a stream here, for the messages of its session that belong to no request.
    Listens { session: String },
    /// A message for the stream of a session, in whichever process it is open.
    Send { session: String, sender: Sender, frame: Raw, is_change: bool },
    /// The message of this sender was sent.
    Sent { session: String, sender: Sender },
    /// A client changed its session: its log level, or what it has subscribed to.
    Made { session: String, changes: Vec<SessionChange> },
    /// A client goes on here with a stream of its session that began in another process. `is_new` at first, and `false` when the
    /// process of the stream is asked again whether it is there.
    Follow { session: String, stream: u64, is_new: bool },
    /// This process has the stream, and sends its events.
    Followed { session: String, stream: u64 },
    /// A request for a process in which the handler waits whose questions it answers.
    Offer { to: u64, from: Sender, request: Box<SharedRequest> },
    /// The request of this sender is handled here, or it is not.
    Taken { from: Sender, is_here: bool },
    /// Asks whether the request of this sender is still handled.
    Ask { to: u64, from: Sender },
    /// The client of this sender's request has left.
    Left { to: u64, from: Sender },
    /// A part of the answer to a request of this sender.
    Part { to: Sender, number: u64, part: SharedPart },
    /// Asks for the numbers of each process, for a collection of this sender.
    Count { from: Sender },
    /// The numbers of this process are where that sender can read them.
    Counted { to: Sender, by: u64 },
    /// An event of a stream that is followed elsewhere.
    Event { session: String, stream: u64, event: u64, frame: Raw, is_last: bool },
}

/// A list, by its name.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum List {
    Tools,
    Resources,
    Prompts,
}

/// The client's answer to a question.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Outcome {
    Result(Raw),
    Error(ErrorObject),
}

/// The process that keeps a message until it was sent, and the message's number there.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct Sender {
    pub(super) process: u64,
    pub(super) message: u64,
}

impl Endpoint {
    /// Sends a message to the other processes, if there are any.
    pub(super) fn publish(&mut self, message: &ProcessMessage) {
        if self.is_shared {
            let mut text = String::new();
            json::push(&mut text, message);
            self.outputs.push_back(EndpointOutput::Publish(text.into_bytes()));
        }
    }
}

impl From<ListKind> for List {
    fn from(list: ListKind) -> Self {
        match list {
            ListKind::Tools => Self::Tools,
            ListKind::Resources => Self::Resources,
            ListKind::Prompts => Self::Prompts,
        }
    }
}

impl From<List> for ListKind {
    fn from(list: List) -> Self {
        match list {
            List::Tools => Self::Tools,
            List::Resources => Self::Resources,
            List::Prompts => Self::Prompts,
        }
    }
}
