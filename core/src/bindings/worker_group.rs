//! The processes that one parent started to serve an address together: their key, and the folder in which they find each
//! other and have their store.

use std::{
    env,
    fs::{self, File},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use rustix::process::{Pid, test_kill_process};

use super::host_store::HostStore;
use crate::{
    error::Error,
    transport::process_group::{MAX_GROUP, private_folder, short_name},
};

/// The length of a key, in bytes.
const KEY: usize = 32;
/// The file that each process of a group has locked.
const LOCK: &str = "lock";
/// The number of times that a process tries to join a group whose last process leaves in between.
const MAX_ROUNDS: usize = 100;

/// A group of processes, of which this one is a member until it is dropped. The last one removes what they had in common.
#[derive(Debug)]
pub struct WorkerGroup {
    /// The folder of their sockets and their store.
    pub folder: PathBuf,
    /// The key that the first of them has made.
    pub key: Vec<u8>,
    lock: File,
    of_parent: PathBuf,
}

impl WorkerGroup {
    /// Joins the processes with this parent that serve a server of this name together.
    ///
    /// The group is a folder among the temporary ones, which only this user may enter.
    ///
    /// # Errors
    /// Errors if no folder can be made there.
    pub fn of_parent(parent: u32, server: &str) -> Result<Self, Error> {
        in_first(&places(), |place| Self::within(place, parent, server))
    }

    fn within(temporary: &Path, parent: u32, server: &str) -> io::Result<Self> {
        let user = rustix::process::geteuid().as_raw();
        remove_left_behind(temporary, &format!("gudgeon-{user}-"));
        let of_parent = temporary.join(format!("gudgeon-{user}-{parent}"));
        let folder = of_parent.join(short_name(server));
        check_length(&folder)?;
        for _ in 0..MAX_ROUNDS {
            private_folder(&of_parent)?;
            let path = of_parent.join(LOCK);
            let joined = File::create(&path).and_then(|lock| {
                lock.lock_shared()?;
                let is_same = fs::metadata(&path)?.ino() == lock.metadata()?.ino();
                Ok(is_same.then_some(lock))
            });
            // The last process of a group removes it.
            let Some(lock) = none_if_missing(joined)?.flatten() else { continue };
            let key = shared_key(&of_parent)?;
            private_folder(&folder)?;
            return Ok(Self { folder, key, lock, of_parent });
        }
        Err(io::Error::other(format!("{} does not stay", of_parent.display())))
    }
}

impl Drop for WorkerGroup {
    fn drop(&mut self) {
        if self.lock.unlock().is_ok() && self.lock.try_lock().is_ok() {
            let _ = fs::remove_dir_all(&self.of_parent);
        }
    }
}

/// Creates a folder for processes that are forked from this one, which removes it. Only this user may enter it.
///
/// # Errors
/// Errors if no folder can be made.
pub fn new_folder() -> Result<PathBuf, Error> {
    in_first(&places(), |place| {
        let mut random = [0; 6];
        getrandom::fill(&mut random)?;
        let folder = place.join(format!("gudgeon-{}", BASE64_URL_SAFE_NO_PAD.encode(random)));
        check_length(&folder)?;
        private_folder(&folder)?;
        Ok(folder)
    })
}

/// Opens the store of the processes of a group, a file in their folder. `None`, and a warning, if it can't be used.
pub fn store_of(folder: &Path) -> Option<HostStore> {
    let opened = HostStore::at_file(&folder.join("store.db"));
    opened.inspect_err(|error| tracing::warn!("the workers have no store: {error}")).ok()
}

/// Returns the folders for temporary files, in the order in which they are tried. The path of a socket is short, so a long one
/// can't be used.
fn places() -> Vec<PathBuf> {
    let of_session = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let others = ["/tmp", "/dev/shm"].map(PathBuf::from);
    let all = [Some(env::temp_dir()), of_session].into_iter().flatten().chain(others);
    all.filter(|place| place.is_absolute()).collect()
}

/// Returns what `make` returns for the first of these folders in which it succeeds.
fn in_first<T>(places: &[PathBuf], make: impl Fn(&Path) -> io::Result<T>) -> Result<T, Error> {
    let mut reasons = Vec::new();
    for place in places {
        match make(place) {
            Ok(result) => return Ok(result),
            Err(error) => reasons.push(format!("{}: {error}", place.display())),
        }
    }
    Err(Error::misuse(format!(
        "the workers can't reach each other, and a client's next request may go to any of them ({}); set TMPDIR to a folder with \
         a short path that can be written",
        reasons.join("; ")
    )))
}

fn check_length(folder: &Path) -> io::Result<()> {
    match folder.as_os_str().len() <= MAX_GROUP {
        true => Ok(()),
        false => Err(io::Error::other("its path is too long for sockets")),
    }
}

/// Removes the folders of groups whose processes were all killed, and their parent is gone.
fn remove_left_behind(temporary: &Path, beginning: &str) {
    for entry in fs::read_dir(temporary).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let parent = name.to_str().and_then(|name| name.strip_prefix(beginning)?.parse().ok());
        let Some(parent) = parent.and_then(Pid::from_raw) else { continue };
        if test_kill_process(parent) != Err(rustix::io::Errno::SRCH) {
            continue;
        }
        let lock = File::open(entry.path().join(LOCK));
        if lock.is_ok_and(|lock| lock.try_lock().is_ok()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn none_if_missing<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

/// Returns a new key.
///
/// # Errors
/// Errors if the system has no random bytes.
pub fn fresh_key() -> io::Result<Vec<u8>> {
    let mut key = vec![0; KEY];
    getrandom::fill(&mut key)?;
    Ok(key)
}

/// Returns the key in the folder, which the first process writes.
fn shared_key(folder: &Path) -> io::Result<Vec<u8>> {
    let path = folder.join("key");
    let own = folder.join(format!("key-{}", std::process::id()));
    if !path.exists() {
        fs::write(&own, fresh_key()?)?;
        // A link never replaces the key that another process has written in the meantime, and appears with its content.
        let linked = fs::hard_link(&own, &path);
        fs::remove_file(&own)?;
        match linked {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => (),
        }
    }
    match fs::read(&path)? {
        key if key.len() == KEY => Ok(key),
        _ => Err(io::Error::other(format!("{} is not a key: remove it", path.display()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn temporary(name: &str) -> PathBuf {
        let folder = env::temp_dir().join(format!("gudgeon-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        folder
    }

    #[test]
    fn processes_of_one_parent_have_one_key_and_a_folder_for_each_server() {
        let temporary = temporary("test");
        let own = std::process::id();
        let join =
            |parent, server| WorkerGroup::within(&temporary, parent, server).expect("a group");
        let (first, second) = (join(own, "a"), join(own, "a"));
        assert_eq!((&first.folder, &first.key), (&second.folder, &second.key));
        assert_eq!(first.key.len(), KEY);
        let other = join(own, "b/../../c");
        assert_ne!(first.folder, other.folder);
        assert_eq!(first.folder.parent(), other.folder.parent());
        assert_eq!(first.key, other.key);
        assert_ne!(first.key, join(1, "a").key);
        fs::write(temporary.join("file"), "").expect("a file");
        assert!(private_folder(&temporary.join("file")).is_err());
        fs::remove_dir_all(&temporary).expect("own");
    }

    #[test]
    fn the_last_process_removes_what_they_had_in_common() {
        let temporary = temporary("last");
        let own = std::process::id();
        let join = |server| WorkerGroup::within(&temporary, own, server).expect("a group");
        let (first, second) = (join("a"), join("b"));
        let (folder, key) = (first.folder.clone(), first.key.clone());
        fs::write(folder.join("store.db"), "").expect("a file");
        drop(first);
        assert!(folder.join("store.db").exists(), "the other one may start such a server");
        assert_eq!(join("a").key, key);
        drop(second);
        assert!(fs::read_dir(&temporary).expect("it exists").next().is_none());
        assert_ne!(join("a").key, key);
        fs::remove_dir_all(&temporary).expect("own");
    }

    #[test]
    fn what_killed_processes_left_behind_is_removed_by_the_next() {
        let temporary = temporary("left");
        let user = rustix::process::geteuid().as_raw();
        // No process has this number.
        let gone = temporary.join(format!("gudgeon-{user}-2147483647"));
        fs::create_dir(&gone).expect("a folder");
        fs::write(gone.join(LOCK), "").expect("a file");
        let held = WorkerGroup::within(&temporary, 2_147_483_646, "a").expect("a group");
        let group = WorkerGroup::within(&temporary, std::process::id(), "a").expect("a group");
        assert!(!gone.exists());
        assert!(held.folder.exists(), "it has a process, which this one can't see");
        drop((held, group));
        fs::remove_dir_all(&temporary).expect("own");
    }

    #[test]
    fn a_folder_with_a_long_path_is_not_used() {
        let temporary = temporary("long");
        let long = temporary.join("x".repeat(MAX_GROUP));
        fs::create_dir(&long).expect("a folder");
        let places = [long.clone(), temporary.clone()];
        let group = in_first(&places, |place| WorkerGroup::within(place, 1, "a"));
        assert!(group.is_ok_and(|group| group.folder.starts_with(&temporary)));
        let refused = in_first(&[long], |place| WorkerGroup::within(place, 1, "a"));
        let refused = refused.expect_err("it is too long").to_string();
        assert!(refused.contains("its path is too long for sockets"), "{refused}");
        assert!(refused.contains("set TMPDIR to a folder with a short path"), "{refused}");
        fs::remove_dir_all(&temporary).expect("own");
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_that_others_may_enter_or_a_link_is_refused() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = env::temp_dir().join(format!("gudgeon-open-{}", std::process::id()));
        private_folder(&folder).expect("a new one");
        private_folder(&folder).expect("the same");
        let link = folder.join("link");
        symlink(&folder, &link).expect("a link");
        assert!(private_folder(&link).is_err());
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o711)).expect("own");
        assert!(private_folder(&folder).is_err());
        fs::remove_dir_all(&folder).expect("own");
    }
}
