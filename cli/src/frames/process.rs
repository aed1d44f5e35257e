//! Servers that are started as processes, one for each connection.

use std::{
    collections::VecDeque,
    future::Future,
    pin::Pin,
    process::{ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use gudgeon::framing::{Frame, LineDecoder, TooLong, encode_line};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command},
    sync::{mpsc, oneshot},
    task::JoinHandle,
    time::timeout,
};

use super::{Connection, Ended, MAX_FRAME, MAX_WAITING, Upstream};
use crate::{
    failure::{Failure, FailureKind},
    target::Launch,
};

const CHUNK: usize = 64 * 1024;
/// The time for a process to exit after SIGTERM.
const TERMINATION: Duration = Duration::from_secs(2);
/// The time for reading what a process wrote before it ended, while a process that it started holds its streams open.
const LAST_READS: Duration = Duration::from_millis(500);
const KEPT_LINES: usize = 20;

/// A program that serves over stdio.
pub struct Process {
    launch: Launch,
    /// The time for a process to exit by itself once its input is closed.
    grace: Duration,
}

impl Process {
    pub fn new(launch: Launch) -> Self {
        Self { launch, grace: Duration::from_secs(2) }
    }

    /// Returns the same program, with a shorter time to exit.
    #[must_use]
    pub fn with_grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Starts the program.
    pub fn start(&self) -> Result<Connection, Failure> {
        let mut command = Command::new(&self.launch.program);
        if let Some(folder) = &self.launch.folder {
            command.current_dir(folder);
        }
        command
            .args(&self.launch.arguments)
            .envs(self.launch.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        // So that a wrapper such as npx is ended together with its children.
        #[cfg(unix)]
        command.process_group(0);
        let mut child = command.spawn().map_err(|error| {
            let program = self.launch.program.to_string_lossy();
            Failure::new(FailureKind::Connect, format!("{program} could not be started: {error}"))
                .with_hint("check that it is installed and on the PATH")
        })?;
        let missing = || Failure::new(FailureKind::Connect, "the standard streams are missing");
        let input = child.stdin.take().ok_or_else(missing)?;
        let output = child.stdout.take().ok_or_else(missing)?;
        let errors = child.stderr.take().ok_or_else(missing)?;

        let (to_server, frames) = mpsc::unbounded_channel();
        let (sender, from_server) = mpsc::channel(MAX_WAITING);
        let (ending, ended) = oneshot::channel();
        let tail = Arc::new(Mutex::new(VecDeque::new()));
        let tasks = Tasks {
            group: child.id(),
            writing: tokio::spawn(write(input, frames)),
            reading: tokio::spawn(read(output, sender)),
            errors: tokio::spawn(forward(errors, Arc::clone(&tail))),
        };
        let grace = self.grace;
        tokio::spawn(async move {
            let code = tasks.supervise(child, grace).await;
            let lines = tail.lock().unwrap_or_else(PoisonError::into_inner);
            let stderr = lines.iter().map(String::as_str).collect::<Vec<_>>().join("\n");
            drop(lines);
            // The receiver may not be interested.
            let _ = ending.send(Ended { code, stderr });
        });
        Ok(Connection { to_server, from_server, ended })
    }
}

impl Upstream for Process {
    fn open(&self) -> Pin<Box<dyn Future<Output = Result<Connection, Failure>> + Send + '_>> {
        Box::pin(async { self.start() })
    }
}

/// The tasks of a process.
struct Tasks {
    /// The id of its process group.
    group: Option<u32>,
    writing: JoinHandle<()>,
    reading: JoinHandle<()>,
    errors: JoinHandle<()>,
}

impl Tasks {
    /// Waits until the process has ended, and ends it once its input is closed: after a while with SIGTERM, then SIGKILL
    /// (spec: stdio, "Shutdown"). Returns its exit code.
    async fn supervise(mut self, mut child: Child, grace: Duration) -> Option<u8> {
        let status = tokio::select! {
            status = child.wait() => status.ok(),
            _ = &mut self.writing => self.end(&mut child, grace).await,
        };
        self.writing.abort();
        if timeout(LAST_READS, &mut self.reading).await.is_err() {
            self.reading.abort();
        }
        // Processes that the server started, and left behind.
        signal(self.group, Signal::Kill);
        if timeout(LAST_READS, &mut self.errors).await.is_err() {
            self.errors.abort();
        }
        status.and_then(code)
    }

    /// Ends a process whose input is closed.
    async fn end(&self, child: &mut Child, grace: Duration) -> Option<ExitStatus> {
        if let Ok(status) = timeout(grace, child.wait()).await {
            return status.ok();
        }
        signal(self.group, Signal::Terminate);
        if let Ok(status) = timeout(TERMINATION, child.wait()).await {
            return status.ok();
        }
        signal(self.group, Signal::Kill);
        let _ = child.kill().await;
        child.wait().await.ok()
    }
}

fn code(status: ExitStatus) -> Option<u8> {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return u8::try_from(128 + signal).ok();
    }
    status.code().map(|code| u8::try_from(code).unwrap_or(1))
}

async fn write(mut input: ChildStdin, mut frames: mpsc::UnboundedReceiver<Vec<u8>>) {
    let mut line = Vec::new();
    while let Some(frame) = frames.recv().await {
        line.clear();
        encode_line(&frame, &mut line);
        line.shrink_to(CHUNK);
        if input.write_all(&line).await.is_err() || input.flush().await.is_err() {
            // The process reads no longer; its end is noticed by itself.
            while frames.recv().await.is_some() {}
        }
    }
}

async fn read(mut output: ChildStdout, frames: mpsc::Sender<Vec<u8>>) {
    let mut decoder = LineDecoder::new(MAX_FRAME);
    let mut buffer = vec![0; CHUNK];
    while let Ok(read @ 1..) = output.read(&mut buffer).await {
        let mut found = Vec::new();
        let mut chunk = &buffer[..read];
        while let Some(frame) = decoder.next(&mut chunk) {
            match frame {
                Frame::Line(line) => found.push(line.to_vec()),
                Frame::TooLong(TooLong { limit, .. }) => warn_too_long("the server", limit),
            }
        }
        for frame in found {
            // Without a reader the rest is read all the same: the process would hang otherwise.
            let _ = frames.send(frame).await;
        }
    }
    if let Some(Frame::Line(line)) = decoder.finish() {
        let _ = frames.send(line.to_vec()).await;
    }
}

/// Tells that a message was left out.
pub fn warn_too_long(sender: &str, limit: usize) {
    let limit = limit / 1024 / 1024;
    crate::output::note(format_args!(
        "{sender} sent a message of more than {limit} MiB; it was left out"
    ));
}

/// Forwards standard error, and keeps its last lines.
async fn forward(mut errors: ChildStderr, tail: Arc<Mutex<VecDeque<String>>>) {
    let mut buffer = vec![0; CHUNK];
    let mut decoder = LineDecoder::new(KEPT_LINES * CHUNK);
    let keep = |frame: Frame<'_>| {
        if let Frame::Line(line) = frame {
            let mut lines = tail.lock().unwrap_or_else(PoisonError::into_inner);
            if lines.len() == KEPT_LINES {
                lines.pop_front();
            }
            lines.push_back(String::from_utf8_lossy(line).into_owned());
        }
    };
    while let Ok(read @ 1..) = errors.read(&mut buffer).await {
        crate::output::raw_note(&buffer[..read]);
        let mut chunk = &buffer[..read];
        while let Some(frame) = decoder.next(&mut chunk) {
            keep(frame);
        }
    }
    if let Some(frame) = decoder.finish() {
        keep(frame);
    }
}

#[derive(Clone, Copy)]
enum Signal {
    Terminate,
    Kill,
}

#[cfg(unix)]
fn signal(group: Option<u32>, signal: Signal) {
    use rustix::process::{Pid, Signal as Number, kill_process_group};

    let signal = match signal {
        Signal::Terminate => Number::TERM,
        Signal::Kill => Number::KILL,
    };
    let group = group.and_then(|group| i32::try_from(group).ok()).and_then(Pid::from_raw);
    if let Some(group) = group {
        // The group may not exist any more.
        let _ = kill_process_group(group, signal);
    }
}

/// Other systems have no process groups; the process itself is killed by its handle.
#[cfg(not(unix))]
fn signal(_: Option<u32>, _: Signal) {}
