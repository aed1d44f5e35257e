//! The server side of one connection: frames in; frames, calls and cancellations out.
//!
//! The era is decided per frame: a request with the modern envelope is always served statelessly; any other frame
//! belongs to the session that `initialize` opens once.

mod asked;
mod batch;
mod call;
mod changes;
mod dialects;
mod legacy;
mod logging;
mod notifications;
mod outgoing;
mod questions;
mod requests;
mod restored;
mod session_values;
mod sessionless;
mod io;
mod subscriptions;

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
    time::Instant,
};

pub(crate) use self::changes::SessionChange;
pub(crate) use self::session_values::ValuesByName;
use self::{
    asked::Asked,
    batch::Batches,
    changes::TrackedChanges,
    legacy::Handshake,
    logging::LogFlow,
    requests::{Admitted, Inbound, LogPolicy, cause, token},
    subscriptions::Subscriptions,
};
pub use self::{
    call::{Call, CallContext, CallTrace, ClientIdentity, HttpFacts, ListKind, Progress},
    io::{About, CallEvent, Input, MissingScopes, OutgoingFrame, Output, SessionConfig},
    logging::Log,
    questions::{disconnected, handler_finished},
    session_values::{ReadValues, SessionValues, ValueChanges},
};
use super::pending::{InboundKey, Pending};
use crate::{
    error::{Fault, FaultKind},
    framing::TooLong,
    protocol::{
        ErrorObject, Frame, Id, Malformed, Message, PartialMessage, Request, Revision, code,
    },
    wire::{McpHeaders, Wire},
};

/// The time that a session lasts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Lifetime {
    /// It lasts as long as its connection, or as its client uses it over HTTP.
    Connection,
    /// A single HTTP request in a dialect without HTTP sessions.
    OneDialectRequest,
    /// A single HTTP request of a server that keeps no sessions.
    OneRequest,
}

/// The state machine of a server session.
#[derive(Debug)]
pub struct ServerSession {
    config: Arc<SessionConfig>,
    handshake: Handshake,
    /// The MCP headers, if the session serves a single HTTP request; empty once its message was read.
    mcp_headers: Option<McpHeaders>,
    lifetime: Lifetime,
    /// The revision that the peer used last, for errors that belong to no request.
    spoken: &'static Wire,
    pending: Pending<Inbound>,
    batches: Batches,
    subscriptions: Subscriptions,
    /// Created with the first question.
    asked: Option<Box<Asked>>,
    /// The running notification handlers, by number.
    listeners: HashSet<InboundKey>,
    logs: LogFlow,
    is_ending: bool,
    answers_nothing: bool,
    /// The lists for which the result of `initialize` declared change notifications.
    lists: Vec<ListKind>,
    /// Lists that changed before the handshake was confirmed; the client is notified afterwards.
    untold: Vec<ListKind>,
    /// The JSON-RPC id of the first question to the client.
    first_question: u64,
    /// Changes for other processes; `None` where they are not wanted.
    tracked: Option<Box<TrackedChanges>>,
    outputs: VecDeque<Output>,
}

impl ServerSession {
    pub fn new(config: Arc<SessionConfig>) -> Self {
        Self {
            config,
            handshake: Handshake::Awaiting,
            mcp_headers: None,
            lifetime: Lifetime::Connection,
            spoken: Wire::for_revision(Revision::V2024_11_05),
            pending: Pending::new(),
            batches: Batches::default(),
            subscriptions: Subscriptions::default(),
            asked: None,
            listeners: HashSet::new(),
            logs: LogFlow::default(),
            is_ending: false,
            answers_nothing: false,
            lists: Vec::new(),
            untold: Vec::new(),
            first_question: 1,
            tracked: None,
            outputs: VecDeque::new(),
        }
    }

    /// Creates a session for a single modern HTTP request, whose headers must match its body.
    pub fn for_exchange(config: Arc<SessionConfig>, mcp_headers: McpHeaders) -> Self {
        Self {
            mcp_headers: Some(mcp_headers),
            spoken: Wire::for_revision(Revision::LATEST),
            ..Self::new(config)
        }
    }

    /// Creates a session for a single HTTP request in a dialect without HTTP sessions.
    pub fn for_dialect(config: Arc<SessionConfig>) -> Self {
        Self { lifetime: Lifetime::OneDialectRequest, ..Self::new(config) }
    }

    /// Returns the revision negotiated by `initialize`.
    pub fn agreed(&self) -> Option<&'static Wire> {
        self.handshake.wire()
    }

    /// Has an open session count as confirmed by its client. Returns `false` if it did already, or is not open.
    pub(crate) fn presume_confirmed(&mut self) -> bool {
        let is_new = self.agreed().is_some() && !self.handshake.is_confirmed();
        if is_new {
            self.confirm();
        }
        is_new
    }

    /// Returns the negotiated revision and the client's identity, once `initialize` was read.
    pub(crate) fn client(&self) -> Option<(&'static Wire, Arc<ClientIdentity>)> {
        self.handshake.client()
    }

    /// Returns the size of what the client said about itself in `initialize`, in bytes.
    pub(crate) fn identity_size(&self) -> usize {
        self.handshake.identity_size()
    }

    pub fn handle(&mut self, input: Input<'_>) {
        match input {
            Input::Frame(bytes) => self.handle_frame(Frame::parse(bytes)),
            Input::Parsed(frame) => self.handle_frame(frame),
            Input::TooLong(message) => self.refuse_too_long(message),
            Input::Call(call, event) => self.handle_event(call, event),
            Input::PageDone(page) => self.notify_page_done(page),
            Input::Changed(kind) => self.send_changed(kind),
            Input::Updated(uri) => self.send_updated(uri),
            Input::AllUpdated => self.send_all_updated(),
            Input::Config(config) => self.config = config,
            Input::EndSubscriptions => self.end_subscriptions(),
            Input::CutSubscriptions(reason) => self.cut_subscriptions(reason),
            Input::Tick(now) => self.tick(now),
            Input::Expired => self.handshake.expire(),
            Input::EndOfInput => {
                self.answers_nothing = true;
                self.give_up_questions(&[]);
            }
            Input::Closed => {
                self.answers_nothing = true;
                self.subscriptions = Subscriptions::default();
                let calls = self.pending.drain();
                self.give_up_questions(&calls);
                self.outputs.extend(calls.into_iter().map(Output::Cancel));
            }
        }
    }

    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Returns the request that was read and that brings a state, if its call was not handed out yet.
    pub(crate) fn continued(&self) -> Option<&Request> {
        let brings_state =
            |request: &&Request| request.inputs().is_some_and(|inputs| inputs.state.is_some());
        self.outputs.iter().find_map(|output| match output {
            Output::Call(call) => Some(&call.request).filter(brings_state),
            _ => None,
        })
    }

    /// Returns the time when [`Input::Tick`] is due.
    pub fn deadline(&self) -> Option<Instant> {
        self.logs.due
    }

    /// Returns whether a question with this id waits for its answer.
    pub(crate) fn asked(&self, question: &Id) -> bool {
        self.asked.as_ref().is_some_and(|asked| asked.has(question))
    }

    /// Returns whether a question with this id was asked, also if nothing waits for its answer any more.
    pub(crate) fn has_asked(&self, question: &Id) -> bool {
        self.asked.as_ref().is_some_and(|asked| asked.has_sent(question))
    }

    /// Returns whether a request with this id is unanswered.
    pub(crate) fn has(&self, request: &Id) -> bool {
        self.pending.contains(request)
    }

    /// Returns the id, the method and the client of an unanswered request.
    pub(crate) fn request(&self, call: InboundKey) -> Option<(&Id, &str, &ClientIdentity)> {
        let (id, inbound) = self.pending.get(call)?;
        Some((id, inbound.method.as_str(), &inbound.client))
    }

    /// Returns the number of unanswered requests; a shell stops reading when there are too many.
    pub fn in_flight(&self) -> usize {
        self.pending.len()
    }

    fn handle_event(&mut self, call: InboundKey, event: CallEvent) {
        match event {
            CallEvent::Answered(outcome) => self.handle_done(call, outcome),
            CallEvent::Listening(filter) => self.start_listening(call, filter),
            CallEvent::Asks(asks) => {
                for (ask, method, params) in asks {
                    self.ask(call, ask, method, params);
                }
            }
            CallEvent::Progress(progress) => self.send_progress(call, progress),
            CallEvent::Log { now, log, is_lagging } => self.send_log(now, call, &log, is_lagging),
            CallEvent::NotificationDone => self.end_listener(call),
            CallEvent::Responded(_) | CallEvent::Nothing => (),
        }
    }

    fn handle_frame(&mut self, frame: Frame<'_>) {
        match frame {
            Frame::One(Ok(message)) => self.handle_message(message, None),
            Frame::One(Err(malformed)) => self.refuse_malformed(malformed, None),
            Frame::Batch(members) => self.handle_batch(members),
        }
        // There is no second frame, and each value keeps the buffer that the head was read into.
        if let Some(headers) = &mut self.mcp_headers {
            *headers = McpHeaders::default();
        }
    }

    fn handle_message(&mut self, message: Message<'_>, slot: Option<batch::Slot>) {
        match message {
            Message::Request { id, method, params } => {
                self.handle_request(id, &method, &params, slot);
            }
            Message::Notification { method, params } => self.handle_notification(&method, &params),
            Message::Response { id, outcome, .. } => self.handle_answer(id.as_ref(), outcome),
        }
    }

    /// Answers the request that a discarded message was, if it is known, or fails the question that it answered.
    fn refuse_too_long(&mut self, TooLong { limit, beginning, end }: TooLong<'_>) {
        let read = PartialMessage::from_ends(beginning, end);
        if read.has_outcome && !read.has_method && read.id.is_some() {
            let message = format!("the client's answer is longer than {limit} bytes");
            let error = ErrorObject::new(code::INVALID_REQUEST, message);
            return self.handle_answer(read.id.as_ref(), Err(error));
        }
        let message = format!("message longer than {limit} bytes");
        self.refuse(read.id.as_ref(), None, None, Fault::new(FaultKind::TooLarge, message));
    }

    fn refuse_malformed(&mut self, malformed: Malformed, slot: Option<batch::Slot>) {
        if malformed.is_response {
            // Without an answer the caller would wait forever.
            let message = format!("the client's answer is malformed: {}", malformed.message);
            let error = ErrorObject::new(code::INVALID_REQUEST, message);
            self.handle_answer(malformed.id.as_ref(), Err(error));
            return self.settle(None, slot, None);
        }
        let fault = match malformed.unreadable {
            true => Fault::new(FaultKind::Unreadable, malformed.message),
            false => Fault::invalid_request(malformed.message),
        };
        self.refuse(malformed.id.as_ref(), None, slot, fault);
    }
}
