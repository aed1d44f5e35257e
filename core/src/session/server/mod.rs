//! The server side of one connection: frames in; frames, calls and cancellations out.
//!
//! Era is decided frame by frame: a request that carries the modern envelope is served statelessly at any time,
//! anything else belongs to the handshake that `initialize` opens once.

mod asked;
mod batch;
mod call;
mod dialects;
mod legacy;
mod logging;
mod modern;
mod notifications;
mod outgoing;
mod questions;
mod requests;
mod io;
mod subscriptions;

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
};

use self::{
    asked::Asked,
    batch::Batches,
    legacy::Handshake,
    logging::LogFlow,
    requests::{Admitted, Inbound, LogPolicy, token},
    subscriptions::Subscriptions,
};
pub use self::{
    call::{Call, CallContext, ClientIdentity, HttpFacts, ListKind, Progress},
    io::{About, Input, Output, Sent, SessionConfig},
    logging::Log,
    questions::{nobody, too_late},
};
use super::pending::{CallId, Pending};
use crate::{
    error::{Fault, FaultKind},
    protocol::{ErrorObject, Frame, Malformed, Message, Revision, code},
    wire::{McpHeaders, Wire},
};

/// The state machine.
#[derive(Debug)]
pub struct ServerSession {
    config: Arc<SessionConfig>,
    handshake: Handshake,
    /// What the headers of the one HTTP request said that this session is for.
    mcp_headers: Option<McpHeaders>,
    /// It is as long as one HTTP request in a dialect that knows no sessions there.
    stands_alone: bool,
    /// The revision that the peer spoke last, which spells errors that belong to no request.
    spoken: &'static Wire,
    pending: Pending<Inbound>,
    batches: Batches,
    subscriptions: Subscriptions,
    /// Made with the first question.
    asked: Option<Box<Asked>>,
    /// Handlers of notifications that run, by their numbers.
    listeners: HashSet<CallId>,
    logs: LogFlow,
    is_ending: bool,
    answers_nothing: bool,
    /// The lists of which the answer to `initialize` said that the client is told of changes.
    lists: Vec<ListKind>,
    /// Lists that changed before the client had confirmed the handshake: it is told right after.
    untold: Vec<ListKind>,
    outputs: VecDeque<Output>,
}

impl ServerSession {
    pub fn new(config: Arc<SessionConfig>) -> Self {
        Self {
            config,
            handshake: Handshake::Awaiting,
            mcp_headers: None,
            stands_alone: false,
            spoken: Wire::of(Revision::V2024_11_05),
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
            outputs: VecDeque::new(),
        }
    }

    /// A session as long as one HTTP request of the stateless era, whose headers must agree with its body.
    pub fn for_exchange(config: Arc<SessionConfig>, mcp_headers: McpHeaders) -> Self {
        Self {
            mcp_headers: Some(mcp_headers),
            spoken: Wire::of(Revision::LATEST),
            ..Self::new(config)
        }
    }

    /// A session as long as one HTTP request in a dialect that knows no sessions there.
    pub fn for_dialect(config: Arc<SessionConfig>) -> Self {
        Self { stands_alone: true, ..Self::new(config) }
    }

    /// The revision that `initialize` agreed on.
    pub fn agreed(&self) -> Option<&'static Wire> {
        self.handshake.wire()
    }

    pub fn handle(&mut self, input: Input<'_>) {
        match input {
            Input::Frame(bytes) => self.handle_frame(Frame::parse(bytes)),
            Input::Parsed(frame) => self.handle_frame(frame),
            Input::TooLong { limit } => {
                let message = format!("message longer than {limit} bytes");
                let fault = Fault::new(FaultKind::TooLarge, message);
                self.refuse(None, None, None, fault);
            }
            Input::Done(call, outcome) => self.handle_done(call, outcome),
            Input::Progress(call, progress) => self.send_progress(call, progress),
            Input::Log { now, call, log, is_lagging } => self.send_log(now, call, &log, is_lagging),
            Input::Ask { call, ask, method, params } => self.ask(call, ask, method, params),
            Input::PageDone(page) => self.tell_page_done(page),
            Input::Listening(call, filter) => self.start_listening(call, filter),
            Input::Changed(kind) => self.send_changed(kind),
            Input::Updated(uri) => self.send_updated(uri),
            Input::Config(config) => self.config = config,
            Input::EndSubscriptions => self.end_subscriptions(),
            Input::CutSubscriptions(reason) => self.cut_subscriptions(reason),
            Input::Heard(call) => self.end_listener(call),
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

    /// Requests that were read and not yet answered: a shell stops reading while there are too many.
    pub fn in_flight(&self) -> usize {
        self.pending.len()
    }

    fn handle_frame(&mut self, frame: Frame<'_>) {
        match frame {
            Frame::One(Ok(message)) => self.handle_message(message, None),
            Frame::One(Err(malformed)) => self.refuse_malformed(malformed, None),
            Frame::Batch(members) => self.handle_batch(members),
        }
    }

    fn handle_message(&mut self, message: Message<'_>, slot: Option<batch::Slot>) {
        match message {
            Message::Request { id, method, params } => {
                self.handle_request(id, &method, &params, slot);
            }
            Message::Notification { method, params } => self.handle_notification(&method, &params),
            Message::Response { id, outcome } => self.handle_answer(id.as_ref(), outcome),
        }
    }

    fn refuse_malformed(&mut self, malformed: Malformed, slot: Option<batch::Slot>) {
        if malformed.is_response {
            // Who asked would wait for it in vain.
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

/// A reply, spelled.
struct Answer {
    frame: Vec<u8>,
    /// The code, where it is an error that HTTP may tell by its status.
    error: Option<i64>,
}
