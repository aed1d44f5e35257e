//! Tokens in the system's keyring: the Keychain of macOS, the Credential Manager of Windows, or a Secret Service.
//!
//! A value is kept as base64 in one or more pieces, each in an entry of its own, because Windows limits the length of entries. The
//! entry with the key's name has the format `1.<number of pieces>.<id>.<first piece>`; the others are named `<key> <id>.<number>`.
//! The id is new with each write. Other processes find the former pieces until the first entry is replaced.

use std::sync::{Arc, Mutex, PoisonError};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use keyring::Entry as SystemEntry;
use keyring_core::{CredentialStore, Entry, Error};

use super::file_store::blocking;

/// The number of characters of a piece. Windows stores 2,560 bytes, which are UTF-16, with an entry.
const PIECE: usize = 1_200;
const MAX_PIECES: usize = 1_000;
/// The number of times that a value is read if other processes replace it meanwhile.
const ATTEMPTS: usize = 5;

#[derive(Clone)]
pub(super) struct KeyringStore(Arc<Keyring>);

struct Keyring {
    service: String,
    /// The keyring of a test. Default: the system's.
    backend: Option<Arc<CredentialStore>>,
    writing: Mutex<()>,
}

/// The content of the entry with the key's name.
struct First<'a> {
    pieces: usize,
    id: &'a str,
    piece: &'a str,
}

impl KeyringStore {
    pub(super) fn new(service: String) -> Self {
        Self(Arc::new(Keyring { service, backend: None, writing: Mutex::default() }))
    }

    pub(super) async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, String> {
        let (keyring, key) = (Arc::clone(&self.0), key.to_owned());
        blocking(move || keyring.get(&key)).await
    }

    pub(super) async fn set(&self, key: &str, value: Vec<u8>) -> Result<(), String> {
        let (keyring, key) = (Arc::clone(&self.0), key.to_owned());
        blocking(move || keyring.set(&key, &value)).await
    }

    /// Removes all pieces of a value, if there is one.
    #[cfg(any(feature = "bindings", test))]
    pub(super) async fn delete(&self, key: &str) -> Result<(), String> {
        let (keyring, key) = (Arc::clone(&self.0), key.to_owned());
        blocking(move || keyring.delete(&key)).await
    }
}

impl Keyring {
    fn get(&self, key: &str) -> Result<Option<Vec<u8>>, String> {
        for _ in 0..ATTEMPTS {
            let Some(text) = self.read(key)? else { return Ok(None) };
            let first = First::parse(&text).ok_or_else(|| unusable(key))?;
            let Some(encoded) = self.join(key, &first)? else { continue };
            return STANDARD.decode(encoded).map(Some).map_err(|_| unusable(key));
        }
        Err(unusable(key))
    }

    /// Returns all pieces of a value, or nothing if one is missing, because another process has replaced the value.
    fn join(&self, key: &str, first: &First<'_>) -> Result<Option<String>, String> {
        let mut encoded = first.piece.to_owned();
        for number in 2..=first.pieces {
            match self.read(&name_of(key, first.id, number))? {
                Some(piece) => encoded.push_str(&piece),
                None => return Ok(None),
            }
        }
        Ok(Some(encoded))
    }

    fn set(&self, key: &str, value: &[u8]) -> Result<(), String> {
        let encoded = STANDARD.encode(value);
        let pieces = encoded.len().div_ceil(PIECE).max(1);
        if pieces > MAX_PIECES {
            return Err(format!(
                "the value of {key:?} is too long for a keyring; keep tokens with Store::File"
            ));
        }
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.read(key)?;
        let id = new_id()?;
        let piece = |number| &encoded[(number - 1) * PIECE..encoded.len().min(number * PIECE)];
        for number in 2..=pieces {
            self.write(&name_of(key, &id, number), piece(number))?;
        }
        self.write(key, &format!("1.{pieces}.{id}.{}", piece(1)))?;
        self.remove_rest(key, before.as_deref())
    }

    #[cfg(any(feature = "bindings", test))]
    fn delete(&self, key: &str) -> Result<(), String> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.read(key)?;
        self.remove(key)?;
        self.remove_rest(key, before.as_deref())
    }

    /// Removes the pieces behind the first one, which has this text.
    fn remove_rest(&self, key: &str, first: Option<&str>) -> Result<(), String> {
        let Some(first) = first.and_then(First::parse) else { return Ok(()) };
        (2..=first.pieces).try_for_each(|number| self.remove(&name_of(key, first.id, number)))
    }

    fn read(&self, name: &str) -> Result<Option<String>, String> {
        match self.entry(name)?.get_password() {
            Ok(text) => Ok(Some(text)),
            Err(Error::NoEntry) => Ok(None),
            Err(error) => Err(failed("read", &error)),
        }
    }

    fn write(&self, name: &str, text: &str) -> Result<(), String> {
        self.entry(name)?.set_password(text).map_err(|error| failed("written", &error))
    }

    fn remove(&self, name: &str) -> Result<(), String> {
        match self.entry(name)?.delete_credential() {
            Ok(()) | Err(Error::NoEntry) => Ok(()),
            Err(error) => Err(failed("written", &error)),
        }
    }

    fn entry(&self, name: &str) -> Result<Entry, String> {
        let entry = if let Some(backend) = &self.backend {
            Entry::new_in_store(backend, &self.service, name)
        } else {
            if let Err(error) = SystemEntry::store_status() {
                return Err(missing(error));
            }
            SystemEntry::new(&self.service, name).map(|entry| entry.inner)
        };
        entry.map_err(|error| failed("opened", &error))
    }
}

impl<'a> First<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.strip_prefix("1.")?.splitn(3, '.');
        let pieces = parts.next()?.parse().ok().filter(|count| (1..=MAX_PIECES).contains(count))?;
        Some(Self { pieces, id: parts.next()?, piece: parts.next()? })
    }
}

fn name_of(key: &str, id: &str, number: usize) -> String {
    format!("{key} {id}.{number}")
}

fn new_id() -> Result<String, String> {
    let mut random = [0; 4];
    getrandom::fill(&mut random)
        .map_err(|error| format!("the system gives no random bytes: {error}"))?;
    Ok(format!("{:08x}", u32::from_be_bytes(random)))
}

fn unusable(key: &str) -> String {
    format!("the entry {key:?} is not valid; delete it, then sign in again")
}

fn failed(done: &str, error: &Error) -> String {
    format!(
        "the system's keyring can't be {done}: {error}; unlock it, or keep tokens with Store::File"
    )
}

fn missing(error: &Error) -> String {
    format!(
        "the system has no keyring that can be used: {error}; on Linux, start a Secret Service such as GNOME Keyring or \
         KWallet, or keep tokens with Store::File"
    )
}

#[cfg(test)]
mod tests {
    use keyring_core::mock;

    use super::*;

    fn with(backend: &Arc<mock::Store>) -> KeyringStore {
        let backend: Arc<CredentialStore> = Arc::clone(backend) as _;
        let keyring =
            Keyring { service: "tests".into(), backend: Some(backend), writing: Mutex::default() };
        KeyringStore(Arc::new(keyring))
    }

    /// Returns the entries of a keyring, by name.
    fn entries(backend: &mock::Store) -> Vec<(String, String)> {
        let mut inner = backend.inner.lock().unwrap();
        let entries = inner.get_mut().iter().filter_map(|entry| {
            let secret = entry.inner.lock().unwrap().get_mut().secret.clone()?;
            assert_eq!(entry.specifiers.0, "tests");
            Some((entry.specifiers.1.clone(), String::from_utf8(secret).unwrap()))
        });
        entries.collect()
    }

    #[tokio::test]
    async fn values_of_any_length_last() {
        let backend = mock::Store::new().unwrap();
        let store = with(&backend);
        assert_eq!(store.get("a").await, Ok(None));
        for length in [0, 1, 900, 901, 5_000, 10, 2_700] {
            let value: Vec<u8> =
                (0..length).map(|index| u8::try_from(index % 256).unwrap()).collect();
            store.set("a", value.clone()).await.unwrap();
            store.set("b", b"other".to_vec()).await.unwrap();
            assert_eq!(with(&backend).get("a").await, Ok(Some(value)), "{length}");
            // Windows stores 1,280 characters. The pieces of the former value are gone.
            let entries = entries(&backend);
            assert!(entries.iter().all(|(_, text)| text.len() <= 1_280));
            assert_eq!(entries.len(), 1 + usize::div_ceil(length, 900).max(1), "{length}");
        }
        assert_eq!(store.get("b").await, Ok(Some(b"other".to_vec())));
        for key in ["a", "a", "missing"] {
            assert_eq!(store.delete(key).await, Ok(()));
            assert_eq!(store.get(key).await, Ok(None));
        }
        assert_eq!(entries(&backend).len(), 1);
    }

    #[tokio::test]
    async fn entries_that_are_not_valid_are_named_and_not_shown() {
        let backend = mock::Store::new().unwrap();
        let store = with(&backend);
        let broken = [
            "s3cret",
            "2.1.id.czNjcmV0",
            "1.0.id.czNjcmV0",
            "1.1001.id.czNjcmV0",
            "1.1.id.s3cret!",
            "1.2.id.s3cret",
        ];
        for text in broken {
            let entry = store.0.entry("a").unwrap();
            entry.set_password(text).unwrap();
            let problem = store.get("a").await.unwrap_err();
            assert!(problem.contains("\"a\" is not valid; delete it"), "{problem}");
            assert!(!problem.contains("s3cret"), "{problem}");
        }
        store.set("a", b"good".to_vec()).await.unwrap();
        let too_long = store.set("a", vec![0; 1_000_000]).await.unwrap_err();
        assert!(too_long.contains("too long for a keyring"), "{too_long}");
        assert_eq!(store.get("a").await, Ok(Some(b"good".to_vec())));
    }

    #[tokio::test]
    async fn a_keyring_that_fails_is_reported() {
        let backend = mock::Store::new().unwrap();
        let store = with(&backend);
        let entry = store.0.entry("a").unwrap();
        let mock: &mock::Cred = entry.as_any().downcast_ref().unwrap();
        for _ in 0..2 {
            mock.set_error(Error::NoStorageAccess("it is locked".into()));
            let problem = match store.get("b").await {
                Ok(None) => store.get("a").await.unwrap_err(),
                other => panic!("{other:?}"),
            };
            assert!(problem.contains("it is locked; unlock it, or"), "{problem}");
            mock.set_error(Error::NoStorageAccess("it is locked".into()));
            assert!(store.set("a", b"1".to_vec()).await.unwrap_err().contains("it is locked"));
        }
        assert!(missing(&Error::NoDefaultStore).contains("Store::File"));
    }
}
