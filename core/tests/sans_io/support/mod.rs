//! Support code shared by several tests.

use std::{any::Any, sync::Arc};

pub(crate) mod asker;
#[cfg(feature = "auth")]
pub(crate) mod authenticator;
pub(crate) mod conformance;
pub(crate) mod fixture;
#[cfg(feature = "auth")]
pub(crate) mod issuer;
pub(crate) mod logs;
pub(crate) mod player;
pub(crate) mod request;
pub(crate) mod rounds;
pub(crate) mod rows;
pub(crate) mod spec;
pub(crate) mod subscriber;
pub(crate) mod visitor;
pub(crate) mod wire;

/// The handlers of these tests.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Handler {
    /// A handler of the fixture.
    Act(fixture::Act),
    /// A handler with a name.
    Named(&'static str),
    Plain,
}

/// Returns a handler as the core keeps it.
pub(crate) fn kept<T: Any + Send + Sync>(handler: T) -> gudgeon::router::Handler {
    Arc::new(handler)
}

impl Handler {
    /// Returns a handler that the core has kept.
    pub(crate) fn from_kept(kept: &gudgeon::router::Handler) -> Self {
        *kept.downcast_ref().expect("a handler of the tests")
    }

    /// Returns what a handler of the fixture does.
    pub(crate) fn act(self) -> fixture::Act {
        match self {
            Self::Act(act) => act,
            Self::Named(_) | Self::Plain => panic!("{self:?} is not a handler of the fixture"),
        }
    }

    /// Returns whether the handler has this name.
    pub(crate) fn is(self, name: &str) -> bool {
        matches!(self, Self::Named(own) if own == name)
    }
}
