//! Two older descriptions of the protocol that some peers implement. They are spoken only if both sides enable them.

use std::str::FromStr;

use crate::error::{Error, impl_names};

/// A description of the protocol that is not a dated revision.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub enum Dialect {
    /// The description with semantic versions, 0.1.0 to 0.7.0.
    V0_7,
    /// 2024-11-05 without the `notifications/` prefix.
    Bare,
}

impl Dialect {
    #[doc(hidden)] // For the language bindings and the tests.
    pub const ALL: [Self; 2] = [Self::V0_7, Self::Bare];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::V0_7 => "0.7",
            Self::Bare => "bare",
        }
    }
}

impl FromStr for Dialect {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|dialect| dialect.as_str() == name).ok_or_else(|| {
            let known = Self::ALL.map(Self::as_str).join(" and ");
            Error::misuse(format!(
                "{name:?} is not a dialect of the protocol; the dialects are {known}"
            ))
        })
    }
}

impl_names!(Dialect);
