//! A stream served by its own thread.

use std::{
    fs::File,
    io::{PipeReader, PipeWriter, Write},
    os::{fd::OwnedFd, unix::net::UnixStream},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Instant,
};

use gudgeon::{
    driver::{EndpointServer, StreamConnection, Work},
    engine::{Effect, TestMode},
    log_events::LogEvent,
    session::server::HttpFacts,
};

use crate::{
    error::io,
    reader,
    served_components::ServedComponents,
    shared::{ServerIo, Shared, Wake},
    work_queue::NativeWorkQueue,
};

/// A server whose reader can be paused and stopped.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) connection: Arc<StreamConnection>,
    /// Wakes the reader.
    waker: PipeWriter,
    /// `true` while upstream servers are being reached, whose tools the peer may call with its first message.
    is_starting: AtomicBool,
    paused: AtomicBool,
    stopped: AtomicBool,
}

/// Serves an existing stream.
pub(crate) fn open(
    served: &ServedComponents,
    input: File,
    output: File,
    max_message: usize,
    wake: Wake,
) -> napi::Result<NativeWorkQueue> {
    Ok(NativeWorkQueue::new(attach(served, (input, output), max_message, wake, None)?, None))
}

/// Serves a new in-memory stream; the work queue holds the other end.
pub(crate) fn open_memory(
    served: &ServedComponents,
    max_message: usize,
    wake: Wake<true>,
    test: Option<(TestMode, HttpFacts)>,
) -> napi::Result<NativeWorkQueue> {
    let failed = |error| io("no socket pair could be made", error);
    let (ours, theirs) = UnixStream::pair().map_err(failed)?;
    let input = File::from(OwnedFd::from(ours.try_clone().map_err(failed)?));
    let output = File::from(OwnedFd::from(ours));
    let served = attach(served, (input, output), max_message, wake, test)?;
    Ok(NativeWorkQueue::new(served, Some(theirs)))
}

impl Stream {
    /// Returns whether the reader waits.
    pub(crate) fn is_paused(&self) -> bool {
        self.paused.load(Ordering::SeqCst) || self.is_starting.load(Ordering::SeqCst)
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    fn wake_reader(&self) {
        // A full pipe also wakes the reader, and a reader that has ended needs no wake-up.
        let _ = (&self.waker).write(&[0]);
    }
}

impl ServerIo for Stream {
    fn endpoint(&self) -> &Arc<EndpointServer> {
        self.connection.server()
    }

    fn has_several_clients(&self) -> bool {
        false
    }

    fn flush(&self) {
        self.connection.try_flush();
    }

    fn queue_shortened(&self) {
        self.wake_reader();
    }

    fn upstreams_were_tried(&self) {
        self.is_starting.store(false, Ordering::SeqCst);
        self.wake_reader();
    }

    /// The reader looks at the deadline each time that it is woken.
    fn wake_at(&self, _: Instant) {
        self.wake_reader();
    }

    fn has_room(&self) -> bool {
        !self.connection.is_full()
    }

    fn unwritten(&self) -> usize {
        if self.connection.is_broken() { 0 } else { self.connection.unwritten() }
    }

    fn pause(&self) -> Work {
        self.paused.store(true, Ordering::SeqCst);
        self.wake_reader();
        self.connection.server().shut_down()
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.wake_reader();
    }
}

fn attach<const WEAK: bool>(
    served: &ServedComponents,
    (input, output): (File, File),
    max_message: usize,
    wake: Wake<WEAK>,
    test: Option<(TestMode, HttpFacts)>,
) -> napi::Result<Arc<Shared>> {
    let (wake_ups, waker) = std::io::pipe().map_err(|error| io("no pipe could be made", error))?;
    let (shared, stream) = served.open(|components| {
        let connection = match test {
            None => StreamConnection::new(components, output),
            Some((mode, facts)) => {
                StreamConnection::for_test(components, output, mode, Some(facts))
            }
        };
        let is_starting = AtomicBool::new(!served.upstreams().mounted().is_empty());
        let (paused, stopped) = Default::default();
        let stream = Arc::new(Stream { connection, waker, is_starting, paused, stopped });
        let io = Arc::clone(&stream) as Arc<dyn ServerIo>;
        (Arc::new(Shared::new(io, served.clone(), wake)), stream)
    });
    read_in_thread(Arc::clone(&shared), stream, input, wake_ups, max_message)?;
    Ok(shared)
}

fn read_in_thread(
    shared: Arc<Shared>,
    stream: Arc<Stream>,
    input: File,
    wake_ups: PipeReader,
    max_message: usize,
) -> napi::Result<()> {
    let read = move || {
        let read =
            AssertUnwindSafe(|| reader::read(&shared, &stream, &input, &wake_ups, max_message));
        if catch_unwind(read).is_err() {
            let report = "reading the stream failed, which is a bug of gudgeon";
            let event = Box::new(LogEvent::problem(report));
            shared.push([Effect::Log(event)].into_iter().collect());
            shared.push_end();
        }
    };
    let builder = thread::Builder::new().name("gudgeon-reader".into());
    builder.spawn(read).map(drop).map_err(|error| io("no thread could be started to read", error))
}
