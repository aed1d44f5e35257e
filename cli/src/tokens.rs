//! The tokens of sign-ins.

use std::path::PathBuf;

use gudgeon::client::auth::{Auth, OAuth, Store};

/// Returns the credentials that were stored by a sign-in.
pub fn stored(file: PathBuf) -> Auth {
    OAuth { store: Store::File(file), ..OAuth::default() }.into()
}
