//! Connections between the processes that serve one address: each has a Unix socket in a folder that only their user may
//! enter, and connects to those of the others.

use std::{
    collections::HashMap,
    fs::{self, DirBuilder},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    pin::pin,
    process,
    sync::Arc,
    time::Duration,
};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{UnixListener, UnixStream, unix::OwnedWriteHalf},
    sync::{mpsc, oneshot},
    task::JoinSet,
    time::timeout,
};

use super::process_numbers::{self, NumbersFolder};
use crate::{
    driver::HostedEndpoint,
    error::Error,
    http::{WorkersReply, WorkersRequest},
    log_limit::LogLimit,
};

/// The maximum number of messages that wait for one process, and for all of them.
const MAX_WAITING: usize = 1_000;
/// The maximum size of a message, in bytes.
const MAX_MESSAGE: u32 = 64 * 1024 * 1024;
/// The time that a process has to take a message.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum length of the path of a group's folder: below it there are a folder for each URL and sockets, and the path of a
/// socket has 103 bytes at most.
#[cfg(feature = "bindings")]
pub(crate) const MAX_GROUP: usize = 103 - "/xxxxxxxxxxx/1234567890.socket".len();
/// The end of the names of sockets in the folder.
pub(super) const SOCKET: &str = "socket";

/// The messages that this process sends to the others, and its socket.
pub(crate) struct ProcessGroup {
    folder: PathBuf,
    own: Member,
    listener: UnixListener,
    numbers: NumbersFolder,
    queue: mpsc::Sender<Outgoing>,
    outgoing: mpsc::Receiver<Outgoing>,
}

/// The end of a group, which waits until everything before it was sent.
pub(crate) struct GroupEnd(mpsc::Sender<Outgoing>);

/// A process that serves the address.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) struct Member {
    /// Its number in the system.
    pub(super) worker: u32,
    /// Its number among the processes of the address, which no other one ever has.
    pub(super) number: u64,
}

/// A message to the other processes, or a request about them.
enum Outgoing {
    Message(Arc<[u8]>),
    Workers(WorkersRequest),
    /// Send everything before this, and end.
    End(oneshot::Sender<()>),
}

/// The connections to the other processes.
struct Others {
    folder: PathBuf,
    own: Member,
    endpoint: Arc<HostedEndpoint>,
    queues: HashMap<Member, mpsc::Sender<Arc<[u8]>>>,
    sending: JoinSet<()>,
}

/// Removes the socket of this process at its end.
struct Socket(PathBuf, Member);

impl ProcessGroup {
    /// Opens the socket of this process among those that serve the same URL, below this folder, and has the endpoint publish
    /// there. Folders are created if they do not exist.
    ///
    /// # Errors
    /// Errors if others may enter the folder, or if the socket can't be created there.
    pub(crate) fn join(group: &Path, url: &str, endpoint: &HostedEndpoint) -> Result<Self, Error> {
        let failed = |error: io::Error| {
            Error::misuse(format!(
                "the processes of this server can't reach each other in {}: {error}",
                group.display()
            ))
        };
        let folder = group.join(short_name(url));
        private_folder(group).and_then(|()| private_folder(&folder)).map_err(failed)?;
        let own = Member { worker: process::id(), number: endpoint.process() };
        let listener = UnixListener::bind(own.file(&folder, SOCKET)).map_err(failed)?;
        let (queue, outgoing) = mpsc::channel(MAX_WAITING);
        let mut limit = LogLimit::default();
        let sender = queue.clone();
        let publish = move |message: Vec<u8>| {
            if sender.try_send(Outgoing::Message(message.into())).is_err()
                && let Some(left_out) = limit.due(crate::clock::unix())
            {
                tracing::warn!(
                    "a message to the other processes was dropped: too many wait{left_out}"
                );
            }
        };
        let sender = queue.clone();
        // The endpoint does not wait for ever.
        let workers = move |request| drop(sender.try_send(Outgoing::Workers(request)));
        endpoint.join_workers(Box::new(publish), Box::new(workers));
        let numbers = NumbersFolder::new(&folder, own, endpoint.metrics());
        Ok(Self { folder, own, listener, numbers, queue, outgoing })
    }

    /// Returns the end of the group.
    pub(crate) fn end(&self) -> GroupEnd {
        GroupEnd(self.queue.clone())
    }

    /// Carries messages until it is dropped.
    pub(crate) async fn run(self, endpoint: Arc<HostedEndpoint>) {
        let Self { folder, own, listener, mut numbers, mut outgoing, .. } = self;
        let _socket = Socket(folder.clone(), own);
        let mut others = Others {
            folder,
            own,
            endpoint: Arc::clone(&endpoint),
            queues: HashMap::new(),
            sending: JoinSet::new(),
        };
        let mut receiving = JoinSet::new();
        loop {
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        receiving.spawn(receive(stream, Arc::clone(&endpoint)));
                    }
                    // No file descriptor is free: others wait in the queue of the socket.
                    Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
                },
                Some(outgoing) = outgoing.recv() => match outgoing {
                    Outgoing::Message(message) => others.send(&message),
                    Outgoing::Workers(WorkersRequest::List { message }) => {
                        let members = others.members().into_iter();
                        let members = members.map(|member| (member.number, member.worker));
                        endpoint.workers(WorkersReply::Listed(members.collect()));
                        others.send(&message.into());
                    }
                    Outgoing::Workers(WorkersRequest::Keep { message }) => match numbers.keep() {
                        Ok(()) => {
                            if let Some(message) = message {
                                others.send(&message.into());
                            }
                        }
                        Err(error) => tracing::debug!("the numbers of this process can't be kept: {error}"),
                    },
                    Outgoing::Workers(WorkersRequest::AddUp { collection, answered, missing }) => {
                        let text = numbers.add_up(&answered, &missing);
                        endpoint.workers(WorkersReply::AddedUp(collection, text));
                    }
                    Outgoing::End(ended) => {
                        // Its tasks end once they have sent what waits.
                        others.queues.clear();
                        while others.sending.join_next().await.is_some() {}
                        let _ = ended.send(());
                    }
                },
                Some(_) = others.sending.join_next() => (),
                Some(_) = receiving.join_next() => (),
            }
        }
    }
}

impl GroupEnd {
    /// Returns once everything that this process has to say to the others was sent.
    pub(crate) async fn reached(&self) {
        let (ended, end) = oneshot::channel();
        if self.0.send(Outgoing::End(ended)).await.is_ok() {
            let _ = end.await;
        }
    }
}

impl Others {
    /// Sends a message to each of the other processes. One that takes nothing loses messages, and holds nobody up.
    fn send(&mut self, message: &Arc<[u8]>) {
        self.queues.retain(|_, queue| !queue.is_closed());
        for member in self.members() {
            let queue = self.queues.entry(member).or_insert_with(|| {
                let (queue, waiting) = mpsc::channel(MAX_WAITING);
                let path = member.file(&self.folder, SOCKET);
                self.sending.spawn(send(path, member.number, waiting, Arc::clone(&self.endpoint)));
                queue
            });
            let _ = queue.try_send(Arc::clone(message));
        }
    }

    /// Returns the other processes, among them those that were killed and nobody has noticed yet.
    fn members(&self) -> Vec<Member> {
        let mut members = Member::all(&self.folder, SOCKET);
        members.retain(|member| *member != self.own);
        members
    }
}

impl Member {
    /// Returns the path of a file of this process.
    pub(super) fn file(self, folder: &Path, end: &str) -> PathBuf {
        let Self { worker, number } = self;
        folder.join(format!("{worker}-{number:x}.{end}"))
    }

    /// Returns the processes that have a file with this end of its name.
    pub(super) fn all(folder: &Path, end: &str) -> Vec<Self> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let members = entries.filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let (worker, number) = name.strip_suffix(end)?.strip_suffix('.')?.split_once('-')?;
            let number = u64::from_str_radix(number, 16).ok()?;
            Some(Self { worker: worker.parse().ok()?, number })
        });
        members.collect()
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let Self(folder, own) = self;
        let _ = fs::remove_file(own.file(folder, SOCKET));
        if Member::all(folder, SOCKET).is_empty() {
            process_numbers::remove_all(folder);
        }
        // The last process removes the folders that are empty then; others that come later make them anew.
        for folder in folder.ancestors().take(2) {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Creates a folder, or checks that only its owner, the user of this process, may enter it.
pub(crate) fn private_folder(folder: &Path) -> io::Result<()> {
    if let Err(error) = DirBuilder::new().mode(0o700).create(folder)
        && error.kind() != io::ErrorKind::AlreadyExists
    {
        return Err(error);
    }
    let found = fs::symlink_metadata(folder)?;
    let is_own = found.uid() == rustix::process::geteuid().as_raw();
    let is_private = found.permissions().mode() & 0o777 == 0o700;
    match found.is_dir() && is_own && is_private {
        true => Ok(()),
        false => Err(io::Error::other(format!(
            "{} must be a folder that only its owner, this user, may enter",
            folder.display()
        ))),
    }
}

/// Returns the name of a folder for this text.
pub(crate) fn short_name(text: &str) -> String {
    let digest = Sha256::digest(text);
    BASE64_URL_SAFE_NO_PAD.encode(&digest[..8])
}

/// Sends messages to one process until it is gone, which the endpoint is told then.
async fn send(
    path: PathBuf,
    process: u64,
    mut waiting: mpsc::Receiver<Arc<[u8]>>,
    endpoint: Arc<HostedEndpoint>,
) {
    // A message that the other end would not take is sent once more, on a new connection, which shows whether it is there.
    let mut unsent: Option<Arc<[u8]>> = None;
    loop {
        let stream = match UnixStream::connect(&path).await {
            Ok(stream) => stream,
            Err(error) => {
                use io::ErrorKind::{ConnectionRefused, NotFound};
                if error.kind() == ConnectionRefused {
                    // It was killed.
                    let _ = fs::remove_file(&path);
                }
                if matches!(error.kind(), ConnectionRefused | NotFound) {
                    endpoint.workers(WorkersReply::Gone(process));
                }
                return;
            }
        };
        let (mut answers, mut stream) = stream.into_split();
        // It says nothing: this is the end of the connection.
        let mut closed = pin!(async move { answers.read_u8().await });
        loop {
            let again = unsent.take();
            let is_first = again.is_none();
            let message = if let Some(message) = again {
                message
            } else {
                tokio::select! {
                    message = waiting.recv() => match message {
                        Some(message) => message,
                        None => return,
                    },
                    _ = &mut closed => break,
                }
            };
            match timeout(WRITE_TIMEOUT, write(&mut stream, &message)).await {
                Ok(Ok(())) => (),
                Ok(Err(_)) => {
                    unsent = is_first.then_some(message);
                    break;
                }
                Err(_) => return,
            }
        }
    }
}

async fn write(stream: &mut OwnedWriteHalf, message: &[u8]) -> io::Result<()> {
    let Ok(length) = u32::try_from(message.len()) else { return Ok(()) };
    stream.write_all(&length.to_le_bytes()).await?;
    stream.write_all(message).await
}

/// Receives the messages of one process until it is gone.
async fn receive(mut stream: UnixStream, endpoint: Arc<HostedEndpoint>) {
    let mut message = Vec::new();
    while let Ok(length) = stream.read_u32_le().await {
        if length > MAX_MESSAGE {
            return;
        }
        message.clear();
        let mut rest = (&mut stream).take(length.into());
        if rest.read_to_end(&mut message).await.is_err() || message.len() < length as usize {
            return;
        }
        endpoint.published(&message);
        message.shrink_to(64 * 1024);
    }
}
