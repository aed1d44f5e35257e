//! Support code shared by several tests.

pub(crate) mod asking_server;
pub(crate) mod duplex;
pub(crate) mod http;
#[allow(dead_code, reason = "the sans-IO tests use the rest")]
#[path = "../../sans_io/support/issuer.rs"]
pub(crate) mod issuer;
pub(crate) mod memory;
pub(crate) mod ports;
pub(crate) mod proxy;
pub(crate) mod stream;
