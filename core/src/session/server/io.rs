//! What a session and its shell tell each other.

use std::{sync::Arc, time::Instant};

use super::{Call, CallContext, ListKind, Log, Progress};
use crate::{
    error::Fault,
    protocol::{Dialect, Frame, Method, MethodName, Raw, Response, Revision, SubscriptionFilter},
    session::{CallId, asking::AskId},
};

/// What a session needs to know of its server.
#[derive(Clone, Debug)]
pub struct SessionConfig {
    /// The server's `Implementation`, as JSON of the newest revision.
    pub server_info: String,
    /// What the server speaks, newest first.
    pub revisions: Vec<Revision>,
    /// What it understands beside these.
    pub dialects: Vec<Dialect>,
    /// Methods whose params are handed on as they came, for the handler that answers them.
    pub replaced: Vec<Method>,
    /// `ping` and `logging/setLevel`, where more than the session has a word in them.
    pub routed: Vec<Method>,
    /// Random, and secret: from it come names that nobody can guess.
    pub seed: [u8; 32],
}

/// What the shell tells the session.
#[derive(Debug)]
pub enum Input<'a> {
    /// One frame arrived.
    Frame(&'a [u8]),
    /// One frame arrived that was parsed already.
    Parsed(Frame<'a>),
    /// A frame arrived that was longer than the limit, in bytes, and was thrown away.
    TooLong { limit: usize },
    /// A call handed out by [`Output::Call`] has finished.
    Done(CallId, Result<Response, Fault>),
    /// A call's handler got further.
    Progress(CallId, Progress),
    /// A handler has something to tell. With `is_lagging`, when the peer does not read, it is not told at once.
    Log { now: Instant, call: CallId, log: Log, is_lagging: bool },
    /// The client of [`Output::Call`] listens from now on, to what the server honours of its filter.
    Listening(CallId, SubscriptionFilter),
    /// A handler asks the client; `params` are in the newest vocabulary.
    Ask { call: CallId, ask: AskId, method: Method, params: Raw },
    /// What somebody was sent to this page for is finished.
    PageDone(&'a str),
    /// What the server offers has changed.
    Changed(ListKind),
    /// The resource with this URI has changed.
    Updated(&'a str),
    /// What is known of the server has changed.
    Config(Arc<SessionConfig>),
    /// The server stops: subscriptions end with their result, and so will those that begin from now on.
    EndSubscriptions,
    /// The peer leaves too much unread, or whatever else this reason says: subscriptions are torn down.
    CutSubscriptions(&'a str),
    /// Who listened to the notification with this number, in [`Output::Notified`], is done, or nobody listens.
    Heard(CallId),
    /// The time of the deadline has come.
    Tick(Instant),
    /// The session was idle for too long; see [`ServerSession::may_expire`](super::ServerSession::may_expire).
    Expired,
    /// The peer says nothing more: what is in flight is still answered, and no question is.
    EndOfInput,
    /// The peer is gone: every call in flight is given up.
    Closed,
}

/// What the session asks of the shell.
#[derive(Debug)]
pub enum Output {
    /// Write this frame.
    Send(Sent),
    /// Answer this request and report back with [`Input::Done`].
    Call(Call),
    /// The peer no longer wants this call's result.
    Cancel(CallId),
    /// No reply will come to the frame that brought this call.
    Silent(CallId),
    /// What became of a question.
    Answered { call: CallId, ask: AskId, outcome: Result<Raw, Fault> },
    /// What the client answered to a question does not fit it, because of this.
    InvalidAnswer { call: CallId, ask: AskId, problem: String },
    /// The peer tells something that a handler may have been registered for.
    Notified { method: MethodName, params: Raw, context: CallContext },
    /// A line for the log of whoever runs the server.
    Report(String),
    /// A line for the log, for who looks closely.
    Detail(String),
}

/// A frame to be written, and what it belongs to: where a peer has several streams, that decides on which it goes.
#[derive(Debug)]
pub struct Sent {
    pub frame: Vec<u8>,
    pub about: About,
    /// The code, where it is one error.
    pub error: Option<i64>,
    /// It tells of a change: while an equal one waits to be sent, it says nothing new.
    pub is_change: bool,
    /// It asks the client, or takes back what was asked: where its own stream can't carry it, another must.
    pub is_asking: bool,
}

impl Sent {
    pub(super) fn new(frame: Vec<u8>, about: About) -> Self {
        Self { frame, about, error: None, is_change: false, is_asking: false }
    }
}

/// What a frame belongs to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum About {
    /// It answers the frame that brought this call; `None`: the frame that was handled just now.
    Reply(Option<CallId>),
    /// It was said while this call was under way.
    Call(CallId),
    /// The peer as a whole.
    Peer,
}
