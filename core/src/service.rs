//! A server of one stream of frames without IO: an endpoint with one connection, for programs that bring their own transport,
//! and for tests.
//!
//! After each `handle`, call `poll` until it returns `None`; when `deadline` has come, `handle` a [`Input::Tick`].

use std::{sync::Arc, time::Instant};

use crate::{
    engine::{
        Computation, Computed, ConnectionId, Effect, HandlerEvent, HostReply, Load, RunId, Start,
        Ticket,
    },
    framing::TooLong,
    http::{Endpoint, EndpointConfig, EndpointInput, EndpointOutput, Part, Reader},
    protocol::Frame,
    router::Components,
    session::server::ListKind,
};

const PEER: ConnectionId = ConnectionId(1);

/// An input of the service.
#[derive(Debug)]
pub enum Input<'a> {
    /// One frame arrived.
    Frame(&'a [u8]),
    /// A frame was discarded because of its length.
    TooLong(TooLong<'a>),
    /// A report of a running handler.
    Handler(RunId, HandlerEvent),
    /// The host's reply to a request.
    Host(Ticket, HostReply),
    /// The result of [`Output::Compute`].
    Computed(Box<Computed>),
    /// The page with this id, to which a user was sent, is done.
    PageDone(&'a str),
    /// Replaces the components; the lists are those that differ.
    Components(Arc<Components>, Vec<ListKind>),
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
pub enum Output {
    /// Write this frame.
    Send(Vec<u8>),
    /// Write this frame, which reports a change, unless an equal one waits to be written.
    Change(Vec<u8>),
    Effect(Effect),
    /// Run this computation, and answer with [`Input::Computed`].
    Compute(Box<Computation>),
}

/// Serves one stream of frames.
#[derive(Debug)]
pub struct Service {
    endpoint: Endpoint,
}

impl Service {
    /// Creates the server of one stream with these components.
    pub fn new(components: Arc<Components>, start: &Start) -> Self {
        // As over stdio.
        let config = EndpointConfig { max_in_flight: 10_000, ..EndpointConfig::default() };
        let mut endpoint = Endpoint::new(components, config, start);
        endpoint.handle(start.now, EndpointInput::Opened(PEER, None, None));
        Self { endpoint }
    }

    /// Handles an input at this time.
    pub fn handle(&mut self, now: Instant, input: Input<'_>) {
        let input = match input {
            Input::Frame(bytes) => EndpointInput::Message(PEER, Frame::parse(bytes)),
            Input::TooLong(message) => EndpointInput::TooLong(PEER, message),
            Input::Handler(run, event) => EndpointInput::Handler(run, event),
            Input::Host(ticket, reply) => EndpointInput::Host(ticket, reply),
            Input::Computed(computed) => EndpointInput::Computed(computed),
            Input::PageDone(page) => EndpointInput::PageDone(page),
            Input::Components(components, changed) => {
                EndpointInput::Components(components, changed)
            }
            Input::Updated(uri) => EndpointInput::Updated(uri),
            Input::Lagging(is_lagging) => {
                EndpointInput::Lagging(Reader::Connection(PEER), is_lagging)
            }
            Input::CutSubscriptions => EndpointInput::CutSubscriptions(Reader::Connection(PEER)),
            Input::ShutDown => EndpointInput::ShutDown,
            Input::Tick => EndpointInput::Tick,
            Input::EndOfInput => EndpointInput::EndOfInput(PEER),
            Input::Closed => EndpointInput::Closed,
        };
        self.endpoint.handle(now, input);
    }

    /// Returns the next output.
    pub fn poll(&mut self) -> Option<Output> {
        loop {
            return Some(match self.endpoint.poll()? {
                EndpointOutput::Connection(_, Part::Bytes(frame)) => Output::Send(frame),
                EndpointOutput::Change(_, frame) => Output::Change(frame),
                EndpointOutput::Effect(effect) => Output::Effect(effect),
                EndpointOutput::Compute(computation) => Output::Compute(computation),
                EndpointOutput::Connection(..)
                | EndpointOutput::Exchange(..)
                | EndpointOutput::Expired(_)
                | EndpointOutput::Publish(_)
                | EndpointOutput::Store(..)
                | EndpointOutput::Workers(_) => continue,
            });
        }
    }

    /// Returns the time at which [`Input::Tick`] is due.
    pub fn deadline(&self) -> Option<Instant> {
        self.endpoint.deadline()
    }

    /// Returns the number of requests that are not answered, without subscriptions.
    #[doc(hidden)] // For the drivers and the language bindings.
    pub fn in_flight(&self) -> usize {
        self.endpoint.in_flight()
    }

    /// Returns the number and bytes of all calls.
    #[doc(hidden)] // For tests.
    pub fn load(&self) -> Load {
        self.endpoint.load()
    }

    /// Returns whether so much is unanswered, by count or by bytes, that no more should be read.
    pub fn is_full(&self) -> bool {
        self.endpoint.is_full_for(PEER)
    }
}
