//! The folder of the background process: its socket, locks, log, and the file of connections.

use std::{
    collections::BTreeMap,
    env,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::Saved;
use crate::failure::{Failure, FailureKind};

/// The length of a socket's path that every system allows.
const MAX_SOCKET_PATH: usize = 103;
const MAX_NAME: usize = 64;
const VERSION: u32 = 2;

/// A folder that only the user can read.
#[derive(Clone, Debug)]
pub struct Folder(PathBuf);

#[derive(Deserialize, Serialize)]
struct Content {
    version: u32,
    connections: BTreeMap<String, Saved>,
}

impl Folder {
    /// Returns the folder, which may not exist: in `XDG_RUNTIME_DIR`, or else in the folder for the state of programs.
    pub fn find() -> Result<Self, Failure> {
        let absolute =
            |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        if let Some(runtime) = absolute("XDG_RUNTIME_DIR") {
            return Ok(Self(runtime.join("gudgeon")));
        }
        let state = absolute("XDG_STATE_HOME")
            .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))
            .ok_or_else(|| {
                Failure::new(FailureKind::File, "there is no folder for the background process")
                    .with_hint("set HOME or XDG_RUNTIME_DIR")
            })?;
        Ok(Self(state.join("gudgeon/run")))
    }

    /// Creates the folder if it is missing. Errors unless the user alone can use it.
    pub fn create(&self) -> Result<(), Failure> {
        let created = DirBuilder::new().recursive(true).mode(0o700).create(&self.0);
        created.map_err(|error| {
            failed(&self.0, "can't be created", &error)
                .with_hint("set XDG_RUNTIME_DIR to a folder that you can write to")
        })?;
        self.check()?;
        let socket = self.socket();
        if socket.as_os_str().len() > MAX_SOCKET_PATH {
            let message = format!("{}: the path is too long for a Unix socket", socket.display());
            let hint = "set XDG_RUNTIME_DIR to a folder with a shorter path";
            return Err(Failure::new(FailureKind::File, message).with_hint(hint));
        }
        Ok(())
    }

    /// Errors if another user owns the folder, or could use what is in it.
    pub fn check(&self) -> Result<(), Failure> {
        let found = fs::symlink_metadata(&self.0)
            .map_err(|error| failed(&self.0, "can't be read", &error))?;
        let path = self.0.display();
        if !found.is_dir() {
            return Err(Failure::new(FailureKind::File, format!("{path} is not a folder"))
                .with_hint("move it away"));
        }
        check_owner(&self.0, found.uid())?;
        let mode = found.mode() & 0o777;
        if mode & 0o077 != 0 {
            let message = format!("{path} can be used by other users (mode {mode:o})");
            return Err(Failure::new(FailureKind::File, message)
                .with_hint(format!("run chmod 700 {path}, or remove the folder")));
        }
        Ok(())
    }

    /// Errors if another user could connect to the socket, or owns it.
    pub fn check_socket(&self) -> Result<(), Failure> {
        let socket = self.socket();
        let Ok(found) = fs::symlink_metadata(&socket) else { return Ok(()) };
        check_owner(&socket, found.uid())?;
        let mode = found.mode() & 0o777;
        if mode & 0o077 != 0 {
            let path = socket.display();
            let message = format!("{path} can be used by other users (mode {mode:o})");
            return Err(
                Failure::new(FailureKind::File, message).with_hint(format!("run rm {path}"))
            );
        }
        Ok(())
    }

    pub fn socket(&self) -> PathBuf {
        self.0.join("background.sock")
    }

    /// Returns where the socket is until only this user may connect to it.
    pub fn starting_socket(&self) -> PathBuf {
        self.0.join("starting.sock")
    }

    pub fn log(&self) -> PathBuf {
        self.0.join("background.log")
    }

    /// Opens the file whose lock the background process holds as long as it runs.
    pub fn process_lock(&self) -> io::Result<File> {
        self.lock_file("background.lock")
    }

    /// Opens the file whose lock is held by the command that starts the background process.
    pub fn start_lock(&self) -> io::Result<File> {
        self.lock_file("start.lock")
    }

    fn lock_file(&self, name: &str) -> io::Result<File> {
        private().read(true).truncate(false).open(self.0.join(name))
    }

    /// Reads all connections. There are none without a file.
    pub fn connections(&self) -> Result<BTreeMap<String, Saved>, Failure> {
        let path = self.connections_path();
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if is_absent(&error) => return Ok(BTreeMap::new()),
            Err(error) => return Err(failed(&path, "can't be read", &error)),
        };
        self.check()?;
        let hint = format!("run rm {}, then connect again", path.display());
        // The text of serde's error may quote a header.
        let content: Content = serde_json::from_slice(&bytes).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            let message = format!("{}:{line}:{column}: not valid", path.display());
            Failure::new(FailureKind::File, message).with_hint(&hint)
        })?;
        if content.version != VERSION {
            let message = format!("{} is of another version of gudgeon", path.display());
            return Err(Failure::new(FailureKind::File, message).with_hint(hint));
        }
        Ok(content.connections)
    }

    /// Replaces all connections.
    pub fn store(&self, connections: BTreeMap<String, Saved>) -> Result<(), Failure> {
        let path = self.connections_path();
        let new = path.with_extension("json.new");
        let content = Content { version: VERSION, connections };
        let text = serde_json::to_vec_pretty(&content).map_err(io::Error::other)?;
        let written = private().truncate(true).open(&new).and_then(|mut file| {
            file.write_all(&text)?;
            fs::rename(&new, &path)
        });
        written.map_err(|error| failed(&path, "can't be written", &error))
    }

    fn connections_path(&self) -> PathBuf {
        self.0.join("connections.json")
    }
}

/// Returns whether there is a connection with this name. Nothing is started, and a broken file has none.
pub fn is_connection(name: &str) -> bool {
    check_name(name).is_ok()
        && Folder::find()
            .and_then(|folder| folder.connections())
            .is_ok_and(|connections| connections.contains_key(name))
}

/// Errors unless a string can be the name of a connection. Names of files have a suffix, and so differ from them.
pub fn check_name(name: &str) -> Result<(), Failure> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if !name.is_empty()
        && name.len() <= MAX_NAME
        && !name.starts_with('-')
        && name.bytes().all(allowed)
    {
        return Ok(());
    }
    let hint = format!("use up to {MAX_NAME} letters, digits, `-` and `_`");
    Err(Failure::usage(format!("{name:?} can't be the name of a connection")).with_hint(hint))
}

fn check_owner(path: &Path, owner: u32) -> Result<(), Failure> {
    let own = rustix::process::getuid().as_raw();
    if owner == own {
        return Ok(());
    }
    let message = format!("{} belongs to the user {owner}, not to you ({own})", path.display());
    Err(Failure::new(FailureKind::File, message)
        .with_hint("set XDG_RUNTIME_DIR to a folder of your own"))
}

/// Returns options for files that only the user can read.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true).mode(0o600);
    options
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn failed(path: &Path, problem: &str, error: &io::Error) -> Failure {
    Failure::new(FailureKind::File, format!("{} {problem}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_not_paths_or_options() {
        for good in ["shelf", "a", "My_server-2"] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for bad in ["", "-a", "a.py", "a/b", "http://a", "a b", "ä", &"a".repeat(65)] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }
}
