//! Message connections. Each is a peer, and all its frames are written to it.

use std::{net::IpAddr, sync::Arc, time::Instant};

use super::{
    ConnectionId, Endpoint, EndpointOutput, Part, PeerId, PeerSession, Pump, Reader, session,
};
use crate::{
    engine::{MAX_IN_FLIGHT_BYTES, MAX_NOTIFICATIONS, PeerLoad},
    protocol::Principal,
    session::server::{OutgoingFrame, ServerSession},
};

impl Endpoint {
    pub(super) fn open_connection(
        &mut self,
        id: ConnectionId,
        principal: Option<Arc<Principal>>,
        remote: Option<IpAddr>,
    ) {
        #[cfg(feature = "auth")]
        if self.config.auth.is_some() && principal.is_none() {
            // A shell that does not authenticate admits nobody.
            self.outputs.push_back(EndpointOutput::Connection(id, Part::End));
            return;
        }
        let machine = ServerSession::new(Arc::clone(&self.session));
        let mut peer = Box::new(PeerSession::new(PeerId::Connection(id), machine));
        peer.principal = principal;
        peer.remote = remote;
        self.connections.insert(id, peer);
        if self.is_closing {
            self.outputs.push_back(EndpointOutput::Connection(id, Part::End));
        }
    }

    pub(super) fn pass_to_connection(
        &mut self,
        now: Instant,
        id: ConnectionId,
        input: session::Input<'_>,
    ) {
        let Some(peer) = self.connections.get_mut(&id) else { return };
        let mut pump =
            Pump { now, engine: &mut self.engine, facts: self.connection_facts.as_ref() };
        let outputs = &mut self.outputs;
        let mut send = |_: Option<u64>, sent: OutgoingFrame| {
            let Some(frame) = sent.frame else { return };
            outputs.push_back(match sent.is_change {
                true => EndpointOutput::Change(Reader::Connection(id), frame),
                false => EndpointOutput::Connection(id, Part::Bytes(frame)),
            });
        };
        peer.handle(&mut pump, 0, input, &mut send);
        let Some(mut due) = peer.machine.deadline() else { return };
        // A peer for which nothing runs any more need not wait for what its session held back.
        if peer.machine.in_flight() == 0 {
            peer.handle(&mut pump, 0, session::Input::Tick(due.max(now)), &mut send);
            let Some(later) = peer.machine.deadline() else { return };
            due = later;
        }
        self.sweep_at(Some(due));
    }

    /// Handles the end of the peer's sending direction: pending calls are still answered, questions fail, and
    /// subscriptions end.
    pub(super) fn end_input(&mut self, now: Instant, id: ConnectionId) {
        self.pass_to_connection(now, id, session::Input::EndOfInput);
        self.pass_to_connection(now, id, session::Input::EndSubscriptions);
    }

    /// Returns whether all requests of this connection are answered.
    #[doc(hidden)] // For the drivers and the language bindings.
    pub fn has_answered(&self, id: ConnectionId) -> bool {
        self.connections.get(&id).is_none_or(|connection| connection.is_idle())
    }

    /// Returns whether no more messages of this connection should be read: so much is unanswered, and its share of that is
    /// not less than others'. A connection with few requests is read although another one has many.
    #[doc(hidden)] // For the drivers and the language bindings.
    pub fn is_full_for(&self, id: ConnectionId) -> bool {
        let Some(connection) = self.connections.get(&id).filter(|_| self.is_full()) else {
            return false;
        };
        let all = self.connections.len();
        let has_its_share = |own: usize, limit: usize| own > 0 && own >= limit / all;
        let PeerLoad { requests, notifications, bytes } = connection.load();
        has_its_share(requests, self.config.max_in_flight)
            || has_its_share(notifications, MAX_NOTIFICATIONS)
            || has_its_share(bytes, MAX_IN_FLIGHT_BYTES)
    }

    pub(super) fn close_connection(&mut self, now: Instant, id: ConnectionId) {
        self.pass_to_connection(now, id, session::Input::Closed);
        self.connections.remove(&id);
        self.expiry.forget(id);
    }
}
