//! Serving: over the process's own standard streams, over any pair of tokio's, and until the process is told to end.

use std::{
    fs::File,
    io::{ErrorKind as IoErrorKind, Read as _, Write as _},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::oneshot,
    task::{AbortHandle, JoinSet},
};

use super::{
    connection::Connection,
    http::endpoint,
    registry::Hub,
    run::{Runner, report},
};
use crate::{
    driver::{Backend, EndpointServer, Shell, StreamServer},
    error::{Error, ErrorKind},
    framing::{Frame, LineDecoder},
    service::{EndpointConfig, Rehearsal},
    transport::{
        Transport,
        lane::Connected,
        lines::Lines,
        listen::{Listening, keep_time},
        stdio,
    },
};

const CHUNK: usize = 64 * 1024;
/// Unanswered requests of one client at which reading pauses.
const MAX_IN_FLIGHT: usize = 10_000;
/// How long a peer has to take what is queued when the server ends.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How one connection is served.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) line: usize,
    /// What is in flight at the end of the input has this long to finish.
    pub(super) grace: Duration,
}

/// Until standard input ends, or the process is told to.
pub(super) async fn stdio(hub: &Hub, limits: Limits) -> Result<(), Error> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    if TAKEN.swap(true, Ordering::AcqRel) {
        return Err(Error::misuse(
            "standard input and output are served already: a process has them once",
        ));
    }
    let failed = |message: &str, error: std::io::Error| {
        Error::new(ErrorKind::Connect, format!("{message}: {error}")).caused_by(error)
    };
    let (input, output) =
        stdio::take().map_err(|it| failed("standard input and output can't be served", it))?;
    let stream = hub.attach(|offers| StreamServer::new(offers, output));
    let runner = Runner::new(Arc::clone(&stream) as Arc<dyn Connection>);
    let _stopped_when_dropped = Stop(Arc::clone(&runner));
    let mut timer = JoinSet::new();
    timer.spawn(Arc::clone(&runner).keep_time());
    let (ended, end_of_input) = oneshot::channel();
    let reader = {
        let (stream, runner) = (Arc::clone(&stream), Arc::clone(&runner));
        move || {
            read(&input, &stream, &runner, limits.line);
            // Whoever waited may have gone already.
            let _ = ended.send(());
        }
    };
    // Before anybody is answered, who could be the one to send a signal.
    let told_to_end = told_to_end().map_err(|it| failed("signals can't be heard", it))?;
    std::thread::Builder::new()
        .name("gudgeon-reader".into())
        .spawn(reader)
        .map_err(|it| failed("the thread that reads standard input can't be started", it))?;
    tokio::select! {
        _ = end_of_input => (),
        () = told_to_end => (),
    }
    runner.perform(stream.shut_down());
    runner.settle();
    runner.wind_down(limits.grace).await;
    let written = async {
        while stream.unwritten() > 0 {
            stream.try_flush();
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let _ = tokio::time::timeout(LAST_WORDS, written).await;
    Ok(())
}

/// Until the process is told to; a second time means at once.
pub(super) async fn listening(
    hub: &Hub,
    begun: impl Future<Output = Result<Listening, Error>>,
) -> Result<(), Error> {
    let unheard = |it: std::io::Error| {
        Error::new(ErrorKind::Connect, format!("signals can't be heard: {it}")).caused_by(it)
    };
    // Before anybody can know that it is there.
    let told = told_to_end().map_err(unheard)?;
    let listening = begun.await?;
    if let Some(warning) = listening.warning() {
        report(warning);
    }
    announce(&hub.edit(|it| it.server.info.name.clone()), listening.url());
    told.await;
    let again = told_to_end().map_err(unheard)?;
    tokio::select! {
        () = listening.shut_down() => (),
        () = again => (),
    }
    Ok(())
}

/// The URL has a line of its own: programs that start servers read it.
fn announce(name: &str, url: &str) {
    let name = if name.is_empty() { "gudgeon" } else { name };
    tracing::info!("{name} serves {url}");
    // A closed standard error is no reason not to serve.
    let _ = writeln!(std::io::stderr(), "{name} serves (Ctrl-C ends it)\n{url}");
}

/// The reader's thread: frames in, quick handlers run in place, one write a batch.
fn read(mut input: &File, stream: &StreamServer, runner: &Arc<Runner>, limit: usize) {
    let runtime = runner.runtime().clone();
    let _entered = runtime.enter();
    let mut decoder = LineDecoder::new(limit);
    let mut chunk = vec![0; CHUNK];
    while !stream.is_broken() {
        match input.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => runner.perform(stream.feed(&mut decoder, &chunk[..count])),
            Err(error) if error.kind() == IoErrorKind::Interrupted => continue,
            Err(_) => break,
        }
        stream.try_flush();
        runner.schedule();
        stream.wait_for_room();
    }
    runner.perform(stream.end_of_input(&mut decoder));
    stream.try_flush();
    runner.schedule();
}

/// Until the reader ends.
pub(super) async fn streams<R, W>(
    hub: Arc<Hub>,
    limits: Limits,
    rehearsal: Option<Rehearsal>,
    reader: R,
    writer: W,
) where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let one = One::open(&hub, rehearsal);
    let lines = Lines { limit: limits.line, patience: |_| Duration::MAX };
    lines.serve(one.connected(), reader, writer, one.last(limits.grace)).await;
}

/// Until the transport ends, or fails.
pub(super) async fn transport(
    hub: Arc<Hub>,
    limits: Limits,
    transport: impl Transport,
) -> Result<(), Error> {
    let one = One::open(&hub, None);
    let connected = one.connected();
    let lane = connected.lane();
    let mut writing = std::pin::pin!(async {
        let mut frames = Vec::new();
        while lane.take(&mut frames).await {
            for frame in frames.drain(..) {
                let bytes = frame.len();
                transport.send(frame).await?;
                lane.wrote(bytes);
            }
        }
        Ok(())
    });
    let reading = async {
        let mut received = Ok(());
        loop {
            let frame = match transport.receive().await {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(error) => {
                    received = Err(error);
                    break;
                }
            };
            let work = connected.take(&match frame.len() > limits.line {
                true => Frame::TooLong { limit: limits.line },
                false => Frame::Line(&frame),
            });
            connected.run(work);
            connected.has_room().await;
        }
        one.last(limits.grace).await;
        received
    };
    let (mut ended, is_broken) = tokio::select! {
        received = reading => (received, false),
        written = &mut writing => (written, true),
    };
    drop(connected);
    if !is_broken && let Ok(written) = tokio::time::timeout(LAST_WORDS, writing).await {
        ended = ended.and(written);
    }
    transport.close().await;
    ended.map_err(|it: std::io::Error| {
        Error::new(ErrorKind::Lost, format!("the transport failed: {it}")).caused_by(it)
    })
}

/// An endpoint that one client is connected to. What still runs is stopped when it is dropped.
struct One {
    server: Arc<EndpointServer>,
    shell: Arc<dyn Shell>,
    timer: AbortHandle,
}

impl One {
    fn open(hub: &Hub, rehearsal: Option<Rehearsal>) -> Self {
        let config = EndpointConfig { max_in_flight: MAX_IN_FLIGHT, ..EndpointConfig::default() };
        let (server, shell) = endpoint(hub, config, rehearsal);
        let timer = tokio::spawn(keep_time(Arc::clone(&server), Arc::clone(&shell)));
        Self { server, shell, timer: timer.abort_handle() }
    }

    fn connected(&self) -> Connected {
        Connected::open(Arc::clone(&self.server), Arc::clone(&self.shell))
    }

    /// Subscriptions end with their result; what is in flight may finish.
    async fn last(&self, grace: Duration) {
        self.shell.run(self.server.shut_down());
        let _ = tokio::time::timeout(grace, self.server.is_idle()).await;
    }
}

impl Drop for One {
    fn drop(&mut self) {
        self.timer.abort();
        self.shell.run(self.server.close());
    }
}

/// Stops what still runs when serving is given up, as by dropping its future.
struct Stop(Arc<Runner>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// From now on a signal to end is heard, and does not end the process: whoever awaits this learns of it.
#[cfg(unix)]
fn told_to_end() -> std::io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => (),
            _ = interrupt.recv() => (),
        }
    })
}

#[cfg(not(unix))]
fn told_to_end() -> std::io::Result<impl Future<Output = ()>> {
    Ok(async {
        // Where it can't be heard, only the end of the input ends the server.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    })
}
