//! Changes of source files.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use notify::{Event, EventKind, RecursiveMode, Watcher as _, event::ModifyKind};
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, timeout_at},
};

use crate::{
    failure::{Failure, FailureKind},
    files::read,
};

/// Folders that contain no sources of the project. Hidden folders are left out as well.
const IGNORED: [&str; 5] = ["node_modules", "__pycache__", "target", "dist", "venv"];
/// The suffixes of sources. Other files may be written by the server itself.
const SOURCES: [&str; 10] = ["py", "ts", "mts", "cts", "tsx", "js", "mjs", "cjs", "jsx", "toml"];
/// The suffixes of files that import others by a relative path.
const SCRIPTS: [&str; 8] = ["ts", "mts", "cts", "tsx", "js", "mjs", "cjs", "jsx"];
/// Changes that follow within this time belong together.
const QUIET: Duration = Duration::from_millis(100);
/// The longest time until a change is reported.
const LONGEST: Duration = Duration::from_secs(1);
const MAX_FOLDERS: usize = 4000;

/// The last files that changed together.
#[derive(Clone, Debug, Default)]
pub struct Changes(BTreeSet<PathBuf>);

impl Changes {
    /// Returns the names of the files, shortened.
    pub fn shown(&self) -> String {
        let mut names =
            self.0.iter().filter_map(|path| path.file_name()).map(|name| name.to_string_lossy());
        let first = names.next().unwrap_or_default();
        match names.count() {
            0 => first.into_owned(),
            others => format!("{first} and {others} more"),
        }
    }
}

/// Watches folders until it is dropped.
pub struct Watching {
    watcher: notify::RecommendedWatcher,
    events: mpsc::UnboundedReceiver<Event>,
    /// Paths in which every file counts.
    extra: Vec<PathBuf>,
    folders: BTreeSet<PathBuf>,
}

impl Watching {
    /// Watches the folder of a file, the folders of files that it imports, and additional paths.
    pub fn new(file: &Path, extra: &[PathBuf]) -> Result<Self, Failure> {
        let (sender, events) = mpsc::unbounded_channel();
        let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            if let Ok(event) = event {
                // The receiver may have ended.
                let _ = sender.send(event);
            }
        })
        .map_err(|error| failed(Path::new("."), &error))?;
        let extra = extra.iter().map(|path| path.canonicalize()).collect::<Result<Vec<_>, _>>();
        let extra = extra.map_err(|error| {
            Failure::usage(format!("--watch: {error}")).with_hint("give a path that exists")
        })?;
        let mut watching = Self { watcher, events, extra, folders: BTreeSet::new() };
        let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
        let folder = if file.is_dir() { file.clone() } else { parent(&file) };
        watching.add(&folder)?;
        for other in imported_folders(&file) {
            watching.add(&other)?;
        }
        for path in watching.extra.clone() {
            let folder = if path.is_dir() { path } else { parent(&path) };
            watching.add(&folder)?;
        }
        Ok(watching)
    }

    /// Watches a folder and those in it.
    fn add(&mut self, folder: &Path) -> Result<(), Failure> {
        let mut waiting = vec![folder.to_owned()];
        while let Some(folder) = waiting.pop() {
            if self.folders.len() == MAX_FOLDERS || !self.folders.insert(folder.clone()) {
                continue;
            }
            // Each folder by itself: those that are left out may contain many thousands.
            self.watcher
                .watch(&folder, RecursiveMode::NonRecursive)
                .map_err(|error| failed(&folder, &error))?;
            let inside = fs::read_dir(&folder).into_iter().flatten().flatten();
            let folders = inside.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            waiting.extend(folders.map(|entry| entry.path()).filter(|folder| !is_ignored(folder)));
        }
        Ok(())
    }

    /// Starts to report changes.
    pub fn report(mut self) -> watch::Receiver<Changes> {
        let (sender, changes) = watch::channel(Changes::default());
        tokio::spawn(async move {
            while let Some(event) = self.events.recv().await {
                let mut files = self.sources(event);
                if files.is_empty() {
                    continue;
                }
                let latest = Instant::now() + LONGEST;
                loop {
                    let until = latest.min(Instant::now() + QUIET);
                    match timeout_at(until, self.events.recv()).await {
                        Ok(Some(event)) => files.extend(self.sources(event)),
                        Ok(None) => return,
                        Err(_) => break,
                    }
                }
                if sender.send(Changes(files)).is_err() {
                    return;
                }
            }
        });
        changes
    }

    /// Returns the sources that an event is about; watches new folders.
    fn sources(&mut self, event: Event) -> BTreeSet<PathBuf> {
        let is_change = match event.kind {
            EventKind::Modify(kind) => !matches!(kind, ModifyKind::Metadata(_)),
            EventKind::Create(_) | EventKind::Remove(_) => true,
            _ => false,
        };
        if !is_change {
            return BTreeSet::new();
        }
        let mut found = BTreeSet::new();
        for path in event.paths {
            let is_extra = self.extra.iter().any(|extra| path.starts_with(extra));
            if path.is_dir() {
                if !is_ignored(&path) {
                    // A folder that is gone again has no sources.
                    let _ = self.add(&path);
                }
            } else if is_extra || has_suffix(&path, &SOURCES) {
                found.insert(path);
            }
        }
        found
    }
}

fn failed(folder: &Path, error: &notify::Error) -> Failure {
    let message = format!("changes of {} can't be watched: {error}", folder.display());
    Failure::new(FailureKind::File, message)
}

fn parent(path: &Path) -> PathBuf {
    path.parent().map_or_else(|| PathBuf::from("."), Path::to_owned)
}

fn is_ignored(folder: &Path) -> bool {
    let name = folder.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    name.starts_with('.') || IGNORED.contains(&&*name)
}

fn has_suffix(path: &Path, suffixes: &[&str]) -> bool {
    path.extension().is_some_and(|extension| suffixes.iter().any(|suffix| extension == *suffix))
}

/// Returns the folders of the files that a script imports by relative paths, itself or through others.
fn imported_folders(file: &Path) -> BTreeSet<PathBuf> {
    let mut folders = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut waiting = vec![file.to_owned()];
    while let Some(file) = waiting.pop() {
        if !has_suffix(&file, &SCRIPTS) || !seen.insert(file.clone()) || seen.len() > MAX_FOLDERS {
            continue;
        }
        let text = read::small(&file).unwrap_or_default();
        let folder = parent(&file);
        for path in relative_paths(&String::from_utf8_lossy(&text)) {
            let path = folder.join(path);
            // TypeScript names the file that will be compiled from it.
            let candidates = [path.clone(), path.with_extension("ts")]
                .into_iter()
                .chain(SCRIPTS.map(|suffix| PathBuf::from(format!("{}.{suffix}", path.display()))));
            let found = candidates
                .filter_map(|candidate| candidate.canonicalize().ok())
                .find(|path| path.is_file());
            if let Some(found) = found {
                folders.insert(parent(&found));
                waiting.push(found);
            }
        }
    }
    folders
}

/// Returns the strings of a script that are relative paths.
fn relative_paths(text: &str) -> impl Iterator<Item = &str> {
    text.split(['"', '\'']).filter(|part| {
        (part.starts_with("./") || part.starts_with("../")) && !part.contains(char::is_whitespace)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_by_relative_paths_are_found() {
        let text = "import a from \"../lib/a.js\"; const b = require('./b'); import c from 'c';";
        assert_eq!(relative_paths(text).collect::<Vec<_>>(), ["../lib/a.js", "./b"]);
    }

    #[test]
    fn folders_of_tools_are_ignored() {
        for name in ["/a/.git", "/a/node_modules", "/a/__pycache__", "/a/.venv"] {
            assert!(is_ignored(Path::new(name)), "{name}");
        }
        assert!(!is_ignored(Path::new("/a/src")));
    }
}
