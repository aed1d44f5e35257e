//! Log messages from a server to its client.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Raw;
use crate::error::{Error, impl_names};

/// The severity of a log message as in RFC 5424, ordered by increasing severity (spec: Logging).
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub enum LoggingLevel {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

/// Params of `logging/setLevel`, up to 2025-11-25 (spec: Logging).
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct SetLevelRequestParams {
    pub level: LoggingLevel,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// Params of `notifications/message` (spec: Logging).
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct LoggingMessageNotificationParams {
    pub level: LoggingLevel,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logger: Option<String>,
    pub data: Raw,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

impl LoggingLevel {
    /// All levels by increasing severity.
    #[doc(hidden)] // For the language bindings and the tests.
    pub const ALL: [Self; 8] = [
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];

    /// Returns the level with this name, if it exists.
    #[doc(hidden)] // For the language bindings and the tests.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == name)
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }
}

impl FromStr for LoggingLevel {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Self::parse(name).ok_or_else(|| {
            let known = Self::ALL.map(Self::as_str).join(", ");
            Error::misuse(format!("{name:?} is not a log level; the levels are {known}"))
        })
    }
}

impl_names!(LoggingLevel);
