//! Shells that drive a [`Service`](crate::service::Service): threads of one's own, or tokio.

mod stream;
mod writer;

pub use stream::{StreamServer, Work};
