//! HTTP requests whose answers are not complete.

use std::time::Instant;

use http::HeaderMap;

use super::reply::Accepts;
use crate::{
    engine::{CallId, PeerSession},
    protocol::Id,
};

/// An HTTP request that waits for the rest of its answer.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) owner: ExchangeOwner,
    pub(super) accepts: Accepts,
    pub(super) is_streaming: bool,
    /// The time of the last write, or of the beginning.
    pub(super) quiet_since: Instant,
    /// The time at which the access token of the request expires.
    pub(super) expires: Option<Instant>,
    /// CORS headers of the response.
    pub(super) cors: Option<Box<HeaderMap>>,
    /// The id of the request in its body.
    pub(super) request_id: Option<Id>,
    /// `true` if its reader leaves too much unread.
    pub(super) is_lagging: bool,
    /// The URL of the document about this resource.
    pub(super) metadata: Option<Box<str>>,
}

#[derive(Debug)]
pub(super) enum ExchangeOwner {
    /// A stateless request: it is a peer of its own.
    Modern(Box<PeerSession>),
    /// A stream of a session.
    Stream { session: u64, stream: u64 },
    /// A session of 2024-11-05, all of whose messages it carries.
    LegacySse { session: u64 },
    /// A stream of a session that began in another process.
    Followed,
    /// A request that another process handles.
    HandedOver,
    /// A request for metrics that waits for the numbers of other processes.
    Metrics,
    /// The call of a route's handler.
    Route(CallId),
}
