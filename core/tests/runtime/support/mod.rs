//! Support code shared by several tests.

pub(crate) mod asking_server;
pub(crate) mod duplex;
pub(crate) mod http;
pub(crate) mod proxy;
pub(crate) mod stream;
