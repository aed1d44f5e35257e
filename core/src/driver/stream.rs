//! One stream of frames, served by threads of the shell's own: whoever reads feeds it, whoever finishes a handler
//! reports. Frames leave in the order in which the service made them.

use std::{
    fs::File,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use super::{Backend, SharedHandler, Work, start, writer::BatchWriter};
use crate::{
    engine::{
        HandlerEvent, HostReply, Input, MAX_UNDER_LOCK, Output, RunId, Service, Start, TestMode,
        Ticket,
    },
    framing::{Frame, LineDecoder},
    protocol,
    router::{Components, ResultBuilder},
    session::server::{HttpFacts, ListKind},
};

/// Unwritten bytes at which reading pauses, and who would add to them should wait.
const MAX_UNWRITTEN: usize = 4 * 1024 * 1024;

/// Unwritten bytes at which the peer is told only what it waits for.
const BEHIND: usize = 2 * MAX_UNWRITTEN;
/// Bytes of changes that wait, and are more than a peer can catch up with.
const MAX_CHANGES: usize = MAX_UNWRITTEN;

/// A service behind a lock, and the writer of its frames.
#[derive(Debug)]
pub struct StreamServer<H> {
    service: Mutex<Service<H>>,
    /// Lines for the log that came up where nobody could take them.
    reports: Mutex<Vec<String>>,
    writer: BatchWriter,
}

impl<H: Clone> StreamServer<H> {
    pub fn new(components: Arc<Components<H>>, output: File) -> Arc<Self> {
        Self::started(Service::new(components, &start()), output)
    }

    /// Serves a test; `facts` are the principal and headers of every call.
    pub fn for_test(
        components: Arc<Components<H>>,
        output: File,
        test_mode: TestMode,
        facts: Option<HttpFacts>,
    ) -> Arc<Self> {
        let service = Service::new(components, &Start { test_mode: Some(test_mode), ..start() });
        let service = match facts {
            None => service,
            Some(facts) => service.with_facts(facts),
        };
        Self::started(service, output)
    }

    /// Takes what was read. Replies are queued, not yet written.
    pub fn feed(&self, decoder: &mut LineDecoder, chunk: &[u8]) -> Work<H> {
        let (mut rest, mut work) = (chunk, Work::default());
        let mut service = self.lock();
        let mut now = Instant::now();
        while let Some(frame) = decoder.next(&mut rest) {
            if !is_long(&frame) {
                service.handle(now, input(frame));
                continue;
            }
            // Other threads use the service while a long frame is parsed. The work so far is taken first, because not
            // every one of them can run handlers.
            work.extend(self.drain(&mut service));
            drop(service);
            work.extend(self.handle(input(frame)));
            service = self.lock();
            now = Instant::now();
        }
        let last = self.drain(&mut service);
        if work.is_empty() {
            return last;
        }
        work.extend(last);
        work
    }

    /// The input has ended; a last line without a newline still counts. Nobody answers a question from now on.
    pub fn end_of_input(&self, decoder: &mut LineDecoder) -> Work<H> {
        let mut work = decoder.finish().map_or_else(Work::default, |it| self.handle(input(it)));
        work.extend(self.handle(Input::EndOfInput));
        work
    }

    /// Subscriptions end with their result; what is in flight goes on.
    pub fn shut_down(&self) -> Work<H> {
        self.handle(Input::ShutDown)
    }

    /// Writes all that is queued; blocks while the peer reads slowly. Returns at once when another thread writes.
    pub fn flush(&self) {
        self.writer.flush();
    }

    /// Writes while the peer has room; the rest is left to a thread. Never blocks.
    pub fn try_flush(&self) {
        self.writer.try_flush();
    }

    /// Returns whether the reader should wait before it reads on.
    pub fn is_full(&self) -> bool {
        self.is_backed_up() || self.lock().is_full()
    }

    /// Returns whether the peer leaves so much unread that nothing should be added.
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

    /// Returns whether the peer has closed its end: nothing can be written any more.
    pub fn is_broken(&self) -> bool {
        self.writer.is_broken()
    }

    fn started(service: Service<H>, output: File) -> Arc<Self> {
        Arc::new(Self {
            service: Mutex::new(service),
            reports: Mutex::default(),
            writer: BatchWriter::new(output),
        })
    }

    fn handle(&self, input: Input<'_, H>) -> Work<H> {
        let mut work = self.handle_locked(input);
        while !work.dispatches.is_empty() {
            for (ticket, job) in std::mem::take(&mut work.dispatches) {
                let input = Input::Dispatched(ticket, job.run());
                work.extend(self.handle_locked(input));
            }
        }
        work
    }

    fn handle_locked(&self, input: Input<'_, H>) -> Work<H> {
        let mut service = self.lock();
        service.handle(Instant::now(), input);
        self.drain(&mut service)
    }

    /// Handles what starts no handlers and ends none.
    fn say(&self, input: Input<'_, H>) {
        let Work { reports, .. } = self.handle(input);
        if !reports.is_empty() {
            self.reports().extend(reports);
        }
    }

    fn drain(&self, service: &mut Service<H>) -> Work<H> {
        let mut work = Work { reports: std::mem::take(&mut *self.reports()), ..Work::default() };
        while let Some(output) = service.poll() {
            match output {
                Output::Send(frame) => self.writer.push(&frame),
                Output::Effect(effect) => work.add(effect),
                Output::Change(frame) => {
                    let before = self.writer.changes();
                    self.writer.push_change(&frame);
                    if before <= MAX_CHANGES && self.writer.changes() > MAX_CHANGES {
                        service.handle(Instant::now(), Input::CutSubscriptions);
                    }
                }
            }
        }
        let is_lagging = match service.is_lagging() {
            false => self.unwritten() > BEHIND,
            true => self.is_backed_up(),
        };
        if is_lagging != service.is_lagging() {
            service.handle(Instant::now(), Input::Lagging(is_lagging));
        }
        work
    }

    fn reports(&self) -> MutexGuard<'_, Vec<String>> {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Service<H>> {
        // A panic while it was held is a bug of ours; one call's loss must not become everybody's.
        self.service.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<H: SharedHandler> Backend<H> for StreamServer<H> {
    fn hear(&self, run: RunId, event: HandlerEvent) -> Work<H> {
        self.handle(Input::Handler(run, event))
    }

    fn note(&self, run: RunId, event: HandlerEvent) {
        self.say(Input::Handler(run, event));
    }

    fn host_reply(&self, ticket: Ticket, reply: HostReply) -> Work<H> {
        self.handle(Input::Host(ticket, reply))
    }

    fn page_done(&self, page: &str) {
        self.say(Input::PageDone(page));
    }

    /// One stream carries everything, and is not resumed.
    fn close_stream(&self, _: RunId, _: Option<Duration>) {}

    fn set_components(&self, components: Arc<Components<H>>, changed: Vec<ListKind>) {
        self.say(Input::Components(components, changed));
    }

    fn updated(&self, uri: &str) {
        self.say(Input::Updated(uri));
    }

    fn tick(&self) -> Work<H> {
        self.handle(Input::Tick)
    }

    fn deadline(&self) -> Option<Instant> {
        self.lock().deadline()
    }

    fn close(&self) -> Work<H> {
        self.handle(Input::Closed)
    }

    fn result_builder(&self, run: RunId) -> Option<ResultBuilder<H>> {
        self.lock().result_builder(run)
    }

    fn in_flight(&self) -> usize {
        self.lock().in_flight()
    }
}

fn is_long(frame: &Frame<'_>) -> bool {
    matches!(frame, Frame::Line(line) if line.len() > MAX_UNDER_LOCK)
}

fn input<H>(frame: Frame<'_>) -> Input<'_, H> {
    match frame {
        Frame::Line(line) => Input::Parsed(protocol::Frame::parse(line)),
        Frame::TooLong { limit } => Input::TooLong { limit },
    }
}
