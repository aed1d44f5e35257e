//! Notifications about a request in progress: progress and cancellation.

use serde::{Deserialize, Serialize};
use serde_json::Number;

use super::Raw;

/// Params of `notifications/progress` (spec: Progress).
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProgressNotificationParams {
    /// A string or a number, exactly as in the request.
    pub progress_token: Raw,
    pub progress: Number,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// Params of `notifications/cancelled` (spec: Cancellation).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CancelledNotificationParams {
    /// A string or an integer; optional in 2025-11-25 only, where tasks are cancelled otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<Raw>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}
