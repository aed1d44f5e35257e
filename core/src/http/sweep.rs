//! Periodic work: comments on quiet streams, the end of idle sessions, the end of the server.

use std::time::{Duration, Instant};

use super::{
    ConnectionId, Endpoint, EndpointConfig, EndpointOutput, ExchangeId, ExchangeOwner, Part,
    logging::End, requests::closing, session, sessions::is_standalone,
};
use crate::framing::sse;

/// The minimum time between two sweeps.
const MIN_PERIOD: Duration = Duration::from_millis(10);

/// The time that a session at rest stays in memory for its next request.
const RESTING_TIME: Duration = Duration::from_secs(60);

/// Returns the time between two sweeps.
pub(super) fn period(config: &EndpointConfig) -> Duration {
    (config.keep_alive.min(config.session_idle) / 4).max(MIN_PERIOD)
}

impl Endpoint {
    pub(super) fn tick(&mut self, now: Instant) {
        while let Some(delivery) = self.engine.expire(now) {
            self.deliver_event(now, delivery);
        }
        self.announce_unreadable(now);
        let is_due = self.next_sweep.is_some_and(|next| next <= now);
        if is_due || self.expiry.is_due(now) {
            self.end_expired(now);
        }
        if is_due {
            self.next_sweep = None;
            self.keep_alive(now);
            self.check_unsent(now);
            self.check_followed(now);
            self.check_handed_over(now);
            self.check_collection(now);
            self.pass_due_ticks(now);
            if let Some(since) = now.checked_sub(RESTING_TIME) {
                self.sessions.drop_resting(Some(since));
            }
            for number in self.sessions.idle(now, self.config.session_idle) {
                self.end_session(now, number, End::Idle);
            }
            self.expire(now);
        }
    }

    /// Passes the tick to sessions and connections whose deadline has come.
    fn pass_due_ticks(&mut self, now: Instant) {
        for number in self.sessions.all() {
            let due =
                self.sessions.get_mut(number).and_then(|session| session.peer.machine.deadline());
            match due {
                Some(at) if at <= now => {
                    self.pass_to_session(now, number, session::Input::Tick(now));
                }
                later => self.sweep_at(later),
            }
        }
        let waiting: Vec<(ConnectionId, Instant)> = self
            .connections
            .iter()
            .filter_map(|(id, connection)| Some((*id, connection.machine.deadline()?)))
            .collect();
        for (id, at) in waiting {
            match at <= now {
                true => self.pass_to_connection(now, id, session::Input::Tick(now)),
                false => self.sweep_at(Some(at)),
            }
        }
    }

    fn expire(&mut self, now: Instant) {
        if self.session.dialects.is_empty() {
            return;
        }
        let idle = self.config.session_idle;
        for number in self.sessions.all() {
            if let Some(session) = self.sessions.get_mut(number) {
                session.peer.expire(now, idle);
            }
        }
        for peer in self.connections.values_mut() {
            peer.expire(now, idle);
        }
    }

    /// Plans the next sweep: periodic sweeps cost less than a timer for each request.
    pub(super) fn plan_sweep(&mut self, now: Instant) {
        let may_expire = !self.connections.is_empty() && !self.session.dialects.is_empty();
        if may_expire || !self.exchanges.is_empty() || self.sessions.len() > 0 {
            self.sweep_at(Some(now + self.period));
        }
    }

    /// Has the next sweep at this time, if it would come later.
    pub(super) fn sweep_at(&mut self, due: Option<Instant>) {
        self.next_sweep = [self.next_sweep, due].into_iter().flatten().min();
    }

    /// Writes a comment on every stream that would be idle for too long before the next sweep. An answer that takes this
    /// long becomes a stream by it.
    fn keep_alive(&mut self, now: Instant) {
        let limit = self.config.keep_alive.saturating_sub(self.period);
        let quiet: Vec<ExchangeId> = self
            .exchanges
            .iter()
            .filter(|(_, exchange)| {
                exchange.accepts.stream && now.duration_since(exchange.quiet_since) >= limit
            })
            .map(|(id, _)| *id)
            .collect();
        for id in quiet {
            let Some(mut exchange) = self.exchanges.remove(&id) else { continue };
            if let ExchangeOwner::Stream { session, stream } = exchange.owner
                && !exchange.is_streaming
            {
                self.exchanges.insert(id, exchange);
                if let Some(mut session) = self.sessions.take(session) {
                    self.begin_stream(now, &mut session, stream, None);
                    self.sessions.put(session);
                }
                continue;
            }
            self.stream(now, id, &mut exchange, sse::KEEP_ALIVE.to_vec(), true);
            self.exchanges.insert(id, exchange);
        }
    }

    pub(super) fn end_streams(&mut self, now: Instant) {
        self.pass_to_listeners(now, |()| session::Input::EndSubscriptions);
        self.end_standing();
    }

    pub(super) fn shut_down(&mut self, now: Instant) {
        self.is_closing = true;
        self.admission.begin_drain();
        self.engine.stop_suspended();
        self.pass_to_all(now, |()| session::Input::EndSubscriptions);
        self.end_standing();
        self.end_followed();
        self.end_offers(&closing());
        let idle: Vec<_> = self
            .connections
            .iter()
            .filter(|(_, connection)| connection.is_idle())
            .map(|(id, _)| *id)
            .collect();
        for id in idle {
            self.outputs.push_back(EndpointOutput::Connection(id, Part::End));
        }
    }

    /// Ends the streams of sessions that answer no request.
    fn end_standing(&mut self) {
        for number in self.sessions.all() {
            let Some(mut session) = self.sessions.take(number) else { continue };
            while let Some(stream) = session.standalone() {
                debug_assert!(is_standalone(stream));
                self.end_stream(&mut session, stream);
            }
            if session.peer.is_idle()
                && let Some(pair) = session.legacy_sse.take()
            {
                self.end(pair);
            }
            self.sessions.put(session);
        }
    }

    pub(super) fn close(&mut self, now: Instant) {
        self.is_closing = true;
        self.admission.begin_drain();
        self.engine.stop_suspended();
        self.end_followed();
        for number in self.sessions.all() {
            self.end_session(now, number, End::ServerStopped);
        }
        for connection in self.connections.keys().copied().collect::<Vec<_>>() {
            self.close_connection(now, connection);
            self.outputs.push_back(EndpointOutput::Connection(connection, Part::End));
        }
        for id in self.exchanges.keys().copied().collect::<Vec<_>>() {
            if let Some(ExchangeOwner::Route(call)) =
                self.exchanges.get(&id).map(|exchange| &exchange.owner)
            {
                self.engine.cancel(now, *call);
            }
            self.pass_to_exchange(now, id, session::Input::Closed);
            self.end(id);
        }
        // The store is not waited for any more.
        self.send_unsent();
        self.keep_last_numbers();
    }
}
