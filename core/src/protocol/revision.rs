//! The published revisions of the specification.

use std::str::FromStr;

use crate::error::{Error, impl_names};

/// A dated MCP revision. Ordering follows publication.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub enum Revision {
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
}

/// The era of a revision: legacy opens a session by a handshake, modern carries the client's identity on every
/// request.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Era {
    Legacy,
    Modern,
}

impl Revision {
    /// All revisions, oldest first.
    pub const ALL: [Self; 5] = [
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];
    /// The newest revision.
    #[doc(hidden)] // For the language bindings and the tests.
    pub const LATEST: Self = Self::V2026_07_28;
    /// The newest legacy revision, which opens a session by `initialize`.
    #[doc(hidden)] // For the language bindings and the tests.
    pub const LATEST_LEGACY: Self = Self::V2025_11_25;

    /// Returns the revision with this date, if it was published.
    #[doc(hidden)] // For the language bindings and the tests.
    pub fn parse(date: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.as_str() == date)
    }

    /// Returns the revisions with these dates. Errors if a date is not a published revision or if `dates` is empty.
    #[doc(hidden)] // For the language bindings and the tests.
    pub fn named<D: AsRef<str>>(dates: &[D]) -> Result<Vec<Self>, Error> {
        if dates.is_empty() {
            let known = Self::ALL.map(Self::as_str).join(", ");
            return Err(Error::misuse(format!(
                "the list of revisions is empty; the revisions are {known}"
            )));
        }
        dates.iter().map(|date| date.as_ref().parse()).collect()
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    pub(crate) fn era(self) -> Era {
        match self < Self::V2026_07_28 {
            true => Era::Legacy,
            false => Era::Modern,
        }
    }
}

impl FromStr for Revision {
    type Err = Error;

    fn from_str(date: &str) -> Result<Self, Error> {
        Self::parse(date).ok_or_else(|| {
            let known = Self::ALL.map(Self::as_str).join(", ");
            Error::misuse(format!(
                "{date:?} is not a revision of the protocol; the revisions are {known}"
            ))
        })
    }
}

impl_names!(Revision);
