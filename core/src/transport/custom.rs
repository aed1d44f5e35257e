//! A wire of the user's own.

use std::{future::Future, io};

/// Carries JSON-RPC messages, one at a time, from and to one peer.
///
/// `receive` and `send` are called at the same time, each by one task.
pub trait Transport: Send + Sync + 'static {
    /// The next message; `None` at the end.
    fn receive(&self) -> impl Future<Output = io::Result<Option<Vec<u8>>>> + Send;

    /// Hands over one message, which holds no raw newline.
    fn send(&self, message: Vec<u8>) -> impl Future<Output = io::Result<()>> + Send;

    /// Nothing more will be sent, and nobody listens any more.
    fn close(&self) -> impl Future<Output = ()> + Send;
}
