//! State that several processes share, or that outlives one: the operations of a store and their replies, as data.
//! [`memory`] is the store of one process.

pub mod memory;

use std::{pin::Pin, time::Duration};

use crate::{
    error::Error,
    replier::{GivenUp, Replier},
};

/// The future that a function of the program returns: an operation of a store, or a callback of a sign-in.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send>>;

/// An operation on a store. Keys are visible ASCII, and values are bytes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum StoreOperation {
    /// Reads a value and its version.
    Get { key: String },
    /// Stores a value for a time, if the key is as expected: at most one of several that expect the same succeeds.
    Put { key: String, value: Vec<u8>, ttl: Duration, expect: Expect },
    /// Reads and removes a value: at most one of several gets it.
    Take { key: String },
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
    /// The value with its version, which no earlier or later value of the key has.
    Found(Option<(Vec<u8>, u64)>),
    /// The version of the value that was stored.
    Stored(u64),
    /// The key is not as expected, so nothing was stored.
    Conflict,
    Taken(Option<Vec<u8>>),
    /// The store can't carry out the operation, for this reason.
    Failed(String),
}

/// A store that keeps its values in a place of its own, such as memory, a database or an object of the program.
pub trait StoreEngine: Send + Sync {
    /// Begins an operation. `reply` takes the reply later, on any thread.
    fn run(&self, operation: StoreOperation, reply: Replier<StoreReply>);
}

impl StoreOperation {
    /// Returns the name of the operation.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Get { .. } => "get",
            Self::Put { .. } => "put",
            Self::Take { .. } => "take",
        }
    }
}

impl GivenUp for StoreReply {
    fn given_up() -> Self {
        Self::Failed("the operation was given up".into())
    }
}
