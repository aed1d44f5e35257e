//! Stores of tokens and registrations: memory, a file, the system's keyring, or the user's own.

use std::{
    collections::HashMap,
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

#[cfg(feature = "keyring")]
use super::keyring_store::KeyringStore;
use super::{
    BoxFuture,
    file_store::FileStore,
    renewal::{self, LockCallback, Renewal},
};
use crate::error::Error;
#[cfg(feature = "bindings")]
use crate::error::ErrorKind;

/// A store of tokens and registrations.
#[derive(Clone, Default)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub enum Store {
    /// They last as long as the client.
    #[default]
    Memory,
    /// A file that only the user can read, and that several processes may share.
    File(PathBuf),
    /// The system's keyring, in entries of this service, such as `gudgeon`. One process of the user at a time renews tokens.
    #[cfg(feature = "keyring")]
    Keyring(String),
    /// A store of the program's own. Each process that uses it renews tokens for itself.
    Own(Arc<dyn TokenStore>),
    /// A store of the program's own that processes share: one of them at a time renews the tokens of a key. The function waits
    /// for the lock of a key; dropping what it returns releases the lock. After 30 s the sign-in fails.
    Shared(Arc<dyn TokenStore>, LockCallback),
}

/// A store of a program's own, such as a keyring or a database. Values are secret.
pub trait TokenStore: Send + Sync {
    /// Returns the value of a key.
    fn get(&self, key: String) -> BoxFuture<Option<Vec<u8>>>;
    /// Sets the value of a key.
    fn set(&self, key: String, value: Vec<u8>) -> BoxFuture<()>;
    /// Removes the value of a key, if there is one.
    fn delete(&self, key: String) -> BoxFuture<()>;
}

/// Locks the tokens of a key in a keyring that a host's program uses.
#[cfg(feature = "bindings")]
pub(crate) async fn lock_keyring(service: &str, key: &str) -> Result<Renewal, Error> {
    renewal::lock_keyring(service, key).await.map_err(|error| Error::new(ErrorKind::Auth, error))
}

impl Store {
    /// Returns the name of the store, for errors.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Memory => "memory".into(),
            Self::File(path) => path.display().to_string(),
            #[cfg(feature = "keyring")]
            Self::Keyring(service) => format!("the system's keyring, service {service:?}"),
            Self::Own(_) | Self::Shared(..) => "the program's own".into(),
        }
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Store({})", self.name())
    }
}

/// A file of tokens, for hosts whose programs read and write its records themselves.
#[cfg(feature = "bindings")]
#[derive(Clone, Debug)]
pub struct TokenFile {
    path: PathBuf,
    file: Arc<FileStore>,
}

#[cfg(feature = "bindings")]
impl TokenFile {
    pub fn new(path: PathBuf) -> Self {
        Self { file: Arc::new(FileStore::new(path.clone())), path }
    }

    fn failed(&self) -> impl Fn(String) -> Error {
        move |reason| Error::new(ErrorKind::Auth, format!("{}: {reason}", self.path.display()))
    }

    /// Returns the keys of all records. Errors if the file can't be read.
    pub async fn keys(&self) -> Result<Vec<String>, Error> {
        self.file.keys().await.map_err(self.failed())
    }

    /// Returns a record. Errors if the file can't be read.
    pub async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, Error> {
        self.file.get(key).await.map_err(self.failed())
    }

    /// Stores a record, JSON. Errors if it is not JSON, or the file can't be read or written.
    pub async fn set(&self, key: &str, value: &[u8]) -> Result<(), Error> {
        self.file.set(key, value).await.map_err(self.failed())
    }

    /// Removes a record, if there is one. Errors if the file can't be read or written.
    pub async fn delete(&self, key: &str) -> Result<(), Error> {
        self.file.delete(key).await.map_err(self.failed())
    }
}

/// Tokens in the system's keyring, for programs that read and write its records themselves.
#[cfg(all(feature = "bindings", feature = "keyring"))]
#[derive(Clone)]
pub struct TokenKeyring(KeyringStore);

#[cfg(all(feature = "bindings", feature = "keyring"))]
impl TokenKeyring {
    /// Returns the entries of a service, as [`Store::Keyring`] has them.
    pub fn new(service: String) -> Self {
        Self(KeyringStore::new(service))
    }

    /// Returns a record. Errors if the keyring can't be read.
    pub async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, Error> {
        self.0.get(key).await.map_err(|error| Error::new(ErrorKind::Auth, error))
    }

    /// Stores a record. Errors if the keyring can't be read or written.
    pub async fn set(&self, key: &str, value: Vec<u8>) -> Result<(), Error> {
        self.0.set(key, value).await.map_err(|error| Error::new(ErrorKind::Auth, error))
    }

    /// Removes a record, if there is one. Errors if the keyring can't be read or written.
    pub async fn delete(&self, key: &str) -> Result<(), Error> {
        self.0.delete(key).await.map_err(|error| Error::new(ErrorKind::Auth, error))
    }
}

/// A store in use.
#[derive(Clone)]
pub(super) enum OpenStore {
    Memory(Arc<Mutex<HashMap<String, Vec<u8>>>>),
    File(Arc<FileStore>),
    #[cfg(feature = "keyring")]
    Keyring(String, KeyringStore),
    Own(Arc<dyn TokenStore>, Option<LockCallback>),
}

impl OpenStore {
    pub(super) fn new(store: Store) -> Self {
        match store {
            Store::Memory => Self::Memory(Arc::default()),
            Store::File(path) => Self::File(Arc::new(FileStore::new(path))),
            #[cfg(feature = "keyring")]
            Store::Keyring(service) => Self::Keyring(service.clone(), KeyringStore::new(service)),
            Store::Own(store) => Self::Own(store, None),
            Store::Shared(store, lock) => Self::Own(store, Some(lock)),
        }
    }

    /// `text_of` turns an error of the program's own store into its text.
    pub(super) async fn get(
        &self,
        key: &str,
        text_of: impl Fn(Error) -> String,
    ) -> Result<Option<Vec<u8>>, String> {
        match self {
            Self::Memory(records) => {
                Ok(records.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned())
            }
            Self::File(file) => file.get(key).await,
            #[cfg(feature = "keyring")]
            Self::Keyring(_, keyring) => keyring.get(key).await,
            Self::Own(store, _) => store.get(key.to_owned()).await.map_err(text_of),
        }
    }

    pub(super) async fn set(&self, key: &str, value: Vec<u8>) -> Result<(), String> {
        match self {
            Self::Memory(records) => {
                let mut records = records.lock().unwrap_or_else(PoisonError::into_inner);
                records.insert(key.to_owned(), value);
                Ok(())
            }
            Self::File(file) => file.set(key, &value).await,
            #[cfg(feature = "keyring")]
            Self::Keyring(_, keyring) => keyring.set(key, value).await,
            Self::Own(store, _) => {
                store.set(key.to_owned(), value).await.map_err(|error| error.to_string())
            }
        }
    }

    /// Takes the lock that only one process has, so that the tokens of a key are renewed once. `None`: the store has no lock.
    /// `text_of` as in [`Self::get`].
    pub(super) async fn lock(
        &self,
        key: &str,
        text_of: impl Fn(Error) -> String,
    ) -> Result<Option<Renewal>, String> {
        match self {
            Self::Memory(_) => Ok(None),
            Self::File(file) => file.lock().await.map(Some),
            #[cfg(feature = "keyring")]
            Self::Keyring(service, _) => renewal::lock_keyring(service, key).await.map(Some),
            Self::Own(_, Some(lock)) => {
                renewal::lock_own(lock, key, renewal::TIME, text_of).await.map(Some)
            }
            Self::Own(_, None) => Ok(None),
        }
    }
}
