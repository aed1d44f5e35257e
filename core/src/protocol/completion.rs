//! Completion of a prompt's arguments and of a resource template's variables.

use serde::{Deserialize, Serialize};

use super::{Members, Raw, ResultType};

/// Params of `completion/complete` (spec: Completion).
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct CompleteRequestParams {
    #[serde(rename = "ref")]
    pub reference: CompletionReference,
    pub argument: CompletionArgument,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<CompletionContext>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// The prompt or resource template whose argument is to be completed (spec: Completion).
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum CompletionReference {
    #[serde(rename = "ref/prompt")]
    Prompt(PromptReference),
    #[serde(rename = "ref/resource")]
    Resource(ResourceTemplateReference),
}

/// A prompt, by its name (spec: Completion).
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct PromptReference {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// A resource, by its URI or URI template (spec: Completion).
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct ResourceTemplateReference {
    pub uri: String,
}

/// The argument to complete, and the part that the user has typed (spec: Completion).
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct CompletionArgument {
    pub name: String,
    pub value: String,
}

/// The values of the other arguments that are already filled in (spec: Completion).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct CompletionContext {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Members<String>>,
}

/// Result of `completion/complete` (spec: Completion).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CompleteResult {
    pub completion: Completion,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// Completion values, at most 100 (spec: Completion).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct Completion {
    pub values: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub has_more: Option<bool>,
}

/// A completion with these values, best first.
impl From<Vec<String>> for Completion {
    fn from(values: Vec<String>) -> Self {
        Self { values, ..Self::default() }
    }
}
