//! Support code shared by several tests.

pub(crate) mod asker;
pub(crate) mod conformance;
pub(crate) mod fixture;
pub(crate) mod player;
pub(crate) mod rounds;
pub(crate) mod spec;
pub(crate) mod subscriber;
pub(crate) mod visitor;
pub(crate) mod wire;
