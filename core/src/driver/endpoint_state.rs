//! An endpoint with one outbox for each exchange and each message connection. A lock of the driver's guards all of it.

use std::time::Instant;

use rustc_hash::FxHashMap;

use super::{Work, sending::Sending, work::Step};
use crate::{
    clock,
    engine::RunId,
    http::{ConnectionId, Endpoint, EndpointInput, EndpointOutput, ExchangeId, Part, Reader},
};

/// One endpoint and the outboxes of its readers.
pub(super) struct EndpointState {
    pub(super) endpoint: Endpoint,
    pub(super) exchanges: FxHashMap<ExchangeId, Sending>,
    pub(super) connections: FxHashMap<ConnectionId, Sending>,
    /// Work that no caller could take yet.
    pub(super) untaken: Work,
    /// The time for which the shell's timer is set.
    pub(super) armed: Option<Instant>,
}

impl EndpointState {
    pub(super) fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            exchanges: FxHashMap::default(),
            connections: FxHashMap::default(),
            untaken: Work::default(),
            armed: None,
        }
    }

    #[inline]
    pub(super) fn handle(&mut self, input: EndpointInput<'_>) -> Step {
        let now = clock::now();
        self.pass(now, input);
        self.drain(now)
    }

    /// Passes an input to the endpoint, which others may follow before its output is taken.
    #[inline]
    pub(super) fn pass(&mut self, now: Instant, input: EndpointInput<'_>) {
        if let EndpointInput::Handler(run, event) = &input
            && event.is_report()
        {
            self.note_lagging(now, *run);
        }
        self.endpoint.handle(now, input);
    }

    /// Delivers the output, and returns the work.
    pub(super) fn drain(&mut self, now: Instant) -> Step {
        let mut step = Step::new(std::mem::take(&mut self.untaken));
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
                        sending.deliver(part);
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
                    step.work.push(effect);
                    None
                }
                EndpointOutput::Compute(computation) => {
                    step.computations.push(*computation);
                    None
                }
            };
            if let Some(reader) = overtaken {
                self.endpoint.handle(now, EndpointInput::CutSubscriptions(reader));
            }
        }
        let deadline = self.endpoint.deadline();
        if deadline.is_some_and(|it| self.armed.is_none_or(|armed| it < armed)) {
            self.armed = deadline;
            step.work.wake = deadline;
        }
        step
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
