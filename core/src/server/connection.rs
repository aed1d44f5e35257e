//! One connection of a running server, whatever moves its bytes.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncWrite, AsyncWriteExt as _},
    sync::Notify,
};

use crate::{
    driver::{Backend, StreamServer, Work},
    framing::{Frame, LineDecoder, encode_line},
    protocol::{LoggingLevel, Method, Raw},
    router::{Failure, Offers, Reply},
    service::{Input, Output, Service},
    session::{
        CallId,
        asking::AskId,
        server::{ListKind, Progress},
    },
};

/// Unwritten bytes at which reading pauses.
const MAX_UNWRITTEN: usize = 8 * 1024 * 1024;
/// A buffer that grew beyond this is given back.
const KEPT_CAPACITY: usize = 256 * 1024;

/// A backend whose bytes are moved by somebody else. Nothing here blocks.
pub(super) trait Connection: Backend {
    fn unwritten(&self) -> usize;
    /// Sees to it that what is queued gets written.
    fn flush(&self);
}

impl Connection for StreamServer {
    fn unwritten(&self) -> usize {
        self.unwritten()
    }

    fn flush(&self) {
        self.try_flush();
    }
}

/// A service whose bytes are moved by tasks of tokio.
#[derive(Debug)]
pub(super) struct TaskConnection {
    service: Mutex<Service>,
    queue: Mutex<Queue>,
    /// There is something to write, or the end has come.
    to_write: Notify,
    /// Something was written or answered.
    room: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    bytes: Vec<u8>,
    /// What the writer took and has not written yet.
    taken: usize,
    ended: bool,
    broken: bool,
}

impl TaskConnection {
    pub(super) fn new(service: Service) -> Self {
        Self {
            service: Mutex::new(service),
            queue: Mutex::default(),
            to_write: Notify::new(),
            room: Notify::new(),
        }
    }

    pub(super) fn feed(&self, decoder: &mut LineDecoder, chunk: &[u8]) -> Work {
        let mut rest = chunk;
        let mut service = lock(&self.service);
        let now = Instant::now();
        while let Some(frame) = decoder.next(&mut rest) {
            service.handle(now, input(frame));
        }
        self.drain(&mut service)
    }

    /// The input has ended; a last line without a newline still counts.
    pub(super) fn end_of_input(&self, decoder: &mut LineDecoder) -> Work {
        let mut service = lock(&self.service);
        if let Some(frame) = decoder.finish() {
            service.handle(Instant::now(), input(frame));
        }
        self.drain(&mut service)
    }

    /// Waits while the peer leaves too much unread or unanswered: the reader's back pressure.
    pub(super) async fn has_room(&self) {
        loop {
            let mut room = std::pin::pin!(self.room.notified());
            room.as_mut().enable();
            if self.is_broken()
                || (self.unwritten() <= MAX_UNWRITTEN && !lock(&self.service).is_full())
            {
                return;
            }
            room.await;
        }
    }

    pub(super) fn is_broken(&self) -> bool {
        lock(&self.queue).broken
    }

    /// Nothing more will be queued: the writer writes the rest and returns.
    pub(super) fn end(&self) {
        lock(&self.queue).ended = true;
        self.to_write.notify_one();
    }

    /// Writes all that is queued until the end.
    pub(super) async fn write<W: AsyncWrite + Unpin>(&self, mut writer: W) {
        let mut bytes = Vec::new();
        loop {
            let ended = {
                let mut queue = lock(&self.queue);
                std::mem::swap(&mut queue.bytes, &mut bytes);
                queue.taken = bytes.len();
                queue.ended
            };
            if bytes.is_empty() {
                if ended {
                    let _ = writer.shutdown().await;
                    return;
                }
                self.to_write.notified().await;
                continue;
            }
            if writer.write_all(&bytes).await.is_err() || writer.flush().await.is_err() {
                *lock(&self.queue) = Queue { broken: true, ..Queue::default() };
                self.room.notify_waiters();
                return;
            }
            bytes.clear();
            bytes.shrink_to(KEPT_CAPACITY);
            lock(&self.queue).taken = 0;
            self.room.notify_waiters();
        }
    }

    fn handle(&self, input: Input<'_>) -> Work {
        let mut service = lock(&self.service);
        service.handle(Instant::now(), input);
        self.drain(&mut service)
    }

    fn drain(&self, service: &mut Service) -> Work {
        let mut work = Work::default();
        while let Some(output) = service.poll() {
            match output {
                Output::Send(frame) => {
                    let mut queue = lock(&self.queue);
                    if !queue.broken {
                        encode_line(&frame, &mut queue.bytes);
                    }
                }
                Output::Effect(effect) => work.add(effect),
            }
        }
        work
    }
}

impl Backend for TaskConnection {
    fn done(&self, call: CallId, outcome: Result<Reply, Failure>) -> Work {
        let work = self.handle(Input::Done(call, outcome));
        self.room.notify_waiters();
        work
    }

    fn progress(&self, call: CallId, step: Progress) {
        // Notifications start no handlers.
        drop(self.handle(Input::Progress(call, step)));
    }

    fn log(&self, call: CallId, level: LoggingLevel, logger: Option<String>, data: Raw) {
        drop(self.handle(Input::Log { call, level, logger, data }));
    }

    fn ask(&self, call: CallId, ask: AskId, method: Method, params: Raw) -> Work {
        self.handle(Input::Ask { call, ask, method, params })
    }

    fn page_done(&self, page: &str) {
        drop(self.handle(Input::PageDone(page)));
    }

    /// One stream carries everything, and is not resumed.
    fn close_stream(&self, _: CallId, _: Option<Duration>) {}

    fn set_offers(&self, offers: Arc<Offers>, changed: Vec<ListKind>) {
        drop(self.handle(Input::Offers(offers, changed)));
    }

    fn updated(&self, uri: &str) {
        drop(self.handle(Input::Updated(uri)));
    }

    fn tick(&self) -> Work {
        let work = self.handle(Input::Tick);
        self.room.notify_waiters();
        work
    }

    fn deadline(&self) -> Option<Instant> {
        lock(&self.service).deadline()
    }

    fn close(&self) -> Work {
        self.handle(Input::Closed)
    }

    fn in_flight(&self) -> usize {
        lock(&self.service).in_flight()
    }
}

impl Connection for TaskConnection {
    fn unwritten(&self) -> usize {
        let queue = lock(&self.queue);
        queue.bytes.len() + queue.taken
    }

    fn flush(&self) {
        self.to_write.notify_one();
    }
}

/// A panic while it was held is a bug of ours; one call's loss must not become everybody's.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn input(frame: Frame<'_>) -> Input<'_> {
    match frame {
        Frame::Line(line) => Input::Frame(line),
        Frame::TooLong { limit } => Input::TooLong { limit },
    }
}
