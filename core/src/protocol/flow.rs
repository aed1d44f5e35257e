//! What is said about a request in flight: how far it is, and that nobody waits for it any more.

use serde::{Deserialize, Serialize};
use serde_json::Number;

use super::Raw;

/// What `notifications/progress` says (spec: Progress).
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProgressNotificationParams {
    /// A string or a number, as the request gave it.
    pub progress_token: Raw,
    pub progress: Number,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// What `notifications/cancelled` says (spec: Cancellation).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CancelledNotificationParams {
    /// A string or an integer; only 2025-11-25 may leave it out, for a task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<Raw>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}
