//! The body of a request that a host receives. It has the limits that a listening server applies.

use std::time::{Duration, Instant};

use crate::{
    clock,
    driver::{EndpointServer, Holding},
    http::{AdmittedHead, Refused},
    transport::{listen::ListenOptions, timeouts::Timeouts},
};

/// A body that is not complete. Its bytes count against the limit of unfinished messages until it is dropped.
#[derive(Debug)]
pub struct IncomingBody {
    counted: Holding,
    begun: Instant,
    timeouts: Timeouts,
}

impl IncomingBody {
    /// Creates the count of a body, of which nothing was received yet.
    pub fn new(server: &EndpointServer, head: &AdmittedHead) -> Self {
        let options = ListenOptions::default();
        let timeouts = Timeouts {
            header: options.header_timeout,
            idle: options.idle_timeout,
            body: server.admission().body_timeout(),
        };
        Self { counted: server.unfinished_body(head), begun: clock::now(), timeouts }
    }

    /// Counts the bytes received so far. Returns the time within which more must arrive.
    ///
    /// # Errors
    /// The reason to refuse the request: clients together send too much.
    pub fn received(&mut self, bytes: usize) -> Result<Duration, Refused> {
        if !self.counted.set(bytes) {
            self.counted.clear();
            return Err(Refused::TooMuchInput);
        }
        Ok(self.timeouts.for_rest(bytes, clock::since(self.begun)))
    }
}
