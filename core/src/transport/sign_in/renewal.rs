//! The lock of a renewal: one client at a time renews the tokens of a record, also among processes that share a store.

use std::{
    env,
    fmt::Write as _,
    fs::{self, File, OpenOptions, TryLockError},
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use sha2::{Digest, Sha256};
use tokio::{
    sync::{Mutex as AsyncMutex, OwnedMutexGuard},
    time::Instant,
};

/// The time limit for a lock, and the time between two attempts to take it.
const TIME: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(20);

/// A lock that is held until this value is dropped, or the process ends.
#[derive(Debug)]
pub enum Renewal {
    /// Closing the file releases the lock.
    File(File),
    Process(OwnedMutexGuard<()>),
}

/// The reason for which a lock was not taken.
#[derive(Debug)]
pub(super) enum LockError {
    /// Another process has it.
    Held(String),
    /// There can be no such lock.
    Impossible(String),
}

/// Locks a record of a keyring's service for all processes of the user. Where no file can be made, a lock of this process has to
/// do.
pub(super) async fn lock_keyring(service: &str, key: &str) -> Result<Renewal, String> {
    let name = name_of(service, key);
    let locked = match folder() {
        Some(folder) => lock_file(&folder.join(format!("{name}.lock"))).await,
        None => Err(LockError::Impossible("the user has no home folder".into())),
    };
    match locked {
        Ok(renewal) => Ok(renewal),
        Err(LockError::Held(problem)) => Err(problem),
        Err(LockError::Impossible(problem)) => {
            static IS_REPORTED: AtomicBool = AtomicBool::new(false);
            if !IS_REPORTED.swap(true, Ordering::Relaxed) {
                tracing::warn!(
                    "auth: processes that share the keyring may renew the same tokens at the same time: {problem}; \
                     make the folder writable"
                );
            }
            Ok(Renewal::Process(process_lock(name).lock_owned().await))
        }
    }
}

/// Locks a file, which is made if it is missing.
pub(super) async fn lock_file(path: &Path) -> Result<Renewal, LockError> {
    let failed =
        |it: io::Error| LockError::Impossible(format!("{} can't be locked: {it}", path.display()));
    if let Some(folder) = path.parent().filter(|it| !it.as_os_str().is_empty()) {
        make_folder(folder).map_err(failed)?;
    }
    let file = private().create(true).truncate(false).open(path).map_err(failed)?;
    let end = Instant::now() + TIME;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Renewal::File(file)),
            Err(TryLockError::WouldBlock) if Instant::now() < end => {
                tokio::time::sleep(PAUSE).await;
            }
            Err(TryLockError::WouldBlock) => {
                let seconds = TIME.as_secs();
                return Err(LockError::Held(format!(
                    "another process has held {} for more than {seconds} s; end that process",
                    path.display()
                )));
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
    }
}

/// Returns options for files that only the user can read.
pub(super) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Makes a folder that only the user can read, and those above it.
fn make_folder(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(path)
}

/// Returns the folder of the locks, below the user's folder for state.
fn folder() -> Option<PathBuf> {
    let named = if cfg!(windows) { "LOCALAPPDATA" } else { "XDG_STATE_HOME" };
    let state = env::var_os(named).map(PathBuf::from).filter(|it| it.is_absolute());
    let state = state.or_else(|| env::home_dir().map(|it| it.join(".local/state")));
    state.filter(|it| it.is_absolute()).map(|it| it.join("gudgeon").join("locks"))
}

/// Returns a name for the lock of a record, without its secrets: keys have URLs.
fn name_of(service: &str, key: &str) -> String {
    let digest = Sha256::new()
        .chain_update(service.len().to_be_bytes())
        .chain_update(service)
        .chain_update(key)
        .finalize();
    let mut name = String::from("keyring-");
    for byte in &digest[..16] {
        let _ = write!(name, "{byte:02x}");
    }
    name
}

/// Returns the lock of this process with a name.
fn process_lock(name: String) -> Arc<AsyncMutex<()>> {
    type Locks = Vec<(String, Arc<AsyncMutex<()>>)>;
    static LOCKS: Mutex<Locks> = Mutex::new(Vec::new());
    let mut locks = LOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, lock)) = locks.iter().find(|(it, _)| *it == name) {
        return Arc::clone(lock);
    }
    let lock = Arc::new(AsyncMutex::new(()));
    locks.push((name, Arc::clone(&lock)));
    lock
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

    use super::*;

    #[tokio::test]
    async fn one_process_has_a_file() {
        let folder = env::temp_dir().join(format!("gudgeon-locks-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        let path = folder.join("deep/a.lock");
        let held = lock_file(&path).await.unwrap();
        let waits = tokio::time::timeout(Duration::from_millis(100), lock_file(&path)).await;
        assert!(waits.is_err());
        drop(held);
        drop(lock_file(&path).await.unwrap());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = |it: &Path| fs::metadata(it).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&folder.join("deep")), mode(&path)), (0o700, 0o600));
        }
        fs::remove_dir_all(&folder).unwrap();
        // A file can't be below another file.
        fs::write(&folder, "").unwrap();
        let impossible = lock_file(&path).await;
        assert!(
            matches!(impossible, Err(LockError::Impossible(it)) if it.contains("a.lock can't be locked"))
        );
        fs::remove_file(folder).unwrap();
    }

    #[tokio::test]
    async fn a_process_has_locks_by_name() {
        let name = name_of("shelf", "https://s3cret.example");
        let held = process_lock(name.clone()).lock_owned().await;
        assert!(process_lock(name.clone()).try_lock().is_err());
        assert!(process_lock(name_of("other", "https://s3cret.example")).try_lock().is_ok());
        assert!(process_lock(name_of("shelfh", "ttps://s3cret.example")).try_lock().is_ok());
        drop(held);
        assert!(process_lock(name.clone()).try_lock().is_ok());
        assert!(!name.contains("s3cret") && name.len() == 40);
    }
}
