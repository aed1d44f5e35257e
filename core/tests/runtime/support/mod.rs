//! What several of these tests need.

pub(crate) mod asking_server;
pub(crate) mod duplex;
pub(crate) mod http;
pub(crate) mod stream;
