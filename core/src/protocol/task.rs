//! Tasks as defined in the core of 2025-11-25. The later tasks extension has a vocabulary of its own.

use serde::{Deserialize, Serialize};

use super::Raw;

/// The key in `_meta` that names the task of a message; its value is a [`RelatedTaskMetadata`].
pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
/// The key in a [`CreateTaskResult`]'s `_meta` with a text for the model until the task completes.
pub const MODEL_IMMEDIATE_RESPONSE: &str = "io.modelcontextprotocol/model-immediate-response";

/// A request's `task` member, which asks for the request to be run as a task (spec 2025-11-25: Tasks).
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct TaskMetadata {
    /// The time to keep the task and its result, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl: Option<u64>,
}

/// A tool's support for being called as a task (spec 2025-11-25: Tasks).
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct ToolExecution {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_support: Option<TaskSupport>,
}

/// The values of [`ToolExecution`] (spec 2025-11-25: Tasks).
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub enum TaskSupport {
    Forbidden,
    Optional,
    Required,
}

/// The state of a task (spec 2025-11-25: Tasks).
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    Working,
    InputRequired,
    Completed,
    Failed,
    Cancelled,
}

/// A task: a request whose result is fetched later (spec 2025-11-25: Tasks).
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(clippy::struct_field_names, reason = "the specification's names")]
pub struct Task {
    pub task_id: String,
    pub status: TaskStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_message: Option<String>,
    /// A time in ISO 8601, like the next one.
    pub created_at: String,
    pub last_updated_at: String,
    /// The lifetime in milliseconds from the creation; `null` means unlimited.
    pub ttl: Option<u64>,
    /// The recommended interval between polls, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub poll_interval: Option<u64>,
    /// Present only if the task is itself a result or a notification.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// Result of a request that became a task (spec 2025-11-25: Tasks).
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct CreateTaskResult {
    pub task: Task,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// Params of `tasks/get`, `tasks/result` and `tasks/cancel` (spec 2025-11-25: Tasks).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskRequestParams {
    pub task_id: String,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// Result of `tasks/list` (spec 2025-11-25: Tasks).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListTasksResult {
    pub tasks: Vec<Task>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// The task that a message belongs to (spec 2025-11-25: Tasks).
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RelatedTaskMetadata {
    pub task_id: String,
}

/// Result of `tasks/get` (spec 2025-11-25: Tasks).
pub type GetTaskResult = Task;
/// Result of `tasks/cancel` (spec 2025-11-25: Tasks).
pub type CancelTaskResult = Task;
/// Params of `notifications/tasks/status` (spec 2025-11-25: Tasks).
pub type TaskStatusNotificationParams = Task;
/// Result of `tasks/result`: the result of the original request (spec 2025-11-25: Tasks).
pub type GetTaskPayloadResult = Raw;
