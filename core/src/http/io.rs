//! The inputs of an endpoint and its outputs, as data.

use std::{
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{AdmittedRequest, Part, Reader, StoreTicket, WorkersReply, WorkersRequest};
use crate::{
    engine::{
        Computation, Computed, ConnectionId, Effect, ExchangeId, HandlerEvent, HostReply, RunId,
        Ticket,
    },
    framing::TooLong,
    protocol::{Frame, Principal},
    router::Components,
    session::server::{ListKind, ValueChanges},
    store::{StoreOperation, StoreReply},
};

/// An input of the endpoint.
#[derive(Debug)]
pub enum EndpointInput<'a> {
    /// An HTTP request came, whole, and passed the [`Admission`].
    Request(ExchangeId, Box<AdmittedRequest<'a>>),
    /// The peer left before the answer was complete.
    Disconnected(ExchangeId),
    /// With `true`, this reader leaves too much unread: it is sent only what it waits for, without progress and log messages.
    Lagging(Reader, bool),
    /// This reader leaves so many changes unread that its subscriptions end.
    CutSubscriptions(Reader),
    /// A message connection was opened, by this principal and from this address if they are known.
    Opened(ConnectionId, Option<Arc<Principal>>, Option<IpAddr>),
    /// The access token with which a message connection was opened expires at this time.
    ExpiresAt(ConnectionId, Instant),
    /// One frame came on a message connection.
    Message(ConnectionId, Frame<'a>),
    /// A frame was discarded because of its length.
    TooLong(ConnectionId, TooLong<'a>),
    ConnectionClosed(ConnectionId),
    /// The peer of a message connection says nothing more: what is in flight is still answered.
    EndOfInput(ConnectionId),
    /// A report of a running handler.
    Handler(RunId, HandlerEvent),
    /// The changes that a handler made to the values of its session, or why they can't be stored. Its end is reported next.
    LeftValues(RunId, Result<ValueChanges, String>),
    /// The host's reply to a request.
    Host(Ticket, HostReply),
    /// The result of [`EndpointOutput::Compute`].
    Computed(Box<Computed>),
    /// The page with this id, to which a user was sent, is done.
    PageDone(&'a str),
    /// Closes the stream of this call, so that the client reconnects for the answer: after this time, if given.
    CloseStream(RunId, Option<Duration>),
    /// Another process that serves this address has published this message.
    Published(&'a [u8]),
    /// Messages of other processes may have been lost.
    MessagesLost,
    /// This number of messages came in the store that can't be opened.
    MessagesUnreadable(u64),
    /// The reply to an [`EndpointOutput::Store`].
    Stored(StoreTicket, StoreReply),
    /// The reply to an [`EndpointOutput::Workers`], or a report about the other processes.
    Workers(WorkersReply),
    /// Replaces the components that the server registers; the lists are those that differ.
    Components(Arc<Components>, Vec<ListKind>),
    /// The resource with this URI has changed.
    Updated(&'a str),
    /// The time of the deadline has come.
    Tick,
    /// Ends the streams of changes: subscriptions end with their result. Everything else continues.
    EndStreams,
    /// Rejects new requests and ends subscriptions with their result; pending calls continue.
    ShutDown,
    /// Cancels all calls.
    Closed,
}

/// An output of the endpoint.
#[derive(Debug)]
pub enum EndpointOutput {
    Exchange(ExchangeId, Part),
    /// A frame for a message connection, or its end.
    Connection(ConnectionId, Part),
    /// The end of a message connection whose access token has expired.
    Expired(ConnectionId),
    /// A message to all other processes that serve this address, each of which takes it as [`EndpointInput::Published`].
    Publish(Vec<u8>),
    /// An operation on the store, to be carried out in this order and answered with [`EndpointInput::Stored`].
    Store(StoreTicket, StoreOperation),
    /// A request about the processes that serve this address, to be carried out in this order, and with the messages to them.
    Workers(WorkersRequest),
    /// Bytes of a stream, or one frame, that report a change. They need not be sent while equal bytes wait to be written.
    Change(Reader, Vec<u8>),
    Effect(Effect),
    /// Run this computation outside every lock, and answer with [`EndpointInput::Computed`].
    Compute(Box<Computation>),
}
