//! The amounts that an endpoint holds, for its metrics.

use super::{Endpoint, Exchange, ExchangeOwner, sessions::is_standalone};
use crate::{
    engine::{MAX_IN_FLIGHT_BYTES, MAX_SUSPENDED_BYTES},
    metrics::{Amount, Amounts},
};

impl Endpoint {
    /// Returns the amounts that the endpoint itself holds.
    pub(crate) fn amounts(&self) -> Amounts {
        let load = self.engine.load();
        let amount = |now, limit| Amount { now, limit };
        Amounts {
            sessions: amount(self.sessions.len(), self.config.max_sessions),
            streams: self.exchanges.values().filter(|exchange| exchange.only_listens()).count(),
            in_flight: amount(load.requests, self.config.max_in_flight),
            suspended: amount(load.suspended, self.engine.suspended_limit()),
            request_bytes: amount(load.bytes, MAX_IN_FLIGHT_BYTES),
            suspended_bytes: amount(load.suspended_bytes, MAX_SUSPENDED_BYTES),
            ..Amounts::default()
        }
    }
}

impl Exchange {
    /// Returns whether it is a stream that answers no call.
    fn only_listens(&self) -> bool {
        match &self.owner {
            ExchangeOwner::Modern(peer) => peer.machine.listens(),
            ExchangeOwner::Stream { stream, .. } => is_standalone(*stream),
            ExchangeOwner::LegacySse { .. } => true,
            ExchangeOwner::Followed
            | ExchangeOwner::HandedOver
            | ExchangeOwner::Metrics
            | ExchangeOwner::Route(_) => false,
        }
    }
}
