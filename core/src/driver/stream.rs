//! A server of one stream of frames. Threads of the shell pass it input and the outcomes of handlers. Frames are written
//! in the order in which the service made them.

use std::{
    fs::File,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use super::{
    Backend, SharedHandler, Work, start, watchdog::lock_soon, work::Step, writer::BatchWriter,
};
use crate::{
    clock,
    engine::{
        HandlerEvent, HostReply, Input, MAX_UNDER_LOCK, Output, RunId, Service, Start, TestMode,
        Ticket,
    },
    framing::{Frame, LineDecoder},
    protocol,
    router::Components,
    session::{
        asking::Answers,
        server::{HttpFacts, ListKind},
    },
};

/// Unwritten bytes above which reading pauses.
const MAX_UNWRITTEN: usize = 4 * 1024 * 1024;

/// Unwritten bytes above which the peer is sent only what it waits for.
const MAX_UNWRITTEN_REPORTS: usize = 2 * MAX_UNWRITTEN;
/// Bytes of waiting changes above which the subscriptions end.
const MAX_CHANGES: usize = MAX_UNWRITTEN;

/// A service behind a lock, and the writer of its frames.
#[derive(Debug)]
pub struct StreamServer<H> {
    service: Mutex<Service<H>>,
    /// Lines for the log that no caller could take yet.
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

    /// Handles a chunk of input. Replies are queued, not yet written.
    pub fn feed(&self, decoder: &mut LineDecoder, chunk: &[u8]) -> Work<H> {
        let (mut rest, mut work) = (chunk, Work::default());
        let mut service = self.lock();
        let mut now = clock::now();
        // The rest of the chunk when the lock was taken.
        let mut left = rest.len();
        while let Some(frame) = decoder.next(&mut rest) {
            let long = if is_long(&frame) {
                Some(frame)
            } else {
                service.handle(now, input(frame));
                None
            };
            if long.is_none() && left - rest.len() < MAX_UNDER_LOCK {
                continue;
            }
            // Other threads use the service after so many bytes, and while a long frame is parsed. The work so far is taken
            // first, because not every one of them can run handlers.
            let step = self.drain(&mut service);
            drop(service);
            work.extend(self.finish(step));
            if let Some(frame) = long {
                work.extend(self.handle(input(frame)));
            }
            service = self.lock();
            now = clock::now();
            left = rest.len();
        }
        let step = self.drain(&mut service);
        drop(service);
        let last = self.finish(step);
        if work.is_empty() {
            return last;
        }
        work.extend(last);
        work
    }

    /// Handles the end of the input. A last line without a newline counts, and pending questions fail.
    pub fn end_of_input(&self, decoder: &mut LineDecoder) -> Work<H> {
        let mut work = decoder.finish().map_or_else(Work::default, |it| self.handle(input(it)));
        work.extend(self.handle(Input::EndOfInput));
        work
    }

    /// Ends subscriptions with their result; calls in flight continue.
    pub fn shut_down(&self) -> Work<H> {
        self.handle(Input::ShutDown)
    }

    /// Writes everything that is queued; blocks while the peer reads slowly. Returns at once if another thread is writing.
    pub fn flush(&self) {
        self.writer.flush();
    }

    /// Writes while the pipe has room, and leaves the rest to a thread. Never blocks.
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

    /// Returns the number of bytes that wait to be written.
    pub fn unwritten(&self) -> usize {
        self.writer.unwritten()
    }

    /// Blocks while too much is unread or unanswered: the reader's back pressure.
    pub fn wait_for_room(&self) {
        while self.is_full() && !self.writer.is_broken() {
            self.writer.wait_for_change();
        }
    }

    /// Returns the descriptor that frames are written to, to wait for its reader to go.
    #[cfg(unix)]
    pub fn output(&self) -> std::os::fd::BorrowedFd<'_> {
        self.writer.output()
    }

    /// Returns whether the peer has closed its end, so that nothing can be written any more.
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
        self.finish(self.handle_locked(input))
    }

    #[inline]
    fn finish(&self, step: Step<H>) -> Work<H> {
        step.finish(|it| self.handle_locked(Input::Computed(it)))
    }

    fn handle_locked(&self, input: Input<'_, H>) -> Step<H> {
        let mut service = self.lock();
        service.handle(clock::now(), input);
        self.drain(&mut service)
    }

    /// Handles an input that neither starts nor ends handlers.
    fn update(&self, input: Input<'_, H>) {
        if let Some(others) = self.handle(input).others {
            self.reports().extend(others.reports);
        }
    }

    fn drain(&self, service: &mut Service<H>) -> Step<H> {
        let reports = std::mem::take(&mut *self.reports());
        let mut step = Step::new(Work::reporting(reports));
        while let Some(output) = service.poll() {
            match output {
                Output::Send(frame) => self.writer.push(frame),
                Output::Effect(effect) => step.add(effect),
                Output::Change(frame) => {
                    let before = self.writer.changes();
                    self.writer.push_change(&frame);
                    if before <= MAX_CHANGES && self.writer.changes() > MAX_CHANGES {
                        service.handle(clock::now(), Input::CutSubscriptions);
                    }
                }
            }
        }
        let is_lagging = match service.is_lagging() {
            false => self.unwritten() > MAX_UNWRITTEN_REPORTS,
            true => self.is_backed_up(),
        };
        if is_lagging != service.is_lagging() {
            service.handle(clock::now(), Input::Lagging(is_lagging));
        }
        step
    }

    fn reports(&self) -> MutexGuard<'_, Vec<String>> {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Service<H>> {
        // A panic under the lock is a bug of Gudgeon's. It must not fail every other call.
        self.service.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<H: SharedHandler> Backend<H> for StreamServer<H> {
    fn on_event(&self, run: RunId, event: HandlerEvent) -> Work<H> {
        self.handle(Input::Handler(run, event))
    }

    fn on_report(&self, run: RunId, event: HandlerEvent) {
        self.update(Input::Handler(run, event));
    }

    fn host_reply(&self, ticket: Ticket, reply: HostReply) -> Work<H> {
        self.handle(Input::Host(ticket, reply))
    }

    fn page_done(&self, page: &str) {
        self.update(Input::PageDone(page));
    }

    /// Has no effect: a stream of frames is not resumable.
    fn close_stream(&self, _: RunId, _: Option<Duration>) {}

    fn set_components(&self, components: Arc<Components<H>>, changed: Vec<ListKind>) {
        self.update(Input::Components(components, changed));
    }

    fn updated(&self, uri: &str) {
        self.update(Input::Updated(uri));
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

    fn brought_answers(&self, run: RunId) -> Vec<Answers> {
        self.lock().brought_answers(run)
    }

    fn in_flight(&self) -> usize {
        self.lock().in_flight()
    }

    fn running(&self) -> Vec<String> {
        lock_soon(&self.service).map(|it| it.running()).unwrap_or_default()
    }
}

fn is_long(frame: &Frame<'_>) -> bool {
    matches!(frame, Frame::Line(line) if line.len() > MAX_UNDER_LOCK)
}

fn input<H>(frame: Frame<'_>) -> Input<'_, H> {
    match frame {
        Frame::Line(line) => Input::Parsed(protocol::Frame::parse(line)),
        Frame::TooLong(message) => Input::TooLong(message),
    }
}
