//! Sampling: a server sends a request to the client's model.

use std::ops::Deref;

use serde::{Deserialize, Deserializer, Serialize, de::Error};
use serde_json::Number;

use super::{ContentBlock, Raw, ResultType, Role, TaskMetadata, Tool};

/// Params of `sampling/createMessage` (spec: Sampling).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct CreateMessageRequestParams {
    pub messages: Vec<SamplingMessage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_preferences: Option<ModelPreferences>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_context: Option<IncludeContext>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<Number>,
    pub max_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_sequences: Option<Vec<String>>,
    /// Metadata for the model's provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Raw>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Tool>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// Defined in 2025-11-25 only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskMetadata>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// A message of a conversation with a model (spec: Sampling).
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct SamplingMessage {
    pub role: Role,
    pub content: SamplingContent,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// The content of a message: a single block or, since 2025-11-25, a list of blocks (spec: Sampling).
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub enum SamplingContent {
    One(Box<ContentBlock>),
    Many(Vec<ContentBlock>),
}

/// Preferences for the choice of a model (spec: Sampling).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct ModelPreferences {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hints: Option<Vec<ModelHint>>,
    /// A number from 0 (unimportant) to 1, like the next two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_priority: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed_priority: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intelligence_priority: Option<Number>,
}

/// The name of a model or a part of it (spec: Sampling).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct ModelHint {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// The servers whose context is included in the prompt (spec: Sampling).
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub enum IncludeContext {
    None,
    ThisServer,
    AllServers,
}

/// The model's use of tools (spec: Sampling).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct ToolChoice {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<ToolChoiceMode>,
}

/// The values of [`ToolChoice`] (spec: Sampling).
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub enum ToolChoiceMode {
    Auto,
    Required,
    None,
}

/// Result of `sampling/createMessage` (spec: Sampling).
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct CreateMessageResult {
    pub role: Role,
    pub content: SamplingContent,
    pub model: String,
    /// One of `endTurn`, `stopSequence`, `maxTokens` and `toolUse`, or a value of the provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

impl CreateMessageRequestParams {
    /// Creates a request without options; set fields for more.
    pub fn new(messages: Vec<SamplingMessage>, max_tokens: u64) -> Self {
        Self { messages, max_tokens, ..Self::default() }
    }
}

impl CreateMessageResult {
    /// Creates a model's answer; set fields for more.
    pub fn new(model: impl Into<String>, content: impl Into<SamplingContent>) -> Self {
        Self {
            role: Role::Assistant,
            content: content.into(),
            model: model.into(),
            stop_reason: None,
            result_type: None,
            meta: None,
        }
    }
}

impl From<&str> for ModelHint {
    fn from(name: &str) -> Self {
        Self { name: Some(name.into()) }
    }
}

impl SamplingMessage {
    /// Creates a message with one block of content, such as text.
    pub fn new(role: Role, content: impl Into<ContentBlock>) -> Self {
        let block: ContentBlock = content.into();
        Self { role, content: block.into(), meta: None }
    }
}

impl Deref for SamplingContent {
    type Target = [ContentBlock];

    fn deref(&self) -> &[ContentBlock] {
        match self {
            Self::One(block) => std::slice::from_ref(block),
            Self::Many(blocks) => blocks,
        }
    }
}

impl From<ContentBlock> for SamplingContent {
    fn from(block: ContentBlock) -> Self {
        Self::One(Box::new(block))
    }
}

impl From<Vec<ContentBlock>> for SamplingContent {
    fn from(blocks: Vec<ContentBlock>) -> Self {
        Self::Many(blocks)
    }
}

impl<'de> Deserialize<'de> for SamplingContent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Raw::deserialize(deserializer)?;
        match raw.get().starts_with('[') {
            true => serde_json::from_str(raw.get()).map(Self::Many),
            false => serde_json::from_str(raw.get()).map(|block| Self::One(Box::new(block))),
        }
        .map_err(D::Error::custom)
    }
}
