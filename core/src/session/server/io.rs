//! Inputs and outputs of a server session.

use std::{sync::Arc, time::Instant};

use super::{Call, CallContext, ListKind, Log, Progress};
use crate::{
    error::Fault,
    framing::TooLong,
    log_events::LogEvent,
    protocol::{Dialect, Frame, Method, MethodName, Raw, Response, Revision, SubscriptionFilter},
    session::{
        InboundKey,
        asking::{AskId, ReceivedAnswer},
    },
};

/// The settings of a session.
#[derive(Clone, Debug)]
pub struct SessionConfig {
    /// The server's `Implementation`, as JSON of the newest revision.
    pub server_info: String,
    /// The supported revisions, newest first.
    pub revisions: Vec<Revision>,
    /// The supported dialects.
    pub dialects: Vec<Dialect>,
    /// Methods whose params are passed on unparsed, because a handler replaces the core's answer.
    pub replaced: Vec<Method>,
    /// `ping` and `logging/setLevel`, if a handler or middleware takes part in them.
    pub routed: Vec<Method>,
    /// A random secret, from which unpredictable ids are derived.
    pub seed: [u8; 32],
}

/// An input of the session.
#[derive(Debug)]
#[allow(clippy::enum_variant_names, reason = "the end of the input is not a kind of input")]
pub enum Input<'a> {
    /// A frame was received.
    Frame(&'a [u8]),
    /// A frame was received and is already parsed.
    Parsed(Frame<'a>),
    /// A frame was discarded because of its length.
    TooLong(TooLong<'a>),
    /// An event of a request from [`Output::Call`], or of a notification from [`Output::Notified`].
    Call(InboundKey, CallEvent),
    /// A page that a user was asked to visit is completed.
    PageDone(&'a str),
    /// A list of the server has changed.
    Changed(ListKind),
    /// The resource with this URI has changed.
    Updated(&'a str),
    /// Any resource may have changed.
    AllUpdated,
    /// The server's settings have changed.
    Config(Arc<SessionConfig>),
    /// The server shuts down: current and future subscriptions end with their result.
    EndSubscriptions,
    /// Subscriptions are cancelled with this reason, for example because the peer does not read.
    CutSubscriptions(&'a str),
    /// The time of the deadline has come.
    Tick(Instant),
    /// The session was idle for too long; see [`ServerSession::may_expire`](super::ServerSession::may_expire).
    Expired,
    /// The peer closed its sending side: requests in flight are answered, questions fail.
    EndOfInput,
    /// The peer disconnected: all calls in flight are cancelled.
    Closed,
}

/// An event of a request or notification in progress.
#[derive(Debug)]
pub enum CallEvent {
    /// The request is answered.
    Answered(Result<Response, Fault>),
    /// The client is subscribed from now on, with the accepted part of its filter.
    Listening(SubscriptionFilter),
    /// A handler's questions to the client; the params are in the newest vocabulary.
    Asks(Vec<(AskId, Method, Raw)>),
    Progress(Progress),
    /// A log message of a handler. It is dropped and counted if `is_lagging`, that is, while the peer does not read.
    Log {
        now: Instant,
        log: Log,
        is_lagging: bool,
    },
    /// The notification's handler has finished or does not exist.
    NotificationDone,
    /// The response to an HTTP request for a route. Sessions have none.
    Responded(Box<http::Response<Vec<u8>>>),
    /// No event for the session.
    Nothing,
}

/// An output of the session.
#[derive(Debug)]
pub enum Output {
    /// A frame to write, or none where the peer expects one.
    Send(OutgoingFrame),
    /// A request to answer with [`CallEvent::Answered`].
    Call(Call),
    /// The peer cancelled this call.
    Cancel(InboundKey),
    /// The outcome of a question that the client did not answer.
    Answered { call: InboundKey, ask: AskId, outcome: Result<Raw, Fault> },
    /// The client's answer to a question, not yet checked.
    AnswerReceived { call: InboundKey, ask: AskId, answer: ReceivedAnswer },
    /// A notification for which a handler may be registered.
    Notified { key: InboundKey, method: MethodName, params: Raw, context: CallContext },
    /// The peer subscribed to these resources.
    Subscribed(Vec<String>),
    /// An event for the log, with the circumstances that the session knows; about this request, if it is about one.
    Log(Option<InboundKey>, Box<LogEvent>),
}

/// A frame to write, and its topic, which selects the stream if a peer has several.
#[derive(Debug)]
pub struct OutgoingFrame {
    /// The frame; `None` if the frame with this call gets no reply.
    pub frame: Option<Vec<u8>>,
    pub about: About,
    /// The error code, if the frame is a single error response.
    pub error: Option<i64>,
    /// `true` for change notifications: while an equal one is queued, it is redundant.
    pub is_change: bool,
    /// `true` if the change is that of a list.
    pub is_list_change: bool,
    /// `true` for questions and their cancellation: if their own stream can't carry them, another one must.
    pub is_asking: bool,
    /// The scopes that the caller lacks, if the frame is the error that says so.
    pub missing_scopes: Option<Box<MissingScopes>>,
}

/// The scopes that a component needs, and the error's message.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MissingScopes {
    pub scopes: Vec<String>,
    pub message: String,
}

impl OutgoingFrame {
    pub(super) fn new(frame: Vec<u8>, about: About) -> Self {
        Self {
            frame: Some(frame),
            about,
            error: None,
            is_change: false,
            is_list_change: false,
            is_asking: false,
            missing_scopes: None,
        }
    }

    /// Creates a reply, for an error with its code.
    pub(super) fn reply(frame: Vec<u8>, error: Option<i64>) -> Self {
        Self { error, ..Self::new(frame, About::Reply(None)) }
    }

    /// Creates the information that a frame gets no reply.
    pub(super) fn no_reply() -> Self {
        let about = About::Reply(None);
        Self { frame: None, ..Self::new(Vec::new(), about) }
    }

    /// Returns `true` for the answer to a request.
    pub(crate) fn is_reply(&self) -> bool {
        matches!(self.about, About::Reply(_))
    }
}

/// The topic of a frame.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum About {
    /// A reply to the frame that contained this call; `None`: to the frame handled last.
    Reply(Option<InboundKey>),
    /// A message sent during this call.
    Call(InboundKey),
    /// A message for the peer as a whole.
    Peer,
}
