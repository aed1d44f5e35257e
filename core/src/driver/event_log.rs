//! The log events of a server on their way to `tracing`, without any lock.

use std::sync::{Arc, Mutex, PoisonError};

use super::{EndpointServer, work::EndpointStep};
use crate::{
    clock,
    http::Admission,
    log_events::{EventFacts, EventKind, EventLog, LogEvent},
};

/// Writes the events of one server. Clones share the count of those that were left out.
#[derive(Clone, Debug, Default)]
pub(super) struct ServerLog(Arc<Mutex<EventLog>>);

impl ServerLog {
    /// Has requests written that an endpoint refuses before it takes a lock.
    pub(super) fn write_refusals_of(&self, admission: &Admission) {
        let log = self.clone();
        admission.log_to(Box::new(move |event| log.write(&event)));
    }

    fn write(&self, event: &LogEvent) {
        if !event.is_enabled() {
            return;
        }
        let due = self.0.lock().unwrap_or_else(PoisonError::into_inner).due(event, clock::unix());
        if let Some(left_out) = due {
            event.write(left_out);
        }
    }
}

impl EndpointServer {
    /// Writes an event. Must be called without a lock, because the program's subscriber may block.
    pub(crate) fn write_event(&self, event: &LogEvent) {
        self.log.write(event);
    }

    /// Logs that the server begins or ends to listen at this URL.
    pub(crate) fn log_listening(&self, kind: EventKind, url: &str) {
        let (server, in_flight) = {
            let state = self.lock();
            (state.endpoint.server_name().to_owned(), state.endpoint.in_flight())
        };
        let facts = EventFacts {
            server: Some(server),
            url: Some(url.to_owned()),
            in_flight: Some(in_flight),
            ..EventFacts::default()
        };
        self.write_event(&LogEvent::new(kind, "").with(facts));
    }

    /// Writes the events of a step.
    #[cold]
    pub(super) fn write_events(&self, step: &mut EndpointStep) {
        let Some(unlocked) = &mut step.unlocked else { return };
        for event in std::mem::take(&mut unlocked.events) {
            self.log.write(&event);
        }
    }
}
