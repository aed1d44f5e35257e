//! Progress and log messages of a server, on their way through the background process to a command.

use gudgeon::{
    client::{LogMessage, Progress},
    protocol::Raw,
};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use super::message::{notification, raw};
use crate::{interaction::log_line, notices::Notices};

const PROGRESS: &str = "notifications/progress";
const LOG: &str = "notifications/message";

/// Returns the notification of a step of a request with this progress token.
pub fn progress(step: &Progress, token: &Value) -> String {
    let mut params = json!({ "progressToken": token, "progress": step.progress });
    if let Some(total) = step.total {
        params["total"] = total.into();
    }
    if let Some(message) = &step.message {
        params["message"] = message.as_str().into();
    }
    notification(PROGRESS, &raw(&params))
}

/// Returns the notification of a log message.
pub fn log(message: &LogMessage) -> String {
    let mut params = json!({ "level": message.level, "data": message.data });
    if let Some(logger) = &message.logger {
        params["logger"] = logger.as_str().into();
    }
    notification(LOG, &raw(&params))
}

/// Shows a notification to the user of the command.
pub fn show(method: &str, params: Option<&RawValue>, notices: &Notices) {
    #[derive(Deserialize)]
    struct ProgressParams {
        progress: f64,
        total: Option<f64>,
        message: Option<String>,
    }
    #[derive(Deserialize)]
    struct Log {
        level: gudgeon::LoggingLevel,
        logger: Option<String>,
        data: Raw,
    }
    let params = params.map_or("{}", RawValue::get);
    if notices.is_quiet() {
        return;
    }
    if method == PROGRESS
        && let Ok(ProgressParams { progress, total, message }) = serde_json::from_str(params)
    {
        notices.progress(&Progress { progress, total, message });
    } else if method == LOG
        && let Ok(Log { level, logger, data }) = serde_json::from_str(params)
    {
        notices.line(&log_line(&LogMessage { level, logger, data }));
    }
}
