//! Aids for tests that users write. Their clients reach a server without a network by
//! [`TestServer`](crate::client::TestServer).

pub mod auth;
mod check_store;

#[cfg(feature = "bindings")]
#[doc(hidden)]
pub use self::check_store::check_engine;
pub use self::check_store::check_store;
