//! An endpoint with one outbox for each exchange and each message connection. A lock of the driver's guards all of it.

use std::{collections::VecDeque, sync::Arc, time::Instant};

use rustc_hash::FxHashMap;

#[cfg(feature = "http")]
use super::store_link::StoreQueue;
use super::{
    Work,
    native_host::NativeRuns,
    sending::Sending,
    start_gate::{Backlog, MAX_AT_ONCE, StartGate},
    work::EndpointStep,
};
use crate::{
    clock,
    engine::{Effect, HandlerEvent, Run, RunId},
    http::{
        ConnectionId, Endpoint, EndpointInput, EndpointOutput, ExchangeId, Part, Reader,
        StoreTicket, WorkersRequest,
    },
    session::server::CallContext,
    store::{StoreOperation, StoreReply},
};

/// A function that sends a message to other processes, and does not block.
pub(crate) type Publish = Box<dyn FnMut(Vec<u8>) + Send>;

/// A function that takes requests about the processes that serve the address, and does not block.
pub(crate) type AskWorkers = Box<dyn FnMut(WorkersRequest) + Send>;

/// One endpoint and the outboxes of its readers.
pub(super) struct EndpointState {
    pub(super) endpoint: Endpoint,
    pub(super) exchanges: FxHashMap<ExchangeId, Sending>,
    pub(super) connections: FxHashMap<ConnectionId, Sending>,
    /// Handlers that wait until their clients have read.
    gate: StartGate,
    backlog: Arc<Backlog>,
    /// Sends a message to the other processes that serve the address; `None` if there are none.
    publish: Option<Publish>,
    /// Takes requests about these processes; `None` if they are not known.
    workers: Option<AskWorkers>,
    /// `true` if the metrics of this process name it, because those of the others are read at the same address.
    pub(super) names_worker: bool,
    /// Takes operations on the store; `None` if there is none.
    #[cfg(feature = "http")]
    store: Option<StoreQueue>,
    /// Handlers that another host runs.
    pub(super) native: NativeRuns,
    /// Work that no caller could take yet.
    pub(super) untaken: Work,
    /// The time for which the shell's timer is set.
    pub(super) armed: Option<Instant>,
}

impl EndpointState {
    pub(super) fn new(endpoint: Endpoint, backlog: Arc<Backlog>) -> Self {
        Self {
            endpoint,
            exchanges: FxHashMap::default(),
            connections: FxHashMap::default(),
            gate: StartGate::new(Arc::clone(&backlog)),
            backlog,
            publish: None,
            workers: None,
            names_worker: false,
            #[cfg(feature = "http")]
            store: None,
            native: NativeRuns::default(),
            untaken: Work::default(),
            armed: None,
        }
    }

    /// Has the endpoint share sessions and changes with the processes that get these messages.
    #[cfg(feature = "http")]
    pub(super) fn share(&mut self, publish: Publish) {
        self.endpoint.share();
        self.publish = Some(publish);
    }

    /// Has the endpoint use a store.
    #[cfg(feature = "http")]
    pub(super) fn use_store(&mut self, store: StoreQueue) {
        self.endpoint.use_store();
        self.store = Some(store);
    }

    /// Has the endpoint answer for the numbers of these processes as well.
    pub(super) fn join_workers(&mut self, publish: Publish, workers: AskWorkers) {
        self.endpoint.join_workers();
        (self.publish, self.workers) = (Some(publish), Some(workers));
    }

    /// Replaces the keys of what clients carry, and of what the store keeps.
    pub(super) fn set_keys(&mut self, keys: &[Vec<u8>]) {
        self.endpoint.set_state_keys(keys);
        #[cfg(feature = "http")]
        if let Some(store) = &self.store {
            store.set_keys(keys);
        }
    }

    #[inline]
    pub(super) fn handle(&mut self, input: EndpointInput<'_>) -> EndpointStep {
        let now = clock::now();
        self.pass(now, input);
        self.drain(now)
    }

    /// Passes an input to the endpoint, which others may follow before its output is taken.
    #[inline]
    pub(super) fn pass(&mut self, now: Instant, input: EndpointInput<'_>) {
        if let EndpointInput::Handler(run, event) = &input {
            if event.is_report() {
                self.note_lagging(now, *run);
            } else if matches!(event, HandlerEvent::Done(_)) {
                self.native.ended(*run);
            }
        }
        self.endpoint.handle(now, input);
    }

    /// Delivers the output, and returns the work.
    pub(super) fn drain(&mut self, now: Instant) -> EndpointStep {
        let mut step = EndpointStep::new(std::mem::take(&mut self.untaken));
        if self.gate.is_due(now) {
            self.start_those_that_waited(now, &mut step.work);
        }
        while let Some(output) = self.endpoint.poll() {
            let overtaken = match output {
                EndpointOutput::Exchange(id, part) => {
                    let is_last = matches!(part, Part::End | Part::Head { more: false, .. });
                    if is_last {
                        if let Some(mut sending) = self.exchanges.remove(&id) {
                            sending.deliver(part);
                        }
                    } else if let Some(sending) = self.exchanges.get_mut(&id) {
                        sending.deliver(part);
                    }
                    None
                }
                EndpointOutput::Connection(id, part) => {
                    if let Some(sending) = self.connections.get_mut(&id) {
                        self.gate.deliver(id, sending, part);
                    }
                    None
                }
                EndpointOutput::Publish(message) => {
                    if let Some(publish) = &mut self.publish {
                        publish(message);
                    }
                    None
                }
                EndpointOutput::Store(ticket, operation) => {
                    if let Some(failed) = self.begin_operation(ticket, operation) {
                        self.endpoint.handle(now, EndpointInput::Stored(ticket, failed));
                    }
                    None
                }
                EndpointOutput::Workers(request) => {
                    if let Some(workers) = &mut self.workers {
                        workers(request);
                    }
                    None
                }
                EndpointOutput::Expired(id) => {
                    if let Some(sending) = self.connections.get_mut(&id) {
                        sending.expire();
                    }
                    None
                }
                EndpointOutput::Change(reader, bytes) => {
                    let exceeds = self.sending(reader).is_some_and(|sending| sending.change(bytes));
                    exceeds.then_some(reader)
                }
                EndpointOutput::Effect(effect) => {
                    match effect {
                        Effect::Log(event) if !event.is_for_host() => {
                            step.unlocked().events.push(*event);
                        }
                        effect => {
                            if let Effect::Cancel(run) = &effect {
                                self.gate.forget(*run);
                            }
                            if let Some(effect) = self.native.take(effect) {
                                step.work.push(effect);
                            }
                        }
                    }
                    None
                }
                EndpointOutput::Compute(computation) => {
                    step.unlocked().computations.push(*computation);
                    None
                }
            };
            if let Some(reader) = overtaken {
                self.endpoint.handle(now, EndpointInput::CutSubscriptions(reader));
            }
        }
        let deadline = self.deadline();
        if deadline.is_some_and(|deadline| self.armed.is_none_or(|armed| deadline < armed)) {
            self.armed = deadline;
            step.work.wake = deadline;
        }
        step
    }

    /// Returns the time at which the endpoint, or a handler that waits, is to be looked at next.
    pub(super) fn deadline(&self) -> Option<Instant> {
        [self.endpoint.deadline(), self.gate.next_look()].into_iter().flatten().min()
    }

    /// Returns whether the client of a call has read enough for its handler to start.
    pub(super) fn may_start(&mut self, run: RunId, context: &CallContext) -> bool {
        self.look_at_readers();
        self.has_read(run, context)
    }

    /// Keeps a handler until its client has read. If its call was cancelled in the meantime, nobody waits for it.
    pub(super) fn keep(&mut self, run: Run) {
        if self.endpoint.awaits(run.id) {
            self.gate.keep(clock::now(), run);
        }
    }

    /// Has those handlers started that waited and whose clients have read.
    fn start_those_that_waited(&mut self, now: Instant, work: &mut Work) {
        let due = self.gate.take();
        if due.is_empty() {
            return;
        }
        self.look_at_readers();
        let (mut rest, mut started) = (VecDeque::new(), 0);
        for run in due {
            if started < MAX_AT_ONCE && self.has_read(run.id, &run.context) {
                started += 1;
                if let Some(effect) = self.native.take(Effect::Run(Box::new(run))) {
                    work.push(effect);
                }
            } else {
                rest.push_back(run);
            }
        }
        self.gate.keep_rest(now, rest, started > 0);
    }

    /// Begins an operation on the store. Returns the reply if it can't be carried out.
    fn begin_operation(
        &self,
        ticket: StoreTicket,
        operation: StoreOperation,
    ) -> Option<StoreReply> {
        #[cfg(feature = "http")]
        if let Some(store) = &self.store {
            return store.begin(ticket, operation);
        }
        let _ = (ticket, operation);
        Some(StoreReply::Failed("there is no store".into()))
    }

    fn look_at_readers(&mut self) {
        let Self { gate, connections, .. } = self;
        gate.look_at_readers(|id| connections.get(&id).map_or(0, Sending::unread_bytes));
    }

    fn has_read(&self, run: RunId, context: &CallContext) -> bool {
        match self.endpoint.reader_of(run) {
            Some(Reader::Connection(id)) if self.gate.is_slow(id) => false,
            Some(_) => {
                let unread = &self.backlog.unread;
                !(unread.is_half_full() && unread.has_half_share(context.client_key()))
            }
            // Nobody reads the answer now: it is kept for a client that comes back, or there is none.
            None => true,
        }
    }

    /// Informs the endpoint if whoever reads the reports of a handler lags now, or does so no longer.
    fn note_lagging(&mut self, now: Instant, run: RunId) {
        let Some(reader) = self.endpoint.reader_of(run) else { return };
        if let Some(is_lagging) = self.sending(reader).and_then(Sending::lags_now) {
            self.endpoint.handle(now, EndpointInput::Lagging(reader, is_lagging));
        }
    }

    fn sending(&mut self, reader: Reader) -> Option<&mut Sending> {
        match reader {
            Reader::Exchange(id) => self.exchanges.get_mut(&id),
            Reader::Connection(id) => self.connections.get_mut(&id),
        }
    }
}
