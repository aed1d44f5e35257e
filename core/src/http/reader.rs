//! The readers of an endpoint's output, and whether they leave too much of it unread.

use super::{ConnectionId, Endpoint, ExchangeId};
use crate::engine::{PeerId, RunId};

/// A reader of the endpoint's output.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Reader {
    Exchange(ExchangeId),
    Connection(ConnectionId),
}

impl Endpoint {
    /// Returns who reads what a running handler reports.
    pub(crate) fn reader_of(&self, run: RunId) -> Option<Reader> {
        match self.engine.request_of(run)? {
            (PeerId::Exchange(id), _) => Some(Reader::Exchange(id)),
            (PeerId::Connection(id), _) => Some(Reader::Connection(id)),
            (PeerId::Session(number), key) => {
                self.sessions.exchange_of(number, key).map(Reader::Exchange)
            }
        }
    }

    /// Returns whether somebody waits for the end of this run.
    pub(crate) fn awaits(&self, run: RunId) -> bool {
        self.engine.request_of(run).is_some()
    }

    pub(super) fn is_lagging(&self, run: RunId) -> bool {
        match self.reader_of(run) {
            Some(Reader::Exchange(id)) => {
                self.exchanges.get(&id).is_some_and(|exchange| exchange.is_lagging)
            }
            Some(Reader::Connection(id)) => {
                self.connections.get(&id).is_some_and(|peer| peer.is_lagging)
            }
            None => false,
        }
    }

    pub(super) fn set_lagging(&mut self, reader: Reader, is_lagging: bool) {
        let flag = match reader {
            Reader::Exchange(id) => {
                self.exchanges.get_mut(&id).map(|exchange| &mut exchange.is_lagging)
            }
            Reader::Connection(id) => {
                self.connections.get_mut(&id).map(|peer| &mut peer.is_lagging)
            }
        };
        if let Some(flag) = flag {
            *flag = is_lagging;
        }
    }
}
