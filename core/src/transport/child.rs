//! A server that runs as a child process, connected by its standard streams.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    fmt,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{process::Child, task::JoinHandle};

use super::{
    Link,
    child_stderr::{Forwarding, Tail, follow},
    environment::inherited,
    masked,
};
use crate::{
    driver::boxed,
    error::{Error, ErrorKind},
    log_text::single_line,
};

/// The time for a server to exit by itself, and again after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);
/// The time for a server to exit after SIGTERM where nothing waits for it any more.
const SHORT_GRACE: Duration = Duration::from_millis(200);
/// The time to wait for the exit status of a server that closed its streams.
const EXIT_TIMEOUT: Duration = Duration::from_millis(500);

/// A program to start as a server, with its arguments, environment and working directory.
#[derive(Clone, Eq, PartialEq)]
pub struct Command {
    program: OsString,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    folder: Option<PathBuf>,
    stderr: Forwarding,
    /// The name in errors, instead of the program and its arguments.
    name: Option<String>,
}

impl Command {
    /// Creates a command without arguments.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            environment: Vec::new(),
            folder: None,
            stderr: Forwarding::default(),
            name: None,
        }
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets an environment variable. Of this process's own variables the server inherits only `HOME`, `LOGNAME`, `PATH`,
    /// `SHELL`, `TERM` and `USER`, on Windows the corresponding ones, because others may be secrets;
    /// `command.extend(std::env::vars_os())` passes all of them.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Sets the working directory; the default is that of this process.
    #[must_use]
    pub fn cwd(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Stops forwarding the server's standard error to that of this process. Errors still include its last lines.
    #[must_use]
    pub fn quiet(mut self) -> Self {
        self.stderr = Forwarding::No;
        self
    }

    /// Begins each line of the standard error that is forwarded with this name, because several servers write there.
    #[must_use]
    pub(crate) fn stderr_named(mut self, name: &str) -> Self {
        if self.stderr != Forwarding::No {
            self.stderr = Forwarding::Named(single_line(name).into_owned());
        }
        self
    }

    /// Sets the name of the server in errors; the default is the program with its arguments.
    #[cfg(feature = "bindings")]
    #[doc(hidden)] // For the command line.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Returns the program, its arguments, the environment variables that were set, and the working directory.
    #[cfg(feature = "bindings")]
    #[doc(hidden)] // For the command line.
    #[allow(clippy::type_complexity, reason = "each part is used once, by one caller")]
    pub fn parts(&self) -> (&OsStr, &[OsString], &[(OsString, OsString)], Option<&Path>) {
        (&self.program, &self.arguments, &self.environment, self.folder.as_deref())
    }

    pub(crate) fn spawn(&self) -> Result<(Link, Process), Error> {
        let mut command = tokio::process::Command::new(&self.program);
        command
            .args(&self.arguments)
            .env_clear()
            .envs(inherited())
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        // The child leads a process group of its own, so that a wrapper such as npx is ended together with its
        // children.
        #[cfg(unix)]
        command.process_group(0);
        let mut child = command.spawn().map_err(|error| self.explain(error))?;
        let missing =
            || Error::new(ErrorKind::Connect, "the server's standard streams are missing");
        let output = child.stdin.take().ok_or_else(missing)?;
        let input = child.stdout.take().ok_or_else(missing)?;
        let tail = Arc::new(Mutex::new(Tail::default()));
        let forwarding = self.stderr.clone();
        let stderr = child
            .stderr
            .take()
            .map(|stderr| tokio::spawn(boxed(follow(stderr, Arc::clone(&tail), forwarding))));
        let process = Process {
            group: child.id().map(Group::new),
            child,
            tail,
            stderr,
            #[cfg(unix)]
            input: std::os::fd::AsFd::as_fd(&output).try_clone_to_owned().ok(),
        };
        Ok((Link::new(input, output), process))
    }

    fn explain(&self, error: std::io::Error) -> Error {
        let program = self.program.to_string_lossy();
        let folder = self.folder.as_ref().filter(|folder| !folder.is_dir());
        let (message, hint) = match (error.kind(), folder) {
            (_, Some(folder)) => (
                format!("the working directory {} for {program} does not exist", folder.display()),
                "check the option cwd".to_owned(),
            ),
            (std::io::ErrorKind::NotFound, _) => (
                format!("command not found: {program}"),
                "check that it is installed and on the PATH of this process, or give an absolute path"
                    .to_owned(),
            ),
            (std::io::ErrorKind::PermissionDenied, _) => (
                format!("no permission to execute {program}"),
                format!("run chmod +x {program}, or start it with its interpreter"),
            ),
            _ => (format!("{program} could not be started: {error}"), String::new()),
        };
        let error = Error::new(ErrorKind::Connect, message).caused_by(error);
        match hint.is_empty() {
            true => error,
            false => error.with_hint(hint),
        }
    }
}

/// For the command line, which examines servers on a connection of its own.
#[cfg(feature = "bindings")]
impl Command {
    /// Starts the program. Errors if it can't be started.
    pub fn start(&self) -> Result<(Link, Process), Error> {
        self.spawn()
    }
}

/// Adds environment variables.
impl<N: Into<OsString>, V: Into<OsString>> Extend<(N, V)> for Command {
    fn extend<I: IntoIterator<Item = (N, V)>>(&mut self, variables: I) {
        let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into()));
        self.environment.extend(variables);
    }
}

impl fmt::Debug for Command {
    /// Leaves out the values of environment variables, which may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.environment.iter().map(|(name, _)| name).collect();
        f.debug_struct("Command")
            .field("program", &self.program)
            .field("arguments", &self.arguments)
            .field("environment", &names)
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = &self.name {
            return f.write_str(name);
        }
        f.write_str(&quoted(&self.program))?;
        let words: Vec<_> =
            self.arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let mut shown = masked::arguments(&words).into_iter();
        shown.try_for_each(|word| write!(f, " {}", quoted(OsStr::new(&word))))
    }
}

fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    match word.is_empty() || word.contains(char::is_whitespace) {
        true => format!("{word:?}"),
        false => word.into_owned(),
    }
}

/// A running server process.
#[derive(Debug)]
pub struct Process {
    child: Child,
    /// Its process group, while any process of it is there.
    group: Option<Group>,
    tail: Arc<Mutex<Tail>>,
    stderr: Option<JoinHandle<()>>,
    /// A duplicate of its standard input, which shows whether it reads.
    #[cfg(unix)]
    input: Option<std::os::fd::OwnedFd>,
}

/// The exit status of a server process and the last lines of its standard error.
#[derive(Clone, Debug, Default)]
pub struct ExitInfo {
    pub status: Option<i32>,
    pub stderr: String,
}

impl Process {
    /// Waits briefly for the process to exit, after it closed its output.
    pub async fn exit_info(&mut self) -> ExitInfo {
        let status = tokio::time::timeout(EXIT_TIMEOUT, self.child.wait()).await.ok();
        self.forget_empty_group();
        self.drain_stderr().await;
        ExitInfo { status: status.and_then(Result::ok).map(status_code), stderr: self.stderr() }
    }

    /// Returns the exit status, if there is one already, and the last lines so far.
    pub fn exit_info_now(&mut self) -> ExitInfo {
        let status = self.child.try_wait().ok().flatten();
        self.forget_empty_group();
        ExitInfo { status: status.map(status_code), stderr: self.stderr() }
    }

    /// Returns whether a part of what was written to its standard input was never read.
    pub(crate) fn has_unread_input(&self) -> bool {
        #[cfg(unix)]
        let unread = self.input.as_ref().and_then(|input| rustix::io::ioctl_fionread(input).ok());
        #[cfg(not(unix))]
        let unread: Option<u64> = None;
        unread.is_some_and(|count| count > 0)
    }

    /// Lets its standard input end when the connection's own end is closed.
    pub fn forget_input(&mut self) {
        #[cfg(unix)]
        {
            self.input = None;
        }
    }

    /// Waits for the process to exit by itself; returns whether it did.
    pub async fn exits_within(&mut self, limit: Duration) -> bool {
        tokio::time::timeout(limit, self.child.wait()).await.is_ok()
    }

    /// Returns the last lines of its standard error.
    pub fn stderr(&self) -> String {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner).text()
    }

    /// Ends the process after its input was closed: waits, then sends SIGTERM, then SIGKILL (stdio, "Shutdown"). The
    /// processes of its group that outlive it get the signals too.
    pub async fn shut_down(mut self) {
        let has_exited = tokio::time::timeout(GRACE, self.child.wait()).await.is_ok();
        self.forget_empty_group();
        if !has_exited || self.group.is_some() {
            self.end(GRACE).await;
        }
        self.drain_stderr().await;
    }

    /// Ends the process, and its children, without waiting for it to exit by itself: sends SIGTERM, then SIGKILL.
    pub async fn kill(&mut self) {
        self.end(SHORT_GRACE).await;
    }

    async fn end(&mut self, grace: Duration) {
        let group = self.group.as_ref();
        group.inspect(|group| group.signal(Signal::Terminate));
        let gone = async {
            let _ = self.child.wait().await;
            // A wrapper's children may take longer to exit than the wrapper.
            while group.is_some_and(Group::is_there) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        if tokio::time::timeout(grace, gone).await.is_err() {
            group.inspect(|group| group.signal(Signal::Kill));
            let _ = self.child.kill().await;
        }
        self.group = None;
    }

    /// Forgets the group once it has no process, because another group may get its id then.
    fn forget_empty_group(&mut self) {
        self.group.take_if(|group| !group.is_there());
    }

    async fn drain_stderr(&mut self) {
        if let Some(mut follower) = self.stderr.take()
            && tokio::time::timeout(EXIT_TIMEOUT, &mut follower).await.is_err()
        {
            // A grandchild holds the stream open.
            follower.abort();
        }
    }
}

impl Drop for Process {
    /// Ends the process and its children at once, because the program ends or its runtime did.
    fn drop(&mut self) {
        self.forget_empty_group();
        if let Some(group) = &self.group {
            group.signal(Signal::Kill);
        }
    }
}

/// The process groups of the servers that run.
static GROUPS: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// Sends SIGTERM to every server that a client of this process has started, and to its children. For programs that end
/// without dropping their clients.
#[cfg(all(feature = "bindings", feature = "client"))]
pub fn terminate_all() {
    let groups = GROUPS.lock().unwrap_or_else(PoisonError::into_inner);
    for id in &*groups {
        signal(*id, Signal::Terminate);
    }
}

/// A process group, by the id of its first process.
#[derive(Debug)]
struct Group(u32);

impl Group {
    fn new(id: u32) -> Self {
        GROUPS.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
        Self(id)
    }

    fn signal(&self, it: Signal) {
        signal(self.0, it);
    }

    fn is_there(&self) -> bool {
        is_there(self.0)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        GROUPS.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
    }
}

#[cfg(unix)]
fn group(id: u32) -> Option<rustix::process::Pid> {
    i32::try_from(id).ok().and_then(rustix::process::Pid::from_raw)
}

#[cfg(unix)]
fn signal(id: u32, signal: Signal) {
    let signal = match signal {
        Signal::Terminate => rustix::process::Signal::TERM,
        Signal::Kill => rustix::process::Signal::KILL,
    };
    if let Some(group) = group(id) {
        // The group may not exist any more.
        let _ = rustix::process::kill_process_group(group, signal);
    }
}

#[cfg(unix)]
fn is_there(id: u32) -> bool {
    group(id).is_some_and(|group| rustix::process::test_kill_process_group(group).is_ok())
}

/// Other systems have no process groups and a single way to end a process.
#[cfg(not(unix))]
fn signal(_: u32, _: Signal) {}

#[cfg(not(unix))]
fn is_there(_: u32) -> bool {
    false
}

#[derive(Clone, Copy)]
enum Signal {
    Terminate,
    Kill,
}

fn status_code(status: ExitStatus) -> i32 {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return -signal;
    }
    status.code().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_values_of_environment_variables_are_not_shown() {
        let shown = format!("{:?}", Command::new("npx").env("TOKEN", "secret"));
        assert!(shown.contains("TOKEN") && !shown.contains("secret"), "{shown}");
    }

    #[test]
    fn a_command_shows_as_one_would_type_it() {
        let command = Command::new("npx").args(["-y", "a b"]);
        assert_eq!(command.to_string(), r#"npx -y "a b""#);
        assert_eq!(Command { name: Some("a.py".into()), ..command }.to_string(), "a.py");
    }
}
