//! Identifiers of what the engine keeps. Each kind is a type of its own, so that none is taken for another.

use crate::protocol::ClientKey;

/// One HTTP request and its answer. The shell chooses the number, and never uses one twice.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ExchangeId(pub u64);

/// One connection that carries messages both ways. The shell chooses the number, and never uses one twice.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ConnectionId(pub u64);

/// A peer of the engine.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum PeerId {
    /// A stateless HTTP request.
    Exchange(ExchangeId),
    /// A session over HTTP, by its number.
    Session(u64),
    Connection(ConnectionId),
}

/// A request or a notification that is being handled, unique in its engine.
///
/// A peer knows it by the key that its session gave it ([`InboundKey`](crate::session::InboundKey)), a shell knows its
/// handler by a [`RunId`].
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct CallId(pub(super) u64);

/// One run of a handler, from [`Effect::Run`](super::Effect::Run) until it reports that it is done. It goes on for
/// another call when that brings the answers to its questions.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct RunId(pub u64);

/// One request to the host, from [`Effect::Host`](super::Effect::Host) until its reply.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Ticket(pub u64);

/// A call and the request that it answers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    pub(super) call: CallId,
    pub(super) peer: PeerId,
    pub(super) key: crate::session::InboundKey,
    /// The client that the call is counted for; `None` if it is not known, or there is only one.
    pub(super) client: Option<ClientKey>,
}
