//! A file of tokens: readable by the user only, replaced as a whole, and locked by files beside it.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::renewal::{LockError, Renewal, lock_file, private};
use crate::protocol::json;

const VERSION: u32 = 1;

#[derive(Debug)]
pub(super) struct FileStore {
    path: PathBuf,
}

#[derive(Deserialize, Serialize)]
struct Content {
    version: u32,
    records: Map<String, Value>,
}

/// A change of all records.
type Change = Box<dyn FnOnce(&mut Map<String, Value>) + Send>;

impl FileStore {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Returns the keys of all records.
    #[cfg(feature = "bindings")]
    pub(super) async fn keys(&self) -> Result<Vec<String>, String> {
        let path = self.path.clone();
        let content = blocking(move || read(&path)).await?;
        Ok(content.records.into_iter().map(|(key, _)| key).collect())
    }

    pub(super) async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, String> {
        let path = self.path.clone();
        let content = blocking(move || read(&path)).await?;
        Ok(content.records.get(key).map(|record| record.to_string().into_bytes()))
    }

    pub(super) async fn set(&self, key: &str, value: &[u8]) -> Result<(), String> {
        let record: Value = json::from_bytes(value).map_err(|_| "the record is not JSON")?;
        let key = key.to_owned();
        self.change(Box::new(move |records| drop(records.insert(key, record)))).await
    }

    /// Removes a record, if there is one.
    pub(super) async fn delete(&self, key: &str) -> Result<(), String> {
        let key = key.to_owned();
        self.change(Box::new(move |records| drop(records.remove(&key)))).await
    }

    async fn change(&self, change: Change) -> Result<(), String> {
        let path = self.path.clone();
        // Two processes may write different records.
        let lock = self.lock_beside("lock").await?;
        blocking(move || {
            let mut content = read(&path)?;
            change(&mut content.records);
            let text = serde_json::to_vec_pretty(&content).unwrap_or_default();
            let written = replace(&path, &text);
            drop(lock);
            written.map_err(|error| format!("can't be written: {error}"))
        })
        .await
    }

    /// Locks the records for a renewal.
    pub(super) async fn lock(&self) -> Result<Renewal, String> {
        self.lock_beside("renewal.lock").await
    }

    async fn lock_beside(&self, ending: &str) -> Result<Renewal, String> {
        match lock_file(&beside(&self.path, ending)).await {
            Ok(lock) => Ok(lock),
            Err(LockError::Held(problem) | LockError::Impossible(problem)) => Err(problem),
        }
    }
}

fn read(path: &Path) -> Result<Content, String> {
    let empty = Content { version: VERSION, records: Map::new() };
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(empty),
        Err(error) => return Err(format!("can't be read: {error}")),
    };
    // The text of serde's error may quote a token.
    let content: Content = json::from_bytes(&bytes).map_err(|error| {
        format!(
            "is not a valid file of tokens (line {}, column {}); move it away, then sign in again",
            error.line(),
            error.column()
        )
    })?;
    match content.version {
        VERSION => Ok(content),
        version => Err(format!(
            "has the version {version}; this program reads version {VERSION}: name another file"
        )),
    }
}

/// Writes a file beside the old one and puts it in its place.
fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let new = beside(path, "new");
    // A file that a killed process left may have other permissions.
    let _ = fs::remove_file(&new);
    let mut file = private().create_new(true).open(&new)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&new, path)
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

/// Runs work that may block on a thread for it.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("gudgeon-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        folder
    }

    #[tokio::test]
    async fn records_are_private_and_last() {
        let folder = folder("tokens");
        let path = folder.join("deep/tokens.json");
        let store = FileStore::new(path.clone());
        assert_eq!(store.get("a").await, Ok(None));
        store.set("a", b"{\"version\":1}").await.unwrap();
        store.set("b", b"[2]").await.unwrap();
        let again = FileStore::new(path.clone());
        assert_eq!(again.get("a").await, Ok(Some(b"{\"version\":1}".to_vec())));
        assert_eq!(again.get("b").await, Ok(Some(b"[2]".to_vec())));
        for _ in 0..2 {
            again.delete("b").await.unwrap();
            assert_eq!(store.get("b").await, Ok(None));
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        fs::write(&path, "{\"s3cret\"").unwrap();
        for problem in [again.get("a").await.unwrap_err(), again.set("a", b"1").await.unwrap_err()]
        {
            assert!(problem.contains("move it away") && !problem.contains("s3cret"), "{problem}");
        }
        fs::remove_dir_all(folder).unwrap();
    }

    #[tokio::test]
    async fn many_writers_lose_nothing() {
        let folder = folder("writers");
        let path = folder.join("tokens.json");
        let mut writers = tokio::task::JoinSet::new();
        for number in 0..20 {
            let store = FileStore::new(path.clone());
            writers.spawn(async move { store.set(&number.to_string(), b"1").await });
        }
        for written in writers.join_all().await {
            written.unwrap();
        }
        assert_eq!(read(&path).unwrap().records.len(), 20);
        fs::remove_dir_all(folder).unwrap();
    }

    #[tokio::test]
    async fn one_renews_at_a_time() {
        let folder = folder("renewals");
        let path = folder.join("tokens.json");
        let (one, other) = (FileStore::new(path.clone()), FileStore::new(path));
        let held = one.lock().await.unwrap();
        let waits = tokio::time::timeout(Duration::from_millis(100), other.lock()).await;
        assert!(waits.is_err());
        drop(held);
        drop(other.lock().await.unwrap());
        fs::remove_dir_all(folder).unwrap();
    }
}
