//! Connections between the processes that serve one address: each has a Unix socket in a folder that only their user may
//! enter, and connects to those of the others.

use std::{
    collections::HashMap,
    fs::{self, DirBuilder},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    process,
    sync::Arc,
    time::Duration,
};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{UnixListener, UnixStream},
    sync::mpsc,
    task::JoinSet,
    time::timeout,
};

use crate::{driver::HostedEndpoint, error::Error, log_limit::LogLimit};

/// The maximum number of messages that wait for one process, and for all of them.
const MAX_WAITING: usize = 1_000;
/// The maximum size of a message, in bytes.
const MAX_MESSAGE: u32 = 64 * 1024 * 1024;
/// The time that a process has to take a message.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// The end of the names of sockets in the folder.
const SOCKET: &str = "socket";

/// The messages that this process sends to the others, and its socket.
pub(crate) struct ProcessGroup {
    folder: PathBuf,
    own: PathBuf,
    listener: UnixListener,
    outgoing: mpsc::Receiver<Arc<[u8]>>,
}

/// Removes the socket of this process at its end.
struct Socket(PathBuf);

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
        let folder = &group.join(short_name(url));
        private_folder(group).and_then(|()| private_folder(folder)).map_err(failed)?;
        let own = folder.join(format!("{}.{SOCKET}", process::id()));
        // A process that was killed may have had the same number.
        let _ = fs::remove_file(&own);
        let listener = UnixListener::bind(&own).map_err(failed)?;
        let (sender, outgoing) = mpsc::channel(MAX_WAITING);
        let mut limit = LogLimit::default();
        endpoint.share(Box::new(move |message| {
            if sender.try_send(message.into()).is_err()
                && let Some(left_out) = limit.due(crate::clock::unix())
            {
                tracing::warn!(
                    "a message to the other processes was dropped: too many wait{left_out}"
                );
            }
        }));
        Ok(Self { folder: folder.to_owned(), own, listener, outgoing })
    }

    /// Carries messages until it is dropped.
    pub(crate) async fn run(self, endpoint: Arc<HostedEndpoint>) {
        let Self { folder, own, listener, mut outgoing } = self;
        let own = Socket(own);
        let mut tasks = JoinSet::new();
        let mut others: HashMap<PathBuf, mpsc::Sender<Arc<[u8]>>> = HashMap::new();
        loop {
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        tasks.spawn(receive(stream, Arc::clone(&endpoint)));
                    }
                    // No file descriptor is free: others wait in the queue of the socket.
                    Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
                },
                Some(message) = outgoing.recv() => {
                    for path in sockets(&folder) {
                        if path == own.0 {
                            continue;
                        }
                        let is_open = others.get(&path).is_some_and(|other| !other.is_closed());
                        if !is_open {
                            let (sender, waiting) = mpsc::channel(MAX_WAITING);
                            tasks.spawn(send(path.clone(), waiting));
                            others.insert(path.clone(), sender);
                        }
                        // A process that takes nothing loses messages, and holds nobody up.
                        let _ = others[&path].try_send(Arc::clone(&message));
                    }
                    others.retain(|_, other| !other.is_closed());
                }
                Some(_) = tasks.join_next() => (),
            }
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
        // The last process removes the folders that are empty then; others that come later make them anew.
        for folder in self.0.ancestors().skip(1).take(2) {
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

fn sockets(folder: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    paths.filter(|path| path.extension().is_some_and(|end| end == SOCKET)).collect()
}

/// Sends messages to one process until it is gone.
async fn send(path: PathBuf, mut waiting: mpsc::Receiver<Arc<[u8]>>) {
    let mut stream = match UnixStream::connect(&path).await {
        Ok(stream) => stream,
        Err(error) => {
            if error.kind() == io::ErrorKind::ConnectionRefused {
                // Its process was killed.
                let _ = fs::remove_file(&path);
            }
            return;
        }
    };
    while let Some(message) = waiting.recv().await {
        let Ok(length) = u32::try_from(message.len()) else { continue };
        let written = timeout(WRITE_TIMEOUT, async {
            stream.write_all(&length.to_le_bytes()).await?;
            stream.write_all(&message).await
        });
        if !matches!(written.await, Ok(Ok(()))) {
            return;
        }
    }
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
