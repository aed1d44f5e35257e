//! One stream that is served: the seam between its reader thread and the event loop.

use std::{
    fs::File,
    io::{PipeReader, PipeWriter, Write},
    os::fd::{IntoRawFd, OwnedFd},
    os::unix::net::UnixStream,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use gudgeon::{
    driver::{StreamServer, Work},
    error::Error,
    protocol::{Era, LoggingLevel, json, json::ObjectWriter},
    router::Offers,
    session::server::{CallContext, ListKind, Progress},
};
use napi::{
    Status,
    threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode},
};
use napi_derive::napi;

use crate::{
    batch::Batches,
    error::{io, misuse},
    offered::Offered,
    reader, reply,
};

/// A bare wake of the event loop; holding it keeps the process alive.
pub(crate) type Wake = ThreadsafeFunction<(), (), (), Status, false>;

/// What the reader thread and the event loop share.
pub(crate) struct Shared {
    server: Mutex<Option<Arc<StreamServer>>>,
    batches: Mutex<Batches>,
    wake: Mutex<Option<Wake>>,
    /// Gets the reader out of its wait.
    kick: PipeWriter,
    paused: AtomicBool,
    stopped: AtomicBool,
}

#[napi]
#[derive(Debug)]
pub struct NativeStream {
    shared: Arc<Shared>,
    peer: Option<UnixStream>,
}

#[napi]
impl NativeStream {
    /// What to do next; null when there is nothing.
    #[napi(catch_unwind)]
    pub fn take_batch(&self) -> Option<String> {
        let mut batches = lock(&self.shared.batches);
        let batch = batches.take();
        let more = !batches.is_empty();
        drop(batches);
        if more {
            self.shared.wake();
        }
        batch
    }

    /// What handlers answered: a line each, `slot kind payload`, and the texts that lines refer to by index.
    #[napi(catch_unwind)]
    pub fn reply(&self, lines: String, texts: Option<Vec<String>>) {
        let Some(server) = self.shared.server() else { return };
        let mut work = Work::default();
        let mut texts = texts.unwrap_or_default();
        for (slot, outcome) in reply::read(&lines, &mut texts) {
            let call = lock(&self.shared.batches).finish(slot);
            if let Some(call) = call {
                work.extend(server.done(call, outcome));
            }
        }
        if !work.runs.is_empty() && server.deadline().is_some() {
            self.shared.kick();
        }
        self.shared.push(work);
        server.try_flush();
    }

    /// Whether there is room for more.
    #[napi(catch_unwind)]
    pub fn progress(
        &self,
        slot: f64,
        progress: f64,
        total: Option<f64>,
        message: Option<String>,
    ) -> bool {
        self.tell(slot, |server, context| {
            server.progress(context.call, Progress { progress, total, message });
        })
    }

    /// `data` is JSON. Whether there is room for more.
    #[napi(catch_unwind)]
    pub fn log(
        &self,
        slot: f64,
        level: String,
        logger: Option<String>,
        data: String,
    ) -> napi::Result<bool> {
        let level = LoggingLevel::parse(&level).ok_or_else(|| {
            let known = LoggingLevel::ALL.map(LoggingLevel::as_str).join(", ");
            misuse(Error::misuse(format!("{level:?} is no log level: there are {known}")))
        })?;
        Ok(self.tell(slot, |server, context| {
            server.log(context.call, level, logger, json::raw(data));
        }))
    }

    /// The circumstances of a call that has not been answered yet, as JSON.
    #[napi(catch_unwind)]
    pub fn facts(&self, slot: f64) -> Option<String> {
        lock(&self.shared.batches).context(slot_of(slot)).map(facts)
    }

    /// Whether a handler may send more at once.
    #[napi(catch_unwind)]
    pub fn has_room(&self) -> bool {
        self.shared.server().is_none_or(|it| !it.is_full())
    }

    /// Nothing more is read.
    #[napi(catch_unwind)]
    pub fn pause(&self) {
        self.shared.paused.store(true, Ordering::SeqCst);
        self.shared.kick();
    }

    /// Requests that are not answered, and handlers that have not ended.
    #[napi(catch_unwind)]
    pub fn under_way(&self) -> u32 {
        let in_flight = self.shared.server().map_or(0, |it| it.in_flight());
        let running = lock(&self.shared.batches).running();
        u32::try_from(in_flight.max(running)).unwrap_or(u32::MAX)
    }

    /// Bytes that the peer has not read yet.
    #[napi(catch_unwind)]
    pub fn unwritten(&self) -> f64 {
        let bytes =
            self.shared.server().map_or(0, |it| if it.is_broken() { 0 } else { it.unwritten() });
        f64::from(u32::try_from(bytes).unwrap_or(u32::MAX))
    }

    /// Gives up everything in flight: each call's cancellation is in the next batch.
    #[napi(catch_unwind)]
    pub fn cancel_all(&self) {
        if let Some(server) = self.shared.server() {
            self.shared.push(server.close());
        }
    }

    /// Ends the stream; the process need not live on for it.
    #[napi(catch_unwind)]
    pub fn close(&self) {
        self.shared.close();
    }

    /// The other end of an in-memory stream, as a file descriptor that is the caller's from now on.
    #[napi(catch_unwind)]
    pub fn take_peer(&mut self) -> Option<i32> {
        self.peer.take().map(|it| OwnedFd::from(it).into_raw_fd())
    }
}

impl NativeStream {
    /// The same, for a client in this process.
    pub(crate) fn take_peer_stream(&mut self) -> Option<UnixStream> {
        self.peer.take()
    }

    pub(crate) fn open(
        offered: &Offered,
        input: File,
        output: File,
        max_message: usize,
        wake: Wake,
    ) -> napi::Result<Self> {
        let (kicked, kick) = std::io::pipe().map_err(|it| io("no pipe could be made", it))?;
        let shared = offered.open(|offers| {
            Arc::new(Shared {
                server: Mutex::new(Some(StreamServer::new(offers, output, std::process::id()))),
                batches: Mutex::default(),
                wake: Mutex::new(Some(wake)),
                kick,
                paused: AtomicBool::new(false),
                stopped: AtomicBool::new(false),
            })
        });
        read_in_thread(Arc::clone(&shared), input, kicked, max_message)?;
        Ok(Self { shared, peer: None })
    }

    pub(crate) fn open_memory(
        offered: &Offered,
        max_message: usize,
        wake: Wake,
    ) -> napi::Result<Self> {
        let failed = |it| io("no socket pair could be made", it);
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        let input = File::from(OwnedFd::from(ours.try_clone().map_err(failed)?));
        let output = File::from(OwnedFd::from(ours));
        let mut stream = Self::open(offered, input, output, max_message, wake)?;
        stream.peer = Some(theirs);
        Ok(stream)
    }

    fn tell(&self, slot: f64, tell: impl FnOnce(&StreamServer, &CallContext)) -> bool {
        let Some(server) = self.shared.server() else { return true };
        let context = lock(&self.shared.batches).context(slot_of(slot)).cloned();
        if let Some(context) = context.filter(|it| it.request_id.is_some()) {
            tell(&server, &context);
            server.try_flush();
        }
        !server.is_full()
    }
}

// Without an event loop, as when a worker thread has ended, nobody is left to answer.
impl Drop for NativeStream {
    fn drop(&mut self) {
        self.shared.close();
    }
}

impl Shared {
    pub(crate) fn server(&self) -> Option<Arc<StreamServer>> {
        lock(&self.server).clone()
    }

    pub(crate) fn set_offers(&self, offers: Arc<Offers>, changed: Option<ListKind>) {
        if let Some(server) = self.server() {
            server.set_offers(offers, changed.into_iter().collect());
            server.try_flush();
        }
    }

    pub(crate) fn push(&self, work: Work) {
        if !work.is_empty() {
            self.fill(|batches| batches.push(work));
        }
    }

    pub(crate) fn push_end(&self) {
        self.fill(Batches::push_end);
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.paused.load(Ordering::SeqCst)
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    fn close(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.kick();
        lock(&self.wake).take();
        lock(&self.server).take();
    }

    /// Wakes the event loop only when it had nothing to do, so that many entries cost one wake.
    fn fill(&self, fill: impl FnOnce(&mut Batches)) {
        let mut batches = lock(&self.batches);
        let was_empty = batches.is_empty();
        fill(&mut batches);
        let wakes = was_empty && !batches.is_empty();
        drop(batches);
        if wakes {
            self.wake();
        }
    }

    fn wake(&self) {
        if let Some(wake) = &*lock(&self.wake) {
            wake.call((), ThreadsafeFunctionCallMode::NonBlocking);
        }
    }

    fn kick(&self) {
        // A full pipe kicks as well, and a reader that is gone needs none.
        let _ = (&self.kick).write(&[0]);
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("server", &self.server).finish_non_exhaustive()
    }
}

fn read_in_thread(
    shared: Arc<Shared>,
    input: File,
    kicked: PipeReader,
    max_message: usize,
) -> napi::Result<()> {
    let read = move || {
        let read = AssertUnwindSafe(|| reader::read(&shared, &input, &kicked, max_message));
        if catch_unwind(read).is_err() {
            let reports =
                vec!["the stream can't be read on: this is a bug of gudgeon's".to_owned()];
            shared.push(Work { reports, ..Work::default() });
            shared.push_end();
        }
    };
    let builder = thread::Builder::new().name("gudgeon-reader".into());
    builder.spawn(read).map(drop).map_err(|it| io("no thread could be started to read", it))
}

fn facts(context: &CallContext) -> String {
    let mut facts = ObjectWriter::with_capacity(256);
    facts.member("stateless", &(context.revision.era() == Era::Modern));
    if let Some(meta) = &context.meta {
        facts.raw("meta", meta.get());
    }
    if let Some(info) = &context.client.info {
        facts.raw("client", info.get());
    }
    if let Some(capabilities) = &context.client.capabilities {
        facts.raw("capabilities", capabilities.get());
    }
    facts.finish()
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "slots are integers that we gave out"
)]
fn slot_of(slot: f64) -> u64 {
    slot as u64
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
