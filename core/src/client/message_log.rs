//! The callback that sees every message of a connection as it is on the wire.

use std::sync::Arc;

use crate::protocol::Sender;

/// A callback for each message of a connection, as JSON. It must not block.
pub(super) type OnMessage = Arc<dyn Fn(Sender, &[u8]) + Send + Sync>;

/// Passes messages on to the callback, if there is one.
pub(super) struct MessageLog(Option<OnMessage>);

impl MessageLog {
    pub(super) fn new(on_message: Option<OnMessage>) -> Self {
        Self(on_message)
    }

    pub(super) fn sent(&self, message: &[u8]) {
        self.pass_on(Sender::Client, message);
    }

    pub(super) fn received(&self, message: &[u8]) {
        self.pass_on(Sender::Server, message);
    }

    fn pass_on(&self, by: Sender, message: &[u8]) {
        if let Some(on_message) = &self.0 {
            on_message(by, message.trim_ascii_end());
        }
    }
}
