//! The interface of whatever carries out the operations of a store.

use std::{fmt, sync::Arc};

use super::{StoreOperation, StoreReply};
use crate::replier::Replier;

/// A store that keeps its values in a place of its own, such as memory, a database or an object of the program.
pub trait StoreEngine: Send + Sync {
    /// Begins an operation. `reply` takes the reply later, on any thread.
    fn run(&self, operation: StoreOperation, reply: Replier<StoreReply>);

    /// Calls `listener` with each message that is published on one of the topics, in any process that has the same store, those of
    /// a topic in their order; on any thread, and maybe before this function returns. Returns at once, and connects for ever.
    /// `None`: the store can't carry messages.
    fn subscribe(&self, topics: Vec<String>, listener: StoreListener) -> Option<StoreSubscription> {
        drop((topics, listener));
        None
    }
}

/// Takes the events of a subscription. It must not block.
pub type StoreListener = Arc<dyn Fn(StoreEvent) + Send + Sync>;

/// An event of a subscription.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum StoreEvent {
    Message {
        topic: String,
        message: Vec<u8>,
    },
    /// The subscription is connected, for the first time or again, or fell behind: messages before this may have been lost.
    Lost,
}

/// A subscription, which ends when this is dropped.
pub struct StoreSubscription {
    _end: Box<dyn Send + Sync>,
}

impl StoreSubscription {
    /// Creates a subscription that ends when `end` is dropped.
    pub fn new(end: impl Send + Sync + 'static) -> Self {
        Self { _end: Box::new(end) }
    }
}

impl fmt::Debug for StoreSubscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreSubscription")
    }
}
