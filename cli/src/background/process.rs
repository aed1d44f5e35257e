//! The background process: one for a user, started by the first command that needs it.

use std::{
    fs::{self, TryLockError},
    io::{Seek as _, Write as _},
    os::unix::fs::PermissionsExt as _,
    sync::Arc,
    time::{Duration, Instant},
};

use gudgeon::protocol::Raw;
use serde_json::{json, value::RawValue};
use tokio::{
    net::{
        UnixListener, UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    signal::unix::{SignalKind, signal},
    sync::Notify,
    task::JoinSet,
    time::timeout,
};

use super::{
    Folder,
    connection::Connection,
    control::{self, Attempt, Greeting, Registry, VERSION},
    log::Log,
    message::{Lines, Message, error_of, raw, response},
    peer,
};
use crate::failure::{Failure, FailureKind};

/// The time for a command to send its request.
const HELLO_TIME: Duration = Duration::from_secs(10);

/// A command that waits for the outcome of its request.
pub struct Caller {
    pub lines: Lines<OwnedReadHalf>,
    pub writer: OwnedWriteHalf,
}

/// The limits of the background process.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The time without use after which the process ends.
    pub idle: Duration,
    /// The time for the answer to a question.
    pub question_time: Duration,
    /// The maximum number of questions that wait.
    pub questions: usize,
}

/// Runs the background process until it was idle for too long or is asked to end. Returns at once if there is one already.
pub async fn run(limits: Limits) -> Result<(), Failure> {
    let folder = Folder::find()?;
    folder.create()?;
    let mut lock = folder.process_lock()?;
    match lock.try_lock() {
        Ok(()) => (),
        Err(TryLockError::WouldBlock) => return Ok(()),
        Err(TryLockError::Error(error)) => return Err(error.into()),
    }
    // For people who look for the process.
    lock.set_len(0)?;
    lock.rewind()?;
    writeln!(lock, "{}", std::process::id())?;
    // Ctrl-C in the terminal is for the command. It fails if the process leads a session already.
    let _ = rustix::process::setsid();
    let log = Arc::new(Log::open(folder.log())?);
    let (socket, starting) = (folder.socket(), folder.starting_socket());
    // The holder of the lock is the only process that may listen here: sockets that exist are of one that was killed.
    let _ = fs::remove_file(&starting);
    let listener = UnixListener::bind(&starting)?;
    fs::set_permissions(&starting, fs::Permissions::from_mode(0o600))?;
    // Commands refuse a socket that others may use, so they must not see it earlier.
    fs::rename(&starting, &socket)?;
    log.write(format_args!("process {} of gudgeon {VERSION} listens", std::process::id()));
    let registry = Arc::new(Registry::new(folder, Arc::clone(&log), limits));
    let reason = accept(listener, &registry, limits.idle).await?;
    log.write(format_args!("ends: {reason}"));
    // New commands start the next process, which waits for the lock.
    let _ = fs::remove_file(&socket);
    registry.close().await;
    Ok(())
}

async fn accept(
    listener: UnixListener,
    registry: &Arc<Registry>,
    idle: Duration,
) -> Result<&'static str, Failure> {
    let (mut terminated, mut interrupted) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let ended = Arc::new(Notify::new());
    let mut commands = JoinSet::new();
    let mut last = Instant::now();
    let pause = (idle / 4).clamp(Duration::from_millis(50), Duration::from_secs(30));
    let mut idle_check = tokio::time::interval(pause);
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                last = Instant::now();
                match accepted {
                    Ok((stream, _)) => {
                        let (registry, ended) = (Arc::clone(registry), Arc::clone(&ended));
                        commands.spawn(async move { serve(&registry, stream, &ended).await });
                    }
                    // Without free file descriptors it would fail again at once.
                    Err(error) => {
                        registry.log.write(format_args!("no command was accepted: {error}"));
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                }
            }
            _ = commands.join_next(), if !commands.is_empty() => {
                last = Instant::now();
                if commands.is_empty() && registry.is_unused() {
                    return Ok("there is nothing to keep");
                }
            }
            _ = idle_check.tick() => {
                let since = registry.idle_since(last).filter(|_| commands.is_empty());
                if since.is_some_and(|since| since.elapsed() >= idle) {
                    return Ok("it was idle");
                }
            }
            _ = terminated.recv() => return Ok("SIGTERM"),
            _ = interrupted.recv() => return Ok("SIGINT"),
            () = ended.notified() => return Ok("another version of gudgeon takes its place"),
        }
    }
}

/// Serves one command.
async fn serve(registry: &Registry, stream: UnixStream, ended: &Notify) {
    let own = rustix::process::getuid().as_raw();
    // The folder is closed to other users already.
    if stream.peer_cred().is_ok_and(|credentials| credentials.uid() != own) {
        registry.log.write("refused a process of another user");
        return;
    }
    let (reader, writer) = stream.into_split();
    let greeting = Greeting { version: VERSION.to_owned(), process: std::process::id() };
    // A command whose stream ends before this line may try again.
    if !send(&writer, raw(&greeting).get()).await {
        return;
    }
    let mut command = Caller { lines: Lines::new(reader), writer };
    let Ok(Ok(Some(message))) = timeout(HELLO_TIME, command.lines.next()).await else { return };
    let Message { id: Some(id), method: Some(method), params: Some(params), .. } = message else {
        return;
    };
    let outcome = match &*method {
        "open" => match named(registry, &params) {
            Ok(Some(connection)) => {
                let opened = raw(&Attempt::Done(()));
                if send(&command.writer, &response(&id, Ok(&opened))).await {
                    peer::serve(connection, command.lines, command.writer).await;
                }
                return;
            }
            Ok(None) => Ok(raw(&Attempt::<()>::DefinitionNeeded)),
            Err(failure) => Err(failure),
        },
        "end" => end(registry, ended),
        method => registry.carry_out(method, &params, &mut command).await,
    };
    let line = match &outcome {
        Ok(result) => response(&id, Ok(result)),
        Err(failure) => response(&id, Err(&error_of(failure))),
    };
    send(&command.writer, &line).await;
}

fn named(registry: &Registry, params: &RawValue) -> Result<Option<Arc<Connection>>, Failure> {
    registry.named(control::read(params)?)
}

/// Ends the process on behalf of a command of another version.
fn end(registry: &Registry, ended: &Notify) -> Result<Raw, Failure> {
    if registry.open_questions.is_empty() {
        ended.notify_one();
        return Ok(raw(&json!({})));
    }
    let message =
        format!("the background process is of gudgeon {VERSION}, and keeps open questions");
    Err(Failure::new(FailureKind::Connect, message)
        .with_hint("answer them with that version, or end the process"))
}

/// Returns whether the line was written.
pub async fn send(writer: &OwnedWriteHalf, line: &str) -> bool {
    let line = format!("{line}\n");
    let mut rest = line.as_bytes();
    while !rest.is_empty() {
        if writer.writable().await.is_err() {
            return false;
        }
        match writer.try_write(rest) {
            Ok(count) => rest = &rest[count..],
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => (),
            Err(_) => return false,
        }
    }
    true
}
