//! State that several processes share, or that outlives one: the operations of a store and their replies, as data.
//! [`engine`] is what carries them out, [`memory`] the store of one process, and [`derived`] makes the operations that a store
//! lacks from three.

pub mod derived;
mod engine;
mod log;
pub mod memory;
mod shared;

use std::{pin::Pin, time::Duration};

#[cfg(feature = "sqlite")]
pub(crate) use self::log::is_gone;
#[cfg(any(feature = "redis", feature = "sqlite"))]
pub(crate) use self::log::too_long;
pub use self::{
    engine::{StoreEngine, StoreEvent, StoreListener, StoreSubscription},
    shared::SharedStore,
};
use crate::{error::Error, replier::GivenUp};

/// The future that a function of the program returns: an operation of a store, or a callback of a sign-in.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send>>;

/// An operation on a store. Keys, logs, topics and owners are visible ASCII; values, events and messages are bytes. Keys of values,
/// keys of leases, logs and topics do not know each other: one name may be used for each.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum StoreOperation {
    /// Reads a value and its version: [`StoreReply::Found`].
    Get { key: String },
    /// Stores a value for a time, if the key is as expected: at most one of several that expect the same succeeds.
    /// [`StoreReply::Stored`] or [`StoreReply::Conflict`].
    Put { key: String, value: Vec<u8>, ttl: Duration, expect: Expect },
    /// Reads and removes a value: at most one of several gets it. [`StoreReply::Taken`].
    Take { key: String },
    /// Removes a value, if there is one: [`StoreReply::Deleted`].
    Delete { key: String },
    /// Adds an event at the end of a log: [`StoreReply::Appended`]. The oldest events are removed while there are more than
    /// `max_events` or `max_bytes` of them; an event that is longer fails. The log ends when nothing was added for the time `ttl`.
    Append { log: String, event: Vec<u8>, max_events: u64, max_bytes: u64, ttl: Duration },
    /// Reads all events of a log with a greater number than `after`: [`StoreReply::Events`] or [`StoreReply::Gone`]. 0 reads the
    /// whole log.
    Read { log: String, after: u64 },
    /// Sends a message to all who have subscribed to a topic, in all processes: [`StoreReply::Published`]. It may get lost, as
    /// [`StoreEvent::Lost`] tells.
    Publish { topic: String, message: Vec<u8> },
    /// Takes a lease for a time, if nobody else has it: [`StoreReply::Leased`] or [`StoreReply::Held`]. An owner who has it
    /// already gets a new token.
    Lease { key: String, owner: String, ttl: Duration },
    /// Lets a lease last for the time `ttl` from now: [`StoreReply::Leased`] with the same token, or [`StoreReply::Held`] if the
    /// owner does not have the lease any more.
    Renew { key: String, owner: String, ttl: Duration },
    /// Ends a lease, if the owner has it: [`StoreReply::Released`].
    Release { key: String, owner: String },
}

/// The state of a key in which a value is stored.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Expect {
    Any,
    /// The key has no value, or an expired one.
    Absent,
    /// The value has this version.
    Version(u64),
}

/// The reply to a [`StoreOperation`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum StoreReply {
    /// The value with its version, which is greater than that of each earlier value of the key.
    Found(Option<(Vec<u8>, u64)>),
    /// The version of the value that was stored, greater than that of each earlier value of the key.
    Stored(u64),
    /// The key is not as expected, so nothing was stored.
    Conflict,
    Taken(Option<Vec<u8>>),
    Deleted,
    /// The number of the event that was added: from 1 on, greater than each earlier one of the log, also of one that has ended.
    Appended(u64),
    /// Events with their numbers, in their order. Without any, the log has none after the one that was named.
    Events(Vec<(u64, Vec<u8>)>),
    /// An event after the one that was named is not stored any more, or the one that was named is unknown.
    Gone,
    Published,
    /// The fencing token of the lease, greater than each earlier one of the key.
    Leased(u64),
    /// The lease belongs to another owner; in the reply to a renewal it may also have ended.
    Held,
    Released,
    /// The store can't carry out the operation, for this reason.
    Failed(String),
}

impl StoreOperation {
    /// Moves the operation to a scope, whose names no other scope has.
    #[must_use]
    pub fn within(mut self, scope: &str) -> Self {
        let name = match &mut self {
            Self::Get { key }
            | Self::Put { key, .. }
            | Self::Take { key }
            | Self::Delete { key }
            | Self::Lease { key, .. }
            | Self::Renew { key, .. }
            | Self::Release { key, .. } => key,
            Self::Append { log, .. } | Self::Read { log, .. } => log,
            Self::Publish { topic, .. } => topic,
        };
        name.insert_str(0, scope);
        self
    }

    /// Returns the name of the operation.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Get { .. } => "get",
            Self::Put { .. } => "put",
            Self::Take { .. } => "take",
            Self::Delete { .. } => "delete",
            Self::Append { .. } => "append",
            Self::Read { .. } => "read",
            Self::Publish { .. } => "publish",
            Self::Lease { .. } => "lease",
            Self::Renew { .. } => "renew",
            Self::Release { .. } => "release",
        }
    }
}

impl GivenUp for StoreReply {
    fn given_up() -> Self {
        Self::Failed("the operation was given up".into())
    }
}
