//! The owner of what a server offers, for parts that change it while the server runs.

use super::{Components, List};
use crate::error::Error;

/// Owns the components of a server, and shows its connections the changes.
pub trait Registrar: Send + Sync {
    /// Changes entries of a list. `change` returns whether it made a difference, of which clients are notified then. Errors with
    /// the error of `change`.
    fn change(
        &self,
        list: List,
        change: &mut dyn FnMut(&mut Components) -> Result<bool, Error>,
    ) -> Result<(), Error>;

    /// Has the server declare all lists, because entries may be added to lists that are empty now.
    fn expect_growth(&self);

    /// Notifies subscribers that the resource with this URI has changed.
    fn updated(&self, uri: &str);

    /// Notifies the client that the interaction with this URL elicitation's id is complete.
    fn page_done(&self, page: &str);
}
