//! The engine with one peer: a stream of frames, both ways.
//!
//! After each `handle`, call `poll` until it returns `None`; when `deadline` has come, `handle` a [`Input::Tick`].

use std::{collections::VecDeque, sync::Arc, time::Instant};

use super::{
    Computed, Effect, Engine, HandlerEvent, HostReply, PeerId, PeerSession, Pump, RunId, Start,
    TOO_SLOW, Ticket, changed_config, session_config,
};
use crate::{
    framing::TooLong,
    protocol::Frame,
    router::Components,
    session::{
        asking::Answers,
        server::{self as session, CallEvent, HttpFacts, ListKind, ServerSession, SessionConfig},
    },
};

/// Unanswered requests at which reading should pause.
const MAX_IN_FLIGHT: usize = 10_000;

/// An input of the service.
#[derive(Debug)]
pub enum Input<'a, H> {
    /// One frame arrived.
    Frame(&'a [u8]),
    /// One frame arrived, and was parsed.
    Parsed(Frame<'a>),
    /// A frame was discarded because of its length.
    TooLong(TooLong<'a>),
    /// A report of a running handler.
    Handler(RunId, HandlerEvent),
    /// The host's reply to a request.
    Host(Ticket, HostReply),
    /// The result of [`Effect::Compute`].
    Computed(Computed<H>),
    /// The page with this id, to which a user was sent, is done.
    PageDone(&'a str),
    /// Replaces the components that the server registers; the lists are those that differ.
    Components(Arc<Components<H>>, Vec<ListKind>),
    /// The resource with this URI has changed.
    Updated(&'a str),
    /// With `true`, the peer leaves too much unread: it is sent only what it waits for, without progress and log messages.
    Lagging(bool),
    /// The peer leaves so many changes unread that its subscriptions end.
    CutSubscriptions,
    /// The server stops: subscriptions end with their result.
    ShutDown,
    /// The time of the deadline has come.
    Tick,
    /// The peer sends nothing more: what is in flight is still answered, and no question is.
    EndOfInput,
    /// The peer is gone.
    Closed,
}

/// An output of the service.
#[derive(Debug)]
pub enum Output<H> {
    /// Write this frame.
    Send(Vec<u8>),
    /// Write this frame, which reports a change, unless an equal one waits to be written.
    Change(Vec<u8>),
    Effect(Effect<H>),
}

/// Serves one stream of frames.
#[derive(Debug)]
pub struct Service<H> {
    engine: Engine<H>,
    peer: PeerSession,
    config: Arc<SessionConfig>,
    outputs: VecDeque<Output<H>>,
    is_lagging: bool,
    /// The principal and headers of every call; only tests set them on a stream.
    facts: Option<Arc<HttpFacts>>,
}

impl<H: Clone> Service<H> {
    pub fn new(components: Arc<Components<H>>, start: &Start) -> Self {
        let config = session_config(&components, start);
        let session = ServerSession::new(Arc::clone(&config));
        Self {
            engine: Engine::new(components, start, session::handler_finished),
            peer: PeerSession::new(PeerId::Stream, session),
            config,
            outputs: VecDeque::new(),
            is_lagging: false,
            facts: None,
        }
    }

    /// Gives every call this principal and these headers, as if each had come in an HTTP request.
    #[must_use]
    pub(crate) fn with_facts(mut self, facts: HttpFacts) -> Self {
        self.facts = Some(Arc::new(facts));
        self
    }

    pub fn handle(&mut self, now: Instant, input: Input<'_, H>) {
        match input {
            Input::Frame(bytes) => self.pass_to_session(now, session::Input::Frame(bytes)),
            Input::Parsed(frame) => self.pass_to_session(now, session::Input::Parsed(frame)),
            Input::TooLong(message) => {
                self.pass_to_session(now, session::Input::TooLong(message));
            }
            Input::Handler(run, event) => {
                if let Some(it) = self.engine.handle_event(now, self.is_lagging, run, event) {
                    self.pass_to_session(now, session::Input::Call(it.key, it.event));
                }
            }
            Input::Host(ticket, reply) => {
                if let Some(it) = self.engine.handle_host(now, ticket, reply) {
                    self.pass_to_session(now, session::Input::Call(it.key, it.event));
                }
            }
            Input::Computed(computed) => {
                if let Some(it) = self.engine.handle_computed(now, computed) {
                    self.pass_to_session(now, session::Input::Call(it.key, it.event));
                }
            }
            Input::PageDone(page) => self.pass_to_session(now, session::Input::PageDone(page)),
            Input::Components(components, changed) => {
                if let Some(config) = changed_config(&self.config, &components) {
                    self.config = Arc::clone(&config);
                    self.pass_to_session(now, session::Input::Config(config));
                }
                self.engine.set_components(components, &changed);
                for kind in changed {
                    self.pass_to_session(now, session::Input::Changed(kind));
                }
            }
            Input::Updated(uri) => {
                self.engine.forget_reads(uri);
                self.pass_to_session(now, session::Input::Updated(uri));
            }
            Input::Lagging(is_lagging) => self.is_lagging = is_lagging,
            Input::CutSubscriptions => {
                self.pass_to_session(now, session::Input::CutSubscriptions(TOO_SLOW));
            }
            Input::ShutDown => {
                self.engine.stop_suspended();
                self.pass_to_session(now, session::Input::EndSubscriptions);
            }
            Input::Tick => {
                while let Some(it) = self.engine.expire(now) {
                    self.pass_to_session(now, session::Input::Call(it.key, it.event));
                }
            }
            Input::EndOfInput => self.pass_to_session(now, session::Input::EndOfInput),
            Input::Closed => {
                self.engine.stop_suspended();
                self.pass_to_session(now, session::Input::Closed);
            }
        }
        while let Some(it) = self.engine.next_late() {
            self.pass_to_session(now, session::Input::Call(it.key, CallEvent::Answered(it.answer)));
        }
        // A session that has nothing in flight any more need not wait for its deadline to send what it held back, and
        // not every shell looks at the deadline after each message for the log.
        if let Some(due) = self.peer.machine.deadline() {
            let is_idle = self.peer.machine.in_flight() == 0;
            self.pass_to_session(
                now,
                session::Input::Tick(if is_idle { due.max(now) } else { now }),
            );
        }
    }

    pub fn poll(&mut self) -> Option<Output<H>> {
        self.outputs.pop_front().or_else(|| self.engine.next_effect().map(Output::Effect))
    }

    /// Returns the time at which [`Input::Tick`] is due.
    pub fn deadline(&self) -> Option<Instant> {
        [self.engine.deadline(), self.peer.machine.deadline()].into_iter().flatten().min()
    }

    /// Returns what [`Input::Lagging`] said last.
    pub(crate) fn is_lagging(&self) -> bool {
        self.is_lagging
    }

    /// Requests that are read and not yet answered: a shell stops reading while there are too many.
    #[doc(hidden)] // For the drivers and the language bindings.
    pub fn in_flight(&self) -> usize {
        self.peer.machine.in_flight()
    }

    /// Returns the names of the components whose handlers run.
    pub(crate) fn running(&self) -> Vec<String> {
        self.engine.running()
    }

    /// Returns the answers that came with the requests of a running handler.
    pub(crate) fn brought_answers(&self, run: RunId) -> Vec<Answers> {
        self.engine.brought_answers(run)
    }

    /// The number and bytes of all calls.
    #[doc(hidden)] // For the drivers and the language bindings.
    pub fn load(&self) -> super::Load {
        self.engine.load()
    }

    /// Returns whether so much is unanswered, by count or by bytes, that a shell should stop reading.
    pub fn is_full(&self) -> bool {
        self.in_flight() > MAX_IN_FLIGHT || self.engine.is_full()
    }

    /// Passes an input to the session and queues the frames that it sends.
    fn pass_to_session(&mut self, now: Instant, input: session::Input<'_>) {
        let Self { engine, peer, outputs, facts, .. } = self;
        let mut pump = Pump { now, engine, facts: facts.as_ref() };
        peer.handle(&mut pump, 0, input, |_, sent| {
            // One stream carries everything: a frame that nothing answers needs no word.
            let Some(frame) = sent.frame else { return };
            outputs.push_back(match sent.is_change {
                true => Output::Change(frame),
                false => Output::Send(frame),
            });
        });
    }
}
