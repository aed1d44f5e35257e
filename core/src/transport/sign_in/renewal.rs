//! The lock of a renewal: one client at a time renews the tokens of a record, also among processes that share a store.

use std::{
    env,
    fmt::Write as _,
    fs::{self, OpenOptions, TryLockError},
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use sha2::{Digest, Sha256};
use tokio::{sync::Mutex as AsyncMutex, time::timeout};

use super::BoxFuture;
use crate::{clock, error::Error};

/// The time limit for a lock, and the time between two attempts to take it.
pub(super) const TIME: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(20);

/// A lock that is held until this value is dropped, or the process ends.
pub(crate) type Renewal = Box<dyn Send>;
/// A function that waits for the lock of a key.
pub(crate) type LockCallback = Arc<dyn Fn(String) -> BoxFuture<Renewal> + Send + Sync>;

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
            Ok(Box::new(process_lock(name).lock_owned().await))
        }
    }
}

/// Locks a key of a store of the program's own. `text_of` turns its error into a text.
pub(super) async fn lock_own(
    lock: &LockCallback,
    key: &str,
    time: Duration,
    text_of: impl Fn(Error) -> String,
) -> Result<Renewal, String> {
    match timeout(time, lock(key.to_owned())).await {
        Ok(locked) => locked.map_err(text_of),
        Err(_) => Err(format!(
            "the lock of the store was not free within {} s; end the process that has it",
            time.as_secs_f32()
        )),
    }
}

/// Locks a file, which is made if it is missing.
pub(super) async fn lock_file(path: &Path) -> Result<Renewal, LockError> {
    let failed = |error: io::Error| {
        LockError::Impossible(format!("{} can't be locked: {error}", path.display()))
    };
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        make_folder(folder).map_err(failed)?;
    }
    let file = private().create(true).truncate(false).open(path).map_err(failed)?;
    let end = clock::now() + TIME;
    loop {
        match file.try_lock() {
            // Closing the file releases the lock.
            Ok(()) => return Ok(Box::new(file)),
            Err(TryLockError::WouldBlock) if clock::now() < end => {
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
    let state = env::var_os(named).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = state.or_else(|| env::home_dir().map(|home| home.join(".local/state")));
    state.filter(|path| path.is_absolute()).map(|path| path.join("gudgeon").join("locks"))
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
    if let Some((_, lock)) = locks.iter().find(|(known, _)| *known == name) {
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

    #[tokio::test(start_paused = true)]
    async fn one_process_has_a_file() {
        let folder = env::temp_dir().join(format!("gudgeon-locks-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        let path = folder.join("deep/a.lock");
        let held = lock_file(&path).await.unwrap();
        let waits = timeout(Duration::from_millis(100), lock_file(&path)).await;
        assert!(waits.is_err());
        drop(held);
        drop(lock_file(&path).await.unwrap());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
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

    #[tokio::test(start_paused = true)]
    async fn a_lock_of_a_store_that_is_not_free_in_time_is_an_error() {
        let free: LockCallback = Arc::new(|key| {
            assert_eq!(key, "k");
            Box::pin(async { Ok(Box::new(()) as Renewal) })
        });
        assert!(lock_own(&free, "k", TIME, |error| error.to_string()).await.is_ok());
        let never: LockCallback = Arc::new(|_| Box::pin(std::future::pending()));
        let text_of = |error: Error| error.to_string();
        let problem =
            lock_own(&never, "k", Duration::from_millis(10), text_of).await.err().unwrap();
        assert!(problem.contains("not free within 0.01 s"), "{problem}");
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
