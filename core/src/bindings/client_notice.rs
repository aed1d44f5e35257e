//! Events of a client as a whole, for the languages' callbacks.

use std::sync::Arc;

use crate::{client::Event, error::Error, session::client::ServerIdentity};

/// An event that concerns the client as a whole.
#[derive(Debug)]
pub enum Notice {
    /// A URL elicitation is finished; with its id.
    UrlDone(String),
    /// The state that the server kept is lost, and the client is connected again.
    Reconnected { attempt: u32, reason: Arc<Error>, server: Arc<ServerIdentity> },
    /// The connection is lost for good, with the reason.
    Lost(String),
}

impl Notice {
    /// Returns the notice of an event. `reconnects` is true for a client that opens a lost connection again.
    pub fn from_event(event: Event, reconnects: bool) -> Option<Self> {
        match event {
            Event::UrlDone(elicitation) => Some(Self::UrlDone(elicitation)),
            Event::Reconnected { attempt, reason, server } => {
                Some(Self::Reconnected { attempt, reason, server })
            }
            Event::Closed(reason) if !reconnects => Some(Self::Lost(reason)),
            _ => None,
        }
    }
}
