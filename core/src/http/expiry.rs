//! The end of streams and message connections whose access token has expired. A call that runs is still answered; what only
//! listens ends, so that its client comes back and shows a new token.

use std::time::Instant;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    ConnectionId, Endpoint, EndpointOutput, ExchangeId, ExchangeOwner, logging::End, session,
    sessions::is_standalone,
};

/// The times at which access tokens expire.
#[derive(Debug, Default)]
pub(super) struct Expiry {
    /// The next time at which a token may expire.
    pub(super) next: Option<Instant>,
    /// The expiry times of message connections.
    connections: FxHashMap<ConnectionId, Instant>,
    /// The message connections whose token has expired.
    expired: FxHashSet<ConnectionId>,
    /// Expired connections whose calls are still being answered.
    ending: Vec<ConnectionId>,
}

impl Expiry {
    pub(super) fn note(&mut self, at: Instant) {
        self.next = Some(self.next.map_or(at, |next| next.min(at)));
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.next.is_some_and(|next| next <= now)
    }

    /// Returns whether the token of a message connection has expired, so that its messages do not count.
    pub(super) fn has_expired(&self, id: ConnectionId) -> bool {
        self.expired.contains(&id)
    }

    pub(super) fn forget(&mut self, id: ConnectionId) {
        self.connections.remove(&id);
        self.expired.remove(&id);
    }
}

impl Endpoint {
    /// Sets the time at which the token of a message connection expires.
    pub(super) fn expire_connection_at(&mut self, id: ConnectionId, at: Instant) {
        if self.connections.contains_key(&id) {
            self.expiry.connections.insert(id, at);
            self.expiry.note(at);
        }
    }

    /// Ends the streams and connections whose token has expired.
    pub(super) fn end_expired(&mut self, now: Instant) {
        self.expiry.next = None;
        let mut streams = Vec::new();
        for (id, exchange) in &self.exchanges {
            match exchange.expires {
                Some(at) if at <= now => streams.push(*id),
                Some(at) => self.expiry.note(at),
                None => (),
            }
        }
        for id in streams {
            self.end_expired_stream(now, id);
        }
        let mut connections = Vec::new();
        for (id, at) in std::mem::take(&mut self.expiry.connections) {
            if at <= now {
                connections.push(id);
            } else {
                self.expiry.connections.insert(id, at);
                self.expiry.note(at);
            }
        }
        for id in connections {
            self.end_input(now, id);
            self.expiry.expired.insert(id);
            self.expiry.ending.push(id);
        }
    }

    /// Closes the connections whose token has expired and whose calls are answered.
    pub(super) fn close_expired(&mut self) {
        for id in std::mem::take(&mut self.expiry.ending) {
            match self.connections.get(&id) {
                Some(peer) if !peer.is_idle() => self.expiry.ending.push(id),
                Some(_) => self.outputs.push_back(EndpointOutput::Expired(id)),
                None => (),
            }
        }
    }

    fn end_expired_stream(&mut self, now: Instant, id: ExchangeId) {
        let Some(exchange) = self.exchanges.get(&id) else { return };
        match &exchange.owner {
            ExchangeOwner::Modern(peer) if peer.machine.listens() => {
                self.pass_to_exchange(now, id, session::Input::EndSubscriptions);
            }
            ExchangeOwner::Stream { session, stream } if is_standalone(*stream) => {
                let (number, stream) = (*session, *stream);
                if let Some(mut session) = self.sessions.take(number) {
                    session.touched = now;
                    self.end_stream_because(&mut session, stream, End::TokenExpired);
                    self.sessions.put(session);
                }
            }
            // The one stream of the session: it ends when no call runs.
            ExchangeOwner::LegacySse { session } => {
                let number = *session;
                if self.sessions.get_mut(number).is_some_and(|session| session.peer.is_idle()) {
                    self.end_session(now, number, End::TokenExpired);
                }
            }
            ExchangeOwner::Modern(_)
            | ExchangeOwner::Stream { .. }
            | ExchangeOwner::Followed
            | ExchangeOwner::HandedOver
            | ExchangeOwner::Metrics
            | ExchangeOwner::Route(_) => (),
        }
    }
}
