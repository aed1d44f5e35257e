//! Tokens and secrets of clients in the system's keyring.

use std::thread;

use gudgeon::{bindings::TokenKeyring, client::auth::Store, error::Error};

use crate::failure::{Failure, FailureKind};

/// The name of the entries, which users see in the program that shows their keyring.
const SERVICE: &str = "gudgeon";

/// The entries of this program.
pub struct Keyring(TokenKeyring);

impl Keyring {
    #[expect(clippy::unnecessary_wraps, reason = "as in programs that can't use keyrings")]
    pub fn open() -> Result<Self, Failure> {
        Ok(Self(TokenKeyring::new(SERVICE.to_owned())))
    }

    pub async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, Failure> {
        self.0.get(key).await.map_err(|error| failed(&error))
    }

    pub async fn delete(&self, key: &str) -> Result<(), Failure> {
        self.0.delete(key).await.map_err(|error| failed(&error))
    }
}

#[expect(clippy::unnecessary_wraps, reason = "as in programs that can't use keyrings")]
pub fn store() -> Result<Store, Failure> {
    Ok(Store::Keyring(SERVICE.to_owned()))
}

/// Returns the secret of the client that signs in at a URL, if it has one.
pub async fn secret(url: &str) -> Result<Option<String>, Failure> {
    let value = Keyring::open()?.get(&key(url)).await?;
    Ok(value.and_then(|bytes| String::from_utf8(bytes).ok()))
}

/// Like [`secret`], for callers that are not asynchronous.
pub fn secret_at_once(url: &str) -> Result<Option<String>, Failure> {
    let url = url.to_owned();
    // A runtime can't wait for another one on its own thread.
    let read = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(secret(&url))
    });
    let stopped = |_| Failure::new(FailureKind::Auth, "the system's keyring can't be read");
    read.join().map_err(stopped)?
}

/// Stores or removes the secret of a client.
pub async fn set_secret(url: &str, secret: Option<String>) -> Result<(), Failure> {
    let Keyring(keyring) = Keyring::open()?;
    let done = match secret {
        Some(secret) => keyring.set(&key(url), secret.into_bytes()).await,
        None => keyring.delete(&key(url)).await,
    };
    done.map_err(|error| failed(&error))
}

fn key(url: &str) -> String {
    format!("client secret {url}")
}

fn failed(error: &Error) -> Failure {
    let message = error.message.replace("with Store::File", "in the file, without --keyring");
    Failure::new(FailureKind::Auth, message)
}
