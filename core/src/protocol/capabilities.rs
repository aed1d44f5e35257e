//! The capabilities that each side declares. A capability that is present, even as `{}`, is declared.

use serde::{Deserialize, Serialize};

use super::{Members, Raw};

/// Capabilities of a client (spec: Capabilities).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct ClientCapabilities {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub experimental: Option<Members<Raw>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roots: Option<RootsCapability>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling: Option<SamplingCapability>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elicitation: Option<ElicitationCapability>,
    /// Defined in 2025-11-25 only; later, tasks are an extension.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<TasksCapability>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extensions: Option<Members<Raw>>,
}

/// Capabilities of a server (spec: Capabilities).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct ServerCapabilities {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub experimental: Option<Members<Raw>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logging: Option<Raw>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completions: Option<Raw>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompts: Option<ListCapability>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourcesCapability>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<ListCapability>,
    /// Defined in 2025-11-25 only; later, tasks are an extension.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<TasksCapability>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extensions: Option<Members<Raw>>,
}

/// Declares that a client has roots and, before 2026-07-28, whether it notifies of changes to them (spec: Roots).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct RootsCapability {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
}

/// The features of sampling that a client supports (spec: Sampling).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct SamplingCapability {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<Raw>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Raw>,
}

/// The modes of elicitation that a client supports; with neither given, `form` is supported (spec: Elicitation).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct ElicitationCapability {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form: Option<Raw>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<Raw>,
}

/// Declares that a server has tools or prompts, and whether it notifies of changes to them (spec: Tools, Prompts).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListCapability {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
}

/// Declares that a server has resources, and of which changes it notifies (spec: Resources).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourcesCapability {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscribe: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
}

/// The requests that can become tasks, and the operations on tasks (spec 2025-11-25: Tasks).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct TasksCapability {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list: Option<Raw>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancel: Option<Raw>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<TaskRequestsCapability>,
}

/// The requests that can become tasks, by feature (spec 2025-11-25: Tasks).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct TaskRequestsCapability {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<TaskToolsCapability>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling: Option<TaskSamplingCapability>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elicitation: Option<TaskElicitationCapability>,
}

/// Declares whether `tools/call` can become a task (spec 2025-11-25: Tasks).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct TaskToolsCapability {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<Raw>,
}

/// Declares whether `sampling/createMessage` can become a task (spec 2025-11-25: Tasks).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskSamplingCapability {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub create_message: Option<Raw>,
}

/// Declares whether `elicitation/create` can become a task (spec 2025-11-25: Tasks).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct TaskElicitationCapability {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub create: Option<Raw>,
}

/// The data of error -32021: the capabilities that the client would have to declare (spec: Errors).
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MissingRequiredClientCapabilityData {
    pub required_capabilities: ClientCapabilities,
}
