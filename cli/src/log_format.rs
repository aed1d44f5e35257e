//! The format of the log on standard error.

use std::{
    env,
    time::{SystemTime, UNIX_EPOCH},
};

use clap::ValueEnum;
use gudgeon::log_events::{LOG_FORMAT, json_line};
use serde_json::{Map, json};

use crate::output;

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum LogFormat {
    /// Lines for people
    Text,
    /// One JSON object a line
    Json,
}

impl LogFormat {
    /// Returns the format that the environment names.
    pub fn of_environment() -> Self {
        match env::var_os(LOG_FORMAT) {
            Some(format) if format == "json" => Self::Json,
            _ => Self::Text,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }

    /// Writes that a server listens at this URL. In text the URL has a line of its own, because programs that start servers
    /// read it.
    pub fn announce(self, name: &str, url: &str) {
        match self {
            Self::Text => output::note(format_args!("{name} serves (Ctrl-C ends it)\n{url}")),
            Self::Json => {
                let fields = json!({ "event": "server.started", "server": name, "url": url });
                let fields: Map<_, _> = fields.as_object().cloned().unwrap_or_default();
                let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                let text = format!("{name} serves {url}");
                output::note(format_args!("{}", json_line(unix.as_secs(), "info", &text, fields)));
            }
        }
    }
}
