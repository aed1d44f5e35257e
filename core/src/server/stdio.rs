//! Serving over the standard streams of the process.

use std::{
    fs::File,
    io::{ErrorKind as IoErrorKind, IsTerminal as _, Write as _},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{sync::Notify, task::JoinSet};

#[cfg(unix)]
use super::hangup;
use super::{
    connection::Connection,
    process_end::ProcessEnd,
    registry::Hub,
    run::{Runner, mark_own_thread},
    serve::{FLUSH_TIMEOUT, Limits},
};
use crate::{
    driver::{ReadBuffer, StreamConnection},
    error::{Error, ErrorKind},
    framing::LineDecoder,
    transport::stdio,
};

/// Prints on standard error that the server waits for a client, if standard input is a terminal.
fn print_terminal_hint(server: &str) {
    if !std::io::stdin().is_terminal() {
        return;
    }
    let program: Vec<_> = std::env::args().map(|argument| quoted(&argument)).collect();
    // A closed standard error must not prevent serving.
    let _ = writeln!(
        std::io::stderr(),
        "{server}: serving over stdio, waiting for an MCP client on standard input; to try it, run \
         `gudgeon inspect -- {}`; Ctrl-C ends it",
        program.join(" ")
    );
}

/// A word as a shell reads it.
fn quoted(word: &str) -> String {
    let is_plain =
        |character: char| character.is_ascii_alphanumeric() || "_./:=@-".contains(character);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// Serves until standard input ends or a termination signal arrives.
pub(super) async fn serve(hub: &Hub, limits: Limits) -> Result<(), Error> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    if TAKEN.swap(true, Ordering::AcqRel) {
        return Err(Error::misuse(
            "standard input and output are served already; a process can serve them once",
        ));
    }
    let failed = |message: &str, error: std::io::Error| {
        Error::new(ErrorKind::Connect, format!("{message}: {error}")).caused_by(error)
    };
    print_terminal_hint(&hub.edit(|components| components.server.info.name.clone()));
    let (input, output) = stdio::take()
        .map_err(|error| failed("standard input and output can't be served", error))?;
    let (connection, stream) = hub.attach(|components| {
        let stream = StreamConnection::new(components, output);
        (Connection::stream(Arc::clone(&stream)), stream)
    });
    let runner = Runner::new(connection, hub.visibility_filter());
    let _stopped_when_dropped = Stop(Arc::clone(&runner));
    let mut timer = JoinSet::new();
    timer.spawn(Arc::clone(&runner).keep_time());
    // Installed before the first response, because its recipient may send a signal.
    let mut process_end =
        ProcessEnd::start().map_err(|error| failed("signal handlers can't be installed", error))?;
    process_end.watchdog().watch(limits.grace, runner.running());
    let end_of_input = Arc::new(Notify::new());
    let ended = {
        let (watchdog, end_of_input) = (process_end.watchdog().clone(), Arc::clone(&end_of_input));
        move || {
            watchdog.end_of_input();
            end_of_input.notify_one();
        }
    };
    #[cfg(unix)]
    let read_all = hangup::watch(&input, &stream, &runner, limits.grace, ended.clone())
        .map_err(|error| failed("the thread that watches the client can't be started", error))?;
    let reader = {
        let (stream, runner) = (Arc::clone(&stream), Arc::clone(&runner));
        move || {
            mark_own_thread();
            read(&input, &stream, &runner, limits.line);
            #[cfg(unix)]
            drop(read_all);
            ended();
        }
    };
    std::thread::Builder::new()
        .name("gudgeon-reader".into())
        .spawn(reader)
        .map_err(|error| failed("the thread that reads standard input can't be started", error))?;
    tokio::select! {
        () = end_of_input.notified() => (),
        () = process_end.signal() => (),
    }
    runner.perform(stream.server().shut_down());
    runner.settle();
    runner.wind_down(limits.grace).await;
    let written = async {
        while stream.unwritten() > 0 {
            stream.try_flush();
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let _ = tokio::time::timeout(FLUSH_TIMEOUT, written).await;
    process_end.finish();
    Ok(())
}

/// The reading thread: reads frames, runs fast handlers in place, and writes once per batch.
fn read(input: &File, stream: &StreamConnection, runner: &Arc<Runner>, limit: usize) {
    let runtime = runner.runtime().clone();
    let _entered = runtime.enter();
    let mut decoder = LineDecoder::new(limit);
    let mut buffer = ReadBuffer::default();
    while !stream.is_broken() {
        match buffer.read(input) {
            Ok([]) => break,
            Ok(chunk) => runner.perform(stream.feed(&mut decoder, chunk)),
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

/// Cancels pending calls when the future of `serve` is dropped.
struct Stop(Arc<Runner>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.stop();
    }
}
