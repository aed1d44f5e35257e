//! An endpoint together with the shell that runs its handlers, as transports see it.

use std::{
    net::IpAddr, num::NonZero, pin::Pin, sync::Arc, thread::available_parallelism, time::Instant,
};

use http::request::Parts;
use tokio::sync::Semaphore;

#[cfg(feature = "auth")]
use super::AuthServer;
use super::{EndpointServer, Ledgers, Outbox, Shell, work::Step};
use crate::{
    framing::{Frame, LineDecoder},
    http::{Admission, AdmittedHead, ConnectionId, ExchangeId, Part},
    protocol::Principal,
};

/// The part of an input's work that may take long. The caller runs it where no other connection has to wait for it.
pub(crate) type Rest = Box<dyn FnOnce() + Send>;

/// A future that is awaited rarely.
pub(crate) type Wait<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// An endpoint whose shell runs the work of every input at once. Transports move bytes, and do not know what a handler
/// is.
#[cfg_attr(
    not(feature = "http"),
    expect(dead_code, reason = "without HTTP only streams are served")
)]
pub(crate) trait HostedEndpoint: Send + Sync {
    /// Returns the checks of an HTTP request that come before its body is read.
    fn admission(&self) -> &Admission;
    /// Returns the counts of what clients make the endpoint hold.
    fn ledgers(&self) -> &Ledgers;
    /// Limits the large messages that are handled at the same time.
    fn large_messages(&self) -> &Arc<Semaphore>;
    /// Handles an HTTP request with its body. The outbox may have its answer before this returns.
    fn request(
        &self,
        head: AdmittedHead,
        body: &[u8],
        outbox: Box<dyn Outbox>,
    ) -> (ExchangeId, Option<Rest>);
    /// Ends an exchange whose peer left before the answer was complete.
    fn disconnected(&self, exchange: ExchangeId);
    /// Errors with the answer to a request that may not become a message connection.
    fn admit_upgrade(&self, head: &Parts) -> Result<(), Part>;

    /// Returns the authenticator of callers; `None` if everybody may call.
    #[cfg(feature = "auth")]
    fn auth(&self) -> Option<&Arc<AuthServer>>;

    /// Opens a message connection of this principal and from this address, if they are known.
    fn connect(
        &self,
        principal: Option<Arc<Principal>>,
        remote: Option<IpAddr>,
        outbox: Box<dyn Outbox>,
    ) -> ConnectionId;
    /// Ends a message connection at this time, when its access token expires.
    #[cfg(feature = "auth")]
    fn expire_at(&self, connection: ConnectionId, at: Instant);
    /// Handles one frame of a message connection.
    fn frame(&self, connection: ConnectionId, frame: &Frame<'_>) -> Option<Rest>;
    /// Handles the lines in a chunk. Their work is run together, so that a call that the next line cancels is not
    /// started.
    fn lines(
        &self,
        connection: ConnectionId,
        decoder: &mut LineDecoder,
        chunk: &[u8],
    ) -> Option<Rest>;
    /// Ends the input of a message connection, whose peer sends nothing more.
    fn end_of_input(&self, connection: ConnectionId);
    /// Ends a message connection that was closed.
    fn connection_closed(&self, connection: ConnectionId);
    /// Returns whether so much is unanswered that no more messages of this connection should be read.
    fn is_full_for(&self, connection: ConnectionId) -> bool;
    /// Waits while it is full for this connection.
    fn has_room(&self, connection: ConnectionId) -> Wait<'_>;
    /// Returns the names of the components whose handlers run.
    fn running(&self) -> Vec<String>;
    /// Waits while anything that came on this connection is unanswered.
    fn has_answered(&self, connection: ConnectionId) -> Wait<'_>;

    /// Rejects new requests and ends subscriptions with their result.
    fn shut_down(&self);
    /// Waits while anything is in flight.
    fn is_idle(&self) -> Wait<'_>;
    /// Stops everything that is in flight.
    fn close(&self);

    /// Handles the deadlines that have come.
    fn tick(&self);
    /// Returns the time of the next tick.
    fn deadline(&self) -> Option<Instant>;
    /// Waits until the deadline is nearer than before.
    fn rescheduled(&self) -> Wait<'_>;
}

struct Hosted {
    server: Arc<EndpointServer>,
    shell: Arc<dyn Shell>,
    large_messages: Arc<Semaphore>,
}

/// Hides the handlers of an endpoint from the transports that serve it.
pub(crate) fn hosted(
    server: Arc<EndpointServer>,
    shell: Arc<dyn Shell>,
) -> Arc<dyn HostedEndpoint> {
    let processors = available_parallelism().map_or(1, NonZero::get);
    Arc::new(Hosted { server, shell, large_messages: Arc::new(Semaphore::new(processors)) })
}

/// Sends a tick to an endpoint at each deadline; never returns.
pub(crate) async fn keep_time(endpoint: Arc<dyn HostedEndpoint>) {
    loop {
        let Some(deadline) = endpoint.deadline() else {
            endpoint.rescheduled().await;
            continue;
        };
        tokio::select! {
            () = tokio::time::sleep_until(deadline.into()) => endpoint.tick(),
            () = endpoint.rescheduled() => (),
        }
    }
}

impl Hosted {
    fn handle(&self, connection: ConnectionId, frame: &Frame<'_>) -> Step {
        match frame {
            Frame::Line(line) => self.server.begin_message(connection, line),
            Frame::TooLong(message) => Step::new(self.server.too_long(connection, *message)),
        }
    }

    /// Runs the work of a step. Returns the part that may take long.
    fn run(&self, step: Step) -> Option<Rest> {
        let (work, rest) = step.split();
        self.shell.run(work);
        let rest = rest?;
        let (server, shell) = (Arc::clone(&self.server), Arc::clone(&self.shell));
        Some(Box::new(move || shell.run(server.finish(rest))))
    }
}

impl HostedEndpoint for Hosted {
    fn admission(&self) -> &Admission {
        self.server.admission()
    }

    fn ledgers(&self) -> &Ledgers {
        self.server.ledgers()
    }

    fn large_messages(&self) -> &Arc<Semaphore> {
        &self.large_messages
    }

    fn request(
        &self,
        head: AdmittedHead,
        body: &[u8],
        outbox: Box<dyn Outbox>,
    ) -> (ExchangeId, Option<Rest>) {
        let (exchange, step) = self.server.begin_request(head, body, outbox);
        (exchange, self.run(step))
    }

    fn disconnected(&self, exchange: ExchangeId) {
        self.shell.run(self.server.disconnected(exchange));
    }

    fn admit_upgrade(&self, head: &Parts) -> Result<(), Part> {
        self.server.admit_upgrade(head)
    }

    #[cfg(feature = "auth")]
    fn auth(&self) -> Option<&Arc<AuthServer>> {
        self.server.auth()
    }

    fn connect(
        &self,
        principal: Option<Arc<Principal>>,
        remote: Option<IpAddr>,
        outbox: Box<dyn Outbox>,
    ) -> ConnectionId {
        self.server.connect(principal, remote, outbox)
    }

    #[cfg(feature = "auth")]
    fn expire_at(&self, connection: ConnectionId, at: Instant) {
        self.server.expire_at(connection, at);
    }

    fn frame(&self, connection: ConnectionId, frame: &Frame<'_>) -> Option<Rest> {
        self.run(self.handle(connection, frame))
    }

    fn lines(
        &self,
        connection: ConnectionId,
        decoder: &mut LineDecoder,
        chunk: &[u8],
    ) -> Option<Rest> {
        self.run(self.server.begin_lines(connection, decoder, chunk))
    }

    fn end_of_input(&self, connection: ConnectionId) {
        self.shell.run(self.server.end_of_input(connection));
    }

    fn connection_closed(&self, connection: ConnectionId) {
        self.shell.run(self.server.connection_closed(connection));
    }

    fn is_full_for(&self, connection: ConnectionId) -> bool {
        self.server.is_full_for(connection)
    }

    fn running(&self) -> Vec<String> {
        self.server.running()
    }

    fn has_room(&self, connection: ConnectionId) -> Wait<'_> {
        Box::pin(self.server.has_room(connection))
    }

    fn has_answered(&self, connection: ConnectionId) -> Wait<'_> {
        Box::pin(self.server.has_answered(connection))
    }

    fn shut_down(&self) {
        self.shell.run(self.server.shut_down());
    }

    fn is_idle(&self) -> Wait<'_> {
        Box::pin(self.server.is_idle())
    }

    fn close(&self) {
        self.shell.run(self.server.close());
    }

    fn tick(&self) {
        self.shell.run(self.server.tick());
    }

    fn deadline(&self) -> Option<Instant> {
        self.server.deadline()
    }

    fn rescheduled(&self) -> Wait<'_> {
        Box::pin(self.server.rescheduled())
    }
}
