//! Prompts: message templates of a server that a user selects.

use serde::{Deserialize, Serialize};

use super::{CacheScope, ContentBlock, Icon, Members, Raw, ResultType, Role};

/// A prompt of a server (spec: Prompts).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct Prompt {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub icons: Option<Vec<Icon>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Vec<PromptArgument>>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
    /// Members that no revision defines, of an entry that is passed on.
    #[doc(hidden)]
    #[serde(skip)]
    pub unknown: Option<Raw>,
}

/// An argument of a prompt (spec: Prompts).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct PromptArgument {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
}

/// Result of `prompts/list` (spec: Prompts).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListPromptsResult {
    pub prompts: Vec<Prompt>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_scope: Option<CacheScope>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// Params of `prompts/get` (spec: Prompts).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GetPromptRequestParams {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Members<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_responses: Option<Members<Raw>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// Result of `prompts/get` (spec: Prompts).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct GetPromptResult {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub messages: Vec<PromptMessage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// A message of a prompt (spec: Prompts).
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct PromptMessage {
    pub role: Role,
    pub content: ContentBlock,
}

/// A prompt with this name.
impl From<&str> for Prompt {
    fn from(name: &str) -> Self {
        Self { name: name.into(), ..Self::default() }
    }
}

/// An argument with this name.
impl From<&str> for PromptArgument {
    fn from(name: &str) -> Self {
        Self { name: name.into(), ..Self::default() }
    }
}

impl PromptMessage {
    /// Creates a message: text, or other content.
    pub fn new(role: Role, content: impl Into<ContentBlock>) -> Self {
        Self { role, content: content.into() }
    }
}
