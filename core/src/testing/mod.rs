//! Aids for tests that users write. Their clients reach a server without a network by
//! [`TestServer`](crate::client::TestServer).

pub mod auth;
