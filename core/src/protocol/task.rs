//! Tasks as 2025-11-25 had them in its core. The later extension of that name has its own vocabulary.

use serde::{Deserialize, Serialize};

use super::Raw;

/// The key in `_meta` that says which task a message belongs to; its value is a [`RelatedTaskMetadata`].
pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
/// The key in a [`CreateTaskResult`]'s `_meta` for what the model may be told meanwhile.
pub const MODEL_IMMEDIATE_RESPONSE: &str = "io.modelcontextprotocol/model-immediate-response";

/// A request's wish to become a task (spec 2025-11-25: Tasks).
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct TaskMetadata {
    /// Milliseconds that the task and its result are to be kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl: Option<u64>,
}

/// Whether a tool may, or must, be called as a task (spec 2025-11-25: Tasks).
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolExecution {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_support: Option<TaskSupport>,
}

/// The values of [`ToolExecution`] (spec 2025-11-25: Tasks).
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskSupport {
    Forbidden,
    Optional,
    Required,
}

/// How far a task is (spec 2025-11-25: Tasks).
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    Working,
    InputRequired,
    Completed,
    Failed,
    Cancelled,
}

/// A request that outlives its answer (spec 2025-11-25: Tasks).
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    pub task_id: String,
    pub status: TaskStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_message: Option<String>,
    /// ISO 8601 times, both.
    pub created_at: String,
    pub last_updated_at: String,
    /// Milliseconds from its creation; `null` is for ever.
    pub ttl: Option<u64>,
    /// Milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub poll_interval: Option<u64>,
    /// Where the task is itself a result or a notification.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// What a request that became a task answers (spec 2025-11-25: Tasks).
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct CreateTaskResult {
    pub task: Task,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// What `tasks/get`, `tasks/result` and `tasks/cancel` ask (spec 2025-11-25: Tasks).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskRequestParams {
    pub task_id: String,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// What `tasks/list` answers (spec 2025-11-25: Tasks).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListTasksResult {
    pub tasks: Vec<Task>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// Which task a message belongs to (spec 2025-11-25: Tasks).
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RelatedTaskMetadata {
    pub task_id: String,
}

/// What `tasks/get` answers (spec 2025-11-25: Tasks).
pub type GetTaskResult = Task;
/// What `tasks/cancel` answers (spec 2025-11-25: Tasks).
pub type CancelTaskResult = Task;
/// What `notifications/tasks/status` says (spec 2025-11-25: Tasks).
pub type TaskStatusNotificationParams = Task;
/// What `tasks/result` answers: whatever the request itself would have (spec 2025-11-25: Tasks).
pub type GetTaskPayloadResult = Raw;
