//! Pages of lists, and the cache scope of results.

use serde::{Deserialize, Serialize};

use super::Raw;

/// Params of every `…/list` request (spec: Pagination).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct PaginatedRequestParams {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// The audience that a cached result may be shown to (spec: Caching).
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub enum CacheScope {
    Public,
    Private,
}
