//! The commands' side: finds the background process, starts it if necessary, and sends it requests.

use std::{
    env,
    fs::{File, OpenOptions, TryLockError},
    io::{self, BufRead as _, BufReader, IsTerminal as _, Write as _},
    os::unix::{fs::OpenOptionsExt as _, net::UnixStream},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use gudgeon::{
    Client,
    client::{ClientBuilder, Target},
    protocol::Raw,
    transport::Link,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;

use super::{
    CallParams, ConnectionState, Definition, Folder, Outcome, QuestionShown, Saved,
    control::{Answer, Attempt, Call, Connect, Greeting, Id, Name, Named, VERSION, Which, unknown},
    environment::needed,
    failure_in,
    message::{Lines, Message, request},
    notice,
};
use crate::{
    connection::ConnectionArguments,
    failure::{Failure, FailureKind},
    interaction::Interaction,
    notices::Notices,
    target::Target as CommandTarget,
};

/// The time limit for the background process to start, or to end for another version.
const START_TIME: Duration = Duration::from_secs(20);
/// The time limit for its first line.
const GREETING_TIME: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(5);

/// The server of a call whose questions are kept.
pub enum Keeper {
    /// A named connection.
    Name(String),
    Definition(Box<Definition>),
}

impl Keeper {
    /// Returns the keeper of a call; `None` if questions are asked in the terminal, or declined.
    pub fn for_call(
        target: &CommandTarget,
        connection: &ConnectionArguments,
        interaction: &Interaction,
        is_detached: bool,
    ) -> Result<Option<Self>, Failure> {
        interaction.check(target)?;
        match target {
            CommandTarget::Connection(name) if is_detached || !io::stdin().is_terminal() => {
                Ok(Some(Self::Name(name.clone())))
            }
            target if is_detached => {
                let builder = connection.builder(target)?;
                let builder = builder.options(|options| options.roots = interaction.roots());
                let definition = Definition::from_builder(builder)?;
                Ok(Some(Self::Definition(Box::new(definition))))
            }
            _ => Ok(None),
        }
    }
}

/// Returns a client that uses a named connection as its server, not connected yet.
pub fn open(name: &str) -> Result<ClientBuilder, Failure> {
    let roots = Folder::find()?.connections()?.get(name).and_then(Saved::roots);
    Ok(Client::builder(stream(name)?).options(|options| {
        // From 2026-07-28 on, a command answers the server's question for roots.
        options.roots = roots;
        // The background process may have to connect to the server first.
        options.probe_timeout = Duration::MAX;
    }))
}

fn stream(name: &str) -> Result<Target, Failure> {
    let mut definition = None;
    loop {
        let mut stream = reach()?;
        let named = Named { name: name.to_owned(), definition };
        stream.write_all(line("open", &named).as_bytes())?;
        let mut answer = String::new();
        BufReader::new(&stream).read_line(&mut answer)?;
        match outcome_of(serde_json::from_str(&answer).ok())? {
            Attempt::Done(()) => {
                let (reader, writer) = asynchronous(stream)?.into_split();
                return Ok(Target::Stream(Link::new(reader, writer), name.to_owned()));
            }
            Attempt::DefinitionNeeded => definition = Some(definition_of(name)?),
        }
    }
}

/// Returns the definition of a named connection, with the environment of this command.
fn definition_of(name: &str) -> Result<Box<Definition>, Failure> {
    let saved = Folder::find()?.connections()?.remove(name);
    Ok(Box::new(saved.ok_or_else(|| unknown(name))?.definition()?))
}

/// Makes a connection with a name, or checks the one that there is.
pub async fn connect(name: &str, saved: Saved) -> Result<ConnectionState, Failure> {
    let definition = saved.definition()?;
    send("connect", &Connect { name: name.to_owned(), saved, definition }).await
}

/// Ends a connection.
pub async fn disconnect(name: &str) -> Result<(), Failure> {
    send::<serde_json::Value>("disconnect", &Name { name: name.to_owned() }).await.map(drop)
}

/// Returns the state of all connections. The background process is not started for it.
pub async fn connections() -> Result<Vec<ConnectionState>, Failure> {
    let folder = Folder::find()?;
    let all = folder.connections()?;
    if all.is_empty() {
        return Ok(Vec::new());
    }
    match running(&folder)? {
        Some((stream, greeting)) if greeting.version == VERSION => {
            exchange(stream, "connections", &json!({}), None).await
        }
        _ => Ok(all.into_iter().map(|(name, saved)| saved.not_connected(name)).collect()),
    }
}

/// Calls a tool in the background process, until there is a result or a question.
/// Progress and log messages are shown meanwhile.
pub async fn call(keeper: Keeper, call: CallParams, notices: &Notices) -> Result<Outcome, Failure> {
    let (name, which) = match keeper {
        Keeper::Name(name) => (name.clone(), Which::Named(Named { name, definition: None })),
        Keeper::Definition(definition) => (String::new(), Which::Definition(definition)),
    };
    let mut request = Call { which, call };
    loop {
        match exchange(reach()?, "call", &request, Some(notices)).await? {
            Attempt::Done(outcome) => return Ok(outcome),
            Attempt::DefinitionNeeded => {
                let definition = Some(definition_of(&name)?);
                request.which = Which::Named(Named { name: name.clone(), definition });
            }
        }
    }
}

/// Answers a question; returns the result, or the next question. Progress and log messages are shown meanwhile.
pub async fn answer(id: &str, answer: Raw, notices: &Notices) -> Result<Outcome, Failure> {
    let answer = Answer { id: id.to_owned(), answer };
    exchange(reach()?, "answer", &answer, Some(notices)).await
}

/// Returns a question that waits for its answer.
pub async fn question(id: &str) -> Result<QuestionShown, Failure> {
    send("question", &Id { id: id.to_owned() }).await
}

/// Returns all questions that wait for answers. The background process is not started for it.
pub async fn questions() -> Result<Vec<QuestionShown>, Failure> {
    match running(&Folder::find()?)? {
        Some((stream, _)) => exchange(stream, "questions", &json!({}), None).await,
        None => Ok(Vec::new()),
    }
}

async fn send<T: DeserializeOwned>(method: &str, params: &impl Serialize) -> Result<T, Failure> {
    exchange(reach()?, method, params, None).await
}

async fn exchange<T: DeserializeOwned>(
    mut stream: UnixStream,
    method: &str,
    params: &impl Serialize,
    notices: Option<&Notices>,
) -> Result<T, Failure> {
    stream.write_all(line(method, params).as_bytes())?;
    let (reader, _writer) = asynchronous(stream)?.into_split();
    let mut lines = Lines::new(reader);
    let answer = loop {
        match lines.next().await? {
            Some(Message { method: Some(method), params, .. }) => {
                if let Some(notices) = notices {
                    notice::show(&method, params.as_deref(), notices);
                }
            }
            answer => break answer,
        }
    };
    if let Some(notices) = notices {
        notices.clear();
    }
    outcome_of(answer)
}

fn line(method: &str, params: &impl Serialize) -> String {
    format!("{}\n", request(0, method, params))
}

fn outcome_of<T: DeserializeOwned>(answer: Option<Message>) -> Result<T, Failure> {
    let lost = || {
        let log =
            Folder::find().map(|folder| folder.log().display().to_string()).unwrap_or_default();
        Failure::new(FailureKind::Connect, "the background process ended before it answered")
            .with_hint(format!("its log is {log}"))
    };
    match answer.ok_or_else(lost)? {
        Message { result: Some(result), .. } => {
            let read = serde_json::from_str(result.get());
            read.map_err(|error| Failure::new(FailureKind::Protocol, error.to_string()))
        }
        Message { error: Some(error), .. } => {
            let failure = error.data.as_deref().and_then(failure_in);
            Err(failure.unwrap_or_else(|| Failure::new(FailureKind::Protocol, error.message)))
        }
        _ => Err(lost()),
    }
}

fn asynchronous(stream: UnixStream) -> io::Result<tokio::net::UnixStream> {
    stream.set_nonblocking(true)?;
    tokio::net::UnixStream::from_std(stream)
}

/// Connects to the background process, which is started if it does not run.
fn reach() -> Result<UnixStream, Failure> {
    let folder = Folder::find()?;
    folder.create()?;
    folder.check_socket()?;
    let end = Instant::now() + START_TIME;
    // One of the commands that come at the same time starts the process.
    let mut lock = None;
    let mut child: Option<Child> = None;
    loop {
        match running(&folder)? {
            Some((stream, greeting)) if greeting.version == VERSION => return Ok(stream),
            Some((stream, greeting)) => end_other_version(stream, &greeting)?,
            None => (),
        }
        if Instant::now() >= end {
            return Err(not_started(&folder, "it does not answer"));
        }
        if lock.is_none() {
            lock = try_lock(folder.start_lock()?)?;
            if lock.is_none() {
                sleep(PAUSE);
            }
            continue;
        }
        match child.as_mut().map(Child::try_wait).transpose()? {
            None => child = Some(start(&folder)?),
            // The lock of the last process may still be held while that closes its connections.
            Some(Some(status)) if status.success() => child = None,
            Some(Some(status)) => return Err(not_started(&folder, &status.to_string())),
            Some(None) => (),
        }
        sleep(PAUSE);
    }
}

/// Connects to the background process if it runs.
fn running(folder: &Folder) -> Result<Option<(UnixStream, Greeting)>, Failure> {
    let socket = folder.socket();
    let stream = match UnixStream::connect(&socket) {
        Ok(stream) => stream,
        // Nobody listens: there is no process, or it was killed.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound
                    | io::ErrorKind::ConnectionRefused
                    | io::ErrorKind::NotADirectory
            ) =>
        {
            return Ok(None);
        }
        Err(error) => {
            let message = format!("{}: {error}", socket.display());
            return Err(Failure::new(FailureKind::Connect, message));
        }
    };
    let stream = of_own_user(stream)?;
    stream.set_read_timeout(Some(GREETING_TIME))?;
    let mut line = String::new();
    match BufReader::new(&stream).read_line(&mut line) {
        // The process ends.
        Ok(0) => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(None),
        Ok(_) => (),
        Err(error) => {
            let message =
                format!("the background process at {} does not answer: {error}", socket.display());
            let hint = "end the process, whose number is in background.lock beside the socket";
            return Err(Failure::new(FailureKind::Timeout, message).with_hint(hint));
        }
    }
    stream.set_read_timeout(None)?;
    let greeting = serde_json::from_str(&line).map_err(|_| {
        let message = format!("{} is the socket of another program", socket.display());
        Failure::new(FailureKind::Connect, message)
    })?;
    Ok(Some((stream, greeting)))
}

/// Errors if another user listens at the socket.
fn of_own_user(stream: UnixStream) -> Result<UnixStream, Failure> {
    let stream = asynchronous(stream)?;
    let (own, theirs) = (rustix::process::getuid().as_raw(), stream.peer_cred()?.uid());
    if own != theirs {
        let message = format!("the background process is of the user {theirs}, not yours ({own})");
        return Err(Failure::new(FailureKind::File, message));
    }
    let stream = stream.into_std()?;
    stream.set_nonblocking(false)?;
    Ok(stream)
}

fn end_other_version(mut stream: UnixStream, greeting: &Greeting) -> Result<(), Failure> {
    stream.write_all(line("end", &json!({})).as_bytes())?;
    let mut answer = String::new();
    BufReader::new(&stream).read_line(&mut answer)?;
    let ended = outcome_of::<serde_json::Value>(serde_json::from_str(&answer).ok());
    ended.map(drop).map_err(|error| {
        let message = format!(
            "the background process {} is in the way: {}",
            greeting.process,
            error.message()
        );
        Failure::new(error.kind(), message).with_hint(error.hint().unwrap_or_default())
    })
}

fn try_lock(file: File) -> Result<Option<File>, Failure> {
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error.into()),
    }
}

fn start(folder: &Folder) -> Result<Child, Failure> {
    let log = OpenOptions::new().create(true).append(true).mode(0o600).open(folder.log())?;
    let program = env::current_exe()?;
    let started = Command::new(&program)
        .arg("background")
        .env_clear()
        .envs(needed())
        // A folder that is in use can't be unmounted.
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn();
    started.map_err(|error| {
        let message = format!("{} can't be started: {error}", program.display());
        Failure::new(FailureKind::Connect, message)
    })
}

fn not_started(folder: &Folder, reason: &str) -> Failure {
    let log = folder.log();
    let text = std::fs::read_to_string(&log).unwrap_or_default();
    let last = text.lines().next_back().unwrap_or_default();
    let message = format!("the background process did not start: {reason}; {last}");
    Failure::new(FailureKind::Connect, message).with_hint(format!("its log is {}", log.display()))
}
