//! One stream of frames, served by threads of the shell's own: whoever reads feeds it, whoever finishes a handler
//! reports. Frames leave in the order in which the service made them.

use std::{
    fs::File,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use super::writer::BatchWriter;
use crate::{
    framing::{Frame, LineDecoder},
    protocol::{LoggingLevel, Raw},
    router::{Failure, Offers, Reply},
    service::{Input, Output, Run, Service},
    session::{
        CallId,
        server::{ListKind, Progress},
    },
};

/// Unwritten bytes at which reading pauses, and who would add to them should wait.
const MAX_UNWRITTEN: usize = 4 * 1024 * 1024;

/// A service behind a lock, and the writer of its frames.
#[derive(Debug)]
pub struct StreamServer {
    service: Mutex<Service>,
    writer: BatchWriter,
}

/// What the shell has to do now.
#[derive(Debug, Default)]
#[must_use = "handlers that are not run are never answered"]
pub struct Work {
    pub runs: Vec<Run>,
    pub cancels: Vec<CallId>,
    /// Lines for the log.
    pub reports: Vec<String>,
}

impl StreamServer {
    /// `nonce` is any number that tells this process from others in a log.
    pub fn new(offers: Arc<Offers>, output: File, nonce: u32) -> Arc<Self> {
        Arc::new(Self {
            service: Mutex::new(Service::new(offers, nonce)),
            writer: BatchWriter::new(output),
        })
    }

    /// Takes what was read. Replies are queued, not yet written.
    pub fn feed(&self, decoder: &mut LineDecoder, chunk: &[u8]) -> Work {
        let mut rest = chunk;
        let mut service = self.lock();
        let now = Instant::now();
        while let Some(frame) = decoder.next(&mut rest) {
            service.handle(now, input(frame));
        }
        self.drain(&mut service)
    }

    /// The input has ended; a last line without a newline still counts.
    pub fn end_of_input(&self, decoder: &mut LineDecoder) -> Work {
        let mut service = self.lock();
        if let Some(frame) = decoder.finish() {
            service.handle(Instant::now(), input(frame));
        }
        self.drain(&mut service)
    }

    /// A handler has finished. Others may start in its place.
    pub fn done(&self, call: CallId, outcome: Result<Reply, Failure>) -> Work {
        self.handle(Input::Done(call, outcome))
    }

    pub fn progress(&self, call: CallId, step: Progress) {
        // Notifications start no handlers.
        drop(self.handle(Input::Progress(call, step)));
    }

    pub fn log(&self, call: CallId, level: LoggingLevel, logger: Option<String>, data: Raw) {
        drop(self.handle(Input::Log { call, level, logger, data }));
    }

    /// What the server offers from now on, and which lists that changes.
    pub fn set_offers(&self, offers: Arc<Offers>, changed: Vec<ListKind>) {
        drop(self.handle(Input::Offers(offers, changed)));
    }

    /// To be called when the deadline has come.
    pub fn tick(&self) -> Work {
        self.handle(Input::Tick)
    }

    pub fn deadline(&self) -> Option<Instant> {
        self.lock().deadline()
    }

    /// The peer is gone: everything in flight is to be stopped.
    pub fn close(&self) -> Work {
        self.handle(Input::Closed)
    }

    /// Writes all that is queued; blocks while the peer reads slowly. Returns at once when another thread writes.
    pub fn flush(&self) {
        self.writer.flush();
    }

    /// Writes while the peer has room; the rest is left to a thread. Never blocks.
    pub fn try_flush(&self) {
        self.writer.try_flush();
    }

    /// Requests that were read and not yet answered.
    pub fn in_flight(&self) -> usize {
        self.lock().in_flight()
    }

    /// Whether the reader should wait before it reads on.
    pub fn is_full(&self) -> bool {
        self.is_backed_up() || self.lock().is_full()
    }

    /// Whether the peer leaves so much unread that nothing should be added.
    pub fn is_backed_up(&self) -> bool {
        self.writer.unwritten() > MAX_UNWRITTEN
    }

    /// Bytes that wait to be written.
    pub fn unwritten(&self) -> usize {
        self.writer.unwritten()
    }

    /// Blocks while the peer leaves too much unread or unanswered: the reader's back pressure.
    pub fn wait_for_room(&self) {
        while self.is_full() && !self.writer.is_broken() {
            self.writer.wait_for_change();
        }
    }

    /// Whether the peer has closed its end: nothing can be written any more.
    pub fn is_broken(&self) -> bool {
        self.writer.is_broken()
    }

    fn handle(&self, input: Input<'_>) -> Work {
        let mut service = self.lock();
        service.handle(Instant::now(), input);
        self.drain(&mut service)
    }

    fn drain(&self, service: &mut Service) -> Work {
        let mut work = Work::default();
        while let Some(output) = service.poll() {
            match output {
                Output::Send(frame) => self.writer.push(&frame),
                Output::Run(run) => work.runs.push(run),
                Output::Cancel(call) => work.cancels.push(call),
                Output::Report(text) => work.reports.push(text),
            }
        }
        work
    }

    fn lock(&self) -> MutexGuard<'_, Service> {
        // A panic while it was held is a bug of ours; one call's loss must not become everybody's.
        self.service.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Work {
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.cancels.is_empty() && self.reports.is_empty()
    }

    /// Adds what another step asks for.
    pub fn extend(&mut self, other: Self) {
        self.runs.extend(other.runs);
        self.cancels.extend(other.cancels);
        self.reports.extend(other.reports);
    }
}

fn input(frame: Frame<'_>) -> Input<'_> {
    match frame {
        Frame::Line(line) => Input::Frame(line),
        Frame::TooLong { limit } => Input::TooLong { limit },
    }
}
