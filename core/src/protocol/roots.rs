//! Roots: directories that a client lets a server work in.

use serde::{Deserialize, Serialize};

use super::{Raw, ResultType};

/// Result of `roots/list` (spec: Roots).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListRootsResult {
    pub roots: Vec<Root>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// A directory or file (spec: Roots).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct Root {
    /// A `file://` URI.
    pub uri: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

impl From<&str> for Root {
    fn from(uri: &str) -> Self {
        uri.to_owned().into()
    }
}

impl From<String> for Root {
    fn from(uri: String) -> Self {
        Self { uri, ..Self::default() }
    }
}
