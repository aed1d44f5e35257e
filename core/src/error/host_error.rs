//! Errors of the host's own callbacks, which it gets back as the cause of an operation's error.

use std::{error::Error as StdError, fmt};

/// An exception of a callback of the host, by the number that the host gave it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct HostError(pub(crate) u32);

impl HostError {
    /// Returns the exception that caused an error, if there is one.
    pub(crate) fn cause_of(error: &(dyn StdError + 'static)) -> Option<Self> {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(found) = error.downcast_ref() {
                return Some(*found);
            }
            next = error.source();
        }
        None
    }
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "exception {} of a callback", self.0)
    }
}

impl StdError for HostError {}
