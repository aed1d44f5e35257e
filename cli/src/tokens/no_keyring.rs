//! Stands in for the system's keyring in programs that are compiled without the feature `keyring`.

use gudgeon::client::auth::Store;

use crate::failure::{Failure, FailureKind};

/// A keyring that can't be opened.
pub enum Keyring {}

#[expect(clippy::unused_async, reason = "as with the feature")]
impl Keyring {
    pub fn open() -> Result<Self, Failure> {
        Err(missing())
    }

    pub async fn get(&self, _: &str) -> Result<Option<Vec<u8>>, Failure> {
        match *self {}
    }

    pub async fn delete(&self, _: &str) -> Result<(), Failure> {
        match *self {}
    }
}

pub fn store() -> Result<Store, Failure> {
    Err(missing())
}

#[expect(clippy::unused_async, reason = "as with the feature")]
pub async fn secret(_: &str) -> Result<Option<String>, Failure> {
    Err(missing())
}

pub fn secret_at_once(_: &str) -> Result<Option<String>, Failure> {
    Err(missing())
}

#[expect(clippy::unused_async, reason = "as with the feature")]
pub async fn set_secret(_: &str, _: Option<String>) -> Result<(), Failure> {
    Err(missing())
}

fn missing() -> Failure {
    Failure::new(FailureKind::Unsupported, "this program was compiled without access to the system's keyring")
        .with_hint("run `cargo install gudgeon-cli --features keyring`, or keep tokens in the file, without --keyring")
}
