//! An endpoint together with the host that runs its handlers, as transports see it.

use std::{net::IpAddr, num::NonZero, sync::Arc, thread::available_parallelism, time::Instant};

use http::request::Parts;
use tokio::sync::Semaphore;

#[cfg(feature = "auth")]
use super::AuthServer;
use super::{
    EndpointServer, Ledgers, Outbox, Work,
    endpoint_state::{AskWorkers, Publish},
    work::EndpointStep,
};
use crate::{
    framing::{Frame, LineDecoder},
    http::{Admission, AdmittedHead, ConnectionId, ExchangeId, Part, WorkersReply},
    log_events::EventKind,
    metrics::Metrics,
    protocol::Principal,
};

/// Runs the handlers of an endpoint: Python, Node, or tokio.
pub trait Host: Send + Sync {
    /// Does this work, in its order. Must not block.
    fn perform(&self, work: Work);
}

/// The part of an input's work that may take long. The caller runs it where no other connection has to wait for it.
pub(crate) type Rest = Box<dyn FnOnce() + Send>;

/// An endpoint whose host does the work of every input at once. Transports move bytes, and do not know what a handler is.
pub(crate) struct HostedEndpoint {
    server: Arc<EndpointServer>,
    host: Arc<dyn Host>,
    large_messages: Arc<Semaphore>,
}

/// Sends a tick to an endpoint at each deadline; never returns.
pub(crate) async fn keep_time(endpoint: Arc<HostedEndpoint>) {
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

#[cfg_attr(
    not(feature = "http"),
    expect(dead_code, reason = "without HTTP only streams are served")
)]
impl HostedEndpoint {
    pub(crate) fn new(server: Arc<EndpointServer>, host: Arc<dyn Host>) -> Arc<Self> {
        let processors = available_parallelism().map_or(1, NonZero::get);
        Arc::new(Self { server, host, large_messages: Arc::new(Semaphore::new(processors)) })
    }

    /// Returns the checks of an HTTP request that come before its body is read.
    pub(crate) fn admission(&self) -> &Admission {
        self.server.admission()
    }

    /// Returns the counts of what clients make the endpoint hold.
    pub(crate) fn ledgers(&self) -> &Ledgers {
        self.server.ledgers()
    }

    /// Limits the large messages that are handled at the same time.
    pub(crate) fn large_messages(&self) -> &Arc<Semaphore> {
        &self.large_messages
    }

    /// Handles an HTTP request with its body. The outbox may have its answer before this returns.
    pub(crate) fn request(
        &self,
        head: AdmittedHead,
        body: &[u8],
        outbox: Box<dyn Outbox>,
    ) -> (ExchangeId, Option<Rest>) {
        let (exchange, step) = self.server.begin_request(head, body, outbox);
        (exchange, self.run(step))
    }

    /// Ends an exchange whose peer left before the answer was complete.
    pub(crate) fn disconnected(&self, exchange: ExchangeId) {
        self.host.perform(self.server.disconnected(exchange));
    }

    /// Errors with the answer to a request, from this address, that may not become a message connection.
    pub(crate) fn admit_upgrade(&self, head: &Parts, remote: Option<IpAddr>) -> Result<(), Part> {
        self.server.admit_upgrade(head, remote)
    }

    /// Returns the authenticator of callers; `None` if everybody may call.
    #[cfg(feature = "auth")]
    pub(crate) fn auth(&self) -> Option<&Arc<AuthServer>> {
        self.server.auth()
    }

    /// Opens a message connection of this principal and from this address, if they are known.
    pub(crate) fn connect(
        &self,
        principal: Option<Arc<Principal>>,
        remote: Option<IpAddr>,
        outbox: Box<dyn Outbox>,
    ) -> ConnectionId {
        self.server.connect(principal, remote, outbox)
    }

    /// Ends a message connection at this time, when its access token expires.
    #[cfg(feature = "auth")]
    pub(crate) fn expire_at(&self, connection: ConnectionId, at: Instant) {
        self.server.expire_at(connection, at);
    }

    /// Handles one frame of a message connection.
    pub(crate) fn frame(&self, connection: ConnectionId, frame: &Frame<'_>) -> Option<Rest> {
        self.run(match frame {
            Frame::Line(line) => self.server.begin_message(connection, line),
            Frame::TooLong(message) => {
                EndpointStep::new(self.server.too_long(connection, *message))
            }
        })
    }

    /// Handles the lines in a chunk. Their work is done together, so that a call that the next line cancels is not started.
    pub(crate) fn lines(
        &self,
        connection: ConnectionId,
        decoder: &mut LineDecoder,
        chunk: &[u8],
    ) -> Option<Rest> {
        self.run(self.server.begin_lines(connection, decoder, chunk))
    }

    /// Ends the input of a message connection, whose peer sends nothing more.
    pub(crate) fn end_of_input(&self, connection: ConnectionId) {
        self.host.perform(self.server.end_of_input(connection));
    }

    /// Ends a message connection that was closed.
    pub(crate) fn connection_closed(&self, connection: ConnectionId) {
        self.host.perform(self.server.connection_closed(connection));
    }

    /// Returns whether so much is unanswered that no more messages of this connection should be read.
    pub(crate) fn is_full_for(&self, connection: ConnectionId) -> bool {
        self.server.is_full_for(connection)
    }

    /// Waits while it is full for this connection.
    pub(crate) async fn has_room(&self, connection: ConnectionId) {
        self.server.has_room(connection).await;
    }

    /// Logs that the server begins or ends to listen at this URL.
    pub(crate) fn log_listening(&self, kind: EventKind, url: &str) {
        self.server.log_listening(kind, url);
    }

    /// Returns the names of the components whose handlers run.
    pub(crate) fn running(&self) -> Vec<String> {
        self.server.running()
    }

    /// Waits while anything that came on this connection is unanswered.
    pub(crate) async fn has_answered(&self, connection: ConnectionId) {
        self.server.has_answered(connection).await;
    }

    /// Has `ready` answered with 503, because the shutdown begins; everything else continues.
    pub(crate) fn begin_drain(&self) {
        self.server.admission().begin_drain();
    }

    /// Rejects new requests and ends subscriptions with their result.
    pub(crate) fn shut_down(&self) {
        self.host.perform(self.server.shut_down());
    }

    /// Waits while anything is in flight.
    pub(crate) async fn is_idle(&self) {
        self.server.is_idle().await;
    }

    /// Stops everything that is in flight.
    pub(crate) fn close(&self) {
        self.host.perform(self.server.close());
    }

    /// Has the endpoint share sessions, changes and metrics with the other processes that serve its address.
    #[cfg_attr(
        all(not(unix), feature = "http"),
        expect(dead_code, reason = "processes find each other by Unix sockets")
    )]
    pub(crate) fn join_workers(&self, publish: Publish, workers: AskWorkers) {
        self.server.join_workers(publish, workers);
    }

    /// Has the metrics of this process name it.
    pub(crate) fn name_worker(&self) {
        self.server.name_worker();
    }

    /// Returns the numbers of the server.
    #[cfg_attr(
        all(not(unix), feature = "http"),
        expect(dead_code, reason = "processes find each other by Unix sockets")
    )]
    pub(crate) fn metrics(&self) -> Arc<Metrics> {
        self.server.metrics()
    }

    /// Returns a number that other processes do not have.
    #[cfg_attr(
        all(not(unix), feature = "http"),
        expect(dead_code, reason = "processes find each other by Unix sockets")
    )]
    pub(crate) fn process(&self) -> u64 {
        self.server.process()
    }

    /// Handles a reply or a report about the other processes.
    #[cfg_attr(
        all(not(unix), feature = "http"),
        expect(dead_code, reason = "processes find each other by Unix sockets")
    )]
    pub(crate) fn workers(&self, reply: WorkersReply) {
        self.host.perform(self.server.workers(reply));
    }

    /// Carries the operations on the store for as long as it is polled; see [`EndpointServer::carry_store`].
    #[cfg(feature = "http")]
    pub(crate) async fn carry_store(self: Arc<Self>, has_group: bool) {
        let (server, host) = (Arc::clone(&self.server), Arc::clone(&self.host));
        server.carry_store(has_group, |work| host.perform(work)).await;
    }

    /// Handles a message of another process.
    pub(crate) fn published(&self, message: &[u8]) {
        self.host.perform(self.server.published(message));
    }

    /// Handles the deadlines that have come.
    pub(crate) fn tick(&self) {
        self.host.perform(self.server.tick());
    }

    /// Returns the time of the next tick.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.server.deadline()
    }

    /// Waits until the deadline is nearer than before.
    pub(crate) async fn rescheduled(&self) {
        self.server.rescheduled().await;
    }

    /// Does the work of a step. Returns the part that may take long.
    fn run(&self, step: EndpointStep) -> Option<Rest> {
        let (work, rest) = step.split();
        self.host.perform(work);
        let rest = rest?;
        let (server, host) = (Arc::clone(&self.server), Arc::clone(&self.host));
        Some(Box::new(move || host.perform(server.finish(rest))))
    }
}
