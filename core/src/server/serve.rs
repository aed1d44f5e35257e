//! Serving: over the process's own standard streams, and over any pair of tokio's.

use std::{
    fs::File,
    io::{ErrorKind as IoErrorKind, Read as _},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite},
    sync::oneshot,
    task::JoinSet,
};

use super::{
    connection::{Connection, TaskConnection},
    registry::Hub,
    run::Runner,
};
use crate::{
    driver::StreamServer,
    error::{Error, ErrorKind},
    framing::LineDecoder,
    service::Service,
    transport::stdio,
};

const CHUNK: usize = 64 * 1024;
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
    std::thread::Builder::new()
        .name("gudgeon-reader".into())
        .spawn(reader)
        .map_err(|it| failed("the thread that reads standard input can't be started", it))?;
    tokio::select! {
        _ = end_of_input => (),
        signal = told_to_end() => signal.map_err(|it| failed("signals can't be heard", it))?,
    }
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
pub(super) async fn streams<R, W>(hub: Arc<Hub>, limits: Limits, mut reader: R, writer: W)
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let connection = hub.attach(|offers| {
        Arc::new(TaskConnection::new(Service::new(offers, &crate::driver::start())))
    });
    let runner = Runner::new(Arc::clone(&connection) as Arc<dyn Connection>);
    let _stopped_when_dropped = Stop(Arc::clone(&runner));
    let mut timer = JoinSet::new();
    timer.spawn(Arc::clone(&runner).keep_time());
    let mut writing = JoinSet::new();
    writing.spawn({
        let connection = Arc::clone(&connection);
        async move { connection.write(writer).await }
    });
    let mut decoder = LineDecoder::new(limits.line);
    let mut chunk = vec![0; CHUNK];
    loop {
        let count = tokio::select! {
            read = reader.read(&mut chunk) => match read {
                Ok(0) | Err(_) => break,
                Ok(count) => count,
            },
            _ = writing.join_next() => break,
        };
        runner.perform(connection.feed(&mut decoder, &chunk[..count]));
        runner.settle();
        connection.has_room().await;
    }
    runner.perform(connection.end_of_input(&mut decoder));
    runner.settle();
    runner.wind_down(limits.grace).await;
    connection.end();
    let _ = tokio::time::timeout(LAST_WORDS, writing.join_next()).await;
}

/// Stops what still runs when serving is given up, as by dropping its future.
struct Stop(Arc<Runner>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

#[cfg(unix)]
async fn told_to_end() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        _ = terminate.recv() => (),
        _ = interrupt.recv() => (),
    }
    Ok(())
}

#[cfg(not(unix))]
async fn told_to_end() -> std::io::Result<()> {
    tokio::signal::ctrl_c().await
}
