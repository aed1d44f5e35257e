//! Files that are read again when they change: certificates and keys, which are replaced while a server runs.

use std::{
    fs,
    path::{Path, PathBuf},
    process,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    thread,
    time::{Duration, SystemTime},
};

use crate::error::Error;

/// The time between two looks at the files.
const PERIOD: Duration = Duration::from_secs(2);

static WATCHED: Mutex<Watched> = Mutex::new(Watched { files: Vec::new(), process: 0 });

/// All watched files of the process, which one thread looks at: hosts have no runtime in common.
struct Watched {
    files: Vec<Files>,
    /// The process in which the thread runs: a forked one has the files, and not the thread.
    process: u32,
}

/// The files of one owner.
struct Files {
    paths: Vec<PathBuf>,
    /// The state in which they were read; empty at first, because they may have changed since their owner read them.
    seen: Vec<Option<Stamp>>,
    read_again: Box<dyn Fn() -> Option<Result<(), Error>> + Send>,
}

/// The facts about a file that differ once it was written or replaced.
#[derive(Debug, Eq, PartialEq)]
struct Stamp {
    modified: Option<SystemTime>,
    length: u64,
    number: u64,
}

/// Calls `read_again` within [`PERIOD`] after one of these files has changed, and once at first, for as long as its owner lives. An
/// error is logged; the owner is expected to go on with what it read before.
pub(crate) fn watch<O: Send + Sync + 'static>(
    paths: &[&Path],
    owner: &Arc<O>,
    read_again: impl Fn(&O) -> Result<(), Error> + Send + 'static,
) {
    let owner = Arc::downgrade(owner);
    let read_again = move || Weak::upgrade(&owner).map(|owner| read_again(&owner));
    let paths = paths.iter().map(|path| path.to_path_buf()).collect();
    let mut watched = lock();
    watched.files.push(Files { paths, seen: Vec::new(), read_again: Box::new(read_again) });
    if watched.process == process::id() {
        return;
    }
    match thread::Builder::new().name("gudgeon-files".into()).spawn(run) {
        Ok(_) => watched.process = process::id(),
        Err(error) => tracing::error!(%error, "changes of certificates and keys go unnoticed"),
    }
}

fn lock() -> MutexGuard<'static, Watched> {
    WATCHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Looks at all files until nobody owns one any more.
fn run() {
    loop {
        thread::sleep(PERIOD);
        // Their owners may add files meanwhile.
        let files = std::mem::take(&mut lock().files);
        let files: Vec<_> = files.into_iter().filter_map(Files::look).collect();
        let mut watched = lock();
        watched.files.extend(files);
        if watched.files.is_empty() {
            watched.process = 0;
            return;
        }
    }
}

impl Files {
    /// Reads the files again if one has changed. Returns `None` once the owner has gone.
    fn look(mut self) -> Option<Self> {
        let found: Vec<_> = self.paths.iter().map(|path| Stamp::read(path)).collect();
        let changed = found != self.seen;
        let is_first = self.seen.is_empty();
        if changed {
            self.seen = found;
            match (self.read_again)()? {
                Ok(()) if is_first => (),
                Ok(()) => tracing::info!("{} was read again", self.paths[0].display()),
                Err(error) => tracing::error!("{error}; what was read before stays in use"),
            }
        }
        Some(self)
    }
}

impl Stamp {
    fn read(path: &Path) -> Option<Self> {
        let about = fs::metadata(path).ok()?;
        #[cfg(unix)]
        let number = std::os::unix::fs::MetadataExt::ino(&about);
        #[cfg(not(unix))]
        let number = 0;
        Some(Self { modified: about.modified().ok(), length: about.len(), number })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn files_are_read_again_when_they_change_until_their_owner_goes() {
        let path = std::env::temp_dir().join(format!("gudgeon-watched-{}", process::id()));
        fs::write(&path, "one").expect("the folder takes files");
        let owner = Arc::new(AtomicUsize::new(0));
        let reader = Arc::downgrade(&owner);
        let count = move || {
            let owner = reader.upgrade()?;
            owner.fetch_add(1, Ordering::Relaxed);
            Some(Err::<(), _>(Error::misuse("it can't be used")))
        };
        let read_again = Box::new(count);
        let files = Files { paths: vec![path.clone()], seen: Vec::new(), read_again };
        let files = files.look().expect("it has an owner").look().expect("it has an owner");
        assert_eq!(owner.load(Ordering::Relaxed), 1, "once at first");
        fs::write(&path, "longer").expect("the folder takes files");
        let files = files.look().expect("it has an owner").look().expect("it has an owner");
        assert_eq!(owner.load(Ordering::Relaxed), 2);
        fs::remove_file(&path).expect("the file is there");
        let files = files.look().expect("it has an owner");
        assert_eq!(owner.load(Ordering::Relaxed), 3, "that it is missing is reported");
        drop(owner);
        let files = Files { seen: Vec::new(), ..files };
        assert!(files.look().is_none());
    }
}
