//! What each side says that it can do. A capability that is there, even as `{}`, is declared.

use serde::{Deserialize, Serialize};

use super::{Members, Raw};

/// What a client can do (spec: Capabilities).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct ClientCapabilities {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub experimental: Option<Members<Raw>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roots: Option<RootsCapability>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling: Option<SamplingCapability>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elicitation: Option<ElicitationCapability>,
    /// In 2025-11-25 only; later tasks are an extension.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<TasksCapability>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extensions: Option<Members<Raw>>,
}

/// What a server can do (spec: Capabilities).
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
    /// In 2025-11-25 only; later tasks are an extension.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<TasksCapability>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extensions: Option<Members<Raw>>,
}

/// That a client has roots, and before 2026-07-28 whether it tells when they change (spec: Roots).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RootsCapability {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
}

/// What of sampling a client can do (spec: Sampling).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct SamplingCapability {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<Raw>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Raw>,
}

/// The modes of elicitation a client knows; neither named means `form` (spec: Elicitation).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct ElicitationCapability {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form: Option<Raw>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<Raw>,
}

/// That a server has tools or prompts, and whether it tells when they change (spec: Tools, Prompts).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListCapability {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
}

/// That a server has resources, and what it tells of their changes (spec: Resources).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourcesCapability {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscribe: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
}

/// Which requests may become tasks, and what can be done with these (spec 2025-11-25: Tasks).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct TasksCapability {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list: Option<Raw>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancel: Option<Raw>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<TaskRequestsCapability>,
}

/// The requests that may become tasks, by feature (spec 2025-11-25: Tasks).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct TaskRequestsCapability {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<TaskToolsCapability>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling: Option<TaskSamplingCapability>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elicitation: Option<TaskElicitationCapability>,
}

/// Whether `tools/call` may become a task (spec 2025-11-25: Tasks).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct TaskToolsCapability {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<Raw>,
}

/// Whether `sampling/createMessage` may become a task (spec 2025-11-25: Tasks).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskSamplingCapability {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub create_message: Option<Raw>,
}

/// Whether `elicitation/create` may become a task (spec 2025-11-25: Tasks).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct TaskElicitationCapability {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub create: Option<Raw>,
}

/// The data of -32021: what the client would have to declare (spec: Errors).
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MissingRequiredClientCapabilityData {
    pub required_capabilities: ClientCapabilities,
}
